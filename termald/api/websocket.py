"""A WebSocket: the handshake is judged here, the frames are trio-websocket's.

Theory. Until the application accepts, the connection is an HTTP exchange like any other, and a refusal is an HTTP
answer (`websocket.http.response`, or 403 for a plain `websocket.close`). Accepting hands the transport to
trio-websocket for good. It is given a handshake of our own making with the peer's key in it, since the peer's was read
already, and what the peer sent behind its handshake is held back until ours is answered: read earlier, wsproto would
lose it.

From then on a reading task (the pump) always runs, also for an application that only sends: without it pings and closes
would go unanswered. It stops reading only when `INBOX_MESSAGES` wait for the application. A session ends in one of four
ways, and whoever comes first wins: the peer closes or is gone; the application closes, returns or fails; the server
drains (1001); a write is overdue or was cancelled, which leaves a torn frame, so the connection is cut. The closing
handshake has `CLOSE_S`, since a peer that stopped reading will never answer it.
"""

import base64
import binascii
from typing import Final

import h11
import msgspec
import structlog
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_server_stream
from wsproto.utilities import LocalProtocolError

from termald.api.asgi import ASGIApp, ClientDisconnected, Headers, Message, Scope
from termald.api.exchange import Exchange, run_app
from termald.api.refusals import Refused, bad_request, upgrade_refused, websocket_refused
from termald.api.transport import READ_BYTES, Transport

INBOX_MESSAGES: Final = 8
"""Received and not yet taken by the application. Each may have the size of a request body."""
CLOSE_S: Final = 1.0
"""For the closing handshake; on one machine it takes less than a millisecond unless the peer has stopped reading."""
_KEY_BYTES: Final = 16

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
ABNORMAL: Final = 1006
INTERNAL_ERROR: Final = 1011

_log = structlog.get_logger(__name__)


class Handshake(msgspec.Struct, frozen=True):
    """What of a WebSocket request matters for its answer."""

    key: bytes
    subprotocols: tuple[str, ...]

    def encode(self) -> bytes:
        """Write the handshake anew. Target and host have been judged already and mean nothing to the frames."""
        lines = [
            b"GET / HTTP/1.1",
            b"host: localhost",
            b"connection: upgrade",
            b"upgrade: websocket",
            b"sec-websocket-version: 13",
            b"sec-websocket-key: " + self.key,
        ]
        if self.subprotocols:
            lines.append(b"sec-websocket-protocol: " + ", ".join(self.subprotocols).encode("ascii"))
        return b"\r\n".join(lines) + b"\r\n\r\n"


def read_handshake(request: h11.Request) -> Handshake | None:
    """Return the WebSocket handshake in `request`, or None if it is a plain request. Raises Refused (400, 426).

    An `Upgrade` to anything else is ignored, as HTTP wants it.
    """
    values: dict[bytes, list[bytes]] = {}
    for name, value in request.headers:
        values.setdefault(name, []).append(value)
    if b"websocket" not in _tokens(values, b"upgrade") or b"upgrade" not in _tokens(values, b"connection"):
        return None
    if request.method != b"GET" or request.http_version != b"1.1":
        raise Refused(bad_request("a WebSocket begins with GET and HTTP/1.1"))
    if b"transfer-encoding" in values or values.get(b"content-length", [b"0"]) != [b"0"]:
        raise Refused(bad_request("a WebSocket handshake has no body"))
    if values.get(b"sec-websocket-version") != [b"13"]:
        raise Refused(upgrade_refused("only WebSocket version 13 is spoken here"))
    keys = values.get(b"sec-websocket-key", [])
    if len(keys) != 1 or not _is_key(keys[0]):
        raise Refused(bad_request("Sec-WebSocket-Key must be 16 bytes in Base64"))
    try:
        offered = b",".join(values.get(b"sec-websocket-protocol", [])).decode("ascii")
    except UnicodeDecodeError:
        raise Refused(bad_request("Sec-WebSocket-Protocol is not ASCII")) from None
    return Handshake(keys[0], tuple(name.strip() for name in offered.split(",") if name.strip()))


def _tokens(values: dict[bytes, list[bytes]], name: bytes) -> set[bytes]:
    return {token.strip().lower() for value in values.get(name, []) for token in value.split(b",")}


def _is_key(value: bytes) -> bool:
    try:
        return len(base64.b64decode(value, validate=True)) == _KEY_BYTES
    except binascii.Error:
        return False


class _UpgradedStream(trio.abc.Stream):
    """The transport as trio-websocket is to see it: our handshake first, then nothing until `opened`, then the peer."""

    def __init__(self, transport: Transport, handshake: bytes) -> None:
        self._transport = transport
        self._handshake = handshake
        self.opened = trio.Event()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if self._handshake:
            handshake, self._handshake = self._handshake, b""
            await trio.lowlevel.checkpoint()
            return handshake
        await self.opened.wait()
        return await self._transport.receive_some(max_bytes)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._transport.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._transport.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._transport.aclose()


