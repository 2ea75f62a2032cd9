"""Server-sent events, from bytes to values. Pure; after the WHATWG's description of the format.

Pieces may be cut anywhere, also within a character or between CR and LF.
"""

from typing import Final

import msgspec

EVENT_BYTES_MAX: Final = 64 * 1024 * 1024  # Codex's own largest message is 16 MiB; escaped as JSON it can grow fourfold


class ServerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event. `id` is the last one that was given, as a reconnect wants it; empty before the first."""

    id: str
    kind: str
    data: str


class SseDecoder:
    """Feed it what arrives; it returns the events that are complete. One for each connection."""

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry_ms: int | None = None
        """How long the server asks to wait before a reconnect, if it does."""
        self._partial = bytearray()
        self._is_first_line = True
        self._after_cr = False
        self._kind = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[ServerEvent]:
        """Return the events that `piece` completes, in order. Errors: ValueError for one above `EVENT_BYTES_MAX`."""
        if self._after_cr and piece:
            # A CR ended a line already; an LF right behind it is the same line's end.
            piece = piece.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = self._after_cr or piece.endswith(b"\r")
        *lines, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[ServerEvent] = []
        for line in lines:
            self._partial += line
            event = self._end_line(bytes(self._partial))
            self._partial.clear()
            if event is not None:
                events.append(event)
        self._partial += rest
        if self._size + len(self._partial) > EVENT_BYTES_MAX:
            raise ValueError(f"an event is larger than {EVENT_BYTES_MAX} bytes")
        return events

    def _end_line(self, raw: bytes) -> ServerEvent | None:
        line = raw.decode(errors="replace")
        if self._is_first_line:
            line = line.removeprefix("\ufeff")
            self._is_first_line = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        self._set(name, value.removeprefix(" "))
        return None

    def _set(self, name: str, value: str) -> None:
        """A comment has no name; unknown names are passed over, as the format wants it."""
        if name == "data":
            self._data.append(value)
            self._size += len(value)
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self.last_id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)

    def _dispatch(self) -> ServerEvent | None:
        kind, data = self._kind or "message", self._data
        self._kind, self._data, self._size = "", [], 0
        return ServerEvent(id=self.last_id, kind=kind, data="\n".join(data)) if data else None
