"""One batch, one transaction: the only way in.

The order inside is part of the contract. What the guards judge is the end state of the batch, not the path to it:
claims are let go before any is taken, so that a thread may pass from one session to another, and entries leave the
ignore set before sessions claim and enter it after sessions let go (I9).
"""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from state.errors import StoreRefused, StoreStuck
from state.load import read_last_seq
from state.records import Changes, EventRecord, RuntimeRecord, SessionRecord, ThreadId
from state.rows import (
    DISPOSALS,
    EVENTS,
    IDEMPOTENCY,
    IGNORED,
    INTENTS,
    ITEMS,
    PROMPTS,
    REQUESTS,
    RUNTIMES,
    SESSIONS,
    THREADS,
    TURNS,
)
from state.schema import transaction


def apply(db: apsw.Connection, changes: Changes, sync: bool) -> None:
    """Write the whole batch or nothing of it. With `sync` it is on the disk on return, and all that was committed
    before with it; without, a power cut may take the newest batches, in order, but a killed process takes none."""
    with committed(db, sync=sync):
        _put(db, changes)


@contextmanager
def committed(db: apsw.Connection, *, sync: bool) -> Iterator[None]:
    """Commit what the block wrote, as `apply` does."""
    db.pragma("synchronous", "FULL" if sync else "NORMAL")
    try:
        with transaction(db, "IMMEDIATE"):
            yield
    except apsw.IOError as error:
        # Where a page could not be written, the log lacks the batch's last one, which is what makes a commit of it.
        if getattr(error, "extendedresult", None) != apsw.SQLITE_IOERR_WRITE:  # the stub does not know the attribute
            _write_over(db)
        raise


def _put(db: apsw.Connection, changes: Changes) -> None:
    _unignore(db, changes.unignored)
    _put_sessions(db, changes.sessions)
    PROMPTS.put(db, changes.prompts)
    TURNS.put(db, changes.turns)
    ITEMS.put(db, changes.items)
    for table in ("items WHERE session_id = ? AND turn_id = ?", "turns WHERE session_id = ? AND id = ?"):
        db.executemany(f"DELETE FROM {table}", changes.reverted)  # noqa: S608 - one of the two above
    REQUESTS.put(db, changes.requests)
    INTENTS.put(db, changes.intents)
    THREADS.put(db, changes.threads)
    DISPOSALS.put(db, changes.disposals)
    IDEMPOTENCY.put(db, changes.idempotency)
    IGNORED.put(db, changes.ignored)
    _append_events(db, changes.events)
    if changes.runtime is not None:
        RUNTIMES.put(db, (changes.runtime,))


def _write_over(db: apsw.Connection) -> None:
    """Make sure that a batch whose sync failed does not come back.

    It is gone for every connection, but stands whole in the log: a start after a crash would take it for committed,
    and a prompt whose caller was told that it failed would run. The next commit is written over it; so there is one
    at once.
    """
    db.pragma("synchronous", "FULL")
    try:
        with transaction(db, "IMMEDIATE"):
            # A change that is one: SQLite writes no page for a value that is the same.
            db.execute("UPDATE host SET syncs_failed = syncs_failed + 1")
    except apsw.Error as error:
        raise StoreStuck(f"a write failed and cannot be taken back: {error}; its outcome is unknown") from error


def try_write(db: apsw.Connection) -> None:
    """Find out whether the disk takes a write, with one that changes nothing."""
    db.pragma("synchronous", "NORMAL")  # that it is taken is asked, not that it stays
    with transaction(db, "IMMEDIATE"):
        # Two changes: SQLite writes no page for a value that is the same.
        for change in ("+", "-"):
            db.execute(f"UPDATE host SET syncs_failed = syncs_failed {change} 1")  # noqa: S608 - one of the two above


def apply_runtime(db: apsw.Connection, runtime: RuntimeRecord) -> None:
    """Write the process's record, synced: it must be found again whatever happens next."""
    apply(db, Changes(runtime=runtime), sync=True)


def _unignore(db: apsw.Connection, threads: tuple[ThreadId, ...]) -> None:
    db.executemany("DELETE FROM ignored_threads WHERE thread_id = ?", ((thread,) for thread in threads))


def _put_sessions(db: apsw.Connection, sessions: tuple[SessionRecord, ...]) -> None:
    db.executemany(
        "UPDATE sessions SET thread_id = NULL WHERE id = ? AND thread_id IS NOT NULL AND thread_id IS NOT ?",
        ((session.id, session.thread_id if session.killed_at_ms is None else None) for session in sessions),
    )
    SESSIONS.put(db, sessions)


def _append_events(db: apsw.Connection, events: tuple[EventRecord, ...]) -> None:
    # I11: a gap is an event that a replay would miss without knowing. A double is stopped by the key.
    for expected, event in enumerate(events, start=read_last_seq(db) + 1):
        if event.seq != expected:
            raise StoreRefused(f"I11: the next event is {expected}, not {event.seq} ({event.kind})")
    EVENTS.append(db, events)