class WebSocketSession:
    """The application's side of one WebSocket, from its handshake to its end. `run` it once."""

    def __init__(
        self, transport: Transport, exchange: Exchange, handshake: Handshake, *, message_bytes_max: int
    ) -> None:
        self._transport = transport
        self._exchange = exchange
        self._handshake = handshake
        self._message_bytes_max = message_bytes_max
        self._connection: WebSocketConnection | None = None
        self._connect_told = False
        self._outbox, self._inbox = trio.open_memory_channel[str | bytes](INBOX_MESSAGES)
        self._pumping = trio.CancelScope()
        self._pumped = trio.Event()
        self._closed: trio.Event | None = None
        self._refused = False
        self._end: tuple[int, str] | None = None

    async def run(self, app: ASGIApp, scope: Scope) -> tuple[bool, bool]:
        """Run the application. Return whether the WebSocket was opened, and whether the application succeeded.

        Where it was not opened the exchange says what was answered. Raises Refused (403) where the application closed
        it unopened.
        """
        succeeded = False
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                succeeded = await run_app(app, scope, self.receive, self.send, self._exchange.scope)
                if self._connection is not None:
                    self._inbox.close()
                    await self._close(NORMAL if succeeded else INTERNAL_ERROR, "")
                nursery.cancel_scope.cancel()
        except* LocalProtocolError as errors:
            # trio-websocket's reader answers a ping after our own close, and the like: the peer's frames out of turn.
            _log.debug("websocket-out-of-turn", errors=[str(error) for error in errors.exceptions])
            self._transport.cut()
        if self._refused:
            raise Refused(websocket_refused())
        return self._connection is not None, succeeded

    def drain(self) -> None:
        """The server ends: say goodbye to the peer, then to the application."""
        self._pumping.cancel()
        if self._connection is None:
            self._finish(GOING_AWAY, "")

    async def receive(self) -> Message:
        """ASGI's receive."""
        if not self._connect_told:
            self._connect_told = True
            return {"type": "websocket.connect"}
        try:
            message = await self._inbox.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            code, reason = self._end or (ABNORMAL, "")
            return {"type": "websocket.disconnect", "code": code, "reason": reason}
        return {"type": "websocket.receive", "text" if isinstance(message, str) else "bytes": message}

    async def send(self, message: Message) -> None:
        """ASGI's send.

        Raises ClientDisconnected, RuntimeError for a message out of turn, and wsproto's LocalProtocolError for an
        acceptance that the peer could not accept, such as a subprotocol that it did not offer.
        """
        match message["type"]:
            case "websocket.accept":
                await self._accept(message.get("subprotocol"), list(message.get("headers") or ()))
            case "websocket.send":
                text = message.get("text")
                await self._send(bytes(message["bytes"]) if text is None else text)
            case "websocket.close" if self._connection is None:
                self._must_be_undecided()
                self._refused = True
                self._finish(ABNORMAL, "")
            case "websocket.close":
                await self._close(message.get("code") or NORMAL, message.get("reason") or "")
            case "websocket.http.response.start":
                self._must_be_undecided()
                await self._exchange.start(message["status"], message.get("headers", ()))
            case "websocket.http.response.body":
                await self._exchange.send_body(message.get("body", b""), more=message.get("more_body", False))
            case other:
                raise RuntimeError(f"unexpected message {other!r}")

    def _must_be_undecided(self) -> None:
        if self._connection is not None or self._refused or self._exchange.started:
            raise RuntimeError("this WebSocket has been accepted or refused already")

    async def _accept(self, subprotocol: str | None, headers: Headers) -> None:
        self._must_be_undecided()
        stream = _UpgradedStream(self._transport, self._handshake.encode())
        request = await wrap_server_stream(
            self._nursery,
            stream,
            message_queue_size=1,
            max_message_size=self._message_bytes_max,
            receive_buffer_size=READ_BYTES,
        )
        try:
            self._connection = await request.accept(subprotocol=subprotocol, extra_headers=headers)
        except ConnectionClosed as closed:
            self._exchange.peer_gone()
            raise ClientDisconnected(str(closed)) from None
        stream.opened.set()
        self._nursery.start_soon(self._pump, self._connection)

    async def _send(self, data: str | bytes) -> None:
        if self._connection is None:
            raise RuntimeError("this WebSocket has not been accepted")
        try:
            await self._connection.send_message(data)
        except (ConnectionClosed, LocalProtocolError) as error:
            raise ClientDisconnected(f"the WebSocket is closed: {error}") from None

    async def _pump(self, connection: WebSocketConnection) -> None:
        try:
            with self._pumping:
                while True:
                    await self._outbox.send(await connection.get_message())
        except trio.BrokenResourceError:
            pass  # the application has ended and takes no more
        except ConnectionClosed as closed:
            known = closed.reason
            self._finish(ABNORMAL if known is None else known.code, (known and known.reason) or "")
        finally:
            self._pumped.set()
        if self._pumping.cancelled_caught:
            await self._close(GOING_AWAY, "")
        self._exchange.peer_left()

    async def _close(self, code: int, reason: str) -> None:
        """Close from our side, bounded; whoever comes second waits for the first."""
        assert self._connection is not None
        if self._closed is not None:
            await self._closed.wait()
            return
        self._closed = trio.Event()
        if self._end is None:
            self._end = (code, reason)  # trio-websocket calls every close of ours 1000
        try:
            with trio.move_on_after(CLOSE_S) as deadline:
                await self._connection.aclose(code, reason)
                # Where the peer closed first, aclose returns at once, and its close may not be answered yet.
                await self._pumped.wait()
            if deadline.cancelled_caught:
                self._transport.cut()
        finally:
            self._finish(code, reason)
            self._closed.set()

    def _finish(self, code: int, reason: str) -> None:
        """Settle what `receive()` says at the end; the first to know decides."""
        if self._end is None:
            self._end = (code, reason)
        self._outbox.close()
