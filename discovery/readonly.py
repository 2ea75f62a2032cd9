"""Reading another program's SQLite database without changing a byte or a file of it, while it writes or not.

`mode=ro` alone does not do that. In WAL mode a reader needs the shared-memory file, and SQLite makes it, and an empty
`-wal`, for a read-only connection too (measured, SQLite 3.54: a home whose Codex had left got both files from one
`SELECT`). `immutable=1` makes nothing, but does not look at the WAL: on a home whose Codex runs, or has just left, it
finds a 4 kB file without a single table, because nothing was checkpointed yet. So what is done depends on what lies
there:

| `-wal` | `-shm` | so | opened as |
| --- | --- | --- | --- |
| yes | yes | somebody writes, or was killed | `readonly_shm=1`: nothing is made or changed, writers go on |
| none, or empty | | all is in the main file | `immutable=1`, and asked again if anything changed meanwhile |
| yes | no | copied home, restored backup | a private copy of both files |
| none, not in WAL mode | | an old layout | `mode=ro`: its locks make nothing |

A connection lives for one question only: while it lives, Codex cannot fold its WAL away when it ends.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeVar
from urllib.parse import quote

import apsw
import msgspec

T = TypeVar("T")
Way = Literal["shared", "still", "copied"]

# A writer that starts meanwhile changes the way once; one that ends, once more.
TRIES_MAX: Final = 4
# Readers never wait for writers in WAL mode; this is for recovery and for rollback-journal databases.
BUSY_MS: Final = 500
# A state DB of 100,000 threads is about 150 MB. Beyond this a copy would fill /tmp before it told us anything.
COPY_BYTES_MAX: Final = 2 << 30

# The write and the read version in the header of a database in WAL mode.
_VERSIONS_AT: Final = 18
_WAL_VERSIONS: Final = b"\x02\x02"


class DatabaseUnreadable(Exception):  # noqa: N818 - the state of a file, not a mistake in the program
    """The file cannot be read as a database now. `reason` names what SQLite or the file system said."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class _Files(msgspec.Struct, frozen=True):
    """What lies there. The main file's size and time change with every checkpoint."""

    main: tuple[int, int]
    wal_bytes: int | None
    shm: bool

    @property
    def way(self) -> Way:
        if not self.wal_bytes:
            return "still"
        return "shared" if self.shm else "copied"


class ReadOnlyDatabase:
    """Answers questions from a foreign database. Blocks; not for two threads at once. Close it: it may hold a copy."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._copied: _Files | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the private copy, if one was needed."""
        if self._copy is not None:
            self._copy.cleanup()
        self._copy = self._copied = None

    def read(self, question: Callable[[apsw.Connection], T]) -> T:
        """Return the answer to the question, as of one moment if it asks within one statement or transaction.

        It is asked again where the files changed in a way that may have spoilt the answer, so it must not act.
        Errors: `DatabaseUnreadable`.
        """
        for _ in range(TRIES_MAX):
            files = self._look()
            try:
                with self._open(files) as connection:
                    answer = question(connection)
            except (apsw.Error, OSError) as error:
                if self._look() != files:
                    continue
                raise DatabaseUnreadable(self.path, _said(error)) from error
            # Only a still file can have been changed unseen: the others are locked, or our own.
            if files.way != "still" or self._look() == files:
                return answer
        raise DatabaseUnreadable(self.path, f"its files changed {TRIES_MAX} times while it was read")

    def _look(self) -> _Files:
        try:
            main = self.path.stat()
        except OSError as error:
            raise DatabaseUnreadable(self.path, error.strerror or str(error)) from error
        wal = _size(self._beside("-wal"))
        return _Files((main.st_size, main.st_mtime_ns), wal, _size(self._beside("-shm")) is not None)

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    @contextlib.contextmanager
    def _open(self, files: _Files) -> Iterator[apsw.Connection]:
        if files.way == "shared":
            connection = _connect(self.path, "mode=ro&readonly_shm=1")
        elif files.way == "copied":
            connection = _connect(self._private_copy(files), "mode=ro")
        else:
            connection = _connect(self.path, "immutable=1")
        with contextlib.closing(connection):
            if files.way == "still" and _keeps_a_journal(connection):
                with contextlib.closing(_connect(self.path, "mode=ro")) as locking:
                    yield locking
            else:
                yield connection

    def _private_copy(self, files: _Files) -> Path:
        if self._copy is None or self._copied != files:
            self.close()
            wanted = files.main[0] + (files.wal_bytes or 0)
            if wanted > COPY_BYTES_MAX:
                raise OSError(f"a WAL without shared memory, and {wanted} bytes are too many to copy")
            self._copy = tempfile.TemporaryDirectory(prefix="termald-state-")
            self._copied = files
            shutil.copyfile(self.path, Path(self._copy.name, self.path.name))
            shutil.copyfile(self._beside("-wal"), Path(self._copy.name, self.path.name + "-wal"))
            if self._look() != files:
                self._copied = None
                raise OSError("its files changed while they were copied")
        return Path(self._copy.name, self.path.name)


def _connect(path: Path, options: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{quote(str(path))}?{options}", flags=flags)
    connection.set_busy_timeout(BUSY_MS)
    # The schema is another program's: it runs nothing of ours, and checks what it reads.
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.pragma("cell_size_check", True)
    return connection


def _keeps_a_journal(connection: apsw.Connection) -> bool:
    """Whether the file says that it is not in WAL mode. Its header is asked: `journal_mode` of an immutable database is
    "delete" whatever the file says (measured)."""
    whole, versions = connection.read("main", 0, _VERSIONS_AT, len(_WAL_VERSIONS))
    return whole and versions != _WAL_VERSIONS


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _said(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__.removesuffix('Error')}: {error}"
