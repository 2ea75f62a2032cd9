"""One process, from its start or its adoption to its one exit; and the links to it, one after the other.

A lost link is not an exit: as long as the process lives the next link is opened, and only a process that cannot be
talked to is ended. The exit is told in one place, after everything that the process had said was handed on, and after
the last of its family is gone. So whichever comes first, the end of its output, its exit status or a failed write,
makes no difference (RUNTIME-02, RUNTIME-03).
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from state.records import LinkId, RuntimeRecord
from termald.codex.connection import DRAIN_DEADLINE_S, Connection
from termald.codex.errors import CodexFault, LinkClosed
from termald.codex.handshake import HandshakeRefused, ServerInfo, shake_hands
from termald.codex.hooks import ExitCause, LinkUp, RuntimeExit, RuntimeHooks
from termald.codex.lines import Oversize
from termald.codex.link import Answering, Link
from termald.codex.machine import Machine, RunningProcess

# Between the end of a link and the exit status of a process that has died lie microseconds, on a busy machine more.
_EXIT_GRACE_S: Final = 0.5
# A living process is reached in milliseconds; a frozen one is given up after this, several tries included.
_RECONNECT_DEADLINE_S: Final = 20.0
_RECONNECT_PAUSE_MIN_S: Final = 0.02
_RECONNECT_PAUSE_MAX_S: Final = 1.0
# A link that lives shorter than this was no use; after so many of them in a row neither will be the next.
_LINK_STABLE_S: Final = 5.0
_LINKS_UNSTABLE_MAX: Final = 6


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What all runtimes of one supervisor have in common."""

    client_version: str
    start_deadline_s: float
    term_s: float
    kill_s: float
    silence_s: float
    silence_max_s: float
    machine: Machine


class _Opened(msgspec.Struct, frozen=True):
    connection: Connection
    info: ServerInfo
    early: tuple[bytes | Oversize, ...]


