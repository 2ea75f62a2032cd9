"""A supervisor in a test: what it told, in order, and a way to wait for it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec
import trio

from state.records import LinkId, RuntimeId, RuntimeRecord
from termald.codex.binary import CodexBinary
from termald.codex.frames import encode_request
from termald.codex.hooks import LinkUp, RuntimeExit, RuntimeState, RuntimeStatus
from termald.codex.lines import Oversize
from termald.codex.process import Transport
from termald.codex.supervisor import Plan, Supervisor, World
from termald.limits import CodexLimits

T = TypeVar("T")

# Short enough for a test, long enough for a process on a busy machine.
QUICK = CodexLimits(backoff_first_ms=10, backoff_max_ms=50, start_deadline_ms=5_000, stop_deadline_ms=1_000)


class Lost(msgspec.Struct, frozen=True):
    link: LinkId
    reason: str


class Came(msgspec.Struct, frozen=True):
    link: LinkId
    raw: bytes | Oversize


class Recorder:
    """Hooks that keep everything: `told` is all of it in order, `RuntimeStatus` included."""

    def __init__(self) -> None:
        self.told: list[RuntimeRecord | RuntimeStatus | LinkUp | Came | Lost | RuntimeExit] = []
        self.persist_fails = False
        self._changed = trio.Event()

    async def persist(self, record: RuntimeRecord) -> None:
        await trio.lowlevel.checkpoint()
        if self.persist_fails:
            raise OSError("no space left")
        self._tell(record)

    def on_status(self, status: RuntimeStatus) -> None:
        self._tell(status)

    def on_link_up(self, up: LinkUp) -> None:
        self._tell(up)

    def on_frame(self, link: LinkId, raw: bytes | Oversize) -> None:
        self._tell(Came(link, raw))

    def on_link_lost(self, link: LinkId, reason: str) -> None:
        self._tell(Lost(link, reason))

    def on_exit(self, exit_: RuntimeExit) -> None:
        self._tell(exit_)

    def all(self, kind: type[T]) -> list[T]:
        """Everything of this kind so far."""
        return [entry for entry in self.told if isinstance(entry, kind)]

    @property
    def states(self) -> list[RuntimeState]:
        """The states in order, a repeated one once."""
        states = [status.state for status in self.all(RuntimeStatus)]
        return [state for before, state in zip([None, *states], states, strict=False) if state != before]

    async def until(self, condition: Callable[[], bool], *, deadline_s: float = 15.0) -> None:
        """Return once the condition holds; looked at whenever something was told."""
        with trio.fail_after(deadline_s):
            while not condition():
                await self._changed.wait()

    async def nth(self, kind: type[T], number: int = 1, *, deadline_s: float = 15.0) -> T:
        """Return the n-th of this kind, once it was told."""
        await self.until(lambda: len(self.all(kind)) >= number, deadline_s=deadline_s)
        return self.all(kind)[number - 1]

    def _tell(self, entry: RuntimeRecord | RuntimeStatus | LinkUp | Came | Lost | RuntimeExit) -> None:
        self.told.append(entry)
        self._changed.set()
        self._changed = trio.Event()


class Supervised(msgspec.Struct, frozen=True):
    """A running supervisor and what it told."""

    supervisor: Supervisor
    told: Recorder

    def ask(self, link: LinkId, method: str, **params: Any) -> bool:
        """Send a request; whether it was taken."""
        return self.supervisor.send(link, encode_request(1, method, params))

    async def ready(self, number: int = 1) -> LinkUp:
        """Return the n-th link, once it is up."""
        return await self.told.nth(LinkUp, number)


def runtime_ids(prefix: str = "run") -> Callable[[], RuntimeId]:
    """Return a source of ids: `run-1`, `run-2`, …"""
    numbers = count(1)
    return lambda: RuntimeId(f"{prefix}-{next(numbers)}")


@asynccontextmanager
async def supervising(
    binary: Path,
    folder: Path,
    *,
    record: RuntimeRecord | None = None,
    transport: Transport = "unix",
    limits: CodexLimits = QUICK,
    prefix: str = "run",
    told: Recorder | None = None,
    leave: bool = False,
    **world: Any,
) -> AsyncIterator[Supervised]:
    """Run a supervisor over this binary, with its home and runtime folder under `folder`; stopped at the end."""
    home = folder / "home"
    home.mkdir(exist_ok=True)

    async def find() -> CodexBinary:
        await trio.lowlevel.checkpoint()
        return CodexBinary(path=binary, version="9.9.9", origin="setting")

    plan = Plan(
        find=world.pop("find", find),
        transport=transport,
        codex_home=home,
        runtime_folder=folder,
        config=("features.shell_snapshot=false",),
        client_version="0.0.test",
    )
    told = told or Recorder()
    outside = World(
        random=world.pop("random", Random(1)), now_ms=lambda: 1_000, new_runtime_id=runtime_ids(prefix), **world
    )
    supervisor = Supervisor(plan, limits, told, outside)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervisor.run, record)
        try:
            yield Supervised(supervisor, told)
        finally:
            with trio.CancelScope(shield=True):
                await supervisor.stop(leave=leave)


def payload(came: Came) -> Any:
    """What a frame says."""
    assert isinstance(came.raw, bytes)
    return msgspec.json.decode(came.raw)
