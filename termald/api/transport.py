"""One connection's bytes: every write has a deadline, what was read too early is kept, and the end is final.

Theory. A write can end in three ways: all of it went out; the peer is gone; or it was given up, by the deadline or by a
cancellation from outside. After the third nobody knows how much arrived, so the connection is dead from then on and is
cut hard: a peer that stopped reading would otherwise keep our buffers in the kernel for minutes. A deadline belongs to
a slice of a write, not to the whole, so a large answer to a slow reader that does read is not cut.
"""

import contextlib
import math
import socket
import struct
from typing import Final

import trio

WRITE_SLICE_BYTES: Final = 65_536
"""The share of a write that has the deadline for itself. With 10 s for each, a reader may be as slow as 20 kB/s: the
kernel wakes a writer only once most of its buffer (200 kB on a Unix socket) has been read."""
READ_BYTES: Final = 65_536
_LINGER_NONE: Final = struct.pack("ii", 1, 0)


class Transport(trio.abc.Stream):
    """A socket stream that cuts whoever does not read, and takes back bytes that were read too early.

    A failed or cancelled `send_all` leaves it dead: everything afterwards raises `trio.BrokenResourceError` or
    `trio.ClosedResourceError`. `cut_slow` tells whether it was the deadline.
    """

    def __init__(self, stream: trio.SocketStream, *, write_deadline_s: float) -> None:
        self._stream = stream
        self._write_deadline_s = write_deadline_s
        self.unread = bytearray()
        """Read and not yet used; `receive_some` gives it first."""
        self.dead = False
        self.cut_slow = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send all of `data`. Raises `trio.BrokenResourceError` when the peer is gone or did not read in time."""
        if self.dead:
            raise trio.BrokenResourceError("this connection was cut")
        with memoryview(data) as view:
            try:
                for start in range(0, len(view), WRITE_SLICE_BYTES):
                    with view[start : start + WRITE_SLICE_BYTES] as part:
                        await self._send_slice(part)
            except BaseException:
                # Cancellation included: a torn write cannot be continued.
                self.cut()
                raise

    async def _send_slice(self, part: memoryview) -> None:
        with trio.move_on_after(self._write_deadline_s) as deadline:
            await self._stream.send_all(part)
        if deadline.cancelled_caught:
            self.cut_slow = True
            raise trio.BrokenResourceError(f"the peer did not read for {self._write_deadline_s} s")

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until a write might go out at once. Without a deadline: nothing is torn here."""
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return what was kept, else what comes next; empty at the end."""
        if self.unread:
            size = len(self.unread) if max_bytes is None else max_bytes
            data = bytes(self.unread[:size])
            del self.unread[:size]
            await trio.lowlevel.checkpoint()
            return data
        return await self._stream.receive_some(READ_BYTES if max_bytes is None else max_bytes)

    async def read_ahead(self) -> bool:
        """Read once into `unread`; False when the peer has sent its last byte or is gone."""
        try:
            data = await self._stream.receive_some(READ_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        self.unread += data
        return bool(data)

    async def send_eof(self) -> None:
        """Say that nothing follows; the peer may already know."""
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close; what was sent still goes out, unless the caller is cancelled: then it is a cut."""
        if trio.current_effective_deadline() == -math.inf:
            self.cut()
        self.dead = True
        await self._stream.aclose()

    def cut(self) -> None:
        """Close now, and drop what was sent but has not arrived (a TCP peer gets a reset).

        Whoever waits in a read or write of this connection is woken with `trio.ClosedResourceError`.
        """
        self.dead = True
        with contextlib.suppress(OSError):  # already closed
            self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self._stream.socket.close()
