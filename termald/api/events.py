"""Events to whoever listens, as an event stream or as WebSocket text frames: one reader of the hub each.

Three things end a reader: it leaves, the daemon ends (the shell then says so through `receive`), or it does not read
and the shell cuts its connection at the write's deadline. A write is never cancelled from here, since a torn one would
cost the connection its proper end; only the wait for events is.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Annotated, Any, Final, Literal, cast

import trio
from litestar import WebSocket, get, websocket
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import QueryParameter
from litestar.response.base import ASGIResponse

from state.records import Seq, SessionId
from termald.api.asgi import Receive, Scope, Send
from termald.api.commands import Desk
from termald.api.parameters import After, Kinds, LastEventId, SessionPath
from termald.api.problems import ProblemError, documented, send_problem
from termald.hub import Frame, Subscription, parse_cursor

MEDIA_TYPE: Final = "text/event-stream"
_LEFT: Final = frozenset({"http.disconnect", "websocket.disconnect"})
_HEARTBEAT: Final = b": heartbeat\n\n"
_FORMAT: Final = (
    "`id: <seq>`, `event: <kind>`, `data: {seq, at, kind, sessionId, attachment, turnId?, itemId?, …}`. After what was"
    " replayed comes `synced`; a cursor that cannot be replayed gets one `reset` instead, with the snapshot's address"
    " and its id. A comment every 15 s."
)

SessionFilter = Annotated[str | None, QueryParameter(name="session", description="Only this session's events")]


class _Delivery:
    """Gives frames to one reader until one of the two ends."""

    def __init__(
        self,
        subscription: Subscription,
        heartbeat_s: float,
        write: Callable[[list[Frame]], Awaitable[None]],
        beat: Callable[[], Awaitable[None]],
    ) -> None:
        self._subscription = subscription
        self._heartbeat_s = heartbeat_s
        self._write = write
        self._beat = beat
        self._waiting = trio.CancelScope()
        self._left = trio.Event()

    async def run(self, receive: Receive) -> None:
        """Return when the reader has left or the daemon ends. Errors: `ClientDisconnected` from a write."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, receive)
            while not self._left.is_set():
                frames: list[Frame] | None = None
                with trio.move_on_after(self._heartbeat_s) as self._waiting:
                    frames = await self._subscription.next_batch()
                if self._left.is_set() or frames == []:
                    break
                await (self._beat() if frames is None else self._write(frames))
            nursery.cancel_scope.cancel()

    async def _watch(self, receive: Receive) -> None:
        """Read what the reader sends, which means nothing, until it leaves."""
        while (await receive())["type"] not in _LEFT:
            pass
        self._left.set()
        self._waiting.cancel()


class EventStream(ASGIResponse):
    """The answer that does not end by itself."""

    _should_set_content_length = False

    def __init__(self, readers: AbstractContextManager[Subscription], heartbeat_s: float) -> None:
        headers = {"content-type": MEDIA_TYPE, "cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(headers=headers)
        self._readers = readers
        self._heartbeat_s = heartbeat_s

    async def send_body(self, send: Send, receive: Receive) -> None:  # type: ignore[override]  # the seam's own types
        """Send events until the reader leaves; everything that is ready goes out in one write."""

        async def write(frames: list[Frame]) -> None:
            body = b"".join([frame.sse for frame in frames])
            await send({"type": "http.response.body", "body": body, "more_body": True})

        async def beat() -> None:
            await send({"type": "http.response.body", "body": _HEARTBEAT, "more_body": True})

        with self._readers as subscription:
            await _Delivery(subscription, self._heartbeat_s, write, beat).run(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _stream(
    desk: Desk, session: str | None, last_event_id: str | None, after: str | None, kinds: list[str] | None
) -> EventStream:
    return EventStream(_readers(desk, session, last_event_id or after, kinds), desk.settings.heartbeat_s)


def _readers(
    desk: Desk, session: str | None, cursor: str | None, kinds: list[str] | None
) -> AbstractContextManager[Subscription]:
    hub, streams_max = desk.engine.hub, desk.settings.streams_max
    if hub.statistics().readers >= streams_max:
        raise ProblemError("too-many-streams", f"{streams_max} event streams are open; close one")
    after: Seq | Literal["malformed"] | None = None if cursor is None else parse_cursor(cursor)
    named = frozenset(kind.strip() for part in kinds or () for kind in part.split(",")) - {""}
    return hub.subscribe(after=after, session=None if session is None else SessionId(session), kinds=named or None)


def _documented(*slugs: str) -> dict[int, ResponseSpec]:
    stream = ResponseSpec(data_container=str, description=_FORMAT, media_type=MEDIA_TYPE, generate_examples=False)
    return {200: stream, **documented(*slugs, "too-many-streams")}


@get("/api/events", responses=_documented())
async def stream_events(
    desk: NamedDependency[Desk], last_event_id: LastEventId = None, after: After = None, kinds: Kinds = None
) -> EventStream:
    """Return all events as they come, after those that follow `Last-Event-ID` or `after`; without either, only what
    comes from now on. The seq only grows, and nothing is left out or told twice."""
    return _stream(desk, None, last_event_id, after, kinds)


@get("/api/sessions/{session_id:str}/events", responses=_documented("unknown-session"))
async def stream_session_events(
    desk: NamedDependency[Desk],
    session_id: SessionPath,
    *,
    last_event_id: LastEventId = None,
    after: After = None,
    kinds: Kinds = None,
) -> EventStream:
    """Return one session's events. The numbers are those of the whole log."""
    await desk.session(session_id)
    return _stream(desk, session_id, last_event_id, after, kinds)


@get(
    "/api/events/ws",
    status_code=426,
    responses={
        101: ResponseSpec(None, description="The WebSocket is open"),
        **documented("upgrade-required", "unknown-session", "too-many-streams"),
    },
)
async def explain_socket() -> None:
    """WebSocket: the same events as text frames `{id, event, data}`, with `after`, `kinds` and `session` in the query.

    What is sent to it is read and means nothing. After a silence of 15 s comes a frame with the event `heartbeat`.
    """
    raise ProblemError("upgrade-required", "ask with Upgrade: websocket", headers={"Upgrade": "websocket"})


@websocket("/api/events/ws")
async def socket_events(
    socket: WebSocket[Any, Any, State],
    desk: NamedDependency[Desk],
    after: After = None,
    kinds: Kinds = None,
    session: SessionFilter = None,
) -> None:
    """Send events as text frames until the peer leaves. A refusal is an HTTP answer, before the socket is open."""
    try:
        if session is not None:
            await desk.session(session)
        readers = _readers(desk, session, after, kinds)
    except ProblemError as refusal:
        await send_problem(refusal, cast("Scope", socket.scope), cast("Send", socket.send))
        return
    await socket.accept()

    async def write(frames: list[Frame]) -> None:
        for frame in frames:
            await socket.send({"type": "websocket.send", "text": frame.text, "bytes": None})

    async def beat() -> None:
        # Not a ping: the scripts of a page cannot see one, and it is they who have to know that nobody is there.
        await write([subscription.heartbeat()])

    with readers as subscription:
        await _Delivery(subscription, desk.settings.heartbeat_s, write, beat).run(cast("Receive", socket.receive))


HANDLERS: Final = (stream_events, stream_session_events, explain_socket, socket_events)
