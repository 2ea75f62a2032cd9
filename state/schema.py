"""The database file: how it is opened, what must be true of it, and how it is brought up to date.

A file is taken only if it is ours and whole: new and empty, or marked with our application id, of a version that we
know, and with exactly the tables, indexes and guards that its version says. Anything else is refused with its reason
and left as it is; there is no way from a damaged state to a fresh one that nobody asked for (BOOT-15).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Final, Literal, NamedTuple

import apsw
import apsw.bestpractice

from state.errors import StateForeign, StateTooNew, StoreCorrupt, StoreIOError

APPLICATION_ID: Final = 0x74726D64  # "trmd"
BUSY_MS: Final = (
    2_000  # only another tool can hold us up, for the lock keeps daemons out; a shell's statement takes less
)
QUICK_CHECK_BYTES_MAX: Final = 4 << 20  # 10-20 ms; the check reads everything, and boot has one second for any size
CHECKPOINT_PAGES: Final = 1_000  # SQLite's default, 4 MB: fewer mean more syncs, more a longer pause for one batch
WAL_KEPT_BYTES_MAX: Final = 64 << 20  # a log that a slow reader let grow gives the rest back


class Step(NamedTuple):
    """One migration. `version` is the database's after it."""

    version: int
    name: str
    sql: str


def released_steps() -> tuple[Step, ...]:
    """Return the steps that this version knows, in order, from `state/migrations/NNNN_name.sql`."""
    files = sorted(file.name for file in resources.files("state").joinpath("migrations").iterdir())
    steps = tuple(
        Step(int(name[:4]), name, resources.files("state").joinpath("migrations", name).read_text("utf-8"))
        for name in files
        if name.endswith(".sql")
    )
    assert [step.version for step in steps] == list(range(1, len(steps) + 1)), files
    return steps


@contextmanager
def transaction(db: apsw.Connection, mode: Literal["DEFERRED", "IMMEDIATE"]) -> Iterator[None]:
    """Commit what the block did, or nothing of it. DEFERRED for reading (one snapshot), IMMEDIATE for writing."""
    db.execute(f"BEGIN {mode}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back after some errors (a full disk, an I/O error).
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def tune_writer(db: apsw.Connection) -> None:
    """Set what holds for this connection only, each with its reason; the file is not touched."""
    _tune(db)
    # A row about a session that does not exist is a mistake of ours, caught here.
    apsw.bestpractice.connection_enable_foreign_keys(db)
    apsw.bestpractice.connection_recursive_triggers(db)
    db.pragma("synchronous", "FULL")  # what a start writes is synced; `apply` chooses for each batch
    db.pragma("fullfsync", True)  # macOS: without it a sync stops at the drive's cache. Elsewhere it does nothing
    db.pragma("checkpoint_fullfsync", True)
    # SQLite's default, some 4 MB: fewer pages mean more syncs, more a longer pause for the batch that meets the
    # checkpoint.
    db.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
    db.pragma("journal_size_limit", WAL_KEPT_BYTES_MAX)


def tune_reader(db: apsw.Connection) -> None:
    """As the writer, for a connection that was opened read-only."""
    _tune(db)


def _tune(db: apsw.Connection) -> None:
    apsw.bestpractice.connection_busy_timeout(db, BUSY_MS)
    apsw.bestpractice.connection_dqs(db)
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    db.pragma("trusted_schema", False)
    db.pragma("cell_size_check", True)  # damage is told where it is met, before it spreads
    db.pragma("mmap_size", 0)  # a disk error is an error then, and not a SIGBUS that takes the daemon
    db.pragma("temp_store", "MEMORY")  # no copy of anybody's prompts in a temporary file
    # Each query has the index it was written for, and a test holds the plans. So SQLite must not look at bound values
    # to choose another: that costs a re-preparation at each binding (30 us instead of 2). Nor are statistics gathered
    # by `optimize`: they could only make plans differ from machine to machine.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


def version_of_ours(db: apsw.Connection, path: Path, steps: tuple[Step, ...]) -> int:
    """Return the file's version; 0 if it is new. What is refused was only read.

    Errors: `StateForeign`, `StateTooNew`, `StoreCorrupt`.
    """
    application, version = int(db.pragma("application_id")), int(db.pragma("user_version"))
    there = shape(db)
    if (application, version, there) == (0, 0, {}):
        return 0
    if application != APPLICATION_ID:
        raise StateForeign(f"{path} is another program's database (application id {application:#x}); move it away")
    if version > len(steps):
        raise StateTooNew(
            f"{path} has version {version}, this termald knows {len(steps)}: install the newer one, or restore a copy"
        )
    if path.stat().st_size <= QUICK_CHECK_BYTES_MAX:
        _quick_check(db, path)
    expected = _shape_of(steps[:version])
    wrong = sorted(name for name in there.keys() | expected.keys() if there.get(name) != expected.get(name))
    if wrong:
        raise StateForeign(f"{path} is not what its version {version} says: {', '.join(wrong)}; restore a copy")
    return version


def use_wal(db: apsw.Connection, path: Path) -> None:
    """Let readers and the writer not wait for each other, and make a commit one append. Kept in the file."""
    if (mode := db.pragma("journal_mode", "wal")) != "wal":
        raise StoreIOError(f"{path} cannot have a write-ahead log here (mode {mode}); is it on a network file system?")


def migrate(db: apsw.Connection, steps: tuple[Step, ...]) -> None:
    """Take the steps that the file has not seen, each in one transaction."""
    for step in steps:
        with transaction(db, "IMMEDIATE"):
            db.execute(step.sql)
            db.pragma("application_id", APPLICATION_ID)
            db.pragma("user_version", step.version)


def _quick_check(db: apsw.Connection, path: Path) -> None:
    found = [str(line) for (line,) in db.execute("PRAGMA quick_check(5)")]
    if found != ["ok"]:
        raise StoreCorrupt(f"{path} is damaged: {'; '.join(found)}; restore a copy")


def shape(db: apsw.Connection) -> dict[str, str]:
    """Return every table, index and trigger with the SQL that made it; SQLite's own are left out."""
    rows = db.execute("SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {str(name): str(sql) for name, sql in rows}


def _shape_of(steps: tuple[Step, ...]) -> dict[str, str]:
    with _scratch() as db:
        for step in steps:
            db.execute(step.sql)
        return shape(db)


@contextmanager
def _scratch() -> Iterator[apsw.Connection]:
    db = apsw.Connection(":memory:")
    try:
        yield db
    finally:
        db.close()
