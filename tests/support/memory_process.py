"""A process and its links without a kernel: every sign of its end is given by the test, in any order, at any time."""

import math
from pathlib import Path

import msgspec
import trio

from termald.codex.errors import LinkClosed
from termald.codex.identity import ProcessIdentity
from termald.codex.lines import Oversize
from termald.codex.machine import RunningProcess
from termald.codex.process import ExitReport, Launch, Pipes


class MemoryLink:
    """The app-server's side of one link is in the test's hand: `say`, `end_output`, `break_input`, and what was
    `heard`."""

    def __init__(self, home: str, *, answers: bool = True) -> None:
        self.heard: list[bytes] = []
        self.closed = False
        self._home = home
        self._answers = answers
        self._input_works = True
        self.answering = trio.Event()
        """Set: a ping is answered. Replace it by a fresh event, as in a process that is stopped."""
        self.answering.set()
        self._put, self._take = trio.open_memory_channel[bytes](math.inf)

    def say(self, frame: bytes) -> None:
        self._put.send_nowait(frame)

    def end_output(self) -> None:
        self._put.close()

    def break_input(self) -> None:
        self._input_works = False

    async def receive(self) -> bytes | Oversize:
        try:
            return await self._take.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError) as error:
            raise LinkClosed("its output ended") from error

    async def send(self, frame: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if not self._input_works:
            raise LinkClosed("its input is broken")
        self.heard.append(frame)
        asked = msgspec.json.decode(frame)
        if asked["method"] == "initialize" and self._answers:
            result = {"userAgent": "termald/9.9.9 (memory)", "codexHome": self._home, "platformOs": "x"}
            self.say(msgspec.json.encode({"id": asked["id"], "result": result}))

    async def ping(self) -> None:
        await self.answering.wait()

    async def aclose(self) -> None:
        self.closed = True
        self._take.close()
        await trio.lowlevel.checkpoint()


class MemoryProcess:
    """A `RunningProcess`. It is gone when the test says `die`, or when it is ended."""

    def __init__(self, number: int) -> None:
        self.identity = ProcessIdentity(100_000_000 + number, "memory")
        self.pipes: Pipes | None = None
        self.ends = 0
        self.takes_s = 0.0
        """How long it takes to end."""
        self._gone = trio.Event()
        self._report = ExitReport()

    def die(self, *, code: int = 0) -> None:
        self._report = ExitReport(code=code)
        self._gone.set()

    async def tend(self) -> None:
        await trio.sleep_forever()

    async def wait(self) -> None:
        await self._gone.wait()

    def report(self) -> ExitReport:
        return self._report

    async def end(self, *, term_s: float, kill_s: float) -> frozenset[ProcessIdentity]:
        await trio.lowlevel.checkpoint()
        self.ends += 1
        await trio.sleep(self.takes_s)
        self._report = self._report if self._gone.is_set() else ExitReport(signal="SIGTERM")
        self._gone.set()
        return frozenset()

    def disown(self) -> None:
        return


class MemoryMachine:
    """A `Machine` that starts processes and links in memory. `lifetimes_s`: how long the n-th process lives once it
    is connected to; for ever where it says nothing."""

    def __init__(self, home: Path, *, lifetimes_s: list[float] | None = None, answers: bool = True) -> None:
        self.frozen = False
        """A frozen process is connected to by the kernel and says nothing."""
        self.processes: list[MemoryProcess] = []
        self.links: list[MemoryLink] = []
        self.started_at: list[float] = []
        self.obstacles: list[Exception] = []
        """What the next starts meet, instead of starting anything."""
        self.tried_at: list[float] = []
        self._home = str(home)
        self._lifetimes_s = lifetimes_s or []
        self._answers = answers

    async def supports_unix(self, binary: Path) -> bool:
        await trio.lowlevel.checkpoint()
        return True

    async def listening(self, socket: Path) -> list[ProcessIdentity]:
        await trio.lowlevel.checkpoint()
        return []

    async def spawn(self, launch: Launch) -> RunningProcess:
        await trio.lowlevel.checkpoint()
        self.tried_at.append(trio.current_time())
        if self.obstacles:
            raise self.obstacles.pop(0)
        self.started_at.append(trio.current_time())
        self.processes.append(MemoryProcess(len(self.processes)))
        return self.processes[-1]

    async def connect(self, nursery: trio.Nursery, process: RunningProcess, socket: Path) -> MemoryLink:
        await trio.lowlevel.checkpoint()
        if self.frozen:
            await trio.sleep_forever()
        link = MemoryLink(self._home, answers=self._answers)
        self.links.append(link)
        number = len(self.processes) - 1
        if number < len(self._lifetimes_s):
            nursery.start_soon(self._live, self.processes[number], link, self._lifetimes_s[number])
        return link

    def is_alive(self, identity: ProcessIdentity) -> bool:
        raise AssertionError("no earlier daemon left a process here")

    async def is_ours(self, identity: ProcessIdentity, mark: str, socket: Path | None) -> bool:
        raise AssertionError("no earlier daemon left a process here")

    def adopt(self, identity: ProcessIdentity, mark: str, stderr_log: Path) -> RunningProcess:
        raise AssertionError("no earlier daemon left a process here")

    async def end_family(self, leader: ProcessIdentity, mark: str | None, *, term_s: float, kill_s: float) -> None:
        raise AssertionError("nothing here starts anything of its own")

    async def _live(self, process: MemoryProcess, link: MemoryLink, lifetime_s: float) -> None:
        await trio.sleep(lifetime_s)
        process.die(code=1)
        link.end_output()
