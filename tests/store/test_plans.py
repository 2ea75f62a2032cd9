"""Each question has its index: what is asked costs what is answered, not what there is.

A scan costs nothing in a test and seconds with 100,000 discovered sessions, so the plans themselves are held here.
"""

import re
from collections.abc import Callable
from typing import Any

import apsw
import pytest
from store.builders import EVERYTHING, item, memory_database, session, wanted

from state import queries
from state.apply import apply
from state.load import read_boot, read_wanted
from state.records import EventRecord, ItemId, PromptId, RequestId, Seq, SessionId, ThreadId, TurnId
from state.rows import EVENTS, ITEMS, SESSIONS
from state.upkeep import cut, fold
from state.views import ItemCursor, PromptCursor, RequestCursor, SessionCursor, SessionFilter, ThreadCursor, TurnCursor

S, T, AT = SessionId("s"), TurnId("t"), Seq(1)
AFTER_SESSION = SessionCursor(1, S)
AFTER_TURN = TurnCursor(1, T)
AFTER_ITEM = ItemCursor(AT, T, ItemId("i"))
AFTER_REQUEST = RequestCursor(1, RequestId("q"))
AFTER_THREAD = ThreadCursor(ThreadId("T"))

Ask = Callable[[apsw.Connection], Any]


def _fold_something(db: apsw.Connection) -> None:
    SESSIONS.put(db, [session("s")])
    ITEMS.put(db, [item("i", "s", 1)])
    EVENTS.append(db, [told("item/completed", 1), told("notice", 2)])
    fold(db, 1)


def told(kind: str, seq: int) -> EventRecord:
    return EventRecord(
        seq=Seq(seq), at_ms=0, kind=kind, session_id=S, turn_id=TurnId("t1"), item_id=ItemId("i"), data_json=b"{}"
    )


ASKED: dict[str, Ask] = {
    "boot": read_boot,
    "load": lambda db: read_wanted(db, wanted("s", threads=["T"])),
    "commit": lambda db: apply(db, EVERYTHING, True),
    "sessions": lambda db: queries.read_sessions(db, SessionFilter(), AFTER_SESSION, 9),
    "sessions by status": lambda db: queries.read_sessions(db, SessionFilter(status="ready"), AFTER_SESSION, 9),
    "sessions by origin": lambda db: queries.read_sessions(db, SessionFilter(origin="forked"), AFTER_SESSION, 9),
    "sessions by folder": lambda db: queries.read_sessions(db, SessionFilter(cwd="/w"), AFTER_SESSION, 9),
    "empty sessions": lambda db: queries.read_empty_sessions(db, AFTER_SESSION, 9),
    "session": lambda db: queries.read_session(db, S),
    "prompts": lambda db: queries.read_prompts(db, S, PromptCursor(1, PromptId("p")), 9),
    "prompt": lambda db: queries.read_prompt(db, PromptId("p")),
    "turns": lambda db: queries.read_turns(db, S, newest_first=False, after=AFTER_TURN, limit=9),
    "newest turns": lambda db: queries.read_turns(db, S, newest_first=True, after=AFTER_TURN, limit=9),
    "items": lambda db: queries.read_items(db, S, None, newest_first=False, after=AFTER_ITEM, limit=9),
    "newest items": lambda db: queries.read_items(db, S, None, newest_first=True, after=AFTER_ITEM, limit=9),
    "turns by id": lambda db: queries.read_turns_named(db, S, [T]),
    "items by id": lambda db: queries.read_items_named(db, S, [(T, ItemId("i"))]),
    "requests": lambda db: queries.read_requests(db, None, None, AFTER_REQUEST, 9),
    "open requests": lambda db: queries.read_requests(db, None, "open", AFTER_REQUEST, 9),
    "requests of a session": lambda db: queries.read_requests(db, S, None, AFTER_REQUEST, 9),
    "request": lambda db: queries.read_request(db, RequestId("q")),
    "ignore set": lambda db: queries.read_ignored(db, AFTER_THREAD, 9),
    "standings": lambda db: queries.read_standings(db, [ThreadId("T")]),
    "threads": lambda db: queries.read_threads(db, None, AFTER_THREAD, 9),
    "events": lambda db: queries.read_events(db, AT, 9, None, None),
    "events of a session": lambda db: queries.read_events(db, AT, 9, S, None),
    "both ends of the log": queries.read_event_bounds,
    "fold": _fold_something,
    "cut": lambda db: cut(db, 1),
}
# In order, along an index that holds nothing but what is looked for; or a table that has one row.
ALLOWED = re.compile(
    r"SCAN (host|CONSTANT ROW"
    r"|\w+ USING (COVERING )?INDEX (sessions_live|prompts_unfinished|turns_open|items_open|requests_unfinished"
    r"|intents_open|disposals_unfinished|runtimes_unended))$"
)


def plans(db: apsw.Connection, ask: Ask) -> list[str]:
    """Run `ask` and return each step of the plan of each statement that it ran."""
    statements: list[tuple[str, Any]] = []

    def note(_: apsw.Cursor, sql: str, bindings: Any) -> bool:
        statements.append((sql, bindings))
        return True

    db.exec_trace = note
    ask(db)
    db.exec_trace = None
    return [
        f"{detail}  <- {sql}"
        for sql, bindings in statements
        if sql.startswith(("SELECT", "INSERT", "UPDATE", "DELETE"))
        for *_, detail in db.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)
    ]


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_nothing_is_scanned_or_sorted(ask: Ask) -> None:
    db = memory_database()
    db.execute("INSERT INTO host (one, id, epoch) VALUES (1, 'me', 1)")
    wrong = [
        step
        for step in plans(db, ask)
        if "TEMP B-TREE" in step or (step.startswith("SCAN") and not ALLOWED.match(step.split("  <- ")[0]))
    ]
    db.close()
    assert not wrong


def test_a_statement_is_prepared_once() -> None:
    """Unless told otherwise SQLite looks at bound values for a better plan, and prepares anew for each."""
    db = memory_database()
    looked_at: list[str | None] = []

    def authorize(_: int, name: str | None, *__: str | None) -> int:
        looked_at.append(name)  # asked while a statement is prepared, and only then
        return apsw.SQLITE_OK

    db.authorizer = authorize
    SESSIONS.put(db, [session(f"s{at}") for at in range(50)])
    everyone = wanted(*(f"s{at}" for at in range(50)))
    read_wanted(db, everyone)
    assert "prompts" in looked_at
    looked_at.clear()
    read_wanted(db, everyone)
    assert looked_at == []
    db.close()
