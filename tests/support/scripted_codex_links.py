"""The wires between a daemon and a scripted app-server, in memory: the control socket's frames, and the pipes' bytes.

`Connection` is Codex's end of either. What it says goes through a queue of its own, as the real one's does: 128
messages for a socket, after which a reader that takes nothing loses its connection; as many as there are for a pipe.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Literal, Protocol

import trio
from trio.testing import memory_stream_one_way_pair, memory_stream_pump

from termald.codex.errors import LinkClosed
from termald.codex.lines import Oversize
from termald.codex.link import WRITE_DEADLINE_S, check_size

SOCKET_MESSAGES_MAX: Final = 128
# What the kernel holds between the two, in frames; the real one counts bytes.
_IN_FLIGHT_MAX: Final = 16


class Peer(Protocol):
    """The process at Codex's end."""

    async def take(self, connection: "Connection", raw: bytes) -> None:
        """Take in one frame. What is not taken waits in the wire."""

    def left(self, connection: "Connection") -> None:
        """The other side has gone."""

    async def thawed(self) -> None:
        """Return when the process may do something: a frozen one does nothing."""


class Connection:
    """Codex's end of one wire."""

    def __init__(self, number: int, peer: Peer) -> None:
        self.number = number
        self.initialized = False
        self.is_open = True
        self._output, self._input = trio.Event(), trio.Event()
        """Set: it flows."""
        self.unblock()
        self.queue: deque[bytes] = deque()
        self._peer = peer
        self._filled = trio.Event()
        self._scope = trio.CancelScope()

    def say(self, frame: bytes) -> None:
        """Queue a frame, or bytes that are none."""
        if self.is_open:
            self.queue.append(frame)
            self._filled.set()
            self._queued()

    def block(self, way: Literal["stalled", "deaf"]) -> None:
        """Let nothing out any more (`stalled`), or take nothing in (`deaf`)."""
        if way == "stalled" and self._output.is_set():
            self._output = trio.Event()
        elif way == "deaf" and self._input.is_set():
            self._input = trio.Event()

    def unblock(self) -> None:
        """Let everything flow again."""
        self._output.set()
        self._input.set()

    def close(self) -> None:
        """Hang up; what is queued is not delivered."""
        self.is_open = False
        self._scope.cancel()

    async def run(self) -> None:
        """Carry frames both ways until one side ends it. Nothing said is lost when the process dies (`finish`)."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pump)
                await self._listen()
                nursery.cancel_scope.cancel()
        self.is_open = False
        await self._hang_up()
        self._peer.left(self)

    async def _pump(self) -> None:
        while True:
            if not self.queue:
                self._filled = trio.Event()
                await self._filled.wait()
            await self._output.wait()
            await self._peer.thawed()
            if not self.queue:
                continue  # it has died meanwhile, and left the rest in the wire
            try:
                await self._deliver(self.queue.popleft())
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self.close()
                await trio.lowlevel.checkpoint()

    async def _listen(self) -> None:
        while True:
            await self._input.wait()
            raw = await self._next()
            if raw is None:
                return
            await self._peer.thawed()
            await self._peer.take(self, raw)

    def _queued(self) -> None:
        return

    async def _deliver(self, frame: bytes) -> None:
        raise NotImplementedError

    async def _next(self) -> bytes | None:
        raise NotImplementedError

    async def _hang_up(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        """The process dies: what it had written already still arrives, then the end."""
        raise NotImplementedError


class SocketConnection(Connection):
    """One client of the control socket."""

    def __init__(self, number: int, peer: Peer) -> None:
        super().__init__(number, peer)
        self._to_client, self._client_end = trio.open_memory_channel[bytes](_IN_FLIGHT_MAX)
        self._from_client, self._server_end = trio.open_memory_channel[bytes](_IN_FLIGHT_MAX)
        self.link = SocketLink(self._from_client, self._client_end)

    def _queued(self) -> None:
        if len(self.queue) > SOCKET_MESSAGES_MAX:
            self.close()

    async def _deliver(self, frame: bytes) -> None:
        await self._to_client.send(frame)

    async def _next(self) -> bytes | None:
        try:
            return await self._server_end.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            return None

    async def _hang_up(self) -> None:
        self._to_client.close()
        self._server_end.close()
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()

    def finish(self) -> None:
        while self.queue:
            try:
                self._to_client.send_nowait(self.queue.popleft())
            except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
                break  # the kernel's buffer is full, or nobody is there to read it
        self.close()


class SocketLink:
    """The daemon's end of the control socket: a `termald.codex.link.Link`."""

    def __init__(self, to_codex: trio.MemorySendChannel[bytes], from_codex: trio.MemoryReceiveChannel[bytes]) -> None:
        self._to_codex = to_codex
        self._from_codex = from_codex

    async def receive(self) -> bytes | Oversize:
        try:
            return await self._from_codex.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError) as error:
            raise LinkClosed("the control socket was closed: 1006") from error

    async def send(self, frame: bytes) -> None:
        check_size(frame)
        whole = False
        try:
            with trio.fail_after(WRITE_DEADLINE_S):
                await self._to_codex.send(frame)
            whole = True
        except trio.TooSlowError as error:
            raise LinkClosed(f"Codex took no input for {WRITE_DEADLINE_S:.0f} s") from error
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise LinkClosed("the control socket was closed: 1006") from error
        finally:
            if not whole:
                self._close()

    async def aclose(self) -> None:
        self._close()
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()

    def _close(self) -> None:
        self._to_codex.close()
        self._from_codex.close()


class PipeConnection(Connection):
    """The one owner of the process's pipes. `mangle` may cut, join and soil what is written, as bytes."""

    def __init__(self, number: int, peer: Peer, mangle: Callable[[bytes], list[bytes]] | None = None) -> None:
        super().__init__(number, peer)
        self.pipes = MemoryPipes(self._pass_input)
        self._mangle = mangle or (lambda line: [line])
        self._rest = b""
        self._lines: deque[bytes] = deque()

    def clean(self) -> None:
        """Write lines as they are from now on."""
        self._mangle = lambda line: [line]

    async def _pass_input(self) -> None:
        # The kernel's 64 KiB are as good as none for somebody who never reads.
        await self._input.wait()
        memory_stream_pump(self.pipes.to_codex, self.pipes.theirs_in)

    async def _deliver(self, frame: bytes) -> None:
        for piece in self._mangle(frame + b"\n"):
            await self.pipes.theirs_out.send_all(piece)

    async def _next(self) -> bytes | None:
        while not self._lines:
            chunk = await self.pipes.theirs_in.receive_some()
            if not chunk:
                return None
            *lines, self._rest = (self._rest + bytes(chunk)).split(b"\n")
            self._lines.extend(lines)
        return self._lines.popleft()

    async def _hang_up(self) -> None:
        self.pipes.theirs_out.close()
        self.pipes.theirs_in.close()
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()

    def finish(self) -> None:
        with suppress(trio.ClosedResourceError):  # nobody is there to read it
            while self.queue:
                self.pipes.from_codex.put_data(self.queue.popleft() + b"\n")
        self.close()


class MemoryPipes:
    """Both pipes. `to_codex` and `from_codex` are the daemon's ends, as in `termald.codex.process.Pipes`."""

    def __init__(self, pass_input: Callable[[], Awaitable[None]]) -> None:
        self.to_codex, self.theirs_in = memory_stream_one_way_pair()
        self.to_codex.send_all_hook = pass_input
        self.theirs_out, self.from_codex = memory_stream_one_way_pair()
