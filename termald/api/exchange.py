"""One request and its answer, as the application sees them: `receive` and `send`, and how the exchange may end early.

The theory stands in `http1`. Here: what the application says becomes bytes. The head of an answer with a Content-Length
waits for the body and goes out with it in one write; without one it is a stream, whose head goes out at once, because
the first event may be long in coming.
"""

import email.utils
import http
import time
from collections.abc import Callable, Iterable
from typing import Final

import h11
import structlog
import trio

from termald.api.asgi import LEAVE_GRACE_S, ASGIApp, ClientDisconnected, Message, Receive, Scope, Send, is_disconnect
from termald.api.transport import Transport

_REASONS: Final = {status.value: status.phrase.encode() for status in http.HTTPStatus}
_BODYLESS: Final = frozenset({204, 304})

_log = structlog.get_logger(__name__)


class Exchange:
    """The application's side of one request.

    `complete`: the whole answer is out. `started`: some of it may be. `gone`: nothing can arrive any more. `over`: set
    when `receive()` has only `http.disconnect` to say. `scope`: what the application runs in.
    """

    def __init__(
        self, parser: h11.Connection, transport: Transport, *, head_only: bool, body: bytes, watch: Callable[[], None]
    ) -> None:
        self._parser = parser
        self._transport = transport
        self._bodyless = head_only
        self._body: bytes | None = body
        self._watch = watch
        self._held: bytes = b""
        self.scope = trio.CancelScope()
        self.over = trio.Event()
        self.started = False
        self.complete = False
        self.gone = False
        self.draining = False
        self.streaming = False
        self.event_stream = False

    async def receive(self) -> Message:
        """ASGI's receive: the whole body, then, whenever that happens, the disconnect."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if not self.over.is_set():
            self._watch()
        await self.over.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """ASGI's send. Raises ClientDisconnected, RuntimeError for a message out of turn, h11's LocalProtocolError."""
        match message["type"]:
            case "http.response.start":
                await self.start(message["status"], message.get("headers", ()))
            case "http.response.body":
                await self.send_body(message.get("body", b""), more=message.get("more_body", False))
            case other:
                raise RuntimeError(f"unexpected message {other!r}")

    async def start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Begin the answer."""
        if self.started:
            raise RuntimeError("the answer has begun already")
        pairs = [(bytes(name).lower(), bytes(value)) for name, value in headers]
        given = dict(pairs)
        if b"date" not in given:
            pairs.append((b"date", _http_date(int(time.time()))))
        if self.draining:
            pairs.append((b"connection", b"close"))
        self._held = self._parser.send(
            h11.Response(status_code=status, headers=pairs, reason=_REASONS.get(status, b""))
        )
        self.started = True
        self._bodyless = self._bodyless or status in _BODYLESS
        self.event_stream = given.get(b"content-type", b"").startswith(b"text/event-stream")
        if b"content-length" not in given and not self._bodyless:
            await self._stream(b"")

    async def send_body(self, data: bytes, *, more: bool) -> None:
        """Send a part of the body; the last one without `more`."""
        if not self.started or self.complete:
            raise RuntimeError("a body before the answer has begun, or after its end")
        part = b"" if not data or self._bodyless else self._parser.send(h11.Data(data=data))
        if more:
            await self._stream(part)
            return
        part += self._parser.send(h11.EndOfMessage())
        await self._write(part)
        self.complete = True
        self.over.set()

    async def end_stream(self) -> None:
        """Give a stream that was told to end its proper last bytes."""
        await self.send_body(b"", more=False)

    def peer_left(self) -> None:
        """Nothing more comes from the peer; it may still listen."""
        self.over.set()
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + LEAVE_GRACE_S)

    def peer_gone(self) -> None:
        """Nothing reaches the peer any more."""
        self.gone = True
        self.peer_left()

    def drain(self) -> None:
        """The server ends: an answer in the making is the last one, a stream shall end."""
        self.draining = True
        self.over.set()

    async def _stream(self, part: bytes) -> None:
        self.streaming = True
        self._watch()
        await self._write(part)

    async def _write(self, part: bytes) -> None:
        held, self._held = self._held, b""
        try:
            await self._transport.send_all(held + part)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.peer_gone()
            raise ClientDisconnected(str(error)) from None


async def run_app(app: ASGIApp, scope: Scope, receive: Receive, send: Send, cancel: trio.CancelScope) -> bool:
    """Run the application for one request inside `cancel`; False if it raised.

    What it raises because its peer left is no news. Everything else is logged here, and goes no further: one request
    that fails is not the daemon's end.
    """
    try:
        with cancel:
            await app(scope, receive, send)
    except Exception as error:
        if not is_disconnect(error):
            _log.exception("application-failed", type=scope["type"], path=scope["path"])
        return False
    return True


_dates: dict[int, bytes] = {}


def _http_date(second: int) -> bytes:
    """Format `second` (Unix time) for the Date header; the answer to the last question is kept."""
    if second not in _dates:
        _dates.clear()
        _dates[second] = email.utils.formatdate(second, usegmt=True).encode()
    return _dates[second]
