"""The two sides: the daemon as a user has it, and an app-server driven by hand; and what processes weigh and spend."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import codex_cli_bin  # type: ignore[import-untyped]  # it carries a binary and says nothing of types
import httpx
import trio

from termald.codex.control_socket import connect_control_socket
from termald.scripted_model.config import write_codex_home

Json = dict[str, Any]
PROMPT = "hello from a benchmark"
DEADLINE_S = 300.0
LOOK_S = 0.02
READ_BYTES = 262_144
DELTA = b'{"method":"item/agentMessage/delta"'
ENDED = b'{"method":"turn/completed"'
POLICY = {"approvalPolicy": "untrusted", "sandbox": "workspace-write"}  # what the daemon sends by default


@contextlib.contextmanager
def model(module: str = "termald.scripted_model") -> Iterator[str]:
    """Run a model in a process of its own and give its base URL."""
    command = [sys.executable, "-m", module, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Give a short-lived folder with a place to work in."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        (Path(name) / "work").mkdir()
        yield Path(name)


# --- what processes weigh and spend ---


def weight(pid: int) -> dict[str, float]:
    """Return PSS and RSS of a process in MB."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Pss", "Rss"):
            found[name.lower()] = int(rest.split()[0]) / 1024
    return found


def peak_mb(pid: int) -> float:
    """Return the largest RSS since the start, or since `forget_peak`."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def forget_peak(pid: int) -> None:
    """Let the peak begin at what is there now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu_s(pid: int) -> float:
    """Return the CPU time of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def switches(pid: int) -> int:
    """Return how often the threads of a process were waited for and woken."""
    found = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    found += int(line.split()[1])
    return found


def descriptors(pid: int) -> int:
    """Return how many files a process holds open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


# --- an app-server driven by hand ---


class _Link(Protocol):
    async def send(self, frame: bytes) -> None: ...

    async def lines(self) -> list[bytes]: ...


class _Pipes:
    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out, self._rest = process.stdin, process.stdout, b""

    async def send(self, frame: bytes) -> None:
        await self._in.send_all(frame + b"\n")

    async def lines(self) -> list[bytes]:
        chunk = await self._out.receive_some(READ_BYTES)
        if not chunk:
            raise EOFError("the app-server ended")
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return lines


class _Socket:
    def __init__(self, link: Any) -> None:
        self._link = link

    async def send(self, frame: bytes) -> None:
        await self._link.send(frame)

    async def lines(self) -> list[bytes]:
        return [await self._link.receive()]


