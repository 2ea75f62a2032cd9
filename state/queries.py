"""What the readers run: one function a question, each with the index it was written for (a test holds the plans)."""

from collections.abc import Sequence
from typing import Any, Final

import apsw
from msgspec.structs import replace

from state.load import PROMPT_UNFINISHED, REQUEST_UNFINISHED, read_host, read_last_seq, read_runtime
from state.paging import Listing
from state.records import (
    EventRecord,
    IgnoredThread,
    ItemId,
    ItemRecord,
    KnownThread,
    PromptId,
    PromptRecord,
    RequestId,
    RequestRecord,
    RequestStatus,
    Seq,
    SessionId,
    ThreadClass,
    ThreadId,
    TurnId,
    TurnRecord,
)
from state.rows import IGNORED, ITEMS, PROMPTS, REQUESTS, SESSIONS, THREADS, TURNS, Table
from state.schema import transaction
from state.upkeep import oldest_kept
from state.views import (
    EmptySession,
    EventPage,
    ItemCursor,
    Page,
    PromptCursor,
    RequestCursor,
    SessionCursor,
    SessionFilter,
    SessionView,
    Snapshot,
    Standing,
    ThreadCursor,
    TurnCursor,
)

EVENTS_SCANNED_MAX: Final = 5_000
"""How many events a filtered read looks at: some 10 ms, so that a rare kind in a long log does not hold a reader."""
EVENTS_BYTES_MAX: Final = 256 * 1024
"""A page of events ends with the one that reaches this, so that memory does not grow with the length of lines."""


SESSION_VIEWS: Final = (
    f"SELECT {SESSIONS.qualified},"  # noqa: S608 - names of ours
    " (SELECT count(*) FROM prompts"
    f" WHERE session_id = sessions.id AND {PROMPT_UNFINISHED} AND delivery = 'queued'),"
    " (SELECT count(*) FROM requests"
    f" WHERE session_id = sessions.id AND {REQUEST_UNFINISHED} AND status = 'open')"
    " FROM sessions"
)
EMPTY_SESSIONS: Final = (
    f"SELECT {SESSIONS.qualified}, (SELECT count(*) FROM prompts WHERE session_id = sessions.id) FROM sessions"  # noqa: S608 - names of ours
)
EVENTS_IN_ORDER: Final = "SELECT seq, at_ms, kind, session_id, turn_id, item_id, data_json FROM events"
SESSION_EMPTY: Final = (
    "sessions.killed_at_ms IS NULL AND sessions.history = 0 AND sessions.message_count = 0"
    " AND NOT EXISTS (SELECT 1 FROM turns WHERE session_id = sessions.id)"
    " AND NOT EXISTS (SELECT 1 FROM items WHERE session_id = sessions.id)"
    " AND NOT EXISTS (SELECT 1 FROM prompts WHERE session_id = sessions.id"
    " AND NOT (delivery IN ('not_delivered', 'cancelled') AND recorded = 0 AND attempts = 0))"
)
SESSION_LIVES: Final = "sessions.killed_at_ms IS NULL"
THREAD_VIEWS: Final = (
    f"SELECT {THREADS.qualified}, owner.id, ignored_threads.reason FROM threads"  # noqa: S608 - names of ours
    " LEFT JOIN sessions AS owner ON owner.thread_id = threads.thread_id AND owner.killed_at_ms IS NULL"
    " LEFT JOIN ignored_threads ON ignored_threads.thread_id = threads.thread_id"
)
STANDINGS: Final = (
    "SELECT threads.thread_id, threads.stamp, threads.cls, owner.id, owner.home,"
    " ignored_threads.thread_id IS NOT NULL, ignored_threads.last_seen_ms FROM threads"
    " LEFT JOIN sessions AS owner ON owner.thread_id = threads.thread_id AND owner.killed_at_ms IS NULL"
    " LEFT JOIN ignored_threads ON ignored_threads.thread_id = threads.thread_id"
    " WHERE threads.thread_id = ?"
)
THREAD_FREE: Final = "owner.id IS NULL AND ignored_threads.thread_id IS NULL"
THREAD_CLASSES: Final[dict[ThreadClass, str]] = {
    "owned": "owner.id IS NOT NULL",
    "ignored": "owner.id IS NULL AND ignored_threads.thread_id IS NOT NULL",
    "orphan": f"{THREAD_FREE} AND threads.cls = 'orphan'",
    "child": f"{THREAD_FREE} AND threads.cls = 'child'",
    "discovered": f"{THREAD_FREE} AND threads.cls NOT IN ('orphan', 'child')",
}


