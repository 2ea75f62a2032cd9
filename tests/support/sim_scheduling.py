"""The same run from the same seed: trio's order of tasks, drawn from a dice of ours, and its clock, which jumps.

trio orders each batch of runnable tasks by chance. Two names of its run loop, both private, make that chance ours;
`tests/sim/test_scheduling.py` fails if a release of trio moves them. A thread would come back when it likes: nothing in
a seeded run may start one, so what is given to a thread is done at once.
"""

import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar
from unittest import mock

import trio
import trio._core._run as run_loop
from trio.testing import MockClock

T = TypeVar("T")


@contextmanager
def seeded_scheduling(seed: object) -> Iterator[None]:
    """Let the order of tasks be drawn from this seed, whatever it is, for as long as the block runs."""
    loop: Any = run_loop
    before = loop._ALLOW_DETERMINISTIC_SCHEDULING, loop._r
    loop._ALLOW_DETERMINISTIC_SCHEDULING, loop._r = True, Random(repr(seed))
    try:
        yield
    finally:
        loop._ALLOW_DETERMINISTIC_SCHEDULING, loop._r = before


def run_seeded(
    main: Callable[[], Awaitable[T]], seed: object, *, instruments: tuple[trio.abc.Instrument, ...] = ()
) -> T:
    """Run to the end on a clock that jumps whenever everybody waits."""
    dice = Random(f"ids {seed!r}")
    with (
        seeded_scheduling(seed),
        mock.patch.object(trio.to_thread, "run_sync", _at_once),
        mock.patch.object(uuid, "uuid4", lambda: uuid.UUID(int=dice.getrandbits(128), version=4)),
    ):
        return trio.run(main, clock=MockClock(autojump_threshold=0), instruments=instruments)


def failure_of(run: Callable[[], object]) -> Exception | None:
    """Run something, and return the first failure of the group that comes out of it; None if there is none."""
    try:
        run()
    except BaseException as group:
        error = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, Exception):
            return error
        raise
    return None


async def _at_once(call: Callable[..., T], *args: Any, **how: Any) -> T:
    await trio.lowlevel.checkpoint()
    return call(*args)