class Bare:
    """A bare driver: it looks at no more of what is streamed than how a line begins. `on_delta` is given the lines of
    text, where somebody wants them."""

    def __init__(self, link: _Link, pid: int, cwd: Path) -> None:
        self.pid, self.cwd = pid, cwd
        self.ended = self.deltas = self.failed = 0
        self.on_delta: Callable[[bytes], None] | None = None
        self.on_thread: Callable[[str], Awaitable[None]] | None = None
        self._link = link
        self._number = 0
        self._answers: dict[int, Json] = {}
        self._changed = trio.Event()

    async def read(self) -> None:
        """Read for ever."""
        while True:
            for line in await self._link.lines():
                if line.startswith(DELTA):
                    self.deltas += 1
                    if self.on_delta is not None:
                        self.on_delta(line)
                elif line.startswith(ENDED):
                    self.ended += 1
                    self.failed += b'"status":"completed"' not in line
                elif line.startswith(b'{"id"') or line.startswith(b'{"result"') or line.startswith(b'{"error"'):
                    message = json.loads(line)
                    self._answers[message["id"]] = message
                    if self.on_thread is not None and "thread" in message.get("result", ()):
                        await self.on_thread(message["result"]["thread"]["id"])
                else:
                    continue
            self._changed.set()
            self._changed = trio.Event()

    async def put(self, method: str, **params: Any) -> int:
        """Send a request and wait for nothing."""
        self._number += 1
        await self._link.send(json.dumps({"id": self._number, "method": method, "params": params}).encode())
        return self._number

    async def call(self, method: str, **params: Any) -> Json:
        """Send a request and return its result."""
        number = await self.put(method, **params)
        await self.until(lambda: number in self._answers)
        answer: Json = self._answers.pop(number)
        assert "result" in answer, answer
        return dict(answer["result"])

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait until what was read makes something so."""
        with trio.fail_after(DEADLINE_S):
            while not ready():
                await self._changed.wait()
        assert not self.failed, "a turn failed"

    async def thread(self) -> str:
        """Start a thread."""
        return str((await self.call("thread/start", cwd=str(self.cwd), **POLICY))["thread"]["id"])

    async def prompt(self, thread: str, text: str) -> None:
        """Start a turn and wait for nothing."""
        await self.put("turn/start", threadId=thread, input=[{"type": "text", "text": text}])

    async def turns(self, texts: dict[str, str]) -> float:
        """Run a turn in each thread at once; return the seconds."""
        before, began = self.ended, time.perf_counter()
        for thread, text in texts.items():
            await self.prompt(thread, text)
        await self.until(lambda: self.ended == before + len(texts))
        return time.perf_counter() - began


@contextlib.asynccontextmanager
async def bare(
    place: Path, base_url: str, *, transport: Literal["stdio", "socket"] = "stdio", snapshot: bool = False, **env: str
) -> AsyncIterator[Bare]:
    """Run an app-server and a bare driver of it."""
    home = place / "bare-home"
    write_codex_home(home, base_url)
    socket = place / "bare.sock"
    where = "stdio://" if transport == "stdio" else f"unix://{socket}"
    config = ["-c", f"features.shell_snapshot={'true' if snapshot else 'false'}"]
    process = await trio.lowlevel.open_process(
        [str(codex_cli_bin.bundled_codex_path()), "app-server", *config, "--listen", where],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "CODEX_HOME": str(home), **env},
        start_new_session=True,
    )
    try:
        async with trio.open_nursery() as nursery:
            link: _Link = _Pipes(process)
            if transport == "socket":
                with trio.fail_after(DEADLINE_S):
                    while not os.path.lexists(socket):  # noqa: ASYNC110, ASYNC240 - another process makes it
                        await trio.sleep(LOOK_S)
                link = _Socket(await connect_control_socket(nursery, socket))
            driver = Bare(link, process.pid, place / "work")
            nursery.start_soon(driver.read)
            await driver.call("initialize", clientInfo={"name": "bench", "title": "bench", "version": "1"})
            await link.send(b'{"method":"initialized"}')
            yield driver
            nursery.cancel_scope.cancel()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


# --- the daemon ---


class Listener:
    """One event stream, read with as little work as possible: complete lines are counted, not decoded."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._rest = b""

    async def lines(self) -> bytes:
        """Return what came, up to the last whole line."""
        while True:
            piece = await self._stream.receive_some(READ_BYTES)
            if not piece:
                raise EOFError("the stream ended")
            text = self._rest + piece
            cut = text.rfind(b"\n") + 1
            self._rest = text[cut:]
            if cut:
                return text[:cut]

    async def count(self, needle: bytes, wanted: int) -> None:
        """Return once lines that hold this came so often."""
        found = 0
        with trio.fail_after(DEADLINE_S):
            while found < wanted:
                found += (await self.lines()).count(needle)


