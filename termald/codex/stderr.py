"""What Codex says on standard error: drained, bounded, never parsed; its end is shown where the process's end is.

With the control socket the process outlives us, and a broken pipe at its standard error kills it at its next start
message (measured: exit 101). So there it writes to a file, which is cut from outside while it writes: the descriptor
appends, so what it writes next goes to the new end. With pipes the process ends with us anyway, and a task drains
them into memory.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

# A process that writes for weeks leaves no more than this; enough for the whole start of one with RUST_LOG=debug.
LOG_BYTES_MAX: Final = 4 * 1024 * 1024
LOG_BYTES_KEPT: Final = 256 * 1024
_LOOK_PAUSE_S: Final = 5.0
# Kept of a pipe, and read of a file, for the tail that is shown.
TAIL_BYTES: Final = 16 * 1024
TAIL_LINES: Final = 20
_LINE_CHARS: Final = 500
_CHUNK_BYTES: Final = 65_536
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class StderrFile:
    """The file that a process appends to. Only one task may run `keep_bounded`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open_new(self) -> int:
        """Return a descriptor for a process to append to, on an empty file that only we can read. Errors: OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._path, flags, mode=0o600)

    async def keep_bounded(self) -> None:
        """Cut the file whenever it has grown too long. Runs until cancelled."""
        while True:
            with suppress(OSError):  # a full disk, or no descriptor: the next look does it
                self.cut()
            await trio.sleep(_LOOK_PAUSE_S)

    def cut(self) -> None:
        """Leave the last part of a file that is too long. What is written in this very moment may be lost."""
        if not self._path.exists() or self._path.stat().st_size <= LOG_BYTES_MAX:
            return
        with self._path.open("r+b") as file:
            file.seek(-LOG_BYTES_KEPT, os.SEEK_END)
            kept = file.read(LOG_BYTES_KEPT)
            file.truncate(0)
        with self._path.open("ab") as file:
            file.write(kept)

    def tail(self) -> tuple[str, ...]:
        """Return the last lines; none where there is no file, or no descriptor to read it with."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, self._path.stat().st_size - TAIL_BYTES))
                return last_lines(file.read(TAIL_BYTES))
        except OSError:
            # They are told with the exit. The exit is what matters, and does not wait for them.
            return ()


class StderrPipe:
    """The end of a pipe that is ours. What it brings is kept in memory, and of that the last part only."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._kept = b""

    async def keep_bounded(self) -> None:
        """Drain the pipe until it ends, so that the process never waits for us to read."""
        async with self._stream:
            while chunk := await self._stream.receive_some(_CHUNK_BYTES):
                self._kept = (self._kept + chunk)[-TAIL_BYTES:]

    def tail(self) -> tuple[str, ...]:
        """Return the last lines of what was drained."""
        return last_lines(self._kept)


def last_lines(text: bytes) -> tuple[str, ...]:
    """Return the last lines as plain text: no colours, nothing that a terminal would obey, no line without an
    end to it."""
    plain = _ESCAPES.sub("", text.decode(errors="replace"))
    lines = ["".join(char for char in line if char.isprintable())[:_LINE_CHARS] for line in plain.splitlines()]
    return tuple([line for line in lines if line.strip()][-TAIL_LINES:])
