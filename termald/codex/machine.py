"""What the supervision asks of the machine: programs, processes and sockets. The real one; tests bring their own."""

from pathlib import Path
from typing import Protocol

import trio

from termald.codex.binary import supports_unix_listen
from termald.codex.control_socket import connect_control_socket
from termald.codex.identity import ProcessIdentity, find_listening
from termald.codex.link import Link
from termald.codex.process import ExitReport, Launch, Pipes, spawn
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
