"""Small applications for the shell's tests, and the shell run around one of them."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

import msgspec
import trio

from termald.api.asgi import ASGIApp, Receive, Scope, Send
from termald.api.gate import Gate
from termald.api.listeners import Listener, open_tcp_listener
from termald.api.server import ServerControl, serve
from termald.limits import ServerLimits

SMALL_BUFFER_BYTES: Final = 4_096
"""For SO_SNDBUF and SO_RCVBUF: a reader that stops is then noticed after a few kilobytes."""


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

    async def connect(self) -> trio.SocketStream:
        """Open a connection to it."""
        if self.listener.path is not None:
            return await trio.open_unix_socket(self.listener.path)
        return await trio.open_tcp_stream("127.0.0.1", self.port)


@contextlib.asynccontextmanager
async def running(
    app: ASGIApp,
    *,
    limits: ServerLimits | None = None,
    gate: Gate | None = None,
    listener: Listener | None = None,
    small_buffers: bool = False,
) -> AsyncIterator[Running]:
    """Serve `app` while the block runs; then everything is cut."""
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


async def describe(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with what was asked: method, path, query, body length, transport."""
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan here")
    message = await receive()
    answer = msgspec.json.encode(
        {
            "method": scope["method"],
            "path": scope["path"],
            "query": scope["query_string"].decode(),
            "body": message["body"].decode("latin-1"),
            "client": scope["client"],
            "transport": scope["extensions"]["termald.transport"],
        }
    )
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})