class Served:
    """A daemon of our own, and a client of it."""

    def __init__(
        self, process: trio.Process, client: httpx.AsyncClient, socket: Path, cwd: Path, ready_s: float
    ) -> None:
        self.pid, self.client, self.socket, self.cwd, self.ready_s = process.pid, client, socket, cwd, ready_s
        self.answering_s = 0.0

    async def codex(self) -> int:
        """Return the app-server's pid."""
        return int((await self.client.get("/api/runtime")).json()["pid"])

    async def create(self, name: str, **fields: Any) -> None:
        """Create a session."""
        body = {"id": name, "cwd": str(self.cwd), **fields}
        (await self.client.post("/api/sessions", json=body)).raise_for_status()

    async def prompt(self, name: str, text: str) -> None:
        """Prompt a session."""
        (await self.client.post(f"/api/sessions/{name}/prompts", json={"input": text})).raise_for_status()

    async def _create_prompted(self, name: str, text: str) -> None:
        await self.create(name, prompt={"input": text})

    @contextlib.asynccontextmanager
    async def listening(self, query: str = "") -> AsyncIterator[Listener]:
        """Listen; the answer's head has come when the block begins."""
        async with await trio.open_unix_socket(str(self.socket)) as stream:
            # HTTP/1.0: what comes is the events and nothing else.
            await stream.send_all(f"GET /api/events{query} HTTP/1.0\r\n\r\n".encode())
            listener = Listener(stream)
            await listener.lines()
            yield listener

    async def first_turns(self, names: list[str], text: str = PROMPT) -> float:
        """Create the sessions with a prompt each, all at once; return the seconds to the last turn's end."""
        async with self.listening("?kinds=turn/done") as listener:
            began = time.perf_counter()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(listener.count, b"event: turn/done", len(names))
                for name in names:
                    nursery.start_soon(self._create_prompted, name, text)
            return time.perf_counter() - began

    async def turns(self, texts: dict[str, str]) -> float:
        """Run a turn in each session at once; return the seconds to the last turn's end."""
        async with self.listening("?kinds=turn/done") as listener:
            began = time.perf_counter()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(listener.count, b"event: turn/done", len(texts))
                for name, text in texts.items():
                    nursery.start_soon(self.prompt, name, text)
            return time.perf_counter() - began


@contextlib.asynccontextmanager
async def served(place: Path, base_url: str, settings: Mapping[str, str] | None = None) -> AsyncIterator[Served]:
    """Run `termald serve`; `settings` are its variables without their prefix."""
    home = place / "home"
    write_codex_home(home, base_url)
    if (settings or {}).get("CODEX_SHELL_SNAPSHOT") == "true":  # the home says no as well
        config = home / "config.toml"
        config.write_text(config.read_text().replace("shell_snapshot = false", "shell_snapshot = true"))
    run = place / "run"
    environment = {
        **os.environ,
        "TERMALD_STATE_DIR": str(place / "state"),
        "TERMALD_RUNTIME_DIR": str(run),
        "TERMALD_LISTEN": "off",
        "TERMALD_CODEX_BIN": str(codex_cli_bin.bundled_codex_path()),
        "CODEX_HOME": str(home),
        **{name if name == "HOME" else f"TERMALD_{name}": value for name, value in (settings or {}).items()},
    }
    log = (place / "log").open("wb")
    began = time.perf_counter()
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "termald", "serve"], env=environment, stdout=log, stderr=log
    )
    try:
        transport = httpx.AsyncHTTPTransport(uds=str(run / "termald.sock"), limits=httpx.Limits(max_connections=64))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=DEADLINE_S) as client:
            answering_s = await _until_answered(client, process, "/api/health", began)
            daemon = Served(
                process,
                client,
                run / "termald.sock",
                place / "work",
                await _until_answered(client, process, "/api/ready", began),
            )
            daemon.answering_s = answering_s
            yield daemon
    finally:
        process.terminate()
        await process.wait()
        log.close()


async def _until_answered(client: httpx.AsyncClient, process: trio.Process, path: str, began: float) -> float:
    with trio.fail_after(DEADLINE_S):
        while True:
            assert process.poll() is None, "the daemon ended at its start"
            with contextlib.suppress(httpx.TransportError):
                if (await client.get(path)).status_code == 200:
                    return time.perf_counter() - began
            await trio.sleep(LOOK_S)