class Runtime:
    """The one process of the moment. `run` once; everything else from anywhere, and none of it waits."""

    def __init__(
        self, process: RunningProcess, record: RuntimeRecord, hooks: RuntimeHooks, terms: Terms, *, adopted: bool
    ) -> None:
        self.record = record
        self.adopted = adopted
        self.ready_at: float | None = None
        """When it first could be used, on trio's clock."""
        self._process = process
        self._hooks = hooks
        self._terms = terms
        self._connections = 0
        self._connection: Connection | None = None
        self._opening = trio.CancelScope()
        self._talking = trio.CancelScope()
        self._why: tuple[ExitCause, str] | None = None
        self._left_behind: tuple[int, ...] = ()
        self._end_wanted = trio.Event()
        self._gone = trio.Event()
        self._tended = trio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether frames can be sent at this moment."""
        return self._connection is not None

    def send(self, link: LinkId, frame: bytes) -> bool:
        """Queue a frame; False if `link` is not the current one, so that no frame meets a process it was not meant for.

        Errors: `message-too-large`.
        """
        return self._connection is not None and self._connection.id == link and self._connection.send(frame)

    def end(self, cause: ExitCause, reason: str) -> None:
        """Have the process ended. The first cause stands; what it still says is handed on."""
        if self._why is None:
            self._why = (cause, reason)
            self._end_wanted.set()
            self._opening.cancel()

    def leave(self) -> None:
        """Have `run` return and the process go on."""
        self._talking.cancel()

    async def run(
        self, on_ready: Callable[[ServerInfo], None], on_lost: Callable[[str], None], on_silent: Callable[[str], None]
    ) -> RuntimeExit | None:
        """Live with the process until it is gone, and return its exit; None if it was left alive.

        `on_ready` is called before each `on_link_up`, `on_lost` before each `on_link_lost`. `on_silent`: it answers
        nothing, or cannot any more; `on_ready` when it does again. Cut: a process on pipes is ended, one on a socket is
        left.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._tend)
                nursery.start_soon(self._watch)
                nursery.start_soon(self._end_when_wanted)
                with self._talking:
                    await self._talk(on_ready, on_lost, on_silent)
                if self._gone.is_set():
                    await self._settle()
                nursery.cancel_scope.cancel()
        finally:
            if not self._gone.is_set():
                await self._let_go()
            if self._process.pipes is not None:
                await trio.aclose_forcefully(self._process.pipes.to_codex)
                await trio.aclose_forcefully(self._process.pipes.from_codex)
        if not self._gone.is_set():
            return None
        report = self._process.report()
        cause, reason = self._why or ("exited", str(report))
        return RuntimeExit(
            runtime_id=self.record.runtime_id,
            cause=cause,
            reason=reason,
            report=report,
            left_behind=self._left_behind,
        )

    # --- its links ---

    async def _talk(
        self, on_ready: Callable[[ServerInfo], None], on_lost: Callable[[str], None], on_silent: Callable[[str], None]
    ) -> None:
        """Open one link after the other. Returns when the process is gone, whoever ended it."""
        unstable = 0
        while not self._gone.is_set():
            began = trio.current_time()
            lost = await self._use_link(on_ready, on_silent)
            if lost is None or await self._was_the_end():
                await self._gone.wait()
                return
            link, reason = lost
            if self._process.pipes is not None:
                why = f"there are no other pipes, and {reason}"
                on_silent(why)
                self.end("unresponsive", why)
                continue
            on_lost(reason)
            self._hooks.on_link_lost(link, reason)
            unstable = 0 if trio.current_time() - began > _LINK_STABLE_S else unstable + 1
            if unstable > _LINKS_UNSTABLE_MAX:
                self.end("unresponsive", f"{unstable} links in a row were lost at once; the last: {reason}")

    async def _use_link(
        self, on_ready: Callable[[ServerInfo], None], on_silent: Callable[[str], None]
    ) -> tuple[LinkId, str] | None:
        """Open a link and use it to its end; returns which and why. None if none could be opened, and the process's end
        was asked for."""
        async with trio.open_nursery() as nursery:
            opened = await self._open(nursery)
            if opened is None:
                nursery.cancel_scope.cancel()
                return None
            connection = self._connection = opened.connection
            known = self.adopted or self.ready_at is not None
            if self.ready_at is None:
                self.ready_at = trio.current_time()
            on_ready(opened.info)
            self._hooks.on_link_up(LinkUp(link=connection.id, info=opened.info, adopted=known))
            for raw in opened.early:
                self._hooks.on_frame(connection.id, raw)
            if self._gone.is_set():
                connection.drain()
            nursery.start_soon(self._keep_asking, connection.link, partial(on_ready, opened.info), on_silent)
            try:
                reason = await connection.run(self._hooks.on_frame)
            finally:
                self._connection = None
            nursery.cancel_scope.cancel()
        return connection.id, reason

    async def _keep_asking(self, link: Link, on_ready: Callable[[], None], on_silent: Callable[[str], None]) -> None:
        """Ask whether it still reads, for as long as the link lasts. A stopped process keeps its link and answers
        nothing: nobody would hear of it who does not ask it for something, and it holds every thread."""
        if not isinstance(link, Answering):
            return
        silence_s, most_s = self._terms.silence_s, self._terms.silence_max_s
        async with trio.open_nursery() as nursery:
            while True:
                await trio.sleep(silence_s)
                answered = trio.Event()
                # Not cut at a deadline of ours, which could leave half a frame in the link.
                nursery.start_soon(_ask, link, answered)
                if await _came(answered, silence_s) or self._end_wanted.is_set():
                    continue
                on_silent(f"it has answered nothing for {silence_s:g} s")
                if not await _came(answered, most_s - silence_s):
                    self.end("unresponsive", f"it has answered nothing for {most_s:g} s")
                    return
                if not self._end_wanted.is_set():
                    on_ready()

    async def _open(self, nursery: trio.Nursery) -> _Opened | None:
        """Connect and shake hands, again and again within the deadline.

        None: the end was asked for, here or elsewhere.
        """
        fresh = not self.adopted and self.ready_at is None
        deadline_s = self._terms.start_deadline_s if fresh else _RECONNECT_DEADLINE_S
        self._opening = trio.CancelScope(deadline=trio.current_time() + deadline_s)
        if self._gone.is_set() or self._end_wanted.is_set():
            return None
        reason = "it never answered"
        pause_s = _RECONNECT_PAUSE_MIN_S
        with self._opening:
            while True:
                try:
                    return await self._try_open(nursery)
                except LinkClosed as closed:
                    reason = str(closed)
                except CodexFault as fault:
                    reason = str(fault)
                    break
                if self._process.pipes is not None:
                    break
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, _RECONNECT_PAUSE_MAX_S)
        if not await self._was_the_end():
            self.end("start-failed" if fresh else "unresponsive", reason)
        return None

    async def _try_open(self, nursery: trio.Nursery) -> _Opened:
        link = await self._terms.machine.connect(nursery, self._process, Path(self.record.socket or ""))
        usable = False
        try:
            info, early = await shake_hands(link, self._terms.client_version)
            usable = True
        finally:
            if not usable:
                await link.aclose()
        if not _same_folder(info.codex_home, self.record.codex_home):
            await link.aclose()
            raise HandshakeRefused(f"it serves {info.codex_home!r}, not {self.record.codex_home!r}")
        self._connections += 1
        number = LinkId(runtime_id=self.record.runtime_id, connection=self._connections)
        return _Opened(Connection(number, link), info, early)

    async def _was_the_end(self) -> bool:
        """Say whether the process is gone, or about to be, now that its link has ended."""
        with trio.move_on_after(_EXIT_GRACE_S):
            await self._gone.wait()
        return self._gone.is_set() or self._end_wanted.is_set()

    # --- its end ---

    async def _watch(self) -> None:
        await self._process.wait()
        self._gone.set()
        self._opening.cancel()
        if self._connection is not None:
            self._connection.drain()

    async def _end_when_wanted(self) -> None:
        await self._end_wanted.wait()
        await self._process.end(term_s=self._terms.term_s, kill_s=self._terms.kill_s)

    async def _tend(self) -> None:
        await self._process.tend()
        self._tended.set()

    async def _settle(self) -> None:
        """End what the process left behind, and read what it said last on standard error."""
        survivors = await self._process.end(term_s=0, kill_s=self._terms.kill_s)
        self._left_behind = tuple(sorted(survivor.pid for survivor in survivors))
        if self._process.pipes is not None:
            with trio.move_on_after(DRAIN_DEADLINE_S):
                await self._tended.wait()

    async def _let_go(self) -> None:
        """Bounded by the two deadlines; may not be cut, or a process would be left that nobody can talk to."""
        if self._process.pipes is not None:
            with trio.CancelScope(shield=True):
                await self._process.end(term_s=self._terms.term_s, kill_s=self._terms.kill_s)
        else:
            self._process.disown()


async def _ask(link: Answering, answered: trio.Event) -> None:
    with suppress(LinkClosed):  # whoever reads from it is told
        await link.ping()
        answered.set()


async def _came(event: trio.Event, within_s: float) -> bool:
    with trio.move_on_after(within_s):
        await event.wait()
    return event.is_set()


def _same_folder(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()
