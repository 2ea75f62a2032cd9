"""The real Codex and the scripted one behind one door, so that one scenario runs on both, and what each has said can be
compared.

What is compared is what a client hears on each of its connections, in order: methods, and every field that the scripted
one sends. Ids are named by the order of their appearance, times and paths are left out, and so is what differs from
machine to machine.
"""

import contextlib
import re
import signal
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import trio
from support.codex_process import CodexConnection, Message
from support.codex_socket import CodexServer, open_codex_socket
from support.scripted_codex import ScriptedCodex
from support.scripted_codex_faults import Faults
from support.scripted_codex_home import CodexHome
from support.scripted_codex_links import SocketConnection, SocketLink

from termald.codex.errors import LinkClosed
from termald.scripted_model.config import write_codex_home
from termald.scripted_model.model import ScriptedModel

IGNORED: Final = frozenset(
    {
        "account/rateLimits/updated",
        "configWarning",
        "deprecationNotice",
        "mcpServer/startupStatus/updated",
        "remoteControl/status/changed",
        "skills/changed",
        "thread/goal/cleared",  # told after a resume, sooner or later than what else follows it
        "thread/readState/changed",
        "thread/settings/updated",
        "warning",
    }
)
"""What the machine, the account or the version has Codex tell beside what was asked."""

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(?:msg|rs|call)_\w+")
_OURS: Final = frozenset(
    {"cwd", "path", "command", "commandActions", "proposedExecpolicyAmendment", "availableDecisions"}
)
"""Fields that name a shell or a folder of this machine."""
_TIMES: Final = frozenset({"createdAt", "updatedAt", "startedAt", "completedAt", "durationMs", "emittedAtMs"})
_MACHINE: Final = frozenset(
    {"userAgent", "codexHome", "cliVersion", "originator", "source", "processId", "aggregatedOutput"}
)
_LEFT_OUT: Final = _OURS | _TIMES | _MACHINE


class Side(Protocol):
    """One of the two."""

    cwd: str
    logs: dict[str, list[Message]]
    """By connection, everything that went over it, in order; our requests have `>`."""

    async def connect(self, name: str) -> CodexConnection: ...
    async def kill(self) -> None:
        """End the process as SIGKILL does, and start another on the same home."""

    def release(self, name: str) -> None:
        """Let an answer of the model's go on that is held at this name."""


class RealSide:
    """The real binary on a socket, with the scripted model."""

    def __init__(self, binary: Path, model: ScriptedModel, folder: Path, stack: contextlib.AsyncExitStack) -> None:
        self.cwd = str(folder / "work")
        self.logs: dict[str, list[Message]] = {}
        self._binary = binary
        self._model = model
        self._home = folder / "codex-home"
        self._stack = stack
        self._server: CodexServer | None = None

    async def connect(self, name: str) -> CodexConnection:
        if self._server is None:
            await self.start()
        assert self._server is not None
        connection = await self._server.connect(introduced=False)
        self.logs[name] = _tap(connection)
        await connection.initialize()
        return connection

    async def start(self) -> None:
        """Start a process on a socket of its own."""
        socket = self._home / f"codex-{len(self.logs)}.sock"
        options = ("-c", "features.shell_snapshot=false")
        self._server = await self._stack.enter_async_context(
            open_codex_socket(self._binary, self._home, socket=socket, options=options)
        )

    async def kill(self) -> None:
        assert self._server is not None
        self._server.signal(signal.SIGKILL)
        await self._server.process.wait()
        await self.start()

    def release(self, name: str) -> None:
        self._model.release(name)


class ScriptedSide:
    """The scripted one, over its in-memory socket."""

    def __init__(self, nursery: trio.Nursery, cwd: Path) -> None:
        self.cwd = str(cwd)
        self.logs: dict[str, list[Message]] = {}
        self._nursery = nursery
        self._home = CodexHome("/home/codex", "honesty")
        self._codex: ScriptedCodex | None = None
        self._started = 0

    async def connect(self, name: str) -> CodexConnection:
        if self._codex is None:
            await self.start()
        assert self._codex is not None
        theirs = self._codex.connect()
        assert isinstance(theirs, SocketConnection)
        connection = _InMemory(theirs.link)
        self.logs[name] = _tap(connection)
        self._nursery.start_soon(connection.read)
        await connection.initialize()
        return connection

    async def start(self) -> None:
        """Start a process."""
        self._started += 1
        self._codex = ScriptedCodex(self._home, Faults(), number=self._started, now_ms=lambda: 1_800_000_000_000)
        await self._nursery.start(self._codex.run)

    async def kill(self) -> None:
        assert self._codex is not None
        self._codex.die(signal="SIGKILL")
        await self._codex.gone.wait()
        await self.start()

    def release(self, name: str) -> None:
        assert self._codex is not None
        self._codex.release(name)


class _InMemory(CodexConnection):
    def __init__(self, link: SocketLink) -> None:
        super().__init__(Path("/dev/null"))
        self._link = link

    async def write(self, frame: bytes) -> None:
        await self._link.send(frame)

    async def read(self) -> None:
        with contextlib.suppress(LinkClosed):
            while True:
                raw = await self._link.receive()
                assert isinstance(raw, bytes)
                self._take([raw])
        self._close()

    async def vanish(self) -> None:
        """Drop the connection without a word."""
        await self._link.aclose()