def _its_session_lives(table: Table[Any]) -> str:
    return f"EXISTS (SELECT 1 FROM sessions WHERE id = {table.name}.session_id AND {SESSION_LIVES})"  # noqa: S608 - ours


def _session_view(row: Sequence[Any]) -> SessionView:
    *_, queued, pending = row
    return SessionView(record=SESSIONS.read(row), queued_prompts=queued, pending_requests=pending)


def _thread_as_it_is_now(row: Sequence[Any]) -> KnownThread:
    """Who owns or ignores a thread may have changed since the scan that saw it."""
    thread = THREADS.read(row)
    *_, owner, ignored_for = row
    if owner is not None:
        return replace(thread, cls="owned", reason=f"owned by session {owner}", session_id=SessionId(owner))
    if ignored_for is not None:
        return replace(thread, cls="ignored", reason=ignored_for)
    if thread.cls in {"owned", "ignored"}:
        return replace(thread, cls="discovered", reason=f"no longer {thread.cls}", session_id=None)
    return thread


def _empty_session(row: Sequence[Any]) -> EmptySession:
    *_, undelivered = row
    return EmptySession(record=SESSIONS.read(row), undelivered=undelivered)


EMPTY_LIST: Final = Listing(SESSIONS, SessionCursor, _empty_session, EMPTY_SESSIONS)
SESSION_LIST: Final = Listing(SESSIONS, SessionCursor, _session_view, SESSION_VIEWS)
PROMPT_LIST: Final = Listing(PROMPTS, PromptCursor, PROMPTS.read)
TURN_LIST: Final = Listing(TURNS, TurnCursor, TURNS.read)
ITEM_LIST: Final = Listing(ITEMS, ItemCursor, ITEMS.read)
REQUEST_LIST: Final = Listing(REQUESTS, RequestCursor, REQUESTS.read)
IGNORED_LIST: Final = Listing(IGNORED, ThreadCursor, IGNORED.read)
THREAD_LIST: Final = Listing(THREADS, ThreadCursor, _thread_as_it_is_now, THREAD_VIEWS)


def read_snapshot(db: apsw.Connection) -> Snapshot:
    """Read everything that a late comer needs, in one snapshot."""
    with transaction(db, "DEFERRED"):
        sessions = db.execute(f"{SESSION_VIEWS} WHERE {SESSION_LIVES} ORDER BY created_at_ms DESC, id DESC")
        return Snapshot(
            host=read_host(db),
            sessions=tuple(map(_session_view, sessions)),
            ignored=tuple(IGNORED.read_all(db.execute(IGNORED.select + " ORDER BY thread_id"))),
            last_seq=read_last_seq(db),
            runtime=read_runtime(db),
        )


def read_sessions(
    db: apsw.Connection, wanted: SessionFilter, after: SessionCursor | None, limit: int
) -> Page[SessionView, SessionCursor]:
    """Read living sessions, newest first."""
    asked = {"status = ?": wanted.status, "origin = ?": wanted.origin, "cwd = ?": wanted.cwd}
    return SESSION_LIST.page(db, asked, after, limit, always=[SESSION_LIVES], descending=True)


def read_empty_sessions(
    db: apsw.Connection, after: SessionCursor | None, limit: int
) -> Page[EmptySession, SessionCursor]:
    """Read sessions in which nothing was ever said, as far as we know, newest first."""
    return EMPTY_LIST.page(db, {}, after, limit, always=[SESSION_EMPTY], descending=True)


def read_session(db: apsw.Connection, session: SessionId) -> SessionView | None:
    """Read one living session."""
    row = db.execute(f"{SESSION_VIEWS} WHERE {SESSION_LIVES} AND id = ?", (session,)).fetchone()
    return None if row is None else _session_view(row)


def read_prompts(
    db: apsw.Connection, session: SessionId, after: PromptCursor | None, limit: int
) -> Page[PromptRecord, PromptCursor]:
    """Read the prompts of a living session, in order."""
    return PROMPT_LIST.page(db, {"session_id = ?": session}, after, limit, always=[_its_session_lives(PROMPTS)])


def read_prompt(db: apsw.Connection, prompt: PromptId) -> PromptRecord | None:
    """Read one prompt of a living session."""
    return next(iter(PROMPTS.find(db, f"id = ? AND {_its_session_lives(PROMPTS)}", [(prompt,)])), None)


def read_turns(
    db: apsw.Connection, session: SessionId, *, newest_first: bool, after: TurnCursor | None, limit: int
) -> Page[TurnRecord, TurnCursor]:
    """Read the turns of a living session."""
    asked, lives = {"session_id = ?": session}, [_its_session_lives(TURNS)]
    return TURN_LIST.page(db, asked, after, limit, always=lives, descending=newest_first)


