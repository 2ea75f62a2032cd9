"""One daemon per state folder, by a lock that the kernel lets go of when its holder dies.

The lock is on `termald.lock`, not on the database: a second daemon must learn who the first is without touching its
data. The file is never unlinked: whoever opened it before would hold a lock that nobody else sees.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from state.errors import Holder, StateLocked, StoreIOError

LOCK_NAME = "termald.lock"
_HOLDER_BYTES_MAX = 4096  # our own line is some 100 bytes; whatever else stands there is not read whole


class StateLock:
    """A held lock. Lives as long as the `with` that took it."""

    def __init__(self, fd: int, path: Path, holder: Holder) -> None:
        self._fd = fd
        self._path = path
        self.holder = holder
        self._write()

    def announce(self, url: str) -> None:
        """Tell where the daemon listens, so that a second `serve` can say so. Errors: `StoreIOError`."""
        self.holder = msgspec.structs.replace(self.holder, url=url)
        self._write()

    def _write(self) -> None:
        text = msgspec.json.encode(self.holder)
        # Between the two calls a reader may meet text that is neither: it then knows of no holder, and says so.
        try:
            os.pwrite(self._fd, text, 0)
            os.ftruncate(self._fd, len(text))
        except OSError as error:  # a full disk; the system names no file where it is given a descriptor
            raise StoreIOError(f"{self._path} cannot be written: {error}") from error


@contextmanager
def hold_state(folder: Path) -> Iterator[StateLock]:
    """Hold the folder's lock; never waits. Errors: `StateLocked`, `StoreIOError`."""
    try:
        # Python opens it so that no child inherits it: a Codex that outlives us would keep the folder locked.
        fd = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreIOError(f"{folder / LOCK_NAME} cannot be opened: {error}") from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateLocked(folder, _read_holder(fd)) from None
        yield StateLock(fd, folder / LOCK_NAME, Holder(pid=os.getpid(), started_at_ms=time.time_ns() // 1_000_000))
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def _read_holder(fd: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(fd, _HOLDER_BYTES_MAX, 0), type=Holder)
    except msgspec.DecodeError:
        return None