def _tap(connection: CodexConnection) -> list[Message]:
    """Return a list that everything which goes over the connection is put into."""
    log: list[Message] = []
    take, write = connection._take, connection.write

    def taken(frames: Iterable[bytes | str]) -> None:
        frames = list(frames)
        log.extend(msgspec.json.decode(frame) for frame in frames)
        take(frames)

    async def written(frame: bytes) -> None:
        message = msgspec.json.decode(frame)
        if "method" in message:
            log.append({">": message["method"], "id": message.get("id")})
        await write(frame)

    setattr(connection, "_take", taken)  # noqa: B010 - a method is replaced on purpose, which mypy would not have
    setattr(connection, "write", written)  # noqa: B010 - as above
    return log


@contextlib.asynccontextmanager
async def open_real(binary: Path, model: ScriptedModel, base_url: str, folder: Path) -> AsyncIterator[RealSide]:
    """Run the real one, with its home and its work under `folder`."""
    (folder / "work").mkdir()
    write_codex_home(folder / "codex-home", base_url)
    async with contextlib.AsyncExitStack() as stack:
        yield RealSide(binary, model, folder, stack)


@contextlib.asynccontextmanager
async def open_scripted(folder: Path) -> AsyncIterator[ScriptedSide]:
    """Run the scripted one."""
    async with trio.open_nursery() as nursery:
        yield ScriptedSide(nursery, folder)
        nursery.cancel_scope.cancel()


# --- what is compared ---


class Heard(msgspec.Struct):
    """One thing that a client heard: what it was, and what it said."""

    what: str
    said: Any


_DIFF = "turn/diff/updated"
_BEGINNING = frozenset({"thread/status/changed", "turn/started"})


def heard(log: list[Message], *, not_heard: Collection[str] = ()) -> list[Heard]:
    """Return what a client heard, ready to be compared: answers under their methods, ids by order, deltas joined.

    `not_heard`: methods that are left out."""
    asked = {entry["id"]: entry[">"] for entry in log if ">" in entry and entry["id"] is not None}
    names: dict[str, str] = {}
    all_of_it: list[Heard] = []
    for message in log:
        method = message.get("method")
        if ">" in message or method in IGNORED or method in not_heard:
            continue
        if method is None:
            one = Heard(f"answer to {asked[message['id']]}", message.get("result", message.get("error")))
        else:
            one = Heard(method if "id" not in message else f"request {method}", message.get("params"))
        one.said = _plain(one.said, names)
        if one.what == _DIFF and any(other.what == _DIFF and other.said == one.said for other in all_of_it):
            continue  # how often the same is told differs between releases
        if not _is_joined(all_of_it, one):
            all_of_it.insert(_place_of(one, all_of_it), one)
    return all_of_it


def _place_of(one: Heard, before: list[Heard]) -> int:
    """Return where it stands: at the end; but the answer to `turn/start` races with the notices that its turn begins,
    and may come after them (measured on a loaded machine, 1 in 50), so it is put before them on both sides."""
    place = len(before)
    if one.what == "answer to turn/start":
        while place and before[place - 1].what in _BEGINNING:
            place -= 1
    return place


def _is_joined(before: list[Heard], one: Heard) -> bool:
    """Put a delta to the one before it, if that is of the same item: how text is cut is the model's business."""
    if not (one.what.endswith("/delta") and before and before[-1].what == one.what):
        return False
    last = before[-1].said
    if last["itemId"] != one.said["itemId"]:
        return False
    last["delta"] += one.said["delta"]
    return True


def _plain(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if key not in _LEFT_OUT and not key.endswith("AtMs")}
        return {key: _plain(one, names) for key, one in kept.items()}
    if isinstance(value, list):
        return [_plain(one, names) for one in value]
    if isinstance(value, str):
        named = _ID.sub(lambda found: names.setdefault(found[0], f"id {len(names)}"), value)
        return re.sub(r"http://127\.0\.0\.1(:\d+)?/", "http://model/", named)
    return value


def differences(real: list[Heard], scripted: list[Heard]) -> list[str]:
    """Return where the two differ: something else was said, or a field is told that is not so."""
    if [one.what for one in real] != [one.what for one in scripted]:
        columns = zip_longest((one.what for one in real), (one.what for one in scripted), fillvalue="-")
        return [f"{'  ' if one == other else '! '}{one:45} {other}" for one, other in columns]
    pairs = zip(real, scripted, strict=True)
    return [f"{one.what}{where}" for one, other in pairs for where in _untrue(one.said, other.said)]


def _untrue(true: Any, told: Any) -> Iterator[str]:
    """Yield where something is told that is not true. What is not told may be anything."""
    if isinstance(told, dict) and isinstance(true, dict):
        for key, value in told.items():
            if key in true:
                yield from (f".{key}{where}" for where in _untrue(true[key], value))
            else:
                yield f".{key}: the real one has none"
    elif isinstance(told, list) and isinstance(true, list) and len(told) == len(true):
        for at, pair in enumerate(zip(true, told, strict=True)):
            yield from (f"[{at}]{where}" for where in _untrue(*pair))
    elif true != told:
        yield f": real {true!r}, scripted {told!r}"
