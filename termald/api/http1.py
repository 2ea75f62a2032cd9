"""One HTTP/1.1 connection: requests one after the other, each with the application as a child.

Theory. The connection's task owns the transport; while an application runs, at most one other task reads. Three things
may end a request early, and they compete:

- *the peer leaves* (end of input, or a failed write): `receive()` gives `http.disconnect` from then on. End of input
  alone is not proof, a client may have closed its sending half, so writes still go out until one fails; a failed or
  overdue write raises `ClientDisconnected`. The application has `LEAVE_GRACE_S` to end; then it is cancelled.
- *the server drains*: idle connections end at once, a stream gets `http.disconnect` and may still write its last words,
  an answer in the making is finished with `Connection: close`. `serve` cuts whatever outlives the deadline.
- *the application fails*: 500 if nothing was sent, else the connection is cut, so that the answer looks as torn as it
  is.

A read runs beside every stream, since only a read sees the peer leave; it begins when the application shows that its
answer is one (no Content-Length, or a part of the body with more to come) or asks by `receive()`. A plain answer is not
watched and never cut short: what was asked for is done even if nobody waits for it any more. What is read meanwhile is
kept (`READ_AHEAD_BYTES`); it may be the next request.

Not supported, and refused rather than guessed: HTTP/2, CONNECT, the absolute form of targets, trailers, transfer
codings other than chunked. A request's body is complete, in memory, before the application is called.
"""

from typing import Any, Final, Literal

import h11
import msgspec
import trio

from termald.api.asgi import ASGI_VERSION, TRANSPORT_EXTENSION, ASGIApp, ClientDisconnected, Peer, Scope
from termald.api.exchange import Exchange, run_app
from termald.api.gate import Gate
from termald.api.heads import Target, check_head, head_end, parse_target
from termald.api.refusals import (
    Refused,
    bad_request,
    body_too_large,
    encode_response,
    internal_error,
    not_implemented,
    request_timeout,
    version_refused,
)
from termald.api.transport import Transport
from termald.api.websocket import Handshake, WebSocketSession, read_handshake
from termald.limits import ServerLimits

READ_AHEAD_BYTES: Final = 65_536
"""Kept while a stream runs. A peer that sends more is not read any further, so its leaving is then seen by a write."""
LINGER_S: Final = 1.0
"""How long a refused peer is read after the refusal. Closing with unread input resets the connection, and the reset can
overtake the refusal."""
_MS: Final = 1_000
_NOT_IMPLEMENTED: Final = 501
_CHUNKS_END: Final = b"\r\n\r\n"

Activity = Literal["idle", "request", "stream", "websocket"]


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What is the same for all connections of a server. `state` is what the application's lifespan left."""

    app: ASGIApp
    gate: Gate
    limits: ServerLimits
    state: dict[str, Any]


class _PeerLeft(Exception):  # noqa: N818 - named for what happened
    """The peer has left in the middle of a request: nobody to answer."""