def read_items(
    db: apsw.Connection,
    session: SessionId,
    turn: TurnId | None,
    *,
    newest_first: bool,
    after: ItemCursor | None,
    limit: int,
) -> Page[ItemRecord, ItemCursor]:
    """Read the items of a living session, or of one turn of it."""
    asked, lives = {"session_id = ?": session, "turn_id = ?": turn}, [_its_session_lives(ITEMS)]
    return ITEM_LIST.page(db, asked, after, limit, always=lives, descending=newest_first)


def read_turns_named(db: apsw.Connection, session: SessionId, turns: Sequence[TurnId]) -> dict[TurnId, TurnRecord]:
    """Read those of the turns that we have."""
    found = TURNS.find(db, "session_id = ? AND id = ?", [(session, turn) for turn in turns])
    return {turn.id: turn for turn in found}


def read_items_named(
    db: apsw.Connection, session: SessionId, items: Sequence[tuple[TurnId, ItemId]]
) -> dict[tuple[TurnId, ItemId], ItemRecord]:
    """Read those of the items that we have."""
    found = ITEMS.find(db, "session_id = ? AND turn_id = ? AND id = ?", [(session, *item) for item in items])
    return {(item.turn_id, item.id): item for item in found}


def read_requests(
    db: apsw.Connection,
    session: SessionId | None,
    status: RequestStatus | None,
    after: RequestCursor | None,
    limit: int,
) -> Page[RequestRecord, RequestCursor]:
    """Read the requests of living sessions, oldest first."""
    asked, lives = {"session_id = ?": session, "status = ?": status}, [_its_session_lives(REQUESTS)]
    return REQUEST_LIST.page(db, asked, after, limit, always=lives)


def read_request(db: apsw.Connection, request: RequestId) -> RequestRecord | None:
    """Read one request of a living session."""
    return next(iter(REQUESTS.find(db, f"id = ? AND {_its_session_lives(REQUESTS)}", [(request,)])), None)


def read_ignored(db: apsw.Connection, after: ThreadCursor | None, limit: int) -> Page[IgnoredThread, ThreadCursor]:
    """Read the ignore set."""
    return IGNORED_LIST.page(db, {}, after, limit)


def read_threads(
    db: apsw.Connection, cls: ThreadClass | None, after: ThreadCursor | None, limit: int
) -> Page[KnownThread, ThreadCursor]:
    """Read known threads, each with its class of now."""
    return THREAD_LIST.page(db, {}, after, limit, always=[] if cls is None else [THREAD_CLASSES[cls]])


def read_standings(db: apsw.Connection, threads: Sequence[ThreadId]) -> tuple[Standing, ...]:
    """Read how those of the threads stand that are known. A scan asks it of every thread that there is."""
    with transaction(db, "DEFERRED"):
        rows = db.executemany(STANDINGS, [(thread,) for thread in threads])
        return tuple(
            Standing(
                thread_id=thread,
                stamp=stamp,
                cls=cls,
                owner=owner,
                owner_home=home,
                ignored=bool(ignored),
                last_seen_ms=last_seen_ms,
            )
            for thread, stamp, cls, owner, home, ignored, last_seen_ms in rows
        )


def read_events(
    db: apsw.Connection, after: Seq, limit: int, session: SessionId | None, kinds: frozenset[str] | None
) -> EventPage:
    """Read on in the log, in order.

    A replay is as fast as this loop. The table is STRICT and each of the record's fields is any text, number or bytes,
    so there is no row that the record cannot hold, and none is validated.
    """
    asked, bindings = ("seq > ?", (after,)) if session is None else ("session_id = ? AND seq > ?", (session, after))
    rows = db.execute(f"{EVENTS_IN_ORDER} WHERE {asked} ORDER BY seq LIMIT ?", (*bindings, EVENTS_SCANNED_MAX))
    found: list[EventRecord] = []
    through, size = after, 0
    for through, at_ms, kind, of, turn, item, data in rows:
        if kinds is None or kind in kinds:
            found.append(
                EventRecord(
                    seq=through, at_ms=at_ms, kind=kind, session_id=of, turn_id=turn, item_id=item, data_json=data
                )
            )
            size += len(data)
            if len(found) == limit or size >= EVENTS_BYTES_MAX:
                break
    return EventPage(events=tuple(found), through=through)


def read_event_bounds(db: apsw.Connection) -> tuple[Seq, Seq]:
    """Read both ends of the log. What complete items have swallowed of its beginning is not missing from it."""
    with transaction(db, "DEFERRED"):
        return oldest_kept(db), read_last_seq(db)
