"""What the store can fail with: one family, a slug each; the class says whether trying again can help.

After any of them but `StoreStuck` nothing of the batch is there.
"""
# ruff: noqa: N818 - members are named for what happened

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import apsw
import msgspec


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds the state folder. `started_at_ms`: Unix milliseconds; `url` is None until the holder listens."""

    pid: int
    started_at_ms: int
    url: str | None = None


class StoreError(Exception):
    """Base of all. `retryable`: the same call may succeed later without anybody changing the code."""

    slug: ClassVar[str] = "store-error"
    retryable: ClassVar[bool] = False


class StoreFull(StoreError):
    """The disk, or the quota, is full."""

    slug = "store-full"
    retryable = True


class StoreIOError(StoreError):
    """The disk or the file system refused."""

    slug = "store-io"
    retryable = True


class StoreBusy(StoreError):
    """Somebody else held the database for longer than the busy timeout: another tool, for we are its only daemon."""

    slug = "store-busy"
    retryable = True


class StoreReadOnly(StoreError):
    """The file or its folder cannot be written."""

    slug = "store-read-only"
    retryable = True


class StoreCorrupt(StoreError):
    """The file is damaged, or a row holds what no record can. Never answered with a fresh database: restore a copy."""

    slug = "store-corrupt"


class StoreRefused(StoreError):
    """The batch breaks a rule of the schema (a claim held twice, an owned thread ignored, a gap in the sequence) or
    holds what SQLite cannot keep (a lone surrogate, an integer over 64 bits). A mistake of ours."""

    slug = "store-refused"


class StoreStuck(StoreError):
    """A write did not return in time, or failed and could not be taken back. Whether it is there is unknown, and the
    store takes no more: the process must end (by `os._exit`, for a thread that hangs in the kernel cannot be joined).
    The next start reads the truth."""

    slug = "store-stuck"


class StateTooNew(StoreError):
    """The database was written by a newer version. Install that one, or restore a copy from before it."""

    slug = "state-too-new"


class StateForeign(StoreError):
    """The file is not ours, or not whole: another program's, or its schema is not what its version says."""

    slug = "state-foreign"


class StateLocked(StoreError):
    """Another process holds the state folder. `holder` is None where it has not yet said who it is."""

    slug = "state-locked"
    retryable = True

    def __init__(self, folder: Path, holder: Holder | None) -> None:
        self.folder = folder
        self.holder = holder
        who = "another process" if holder is None else f"process {holder.pid}"
        where = f" at {holder.url}" if holder is not None and holder.url is not None else ""
        super().__init__(f"the state in {folder} is in use by {who}{where}; stop it, or choose another state folder")


_MEANINGS: tuple[tuple[type[Exception], type[StoreError]], ...] = (
    (apsw.FullError, StoreFull),
    (apsw.IOError, StoreIOError),
    (apsw.CantOpenError, StoreIOError),
    (apsw.BusyError, StoreBusy),
    (apsw.LockedError, StoreBusy),
    (apsw.ReadOnlyError, StoreReadOnly),
    (apsw.PermissionsError, StoreReadOnly),
    (apsw.CorruptError, StoreCorrupt),
    (apsw.NotADBError, StateForeign),
    (apsw.ConstraintError, StoreRefused),
    (apsw.MismatchError, StoreRefused),
    (apsw.TooBigError, StoreRefused),
    (UnicodeEncodeError, StoreRefused),
    (OverflowError, StoreRefused),
    (apsw.Error, StoreError),
)


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Give SQLite's errors our types, once; the original stays as the cause. `doing` begins the message."""
    try:
        yield
    except tuple(known for known, _ in _MEANINGS) as error:
        meaning = next(ours for known, ours in _MEANINGS if isinstance(error, known))
        raise meaning(f"{doing}: {error}") from error
