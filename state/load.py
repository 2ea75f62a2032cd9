"""What the core needs to have in mind: the image it wakes up with, and what a batch names.

Runs on the writing connection, so that what is loaded is what the last commit left.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final, TypeVar

import apsw

from state.records import (
    BootImage,
    Host,
    IntentRecord,
    ItemRecord,
    Loaded,
    PromptRecord,
    Record,
    RequestRecord,
    RuntimeRecord,
    Seq,
    SessionBundle,
    SessionId,
    TurnId,
    TurnRecord,
    Wanted,
)
from state.rows import (
    DISPOSALS,
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
    Table,
)
from state.schema import transaction

ENDED_TURNS_MAX: Final = 256
"""How many ended turns of a session are known by id, to tell a late event from a new turn (EVENT-04, EVENT-05). What
comes late concerns the last few of them; 256 ids are some 10 kB a session."""

# Each is the condition of a partial index, word for word: so it costs what is unfinished, and not what there is.
PROMPT_UNFINISHED: Final = "delivery NOT IN ('done', 'failed', 'cancelled', 'not_delivered')"
REQUEST_UNFINISHED: Final = "status IN ('open', 'answered')"
SESSION_LIVE: Final = (
    "killed_at_ms IS NULL"
    " AND (attachment IS NOT NULL OR ending IS NOT NULL OR status IN ('connecting', 'ready', 'running'))"
)
UNFINISHED_SESSIONS: Final = (
    f"SELECT id FROM sessions WHERE {SESSION_LIVE}"  # noqa: S608 - constants of this module
    f" UNION ALL SELECT session_id FROM prompts WHERE {PROMPT_UNFINISHED}"
    " UNION ALL SELECT session_id FROM turns WHERE ended_at_ms IS NULL"
    " UNION ALL SELECT session_id FROM items WHERE state = 'open'"
    f" UNION ALL SELECT session_id FROM requests WHERE {REQUEST_UNFINISHED}"
    " UNION ALL SELECT session_id FROM intents WHERE state = 'open'"
)

R = TypeVar("R", bound=Record)
Owned = TypeVar("Owned", PromptRecord, TurnRecord, ItemRecord, RequestRecord, IntentRecord)
"""What belongs to one session."""


def read_boot(db: apsw.Connection) -> BootImage:
    """Return all that is unfinished, in one snapshot."""
    with transaction(db, "DEFERRED"):
        sessions = {SessionId(name) for (name,) in db.execute(UNFINISHED_SESSIONS)}
        return BootImage(
            host=read_host(db),
            next_seq=Seq(read_last_seq(db) + 1),
            loaded=Loaded(
                bundles=_bundles(db, sessions),
                intents=_all(db, INTENTS, "state = 'open' ORDER BY created_at_ms, tag"),
                disposals=_all(db, DISPOSALS, "done = 0 ORDER BY at_ms, thread_id"),
            ),
            runtime=read_runtime(db),
        )


def read_wanted(db: apsw.Connection, wanted: Wanted) -> Loaded:
    """Return what there is of what is named, in one snapshot."""
    with transaction(db, "DEFERRED"):
        threads = _names(wanted.threads)
        owners = db.executemany("SELECT id FROM sessions WHERE thread_id = ? AND killed_at_ms IS NULL", threads)
        return Loaded(
            bundles=_bundles(db, wanted.sessions | {SessionId(name) for (name,) in owners}),
            ignored=tuple(IGNORED.find(db, "thread_id = ?", threads)),
            intents=tuple(INTENTS.find(db, "tag = ?", _names(wanted.tags))),
            threads=tuple(THREADS.find(db, "thread_id = ?", threads)),
            disposals=tuple(DISPOSALS.find(db, "thread_id = ?", threads)),
            idempotency=tuple(IDEMPOTENCY.find(db, "key = ?", _names(wanted.keys))),
        )


def read_host(db: apsw.Connection) -> Host:
    """Return who we are."""
    ((host_id, epoch),) = db.execute("SELECT id, epoch FROM host")
    return Host(id=host_id, epoch=epoch)


def read_last_seq(db: apsw.Connection) -> Seq:
    """Return the newest event's number; 0 before the first. The newest is never deleted (a guard says so)."""
    ((seq,),) = db.execute("SELECT coalesce(max(seq), 0) FROM events")
    return Seq(seq)


def read_runtime(db: apsw.Connection) -> RuntimeRecord | None:
    """Return the newest process that is not recorded as ended."""
    return next(iter(_all(db, RUNTIMES, "ended_at_ms IS NULL ORDER BY started_at_ms DESC LIMIT 1")), None)


def _bundles(db: apsw.Connection, names: Iterable[SessionId]) -> tuple[SessionBundle, ...]:
    sessions = SESSIONS.find(db, "id = ?", _names(names))
    # Of a killed one nothing else is looked up: its bundle is the tombstone.
    living = [(session.id,) for session in sessions if session.killed_at_ms is None]
    prompts = _by_session(PROMPTS.find(db, f"session_id = ? AND {PROMPT_UNFINISHED} ORDER BY position", living))
    items = _by_session(ITEMS.find(db, "session_id = ? AND state = 'open' ORDER BY first_seq", living))
    requests = _by_session(REQUESTS.find(db, f"session_id = ? AND {REQUEST_UNFINISHED} ORDER BY opened_at_ms", living))
    intents = _by_session(INTENTS.find(db, "session_id = ? AND state = 'open' ORDER BY created_at_ms", living))
    turns = _by_session(
        TURNS.find(db, "session_id = ? AND ended_at_ms IS NULL ORDER BY started_at_ms DESC LIMIT 1", living)
    )
    ended = _ended_turns(db, living)
    positions = dict(
        db.executemany("SELECT session_id, max(position) + 1 FROM prompts WHERE session_id = ? GROUP BY 1", living)
    )
    return tuple(
        SessionBundle(
            session=session,
            prompts=prompts.get(session.id, ()),
            next_position=positions.get(session.id, 0),
            turn=next(iter(turns.get(session.id, ())), None),
            ended_turns=ended.get(session.id, ()),
            open_items=items.get(session.id, ()),
            requests=requests.get(session.id, ()),
            intents=intents.get(session.id, ()),
        )
        for session in sessions
    )


def _ended_turns(db: apsw.Connection, living: list[tuple[SessionId]]) -> dict[SessionId, tuple[TurnId, ...]]:
    newest_first: defaultdict[SessionId, list[TurnId]] = defaultdict(list)
    rows = db.executemany(
        "SELECT session_id, id FROM turns WHERE session_id = ? AND ended_at_ms IS NOT NULL"
        " ORDER BY ended_at_ms DESC, started_at_ms DESC, id DESC LIMIT ?",
        ((*session, ENDED_TURNS_MAX) for session in living),
    )
    for session, turn in rows:
        newest_first[session].append(turn)
    return {session: tuple(reversed(turns)) for session, turns in newest_first.items()}


def _by_session(records: Iterable[Owned]) -> dict[SessionId, tuple[Owned, ...]]:
    found: defaultdict[SessionId, list[Owned]] = defaultdict(list)
    for record in records:
        found[record.session_id].append(record)
    return {session: tuple(those) for session, those in found.items()}


def _all(db: apsw.Connection, table: Table[R], where: str) -> tuple[R, ...]:
    return tuple(table.read_all(db.execute(f"{table.select} WHERE {where}")))


def _names(names: Iterable[str]) -> list[tuple[str]]:
    return [(name,) for name in sorted(names)]
