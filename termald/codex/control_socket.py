"""The link over Codex's control socket: WebSocket on a Unix socket, any number of them, none of which the process
needs.

Codex takes each frame as one text message and ignores binary ones. What arrives is read at once and kept here, not in
the socket.
"""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio
from trio_websocket import ConnectionClosed, HandshakeError, WebSocketConnection
from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, TextMessage
from wsproto.utilities import ProtocolError

from termald.codex.errors import LinkClosed
from termald.codex.lines import HEAD_BYTES, LINE_BYTES_MAX, Oversize, oversize
from termald.codex.link import CLOSE_DEADLINE_S, WRITE_DEADLINE_S, check_size

# Read ahead of whoever takes the frames: a burst of 20 turns arrives at 14,000 frames a second, so this is a pause of
# 0.3 s for the task that takes them, before anything waits in the socket.
_RECEIVE_FRAMES_MAX: Final = 4_096
_RECEIVE_CHUNK_BYTES: Final = 65_536
# A living app-server answers the handshake in a few milliseconds.
CONNECT_DEADLINE_S: Final = 5.0
# What a socket's address may be: 108 bytes with its end on Linux, 104 on macOS. Codex itself binds in a folder of its
# own under /tmp and leaves a symbolic link at the path that it was given, which may be longer.
_SUN_PATH_BYTES_MAX: Final = 103


class _Connection(WebSocketConnection):
    """trio-websocket's, but for a message that is too long: it is read through and dropped (WIRE-06).

    The library hangs up over it. Whatever asked for the message asks again over the next link, and gets as long a one:
    so one thread with many images in it would take every link, and in the end the process, from everybody.
    """

    def __init__(self, stream: trio.SocketStream, *, message_bytes_max: int) -> None:
        super().__init__(
            stream,
            WSConnection(ConnectionType.CLIENT),
            host="localhost",
            path="/",
            message_queue_size=_RECEIVE_FRAMES_MAX,
            max_message_size=message_bytes_max,
            receive_buffer_size=_RECEIVE_CHUNK_BYTES,
        )
        self._dropped_head: bytes | None = None
        self._dropped_bytes = 0

    async def open(self, nursery: trio.Nursery) -> None:
        """Shake hands, and read from then on. What `wrap_client_stream` does."""
        nursery.start_soon(self._reader_task)
        await self._open_handshake.wait()

    async def get_message(self) -> str | bytes | Oversize:  # type: ignore[override]  # one kind more
        return await super().get_message()

    async def _handle_message_event(self, event: BytesMessage | TextMessage) -> None:
        if self._dropped_head is None and self._message_size + len(event.data) > self._max_message_size:
            parts = [*self._message_parts, event.data]
            self._message_parts, self._message_size = [], 0
            self._dropped_head = _head_of(parts)
            self._dropped_bytes = sum(map(len, parts))
        elif self._dropped_head is not None:
            self._dropped_bytes += len(event.data)
        else:
            await super()._handle_message_event(event)
            return
        if event.message_finished:
            dropped = oversize(self._dropped_head, self._dropped_bytes)
            self._dropped_head, self._dropped_bytes = None, 0
            with suppress(trio.ClosedResourceError, trio.BrokenResourceError):  # closed meanwhile
                await self._send_channel.send(dropped)  # type: ignore[arg-type]  # see `get_message`


def _head_of(parts: Iterable[str | bytes | bytearray]) -> bytes:
    head = b""
    for part in parts:
        head += (part.encode() if isinstance(part, str) else bytes(part))[: HEAD_BYTES - len(head)]
        if len(head) == HEAD_BYTES:
            break
    return head


