"""Cutting a stream of bytes into lines, of any length and however it arrives. Pure.

A chunk is copied once when it is cut and once when its line is whole, whatever the line's length: what waits for its
end is kept in pieces. A line over the cap is read through and dropped, so that one answer of 100 MB costs its request
and nothing else.
"""

from typing import Final

import msgspec

from termald.codex.frames import RpcId, excerpt, reply_id

# Codex says whatever it has in one message, on pipes as on its socket: twenty turns with images are 64 MiB soon.
LINE_BYTES_MAX: Final = 64 * 1024 * 1024
HEAD_BYTES: Final = 1024


class Oversize(msgspec.Struct, frozen=True, kw_only=True):
    """A line or a message that was dropped for its length.

    `id` is the call that it would have answered, where its beginning tells.
    """

    bytes: int
    excerpt: str
    id: RpcId | None


def oversize(head: bytes, length: int) -> Oversize:
    """Return what stands in for a text that begins so and was so long."""
    return Oversize(bytes=length, excerpt=excerpt(head), id=reply_id(head))


class LineSplitter:
    """Takes chunks, gives whole lines without their end (LF or CRLF). Empty lines mean nothing and are not given."""

    def __init__(self, *, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self._line_bytes_max = line_bytes_max
        self._pieces: list[bytes] = []
        self._length = 0
        self._dropped_head: bytes | None = None

    def push(self, chunk: bytes) -> list[bytes | Oversize]:
        """Return the lines that this chunk completes, in order."""
        *ended, rest = chunk.split(b"\n")
        lines: list[bytes | Oversize] = []
        for piece in ended:
            self._add(piece)
            line = self._take()
            if line:
                lines.append(line)
        self._add(rest)
        return lines

    def finish(self) -> int:
        """Say that the stream has ended.

        Returns the length of the torn last line, which is dropped: half a frame is none.
        """
        torn = self._length
        self._reset()
        return torn

    def _add(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._dropped_head is not None:
            # However the stream is cut, it is shown by the same beginning.
            self._dropped_head += piece[: HEAD_BYTES - len(self._dropped_head)]
            return
        self._pieces.append(piece)
        # One byte more may be a CR that is not the line's own.
        if self._length > self._line_bytes_max + 1:
            self._drop()

    def _drop(self) -> None:
        head = b""
        for piece in self._pieces:
            head += piece[: HEAD_BYTES - len(head)]
            if len(head) == HEAD_BYTES:
                break
        self._dropped_head = head
        self._pieces = []

    def _take(self) -> bytes | Oversize:
        if self._dropped_head is None:
            line = self._join(self._pieces).removesuffix(b"\r")
            if len(line) > self._line_bytes_max:
                self._drop()
        else:
            line = b""
        head, length = self._dropped_head, self._length
        self._reset()
        if head is None:
            return line
        return oversize(head, length)

    def _reset(self) -> None:
        self._pieces, self._length, self._dropped_head = [], 0, None

    @staticmethod
    def _join(pieces: list[bytes]) -> bytes:
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
