"""What the supervisor tells, and to whom: the types at its door.

All hooks but `persist` are plain functions: they put something into an inbox and return. A hook that raises takes the
supervisor with it.
"""

from typing import Literal, Protocol

import msgspec

from state.records import LinkId, RuntimeId, RuntimeRecord
from termald.codex.handshake import ServerInfo
from termald.codex.lines import Oversize
from termald.codex.process import ExitReport, Transport

RuntimeState = Literal["stopped", "starting", "ready", "backoff", "broken", "stopping"]
ExitCause = Literal["exited", "restart", "stop", "start-failed", "unresponsive", "not-adoptable", "gone"]
"""Why a process is no more. `exited`: by itself. `restart`, `stop`: asked for. `start-failed`: it never answered.
`unresponsive`: it lived and could not be talked to. `not-adoptable`: an earlier daemon's, for another home or without a
socket. `gone`: an earlier daemon's, and already dead."""


class LinkUp(msgspec.Struct, frozen=True, kw_only=True):
    """A connection is initialised and is now the current one.

    `adopted`: the process lived before this connection did.
    """

    link: LinkId
    info: ServerInfo
    adopted: bool


class RuntimeExit(msgspec.Struct, frozen=True, kw_only=True):
    """A process is gone, with all that it started, and everything that it had said was handed on before."""

    runtime_id: RuntimeId
    cause: ExitCause
    reason: str
    report: ExitReport
    left_behind: tuple[int, ...] = ()
    """Members of its family that could not be ended: the system itself holds them up."""


class RuntimeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to say about the one process. `slug` and `reason`: why it is `backoff` or `broken`."""

    state: RuntimeState
    runtime_id: RuntimeId | None = None
    pid: int | None = None
    transport: Transport | None = None
    adopted: bool = False
    started_at_ms: int | None = None
    codex_version: str | None = None
    codex_home: str | None = None
    restarts: int = 0
    slug: str | None = None
    reason: str | None = None
    retry_in_s: float | None = None
    last_exit: RuntimeExit | None = None


class RuntimeHooks(Protocol):
    """Who is told.

    For one process: `persist` first, links in order, each frame under its link, and one exit at the end.
    """

    async def persist(self, record: RuntimeRecord) -> None:
        """Remember the process durably; it is used after this returns.

        An error ends it again and comes out of `run`.
        """
        ...

    def on_status(self, status: RuntimeStatus) -> None:
        """The state changed."""
        ...

    def on_link_up(self, up: LinkUp) -> None:
        """Frames may be sent over this link from now on, and over no other."""
        ...

    def on_frame(self, link: LinkId, raw: bytes | Oversize) -> None:
        """Something arrived over the link, which may not be the current one any more."""
        ...

    def on_link_lost(self, link: LinkId, reason: str) -> None:
        """The link ended and the process lives."""
        ...

    def on_exit(self, exit_: RuntimeExit) -> None:
        """The process is gone. Once for each that was persisted, and for each that was found in the record."""
        ...
