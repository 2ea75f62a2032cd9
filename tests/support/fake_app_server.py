"""A stand-in for `codex app-server` that misbehaves as it is told: on stdio, and on a control socket.

It is run as a program of its own (`install` writes one), so that it can die, hang and be killed like the real one. What
the real one does by itself stands in `tests/codex/test_real_process.py`; here is only what it does not do on demand.

Orders come as requests, so that a test can time them: `fake/say` {frames}, `fake/exit` {frames, code}, `fake/close` {},
`fake/stall` {}, `fake/ignore-term` {}, `fake/spawn` {}. Every frame that is taken is written to `<program>.log`.
"""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_server_stream

Write = Callable[[str], Awaitable[None]]


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """How it misbehaves by itself."""

    deaths_at_start: int = 0
    """So many starts end with status 3 before anybody can connect."""
    initialize: str = "answer"
    """`answer`, `never`, `refuse`, or `elsewhere` (it says that it serves another home)."""
    silent_starts: int = 0
    """So many starts accept nobody, as one that is frozen does."""
    closes: int = 0
    """So many connections are closed as soon as they are initialised."""


def install(folder: Path, script: Script | None = None, *, name: str = "fake-codex") -> Path:
    """Write a program that is this app-server, and return its path. Its log and its count of starts lie beside it."""
    program = folder / name
    settings = msgspec.json.encode(script or Script()).decode()
    program.write_text(
        f"#!{sys.executable}\n"
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
        f"from support.fake_app_server import main; main({str(program)!r}, {settings!r})\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def frames_taken(program: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return (pid, frame) of every frame that was taken, by all starts, oldest first."""
    log = program.with_suffix(".log")
    lines = log.read_text().splitlines() if log.exists() else []
    return [(entry["pid"], entry["frame"]) for entry in map(json.loads, lines)]


def starts_of(program: Path) -> int:
    """Return how often it was started."""
    count = program.with_suffix(".starts")
    return len(count.read_bytes()) if count.exists() else 0


class _Server:
    def __init__(self, program: Path, script: Script, start: int) -> None:
        self._log = program.with_suffix(".log")
        self._script = script
        self._start = start
        self._closes = script.closes

    async def take(self, text: str, write: Write) -> bool:
        """Answer one frame; False if the connection is to be closed."""
        frame = json.loads(text)
        with self._log.open("a") as log:
            log.write(json.dumps({"pid": os.getpid(), "frame": frame}) + "\n")
        method, params = frame.get("method"), frame.get("params") or {}
        if method == "initialize":
            await self._initialize(frame["id"], write)
        elif method == "initialized" and self._closes > 0:
            self._closes -= 1
            return False
        elif method in {"fake/say", "fake/exit"}:
            for said in params.get("frames", ()):
                await write(json.dumps(said))
            if method == "fake/exit":
                os._exit(params["code"])
        elif method == "fake/close":
            return False
        elif method == "fake/stall":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif method == "fake/ignore-term":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            await write(json.dumps({"id": frame["id"], "result": {}}))
        elif method == "fake/spawn":
            await write(json.dumps({"id": frame["id"], "result": {"pid": _start_tool()}}))
        elif "id" in frame and method is not None:
            await write(json.dumps({"id": frame["id"], "result": {"method": method}}))
        return True

    async def _initialize(self, rpc_id: object, write: Write) -> None:
        if self._script.initialize == "never":
            return
        await write(json.dumps({"method": "configWarning", "params": {"summary": "early"}}))
        if self._script.initialize == "refuse":
            await write(json.dumps({"id": rpc_id, "error": {"code": -32600, "message": "go away"}}))
            return
        home = "/elsewhere" if self._script.initialize == "elsewhere" else os.environ["CODEX_HOME"]
        result = {"userAgent": "termald/9.9.9 (fake)", "codexHome": home, "platformFamily": "unix", "platformOs": "x"}
        await write(json.dumps({"id": rpc_id, "result": result}))

    async def serve_stdio(self) -> None:
        output = trio.lowlevel.FdStream(os.dup(1))
        pending = b""

        async def write(text: str) -> None:
            await output.send_all(text.encode() + b"\n")

        async for chunk in trio.lowlevel.FdStream(os.dup(0)):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                if not await self.take(line.decode(), write):
                    os.close(1)
                    await output.aclose()
                    await trio.sleep_forever()  # it has no mouth any more, and lives on

    async def serve_socket(self, path: str) -> None:
        _make_way(path)
        sock = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        await sock.bind(path)
        sock.listen()
        if self._start <= self._script.silent_starts:
            await trio.sleep_forever()
        await trio.serve_listeners(self._serve_connection, [trio.SocketListener(sock)])

    async def _serve_connection(self, stream: trio.SocketStream) -> None:
        async with trio.open_nursery() as nursery:
            request = await wrap_server_stream(nursery, stream, message_queue_size=100, max_message_size=2**25)
            connection = await request.accept()
            await self._talk(connection)
            nursery.cancel_scope.cancel()

    async def _talk(self, connection: WebSocketConnection) -> None:
        try:
            while await self.take(str(await connection.get_message()), connection.send_message):
                pass
            await connection.aclose()
        except ConnectionClosed:
            return


def _make_way(path: str) -> None:
    """Replace what a killed server has left behind, and let the owner alone connect."""
    Path(path).unlink(missing_ok=True)
    os.umask(0o177)


def _start_tool() -> int:
    """Start a tool as Codex does: in a session of its own."""
    return subprocess.Popen(["sleep", "600"], start_new_session=True).pid


def main(program: str, settings: str) -> None:
    """Run as `codex app-server … --listen ADDRESS` would."""
    script = msgspec.json.decode(settings, type=Script)
    if "--help" in sys.argv:
        print("--listen <URL>: stdio://, unix://PATH")
        return
    with Path(program).with_suffix(".starts").open("ab") as count:
        count.write(b".")
    start = starts_of(Path(program))
    print(f"fake app-server, start {start}", file=sys.stderr, flush=True)
    if start <= script.deaths_at_start:
        raise SystemExit(3)
    address = sys.argv[sys.argv.index("--listen") + 1]
    server = _Server(Path(program), script, start)
    if address == "stdio://":
        trio.run(server.serve_stdio)
    else:
        trio.run(server.serve_socket, address.removeprefix("unix://"))