class ControlSocketLink:
    """A `Link` over one WebSocket connection."""

    def __init__(
        self,
        stream: trio.SocketStream,
        connection: _Connection,
        faults: list[Exception],
        *,
        write_deadline_s: float,
    ) -> None:
        self._stream = stream
        self._connection = connection
        self._faults = faults
        self._write_deadline_s = write_deadline_s

    async def receive(self) -> bytes | Oversize:
        try:
            message = await self._connection.get_message()
        except ConnectionClosed as error:
            raise self._closed(error) from error
        return message.encode() if isinstance(message, str) else message

    async def send(self, frame: bytes) -> None:
        check_size(frame)
        text = frame.decode()
        whole = False
        try:
            with trio.fail_after(self._write_deadline_s):
                await self._connection.send_message(text)
            whole = True
        except trio.TooSlowError as error:
            raise LinkClosed(f"Codex took no input for {self._write_deadline_s:.0f} s") from error
        except ConnectionClosed as error:
            raise self._closed(error) from error
        finally:
            # trio-websocket does not know that a frame of its was torn: take the stream from under it.
            if not whole:
                await trio.aclose_forcefully(self._stream)

    async def ping(self) -> None:
        try:
            await self._connection.ping()
        except ConnectionClosed as error:
            raise self._closed(error) from error

    async def aclose(self) -> None:
        with trio.move_on_after(CLOSE_DEADLINE_S, shield=True), suppress(ConnectionClosed):
            await self._connection.aclose()
        await trio.aclose_forcefully(self._stream)

    def _closed(self, error: ConnectionClosed) -> LinkClosed:
        reason = error.reason
        said = "no reason given" if reason is None else f"{reason.code} {reason.reason or reason.name}"
        return LinkClosed(f"the control socket was closed: {'; '.join([said, *map(repr, self._faults)])}")


async def connect_control_socket(
    nursery: trio.Nursery,
    path: Path,
    *,
    connect_deadline_s: float = CONNECT_DEADLINE_S,
    write_deadline_s: float = WRITE_DEADLINE_S,
    message_bytes_max: int = LINE_BYTES_MAX,
) -> ControlSocketLink:
    """Return a link to the app-server that listens at `path`; its reading task runs in `nursery`. May be cut.

    Errors: `LinkClosed` where nobody listens, where nobody answers in time, or what answers speaks no WebSocket.
    """
    faults: list[Exception] = []
    try:
        # trio-websocket waits for ever where the peer leaves in the middle of the handshake; a frozen one never
        # answers.
        with trio.fail_after(connect_deadline_s):
            stream = await trio.open_unix_socket(socket_address(path))
            connection: _Connection = await nursery.start(_keep_reading, stream, faults, message_bytes_max)
    except trio.TooSlowError as error:
        raise LinkClosed(f"{path} answered no handshake in {connect_deadline_s:.0f} s") from error
    except OSError as error:
        raise LinkClosed(f"nobody listens at {path}: {error.strerror}") from error
    except ExceptionGroup as group:
        # By the order in which trio ends its tasks, `start` gives what its task died of bare, or in a group.
        closed, rest = group.split(LinkClosed)
        if closed is None or rest is not None:
            raise
        raise LinkClosed("; ".join(_said(closed))) from group
    return ControlSocketLink(stream, connection, faults, write_deadline_s=write_deadline_s)


def _said(group: ExceptionGroup[Exception]) -> list[str]:
    return [
        text for each in group.exceptions for text in (_said(each) if isinstance(each, ExceptionGroup) else [str(each)])
    ]


async def _keep_reading(
    stream: trio.SocketStream,
    faults: list[Exception],
    message_bytes_max: int,
    *,
    task_status: trio.TaskStatus[_Connection] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Hold trio-websocket's own reading task: what it dies of is this link's end, not the end of our nursery."""
    started = False
    try:
        async with trio.open_nursery() as nursery:
            connection = _Connection(stream, message_bytes_max=message_bytes_max)
            await connection.open(nursery)
            task_status.started(connection)
            started = True
    except* (HandshakeError, ProtocolError) as group:
        if not started:
            raise LinkClosed(f"what listens speaks no WebSocket: {group.exceptions[0]!r}") from group
        faults += group.exceptions
    finally:
        await trio.aclose_forcefully(stream)


def socket_address(path: Path) -> Path:
    """Return where the socket at `path` really is.

    Errors: OSError if there is none; LinkClosed if no address can name it.
    """
    address = path.parent / path.readlink() if path.is_symlink() else path
    if len(os.fsencode(address)) > _SUN_PATH_BYTES_MAX:
        raise LinkClosed(f"{address} is too long for a socket's address; choose a shorter runtime folder")
    return address
