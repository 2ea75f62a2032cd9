"""One initialised link with its queue: frames leave in the order in which they were given, by one task.

Giving a frame never waits. A queue that is full means that Codex has taken nothing for a long time, or that somebody
here writes without an end: either way the link is given up rather than a frame dropped out of the middle.
"""

from collections.abc import Callable
from typing import Final

import trio

from state.records import LinkId
from termald.codex.errors import LinkClosed
from termald.codex.lines import Oversize
from termald.codex.link import Link, check_size

# 64 requests may be in flight, and each of Codex's is answered once; sixteen times that is no traffic but a fault.
OUTBOX_FRAMES_MAX: Final = 1_024
# What a process or a socket that has ended still holds is read within milliseconds.
DRAIN_DEADLINE_S: Final = 2.0


class Connection:
    """A link while it carries frames. `run` once; `send` from anywhere."""

    def __init__(self, link_id: LinkId, link: Link) -> None:
        self.id = link_id
        self._link = link
        self._put, self._take = trio.open_memory_channel[bytes](OUTBOX_FRAMES_MAX)
        self._reading = trio.CancelScope()
        self._fault: str | None = None

    def send(self, frame: bytes) -> bool:
        """Queue a frame; False if nothing can be written any more.

        Errors: `message-too-large`, and nothing happened.
        """
        check_size(frame)
        if self._fault is not None:
            return False
        try:
            self._put.send_nowait(frame)
        except trio.WouldBlock:
            self._give_up(f"{OUTBOX_FRAMES_MAX:,} frames wait to be written")
            return False
        except trio.ClosedResourceError:
            return False
        return True

    async def run(self, on_frame: Callable[[LinkId, bytes | Oversize], None]) -> str:
        """Carry frames both ways until the link ends; returns why. What arrived before the end is handed on first."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                reason = await self._read(on_frame)
                nursery.cancel_scope.cancel()
        finally:
            self._put.close()
            await self._link.aclose()
        return self._fault or reason

    @property
    def link(self) -> Link:
        """What it runs over."""
        return self._link

    def drain(self) -> None:
        """Read what is still to come, but not for long: nobody is left who would send more."""
        self._reading.deadline = min(self._reading.deadline, trio.current_time() + DRAIN_DEADLINE_S)

    async def _read(self, on_frame: Callable[[LinkId, bytes | Oversize], None]) -> str:
        with self._reading:
            try:
                while True:
                    on_frame(self.id, await self._link.receive())
            except LinkClosed as closed:
                return str(closed)
        return "its output did not end"

    async def _write(self) -> None:
        try:
            async for frame in self._take:
                await self._link.send(frame)
        except LinkClosed as closed:
            self._give_up(str(closed))

    def _give_up(self, fault: str) -> None:
        """Nothing is written any more; what Codex has said already is still read."""
        if self._fault is None:
            self._fault = fault
            self._put.close()
            self.drain()
