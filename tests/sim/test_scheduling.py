"""A run is its seed: the same twice, and another one with another seed, also in another process."""

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import trio
import trio._core._run as run_loop
from support.sim_run import simulate
from support.sim_scheduling import run_seeded, seeded_scheduling

SEED = 3


def digest(seed: int) -> str:
    """Return what a whole run comes to, frame by frame."""
    trace = run_seeded(lambda: simulate(seed), seed).trace
    return hashlib.sha256("\n".join(trace).encode()).hexdigest()


def order_of(seed: int) -> tuple[int, ...]:
    """Return the order in which tasks that are all ready get their turns."""
    order: list[int] = []

    async def take_turns(number: int) -> None:
        for _ in range(5):
            order.append(number)
            await trio.lowlevel.checkpoint()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(take_turns, number)

    run_seeded(main, seed)
    return tuple(order)


def test_the_private_names_of_trio_are_where_they_were() -> None:
    """A release that moves them would make every run its own, and no failing seed could be repeated."""
    loop: Any = run_loop
    before = loop._ALLOW_DETERMINISTIC_SCHEDULING, loop._r
    assert (type(before[0]), type(before[1])) == (bool, random.Random)
    with seeded_scheduling(1):
        assert loop._ALLOW_DETERMINISTIC_SCHEDULING is True
        assert loop._r is not before[1]
    assert (loop._ALLOW_DETERMINISTIC_SCHEDULING, loop._r) == before


def test_tasks_take_turns_as_the_seed_says() -> None:
    orders = [order_of(seed) for seed in range(30)]
    assert orders == [order_of(seed) for seed in range(30)]
    assert len(set(orders)) == 30


def test_the_same_seed_is_the_same_run_and_another_is_another() -> None:
    assert digest(SEED) == digest(SEED)
    assert digest(SEED) != digest(SEED + 1)


def test_a_run_is_the_same_in_another_process_with_other_hashes() -> None:
    """What depends on the order of a set would make a failing seed one that fails here only."""
    tests = Path(__file__).parent.parent
    program = (
        f"import sys; sys.path.insert(0, {str(tests)!r})\nfrom sim.test_scheduling import digest; print(digest({SEED}))"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hashes, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for hashes in ("1", "2")
    }
    assert len(digests) == 1
