"""A machine whose app-servers are scripted ones, in memory: what the supervision finds, starts, adopts and ends.

It outlives the daemon, as the real one does. That there is never a second app-server is checked at every start.
"""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import trio
from support.scripted_codex import ScriptedCodex
from support.scripted_codex_faults import Faults
from support.scripted_codex_home import CodexHome
from support.scripted_codex_links import PipeConnection, SocketConnection
from support.sim_store import DaemonDied

from termald.codex.errors import CodexUnusable, LinkClosed
from termald.codex.identity import ProcessIdentity
from termald.codex.link import Link
from termald.codex.machine import RunningProcess
from termald.codex.process import ExitReport, Launch, Pipes
from termald.codex.stdio import StdioLink

FIRST_TERM_S = 0.5


class SimProcess:
    """A `RunningProcess` over a scripted app-server."""

    def __init__(self, codex: ScriptedCodex, mark: str, machine: "SimMachine") -> None:
        self.codex = codex
        self.mark = mark
        self._machine = machine
        self.identity = ProcessIdentity(100_000_000 + codex.number, "simulated")
        self.pipes: Pipes | None = None
        self.ignores_term = False

    async def tend(self) -> None:
        await self.codex.gone.wait()

    async def wait(self) -> None:
        await self.codex.gone.wait()

    def report(self) -> ExitReport:
        return ExitReport(code=self.codex.exit_code, signal=self.codex.exit_signal)

    async def end(self, *, term_s: float, kill_s: float) -> frozenset[ProcessIdentity]:
        if self._machine.daemon_is_dead():
            raise DaemonDied
        gone = self.codex.gone
        for pause_s in (min(FIRST_TERM_S, term_s), term_s - FIRST_TERM_S):
            if pause_s > 0 and not gone.is_set():
                if not self.ignores_term:
                    self.codex.term()
                with trio.move_on_after(pause_s):
                    await gone.wait()
        self.codex.die(signal="SIGKILL")
        await gone.wait()
        return frozenset()

    def disown(self) -> None:
        return


class SimMachine:
    """A `Machine`. `starts`: what becomes of the n-th start (from 1), where it is not to be a good one."""

    def __init__(
        self,
        nursery: trio.Nursery,
        home: CodexHome,
        faults: Faults,
        now_ms: Callable[[], int],
        *,
        starts: dict[int, str] | None = None,
    ) -> None:
        self.home = home
        self.faults = faults
        self.processes: list[SimProcess] = []
        self.mangle: Callable[[bytes], list[bytes]] | None = None
        self.daemon_is_dead: Callable[[], bool] = lambda: False
        self._nursery = nursery
        self._now_ms = now_ms
        self._starts = starts or {}

    @property
    def codex(self) -> ScriptedCodex:
        """The newest app-server."""
        return self.processes[-1].codex

    @property
    def living(self) -> list[SimProcess]:
        """The app-servers that have not ended."""
        return [process for process in self.processes if not process.codex.gone.is_set()]

    def daemon_is_gone(self) -> None:
        """The kernel closes what the daemon held: its ends of the pipes, which were the only way in."""
        for process in self.living:
            if process.pipes is not None:
                for connection in process.codex.connections:
                    connection.close()

    # --- what the supervision asks ---

    async def supports_unix(self, binary: Path) -> bool:
        await trio.lowlevel.checkpoint()
        return True

    async def listening(self, socket: Path) -> list[ProcessIdentity]:
        await trio.lowlevel.checkpoint()
        return [process.identity for process in self.living]

    async def spawn(self, launch: Launch) -> RunningProcess:
        await trio.lowlevel.checkpoint()
        assert not self.living, "RUNTIME-12: there is never a second app-server"
        number = len(self.processes) + 1
        fate = self._starts.get(number)
        if fate == "unusable":
            del self._starts[number]
            raise CodexUnusable("it cannot be started")
        codex = ScriptedCodex(
            self.home, self.faults, number=number, now_ms=self._now_ms, pipes=launch.transport == "stdio"
        )
        codex.mangle = self.mangle
        with trio.CancelScope(shield=True):  # as the real one: a child nobody knows of would be the price
            await self._nursery.start(codex.run)
        process = SimProcess(codex, launch.mark, self)
        self.processes.append(process)
        if launch.transport == "stdio":
            connection = codex.connect()
            assert isinstance(connection, PipeConnection)
            ends = connection.pipes
            process.pipes = Pipes(to_codex=ends.to_codex, from_codex=ends.from_codex)
        if fate == "dies":
            codex.die(code=3)
        elif fate == "silent":
            codex.freeze(10_000.0)
        return process

    async def connect(self, nursery: trio.Nursery, process: RunningProcess, socket: Path) -> Link:
        await trio.lowlevel.checkpoint()
        known = cast("SimProcess", process)
        if known.pipes is not None:
            return StdioLink(known.pipes.to_codex, known.pipes.from_codex)
        connection = known.codex.connect()
        if connection is None:
            raise LinkClosed("nobody listens")
        assert isinstance(connection, SocketConnection)
        return connection.link

    def is_alive(self, identity: ProcessIdentity) -> bool:
        return any(process.identity == identity for process in self.living)

    async def is_ours(self, identity: ProcessIdentity, mark: str, socket: Path | None) -> bool:
        await trio.lowlevel.checkpoint()
        return any(process.identity == identity and process.mark == mark for process in self.living)

    def adopt(self, identity: ProcessIdentity, mark: str, stderr_log: Path) -> RunningProcess:
        process = self._of(identity)
        assert process is not None
        return process

    async def end_family(self, leader: ProcessIdentity, mark: str | None, *, term_s: float, kill_s: float) -> None:
        process = self._of(leader)
        if process is None:
            await trio.lowlevel.checkpoint()
        else:
            await process.end(term_s=term_s, kill_s=kill_s)

    def _of(self, identity: ProcessIdentity) -> SimProcess | None:
        return next((process for process in self.living if process.identity == identity), None)