class Connection:
    """One connection, from its first byte to its last. `run` it once; `drain` may be called at any time meanwhile."""

    def __init__(self, transport: Transport, peer: Peer, site: Site) -> None:
        self._transport = transport
        self._peer = peer
        self._site = site
        self._waiting: trio.CancelScope | None = None
        self._exchange: Exchange | None = None
        self._session: WebSocketSession | None = None
        self._watching: trio.CancelScope | None = None
        self._watch_ended = trio.Event()
        self._draining = False
        self._method = b""

    @property
    def activity(self) -> Activity:
        """What it is busy with."""
        if self._session is not None:
            return "websocket"
        if self._exchange is None:
            return "idle"
        return "stream" if self._exchange.streaming else "request"

    def drain(self) -> None:
        """End at the next good moment: at once when idle, after the answer otherwise. Streams are told."""
        self._draining = True
        if self._waiting is not None:
            self._waiting.cancel()
        if self._exchange is not None:
            self._exchange.drain()
        if self._session is not None:
            self._session.drain()

    async def run(self) -> None:
        """Serve the connection until one side ends it. Raises nothing that a peer or the application could cause."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                try:
                    while not self._draining and await self._serve_request():
                        pass
                except Refused as refused:
                    await self._refuse(refused)
                except (_PeerLeft, ClientDisconnected, trio.BrokenResourceError, trio.ClosedResourceError):
                    self._transport.dead = True
                nursery.cancel_scope.cancel()
        finally:
            await self._transport.aclose()

    async def _serve_request(self) -> bool:
        """Read and answer one request; False when it was the connection's last. Raises Refused, _PeerLeft."""
        head = await self._read_head()
        if head is None:
            return False
        parser = h11.Connection(h11.SERVER, max_incomplete_event_size=self._site.limits.header_bytes_max)
        self._method = b""
        request = _parse(parser, head)
        self._method = request.method
        refusal = self._site.gate.refusal(request.headers, kind=self._peer.kind, port=self._peer.port)
        if refusal is not None:
            raise Refused(refusal)
        target = parse_target(request.target)
        handshake = read_handshake(request)
        body = await self._read_body(parser, request)
        self._exchange = Exchange(
            parser, self._transport, head_only=request.method == b"HEAD", body=body, watch=self._watch
        )
        if self._draining:
            self._exchange.drain()
        scope = self._scope(request, target, handshake)
        try:
            if handshake is None:
                return await self._answer(scope, self._exchange, parser)
            return await self._converse(scope, self._exchange, parser, handshake)
        finally:
            self._exchange = self._session = None

    async def _read_head(self) -> bytes | None:
        """Return the next head; None when the connection ends here. Raises Refused (400, 408, 431)."""
        unread = self._transport.unread
        limits = self._site.limits
        scanned = 0
        self._waiting = trio.move_on_after(limits.head_deadline_ms / _MS)
        try:
            with self._waiting as waiting:
                while (end := head_end(unread, scanned, limits.header_bytes_max)) is None:
                    scanned = len(unread)
                    if not await self._transport.read_ahead():
                        return None
                    if scanned == 0:
                        waiting.deadline = trio.current_time() + limits.head_deadline_ms / _MS
                head = bytes(unread[:end])
                del unread[:end]
                return head
        finally:
            self._waiting = None
        # Timed out or drained. Idle is no offence, and a drain is none of the peer's; half a head is.
        if unread and not self._draining:
            raise Refused(request_timeout("head"))
        return None

    async def _read_body(self, parser: h11.Connection, request: h11.Request) -> bytes:
        """Return the request's body, up to its cap. Raises Refused (400, 408, 413), _PeerLeft."""
        limit = self._site.limits.body_bytes_max
        framing = dict(request.headers)
        length = framing.get(b"content-length")
        chunked = b"transfer-encoding" in framing
        if length is None and not chunked:
            return await self._collect_body(parser, limit, chunked=False)  # nothing to wait for
        if length is not None and int(length) > limit:
            raise Refused(body_too_large(limit))
        with trio.move_on_after(self._site.limits.head_deadline_ms / _MS):
            return await self._collect_body(parser, limit, chunked=chunked)
        raise Refused(request_timeout("body"))

    async def _collect_body(self, parser: h11.Connection, limit: int, *, chunked: bool) -> bytes:
        unread = self._transport.unread
        body = bytearray()
        fed = b""  # what the parser was given last, with the end of what was before
        while True:
            event = _next_event(parser)
            if event is h11.NEED_DATA:
                if not unread:
                    await self._read_more(parser)
                fed = fed[-len(_CHUNKS_END) :] + bytes(unread)
                parser.receive_data(bytes(unread))
                unread.clear()
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > limit:
                    raise Refused(body_too_large(limit))
            else:
                assert isinstance(event, h11.EndOfMessage)
                rest, _ = parser.trailing_data
                unread[:0] = rest
                if event.headers:
                    raise Refused(not_implemented("a request has no trailers here"))
                # h11 wants CRLF everywhere in chunks but behind the last one.
                if chunked and not fed.endswith(_CHUNKS_END, 0, len(fed) - len(rest)):
                    raise Refused(bad_request("the last chunk does not end in CRLF"))
                return bytes(body)

    async def _read_more(self, parser: h11.Connection) -> None:
        if parser.they_are_waiting_for_100_continue:
            proceed = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            await self._transport.send_all(parser.send(proceed))
        if not await self._transport.read_ahead():
            raise _PeerLeft

    async def _answer(self, scope: Scope, exchange: Exchange, parser: h11.Connection) -> bool:
        """Let the application answer; True if another request may follow."""
        succeeded = await run_app(self._site.app, scope, exchange.receive, exchange.send, exchange.scope)
        await self._stop_watching()
        return await self._settle(exchange, parser, succeeded=succeeded)

    async def _converse(self, scope: Scope, exchange: Exchange, parser: h11.Connection, handshake: Handshake) -> bool:
        """Let the application speak WebSocket, or refuse to; True if another request may follow the refusal."""
        self._session = WebSocketSession(
            self._transport, exchange, handshake, message_bytes_max=self._site.limits.body_bytes_max
        )
        opened, succeeded = await self._session.run(self._site.app, scope)
        if opened:
            await self._linger()
            return False
        return await self._settle(exchange, parser, succeeded=succeeded)

    async def _settle(self, exchange: Exchange, parser: h11.Connection, *, succeeded: bool) -> bool:
        """Bring an answer to its end after the application has ended; True if another request may follow."""
        if exchange.complete:
            return parser.our_state is h11.DONE and parser.their_state is h11.DONE
        if exchange.gone or self._transport.dead:
            return False
        if not exchange.started:
            raise Refused(internal_error())
        if exchange.event_stream and succeeded:
            # An event stream is never complete, so ending it in good order claims nothing. Any other body would.
            await exchange.end_stream()
        else:
            self._transport.cut()
        return False

    async def _refuse(self, refused: Refused) -> None:
        """Answer instead of the application, and see to it that the answer arrives."""
        response = encode_response(refused.refusal, body_wanted=self._method != b"HEAD")
        try:
            await self._transport.send_all(response)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
        await self._linger()

    async def _linger(self) -> None:
        """Read until the peer closes, for a moment, and forget what comes."""
        if self._transport.dead:
            return
        await self._transport.send_eof()
        with trio.move_on_after(LINGER_S):
            while await self._transport.read_ahead():
                self._transport.unread.clear()

    def _watch(self) -> None:
        """Begin to read beside the application, unless that has begun."""
        if self._watching is None and self._session is None:
            self._watching = trio.CancelScope()
            self._watch_ended = trio.Event()
            self._nursery.start_soon(self._watch_peer, self._watching, self._watch_ended)

    async def _watch_peer(self, cancel: trio.CancelScope, ended: trio.Event) -> None:
        exchange = self._exchange
        assert exchange is not None
        with cancel:
            while len(self._transport.unread) < READ_AHEAD_BYTES:
                if not await self._transport.read_ahead():
                    exchange.peer_left()
                    break
        ended.set()

    async def _stop_watching(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await self._watch_ended.wait()
            self._watching = None

    def _scope(self, request: h11.Request, target: Target, handshake: Handshake | None) -> Scope:
        scope: Scope = {
            "asgi": ASGI_VERSION,
            "http_version": request.http_version.decode("ascii"),
            "path": target.path,
            "raw_path": target.raw_path,
            "query_string": target.query,
            "root_path": "",
            "headers": list(request.headers),
            "client": self._peer.client,
            "server": self._peer.server,
            "state": self._site.state.copy(),
            "extensions": {TRANSPORT_EXTENSION: {"kind": self._peer.kind, "peer_uid": self._peer.uid}},
        }
        if handshake is None:
            scope.update(type="http", scheme="http", method=request.method.decode("ascii"))
        else:
            scope.update(type="websocket", scheme="ws", subprotocols=list(handshake.subprotocols))
            scope["extensions"]["websocket.http.response"] = {}
        return scope


def _parse(parser: h11.Connection, head: bytes) -> h11.Request:
    check_head(head)
    parser.receive_data(head)
    request = _next_event(parser)
    assert isinstance(request, h11.Request)
    if request.http_version not in {b"1.0", b"1.1"}:
        raise Refused(version_refused("only HTTP/1.1 is spoken here"))
    return request


def _next_event(parser: h11.Connection) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
    """Ask the parser, and say in our words what it refuses."""
    try:
        return parser.next_event()
    except h11.RemoteProtocolError as error:
        if error.error_status_hint == _NOT_IMPLEMENTED:
            raise Refused(not_implemented(str(error))) from error
        raise Refused(bad_request(str(error))) from error
