"""What the API sees of the daemon: ask, read, listen. Nothing else is reachable from a request handler.

The composition root implements it; tests implement it in memory.
"""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec
import trio

from state.records import Host, RuntimeId, ThreadId
from termald.core.effects import Answer
from termald.core.inputs import Command, Ticket

if TYPE_CHECKING:
    from discovery.lookup import Held
    from state.store import Store
    from termald.hub import Hub


class RuntimeView(msgspec.Struct, frozen=True, kw_only=True):
    """The supervised process as it stands. `pid` is None while there is none; `reason` says why it is not ready."""

    status: Literal["stopped", "starting", "ready", "backoff", "broken", "stopping"]
    id: RuntimeId | None = None
    pid: int | None = None
    started_at_ms: int | None = None
    transport: Literal["unix", "stdio"] = "unix"
    adopted: bool = False
    codex_version: str | None = None
    codex_home: str = ""
    restarts: int = 0
    last_exit_json: str | None = None
    reason: str | None = None


class DiscoveryView(msgspec.Struct, frozen=True, kw_only=True):
    """The last scan, or the running one. Counts are of threads; `report_json` is the scanner's report."""

    status: Literal["idle", "scanning", "failed"]
    started_at_ms: int | None = None
    finished_at_ms: int | None = None
    report_json: str | None = None
    reason: str | None = None


class Engine(Protocol):
    """The daemon behind the API."""

    @property
    def host(self) -> Host:
        """Who we are."""

    @property
    def store(self) -> "Store":
        """Committed rows. A read after an answer sees what was answered."""

    @property
    def hub(self) -> "Hub":
        """Live events."""

    @property
    def runtime(self) -> RuntimeView:
        """The process."""

    @property
    def discovery(self) -> DiscoveryView:
        """The scanner."""

    @property
    def accepting(self) -> trio.Event:
        """Set once what was live before the start is settled or adopted; commands wait for it."""

    async def ask(self, command: Callable[[Ticket, int], Command]) -> Answer:
        """Put a command into the inbox and return its answer, which follows the commit.

        `command` is given the ticket and the time (Unix ms). Cancelling the wait does not take the command back.
        Errors: none of its own; a refusal is an answer. Once the daemon is stopping every command is refused with
        `starting` or `runtime-unavailable`.
        """

    async def is_folder(self, path: Path) -> bool:
        """Tell whether there is a folder of this name. Errors: `OSError` where it cannot be looked at."""

    async def file_bytes(self, path: Path) -> int | None:
        """Return the size of the file, None where there is none. Errors: `OSError` where it cannot be looked at."""

    def scan_now(self) -> None:
        """Wake the scanner; returns at once. A scan that runs is followed by another."""

    async def look_up(self, threads: Collection[ThreadId]) -> "Mapping[ThreadId, Held]":
        """Return what the files of the home that Codex runs in hold of these threads. Errors: `HomeUnreadable`."""

    async def writers_elsewhere(self) -> "Mapping[ThreadId, int]":
        """Return the threads that another process than our Codex writes now, each with its pid, 0 where it cannot be
        seen. Empty where the kernel does not tell."""

    async def dry_scan(self) -> str:
        """Return what a scan of every home would make of its threads, as JSON. Changes nothing; takes as long as a scan
        does."""
