"""Small applications for the shell's tests, the shell run around one of them, and a client that sends any bytes."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import h11
import msgspec
import trio
import trio_websocket

from termald.api.asgi import ASGIApp, ClientDisconnected, Receive, Scope, Send
from termald.api.gate import Gate
from termald.api.listeners import Listener, open_tcp_listener, open_unix_listener
from termald.api.server import ServerControl, serve
from termald.limits import ServerLimits

PATIENCE_S: Final = 10.0
"""What a test waits for at most. Nothing here takes a hundredth of it."""
SMALL_BUFFER_BYTES: Final = 4_096
"""For SO_SNDBUF and SO_RCVBUF: a reader that stops is then noticed after a few kilobytes."""


class Answer(msgspec.Struct, frozen=True):
    """A response as received. `interim` are the statuses of the 1xx that came before."""

    status: int
    headers: dict[str, str]
    body: bytes
    interim: tuple[int, ...]

    @property
    def problem(self) -> dict[str, Any]:
        """The body as a problem document."""
        assert self.headers["content-type"] == "application/problem+json"
        document: dict[str, Any] = msgspec.json.decode(self.body)
        assert document.keys() == {"type", "title", "status", "detail", "retryable"}
        assert document["status"] == self.status
        return document


class RawClient:
    """One connection, on which a test writes what it likes and reads what comes."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.received = b""
        """What came behind the last answer that was read."""

    async def send(self, data: bytes) -> None:
        """Write bytes."""
        await self.stream.send_all(data)

    async def answer(self, method: str = "GET") -> Answer:
        """Read one whole response to a request of this method. Fails if it does not end properly."""
        parser = h11.Connection(h11.CLIENT)
        parser.send(h11.Request(method=method, target="/", headers=[("host", "localhost")]))
        parser.send(h11.EndOfMessage())
        head: h11.Response | None = None
        interim: list[int] = []
        body = b""
        if self.received:
            parser.receive_data(self.received)
        with trio.fail_after(PATIENCE_S):
            while True:
                event = parser.next_event()
                if event is h11.NEED_DATA:
                    parser.receive_data(await self.stream.receive_some())
                elif isinstance(event, h11.InformationalResponse):
                    interim.append(event.status_code)
                elif isinstance(event, h11.Response):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
                else:
                    assert isinstance(event, h11.EndOfMessage), event
                    break
        assert head is not None
        self.received = parser.trailing_data[0]
        headers = {name.decode(): value.decode() for name, value in head.headers}
        return Answer(head.status_code, headers, body, tuple(interim))

    async def until(self, mark: bytes) -> bytes:
        """Read until `mark` has come; return everything up to its end and keep the rest."""
        with trio.fail_after(PATIENCE_S):
            while mark not in self.received:
                data = await self.stream.receive_some()
                assert data, f"closed before {mark!r}; got {self.received!r}"
                self.received += data
        end = self.received.index(mark) + len(mark)
        found, self.received = self.received[:end], self.received[end:]
        return found

    async def until_closed(self) -> bytes:
        """Read until the other side closes; return what came. A reset raises trio.BrokenResourceError."""
        with trio.fail_after(PATIENCE_S):
            while data := await self.stream.receive_some():
                self.received += data
        found, self.received = self.received, b""
        return found


