"""termald's own ASGI 3 shell: HTTP/1.1, event streams and WebSockets on one port and one Unix socket.

Why not one of the servers there are: they shield a write without a deadline, so that one reader that stopped reading
keeps its connection, its buffers and the whole stop of the daemon for ever. Here every write has a deadline.

    control = ServerControl()
    listeners = [await open_tcp_listener("127.0.0.1", 0), open_unix_listener(path)]
    await nursery.start(partial(serve, app, listeners, gate=Gate(), limits=ServerLimits(), control=control))
    ...
    control.begin_drain()   # `serve` returns within `limits.drain_ms`

Where to read on: `http1` (the theory of a connection), `websocket`, `gate` (who may speak at all), `heads` (what is too
ambiguous to be parsed), `transport` (deadlines), `listeners`, `lifespan`, `refusals` (what the shell answers itself).
"""

import errno
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec
import structlog
import trio

from termald.api.asgi import ASGIApp
from termald.api.gate import Gate
from termald.api.http1 import LINGER_S, Connection, Site
from termald.api.lifespan import lifespan
from termald.api.listeners import Listener, may_enter
from termald.api.refusals import encode_response, too_many_connections
from termald.api.transport import Transport
from termald.limits import ServerLimits

REFUSALS_MAX: Final = 32
"""Connections over the cap that are being told so. One more is closed without a word: they cost descriptors as well."""
_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_DESCRIPTOR_PAUSE_S: Final = 0.1  # the connection stays in the backlog, so trying again at once would spin
_MS: Final = 1_000

_log = structlog.get_logger(__name__)


class ServerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Open connections by what they are busy with, and what happened since the start."""

    idle: int
    requests: int
    streams: int
    websockets: int
    accepted_total: int
    refused_total: int
    cut_slow_total: int


class ServerControl:
    """The handle on a running `serve`: ask it to end, and how it is. For one `serve`, in the same trio run."""

    def __init__(self) -> None:
        self._drain = trio.Event()
        self._connections: set[Connection] = set()
        self._accepted = 0
        self._refused = 0
        self._refusing = 0
        self._cut_slow = 0

    @property
    def draining(self) -> bool:
        """Whether the end has begun."""
        return self._drain.is_set()

    def begin_drain(self) -> None:
        """Begin the end: no new connections, idle ones closed, streams told. Returns at once; may be repeated."""
        self._drain.set()

    def statistics(self) -> ServerStatistics:
        """Count what is open now."""
        activities = [connection.activity for connection in self._connections]
        return ServerStatistics(
            idle=activities.count("idle"),
            requests=activities.count("request"),
            streams=activities.count("stream"),
            websockets=activities.count("websocket"),
            accepted_total=self._accepted,
            refused_total=self._refused,
            cut_slow_total=self._cut_slow,
        )


async def serve(
    app: ASGIApp,
    listeners: Sequence[Listener],
    *,
    gate: Gate,
    limits: ServerLimits,
    control: ServerControl,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `app` until `control.begin_drain()`, then end within `limits.drain_ms`. Closes the listeners in any case.

    The application's lifespan runs around it; `task_status.started()` follows its startup. A drain has two steps: the
    listeners and all idle connections close and streams are told to end; whatever is left at the deadline is cut.
    Cancelling `serve` is the second step at once. Raises StartupFailed, and OSError where accepting is impossible; no
    peer and no request can make it raise.
    """
    try:
        async with lifespan(app) as state, trio.open_nursery() as nursery:
            site = Site(app=app, gate=gate, limits=limits, state=state)
            async with trio.open_nursery() as accepting:
                for listener in listeners:
                    accepting.start_soon(partial(_accept, listener, site, control, nursery))
                task_status.started()
                await control._drain.wait()
                accepting.cancel_scope.cancel()
            _close(listeners)
            for connection in control._connections:
                connection.drain()
            nursery.cancel_scope.deadline = trio.current_time() + limits.drain_ms / _MS
    finally:
        _close(listeners)


def _close(listeners: Sequence[Listener]) -> None:
    for listener in listeners:
        listener.close()


async def _accept(listener: Listener, site: Site, control: ServerControl, nursery: trio.Nursery) -> None:
    while True:
        try:
            stream = await listener.accept()
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR:
                raise
            _log.error("accept-without-descriptor", listener=listener.url, error=str(error))
            await trio.sleep(_NO_DESCRIPTOR_PAUSE_S)
            continue
        control._accepted += 1
        if len(control._connections) < site.limits.connections_max:
            _begin(stream, listener, site, control, nursery)
        elif control._refusing < REFUSALS_MAX:
            control._refusing += 1
            nursery.start_soon(_refuse, stream, site, control)
        else:
            control._refused += 1
            stream.socket.close()


def _begin(
    stream: trio.SocketStream, listener: Listener, site: Site, control: ServerControl, nursery: trio.Nursery
) -> None:
    try:
        peer = listener.peer(stream)
    except OSError:  # it has left while it waited to be accepted
        stream.socket.close()
        return
    if not may_enter(peer):
        _log.warning("peer-refused", listener=listener.url, peer_uid=peer.uid)
        control._refused += 1
        stream.socket.close()
        return
    transport = Transport(stream, write_deadline_s=site.limits.write_deadline_ms / _MS)
    connection = Connection(transport, peer, site)
    control._connections.add(connection)
    nursery.start_soon(_run, connection, transport, control)


async def _run(connection: Connection, transport: Transport, control: ServerControl) -> None:
    try:
        await connection.run()
    finally:
        control._connections.discard(connection)
        control._cut_slow += transport.cut_slow


async def _refuse(stream: trio.SocketStream, site: Site, control: ServerControl) -> None:
    """Tell one connection too many. Its request is read and forgotten, or the reset would overtake the answer."""
    control._refused += 1
    try:
        with trio.move_on_after(LINGER_S):
            async with stream:
                await stream.send_all(encode_response(too_many_connections(site.limits.connections_max)))
                await stream.send_eof()
                while await stream.receive_some():
                    pass
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass  # it did not wait for the answer
    finally:
        control._refusing -= 1
