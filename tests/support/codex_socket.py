"""The real `codex app-server` on a control socket, with as many connections as a test wants, each its own client.

Like `codex_process` it shares no code with termald's own codex room. The process needs none of its connections: it is
ended by TERM, twice if a turn runs, and whatever is left of its group is killed.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import trio
from support.codex_process import DEADLINE_S, END_S, CodexConnection
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream

FRAME_BYTES_MAX = 64 * 1024 * 1024
# Read ahead of the test: a stalled reader shall stall the socket soon.
QUEUE_FRAMES = 8
FIRST_TERM_S = 0.5


class SocketConnection(CodexConnection):
    """One client of an app-server that may have others. `closed` is set once Codex has hung up, or we have."""

    def __init__(self, stderr: Path, stream: trio.SocketStream, websocket: WebSocketConnection) -> None:
        super().__init__(stderr)
        self.closed = trio.Event()
        self._stream = stream
        self._websocket = websocket
        self._may_read = trio.Event()
        self._may_read.set()

    async def write(self, frame: bytes) -> None:
        await self._websocket.send_message(frame.decode())

    async def read(self) -> None:
        """Take in everything Codex says until the connection ends."""
        try:
            while True:
                await self._may_read.wait()
                self._take([await self._websocket.get_message()])
        except ConnectionClosed:
            self._close()
            self.closed.set()
        finally:
            await trio.aclose_forcefully(self._stream)

    def stall(self) -> None:
        """Stop reading. What Codex sends from now on stays in the socket, and then in Codex."""
        self._may_read = trio.Event()

    def go_on(self) -> None:
        """Read again."""
        self._may_read.set()

    async def vanish(self) -> None:
        """Drop the connection without a word, as a client does that was killed."""
        await trio.aclose_forcefully(self._stream)
        with trio.fail_after(END_S):
            await self.closed.wait()


class CodexServer:
    """One app-server that listens at `socket`."""

    def __init__(self, process: trio.Process, socket: Path, stderr: Path, nursery: trio.Nursery) -> None:
        self.process = process
        self.socket = socket
        self._stderr = stderr
        self._nursery = nursery

    @property
    def pid(self) -> int:
        """The process id, which is the group's too."""
        return self.process.pid

    def stderr(self) -> str:
        """What it wrote to standard error so far."""
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    async def connect(self, *, introduced: bool = True) -> SocketConnection:
        """Open one more connection; `introduced`: shake hands on it."""
        stream = await trio.open_unix_socket(_address(self.socket))
        websocket = await wrap_client_stream(
            self._nursery,
            stream,
            "localhost",
            "/",
            message_queue_size=QUEUE_FRAMES,
            max_message_size=FRAME_BYTES_MAX,
        )
        connection = SocketConnection(self._stderr, stream, websocket)
        self._nursery.start_soon(connection.read)
        if introduced:
            await connection.initialize()
        return connection

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone."""
        self.process.send_signal(number)


@contextlib.asynccontextmanager
async def open_codex_socket(
    binary: Path, home: Path, *, socket: Path | None = None, options: Sequence[str] = ()
) -> AsyncIterator[CodexServer]:
    """Run an app-server on this `CODEX_HOME` that listens (at `codex.sock` in the home), until the block ends.

    `options` go before `app-server` (`-c KEY=VALUE`). Its standard error goes to `app-server.stderr` in the home.
    """
    socket = socket or home / "codex.sock"
    stderr = home / "app-server.stderr"
    with stderr.open("ab") as errors:
        process = await trio.lowlevel.open_process(
            [str(binary), *options, "app-server", "--listen", f"unix://{socket}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            cwd=home,
            env={**os.environ, "CODEX_HOME": str(home)},
            start_new_session=True,
        )
    try:
        async with trio.open_nursery() as nursery:
            with trio.fail_after(DEADLINE_S):
                while process.poll() is None and not await _is_answered(socket):  # noqa: ASYNC110 - its event, not ours
                    await trio.sleep(0.005)
            yield CodexServer(process, socket, stderr, nursery)
            nursery.cancel_scope.cancel()
    finally:
        await _end(process)


def _address(socket: Path) -> Path:
    # Codex binds in a folder of its own and leaves a link, which may be longer than a socket's address.
    return socket.parent / socket.readlink() if socket.is_symlink() else socket


async def _is_answered(socket: Path) -> bool:
    """Whether somebody listens. What a server left behind that was killed looks like a socket, too."""
    try:
        stream = await trio.open_unix_socket(_address(socket))
    except OSError:
        return False
    await trio.aclose_forcefully(stream)
    return True


async def _end(process: trio.Process) -> None:
    """Ask it to end, ask again as one who means it, and kill what is left of the group."""
    with trio.CancelScope(shield=True):
        for deadline_s in (FIRST_TERM_S, END_S):
            if process.poll() is None:
                process.terminate()
                with trio.move_on_after(deadline_s):
                    await process.wait()
        with contextlib.suppress(ProcessLookupError):  # nothing outlived it
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