class Running:
    """A running shell: where it listens, how to end it, and whether it has ended."""

    def __init__(self, listener: Listener, control: ServerControl) -> None:
        self.listener = listener
        self.control = control
        self.ended = trio.Event()

    @property
    def port(self) -> int:
        """The TCP port."""
        assert self.listener.port is not None
        return self.listener.port

    async def connect(self, *, receive_buffer_bytes: int | None = None) -> RawClient:
        """Open a connection to it."""
        if self.listener.path is not None:
            return RawClient(await trio.open_unix_socket(self.listener.path))
        sock = trio.socket.socket()
        if receive_buffer_bytes is not None:
            sock.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, receive_buffer_bytes)
        try:
            await sock.connect(("127.0.0.1", self.port))
        except OSError:
            sock.close()
            raise
        return RawClient(trio.SocketStream(sock))

    async def ask(self, request: bytes, method: str = "GET") -> Answer:
        """Send one request on a connection of its own and return the answer."""
        client = await self.connect()
        async with client.stream:
            await client.send(request)
            return await client.answer(method)

    @contextlib.asynccontextmanager
    async def websocket(
        self,
        path: str = "/",
        *,
        client: RawClient | None = None,
        subprotocols: tuple[str, ...] = (),
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> AsyncIterator[trio_websocket.WebSocketConnection]:
        """Open a WebSocket; it is closed with the block."""
        used = client if client is not None else await self.connect()
        async with used.stream, trio.open_nursery() as nursery:
            connection = await trio_websocket.wrap_client_stream(
                nursery, used.stream, "localhost", path, subprotocols=subprotocols, extra_headers=list(headers)
            )
            try:
                yield connection
            finally:
                with trio.move_on_after(1):
                    await connection.aclose()
                nursery.cancel_scope.cancel()

    async def drained(self) -> float:
        """Begin to drain and wait for the end; return how long it took, in seconds of the test's clock."""
        begun = trio.current_time()
        self.control.begin_drain()
        with trio.fail_after(PATIENCE_S):
            await self.ended.wait()
        return trio.current_time() - begun


@contextlib.asynccontextmanager
async def running(
    app: ASGIApp,
    *,
    limits: ServerLimits | None = None,
    gate: Gate | None = None,
    listener: Listener | None = None,
    small_buffers: bool = False,
) -> AsyncIterator[Running]:
    """Serve `app` while the block runs; then everything is cut. Listens on TCP unless given a listener."""
    used = listener if listener is not None else await open_tcp_listener("127.0.0.1", 0)
    if small_buffers:
        used.socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_SNDBUF, SMALL_BUFFER_BYTES)
    server = Running(used, ServerControl())

    async def run(task_status: trio.TaskStatus[None]) -> None:
        await serve(
            app,
            [used],
            gate=gate if gate is not None else Gate(),
            limits=limits if limits is not None else ServerLimits(),
            control=server.control,
            task_status=task_status,
        )
        server.ended.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(run)
        try:
            yield server
        finally:
            nursery.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def running_on_unix(app: ASGIApp, folder: Path, *, limits: ServerLimits | None = None) -> AsyncIterator[Running]:
    """Serve on a Unix socket, for tests with a clock that jumps.

    What is written to a Unix socket is there for its reader at once; on TCP the clock could jump while the kernel is
    still carrying it over.
    """
    async with running(app, limits=limits, listener=open_unix_listener(folder / "s")) as server:
        yield server


async def describe(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with what was asked."""
    if scope["type"] != "http":
        raise RuntimeError(f"only http here, not {scope['type']}")
    message = await receive()
    answer = msgspec.json.encode(
        {
            "method": scope["method"],
            "path": scope["path"],
            "raw_path": scope["raw_path"].decode(),
            "query": scope["query_string"].decode(),
            "body": message["body"].decode("latin-1"),
            "client": scope["client"],
            "transport": scope["extensions"]["termald.transport"],
        }
    )
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


class EventSource:
    """An event stream that the test feeds. It notes how its reader's leaving came to be known."""

    def __init__(self) -> None:
        self.feed, self._feed = trio.open_memory_channel[bytes](0)
        self.ended = trio.Event()
        self.ended_by = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await receive()
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._listen, receive, nursery.cancel_scope)
                async for event in self._feed:
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                nursery.cancel_scope.cancel()
            if not self.ended_by:
                await send({"type": "http.response.body", "body": b""})
        except* ClientDisconnected:
            self.ended_by = "send"
        finally:
            self.ended_by = self.ended_by or "end"
            self.ended.set()

    async def _listen(self, receive: Receive, cancel: trio.CancelScope) -> None:
        message = await receive()
        assert message == {"type": "http.disconnect"}
        self.ended_by = "receive"
        cancel.cancel()


async def flood(scope: Scope, receive: Receive, send: Send) -> None:
    """Send events without pause and never listen: what a reader that stops meets."""
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan here")
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while True:
            await send({"type": "websocket.send", "text": "x" * 1_024})
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    while True:
        await send({"type": "http.response.body", "body": b"data: x\n\n" * 100, "more_body": True})


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Send back what comes over a WebSocket; choose the first subprotocol offered."""
    if scope["type"] != "websocket":
        raise RuntimeError(f"only websocket here, not {scope['type']}")
    assert await receive() == {"type": "websocket.connect"}
    offered = scope["subprotocols"]
    await send({"type": "websocket.accept", "subprotocol": offered[0] if offered else None})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})
