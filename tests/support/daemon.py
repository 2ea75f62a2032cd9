"""The whole daemon as a user has it: `termald serve` in a process of its own, the real Codex, the scripted model, HTTP.

Everything lives under one temporary folder: state, sockets, Codex's home, the working folder.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import trio
from support.codex_process import codex_binaries

from termald.scripted_model.config import write_codex_home
from termald.scripted_model.model import ScriptedModel

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 30.0
"""For anything that the daemon is waited for; a cold start of Codex takes under a second here."""
LOOK_PAUSE_S = 0.01


class Daemon:
    """One `termald serve` and a client of it. It may be killed and started again over the same folder."""

    def __init__(self, folder: Path, model: ScriptedModel, environment: dict[str, str]) -> None:
        self.folder = folder
        self.model = model
        self.cwd = folder / "work"
        self.home = folder / "codex-home"
        self.state = folder / "state"
        self.runtime_dir = folder / "run"
        self.environment = environment
        self.process: subprocess.Popen[bytes] | None = None
        self.log = folder / "serve.log"

    # --- its life ---

    async def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        out = self.log.open("ab")
        command = [sys.executable, "-m", "termald", "serve"]
        self.process = subprocess.Popen(command, env=self.environment, stdout=out, stderr=out, cwd=self.folder)  # noqa: ASYNC220 - a fork of a few ms in a test
        out.close()
        seen = self.log.read_bytes().count(b"termald is ready") if self.log.exists() else 0
        await self.until(lambda: self.log.read_bytes().count(b"termald is ready") > seen or self._died(), "its start")
        assert not self._died(), self.log.read_text()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal that does not end it."""
        assert self.process is not None
        self.process.send_signal(number)

    def _died(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Signal it and return its status."""
        process = self.process
        assert process is not None
        process.send_signal(number)
        await self.until(lambda: process.poll() is not None, "its end")
        self.process = None
        return process.returncode

    def end_codex(self) -> None:
        """End an app-server that outlived its daemon: started for this test, and known by its socket."""
        for pid in self.app_servers():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def app_servers(self) -> list[int]:
        """Return the app-servers on this daemon's socket."""
        marker = str(self.runtime_dir / "codex.sock").encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    command = (entry / "cmdline").read_bytes()
                    if marker in command and b"app-server" in command:
                        found.append(int(entry.name))
        return found

    # --- talking to it ---

    def client(self) -> httpx.AsyncClient:
        """Return a client over the Unix socket."""
        transport = httpx.AsyncHTTPTransport(uds=str(self.runtime_dir / "termald.sock"))
        return httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=DEADLINE_S)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """Make one request."""
        async with self.client() as client:
            return await client.request(method, path, json=body, headers=headers)

    async def get(self, path: str) -> Json:
        """GET a JSON object; anything but 200 fails the test."""
        response = await self.call("GET", path)
        assert response.status_code == 200, response.text
        return dict(response.json())

    async def post(self, path: str, body: Any = None) -> Json:
        """POST and return the JSON object of a success."""
        response = await self.call("POST", path, body)
        assert response.is_success, response.text
        return dict(response.json())

    async def create(self, session: str, **fields: Any) -> Json:
        """Create a session in the working folder."""
        return await self.post("/api/sessions", {"id": session, "cwd": str(self.cwd), **fields})

    async def prompt(self, session: str, text: str, **fields: Any) -> str:
        """Prompt a session and return the prompt's id."""
        answer = await self.post(f"/api/sessions/{session}/prompts", {"input": text, **fields})
        return str(answer["prompt"]["id"])

    async def session(self, session: str) -> Json:
        """Return a session."""
        return await self.get(f"/api/sessions/{session}")

    async def events(self, after: int = 0, *, session: str | None = None) -> list[Json]:
        """Return everything that the log has after a number."""
        path = "/api/events" if session is None else f"/api/sessions/{session}/events"
        found: list[Json] = []

        def is_synced(event: Json) -> bool:
            if event["kind"] != "synced":
                found.append(event)
            return bool(event["kind"] == "synced")

        await self._listen(f"{path}?after={after}", is_synced, "the end of the replay")
        return found

    async def wait_event(self, where: Callable[[Json], bool], *, after: int = 0, what: str = "an event") -> Json:
        """Return the first event, old or new, that fits."""
        return await self._listen(f"/api/events?after={after}", where, what)

    async def _listen(self, path: str, where: Callable[[Json], bool], what: str) -> Json:
        # By hand and in HTTP/1.0: leaving a stream of httpx early leaves its inner generators to the garbage collector.
        heard: list[str] = []
        with trio.move_on_after(DEADLINE_S):
            async with await trio.open_unix_socket(str(self.runtime_dir / "termald.sock")) as stream:
                await stream.send_all(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                rest = b""
                async for piece in stream:
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        if line.startswith(b"data: "):
                            event: Json = msgspec.json.decode(line[len(b"data: ") :])
                            if where(event):
                                return event
                            heard.append(event["kind"])
        raise AssertionError(f"waited for {what}; heard {heard[-40:]}\n{self.log.read_text()[-3000:]}")

    async def wait_done(self, session: str, count: int = 1) -> list[Json]:
        """Return the session's first `count` turn ends."""
        found: list[Json] = []

        def take(event: Json) -> bool:
            if event["kind"] == "turn/done" and event["sessionId"] == session:
                found.append(event)
            return len(found) >= count

        await self.wait_event(take, what=f"{count} turns of {session}")
        return found

    async def wait_ready(self) -> None:
        """Wait until Codex can be used."""
        await self.until(self._ready, "readiness")

    async def _ready(self) -> bool:
        return (await self.call("GET", "/api/ready")).status_code == 200

    async def until(self, condition: Callable[[], bool | Awaitable[bool]], what: str) -> None:
        """Wait for a condition that nothing tells of: a process's end, a folder's content. Looks again every few
        milliseconds."""
        with trio.move_on_after(DEADLINE_S):
            while True:
                met = condition()
                if met if isinstance(met, bool) else await met:
                    return
                await trio.sleep(LOOK_PAUSE_S)
        raise AssertionError(f"waited for {what}\n{self.log.read_text()[-3000:] if self.log.exists() else ''}")


@contextlib.asynccontextmanager
async def open_daemon(
    folder: Path, model: ScriptedModel, base_url: str, *, start: bool = True, **environment: str
) -> AsyncIterator[Daemon]:
    """Run a daemon over a fresh folder; end it and its Codex when the block ends."""
    daemon = Daemon(
        folder,
        model,
        {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),  # the code of this checkout, whichever is installed
            "TERMALD_STATE_DIR": str(folder / "state"),
            "TERMALD_RUNTIME_DIR": str(folder / "run"),
            "TERMALD_LISTEN": "127.0.0.1:0",
            "TERMALD_CODEX_BIN": str(codex_binaries()["installed"]),
            "CODEX_HOME": str(folder / "codex-home"),
            **environment,
        },
    )
    daemon.cwd.mkdir()
    write_codex_home(daemon.home, base_url)
    try:
        if start:
            await daemon.start()
        yield daemon
    finally:
        with trio.CancelScope(shield=True):
            if daemon.process is not None and daemon.process.poll() is None:
                await daemon.end()
            daemon.end_codex()
