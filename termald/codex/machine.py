"""What the supervision asks of the machine: programs, processes and sockets. The real one; tests bring their own."""

from pathlib import Path
from typing import Protocol

import trio

from termald.codex.binary import supports_unix_listen
from termald.codex.control_socket import connect_control_socket
from termald.codex.identity import ProcessIdentity, find_listening, find_marked, is_alive
from termald.codex.link import Link
from termald.codex.process import ExitReport, Launch, Pipes, adopt, end_family, spawn
from termald.codex.stdio import StdioLink


class RunningProcess(Protocol):
    """What a runtime needs of its process: `process.CodexProcess`, or a test's."""

    @property
    def identity(self) -> ProcessIdentity: ...
    @property
    def pipes(self) -> Pipes | None: ...
    async def tend(self) -> None: ...
    async def wait(self) -> None: ...
    def report(self) -> ExitReport: ...
    async def end(self, *, term_s: float, kill_s: float) -> frozenset[ProcessIdentity]: ...
    def disown(self) -> None: ...


class Machine(Protocol):
    """One place for everything that a process in memory would do differently."""

    async def supports_unix(self, binary: Path) -> bool:
        """Say whether this binary can listen on a control socket. Errors: `codex-unusable`."""
        ...

    async def listening(self, socket: Path) -> list[ProcessIdentity]:
        """Return the app-servers that were told to listen here."""
        ...

    async def spawn(self, launch: Launch) -> RunningProcess:
        """Start one. Errors: `codex-unusable`."""
        ...

    async def connect(self, nursery: trio.Nursery, process: RunningProcess, socket: Path) -> Link:
        """Return a new link to it; over its pipes there is but one. Errors: `LinkClosed`."""
        ...

    def is_alive(self, identity: ProcessIdentity) -> bool:
        """Say whether this very process runs."""
        ...

    async def is_ours(self, identity: ProcessIdentity, mark: str, socket: Path | None) -> bool:
        """Say whether it still is the app-server that was started: by its mark, or by what it was told."""
        ...

    def adopt(self, identity: ProcessIdentity, mark: str, stderr_log: Path) -> RunningProcess:
        """Return a process that an earlier daemon started, and that listens on the control socket."""
        ...

    async def end_family(self, leader: ProcessIdentity, mark: str | None, *, term_s: float, kill_s: float) -> None:
        """End it and what it started, within the two deadlines; also where it is gone already."""
        ...


class RealMachine:
    """This one."""

    async def supports_unix(self, binary: Path) -> bool:
        return await supports_unix_listen(binary)

    async def listening(self, socket: Path) -> list[ProcessIdentity]:
        return await trio.to_thread.run_sync(lambda: list(find_listening(socket)))

    async def spawn(self, launch: Launch) -> RunningProcess:
        return await spawn(launch)

    async def connect(self, nursery: trio.Nursery, process: RunningProcess, socket: Path) -> Link:
        if process.pipes is not None:
            return StdioLink(process.pipes.to_codex, process.pipes.from_codex)
        return await connect_control_socket(nursery, socket)

    def is_alive(self, identity: ProcessIdentity) -> bool:
        return is_alive(identity)

    async def is_ours(self, identity: ProcessIdentity, mark: str, socket: Path | None) -> bool:
        return await trio.to_thread.run_sync(_is_ours, identity, mark, socket)

    def adopt(self, identity: ProcessIdentity, mark: str, stderr_log: Path) -> RunningProcess:
        return adopt(identity, mark, stderr_log)

    async def end_family(self, leader: ProcessIdentity, mark: str | None, *, term_s: float, kill_s: float) -> None:
        await end_family(leader, mark, term_s=term_s, kill_s=kill_s)


def _is_ours(identity: ProcessIdentity, mark: str, socket: Path | None) -> bool:
    if identity in set(find_marked(mark)):
        return True
    return socket is not None and identity in set(find_listening(socket))
