"""Records and rows: nothing is lost or bent on the way, and damage is told."""

from typing import Any, get_type_hints

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store.builders import changed, event, memory_database, prompt, records, session

from state.errors import StoreCorrupt, StoreRefused, translated
from state.rows import EVENTS, PROMPTS, SESSIONS, TABLES, Table


@pytest.fixture(scope="module")
def db() -> apsw.Connection:
    return memory_database()


@pytest.fixture(scope="module")
def unguarded() -> apsw.Connection:
    """The tables without their rules, so that any record may be written after any other."""
    db = memory_database()
    db.pragma("foreign_keys", False)
    for (name,) in list(db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")):
        db.execute(f"DROP TRIGGER {name}")
    return db


def test_every_field_has_its_column_and_every_column_its_field(db: apsw.Connection) -> None:
    """A field without a column would be lost; a column that may be NULL where the field may not comes back as
    damage."""
    for table in TABLES:
        columns = {name: bool(not_null) for _, name, _, not_null, _, _ in db.pragma("table_info", table.name)}
        if table is EVENTS:
            columns["seq"] = True  # an INTEGER PRIMARY KEY is never NULL, though SQLite does not list it so
        hints = get_type_hints(table.record)
        assert columns == {name: type(None) not in getattr(hints[name], "__args__", ()) for name in table.columns}


def test_every_table_is_a_records_and_strict(db: apsw.Connection) -> None:
    """Without STRICT a text in a number's column is kept, and nobody notices before it is read."""
    strict = {row[1]: row[5] for row in db.pragma("table_list") if not row[1].startswith("sqlite_")}
    assert strict == {**{table.name: 1 for table in TABLES}, "host": 1, "upkeep": 1}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_a_record_comes_back_as_it_was(unguarded: apsw.Connection, table: Table[Any], data: st.DataObject) -> None:
    """Every field, through two writes by one key: the second replaces the first whole."""
    first, second = data.draw(records(table.record)), data.draw(records(table.record))
    key = {column: getattr(first, column) for column in table.key}
    second = changed(second, **key)
    where = " AND ".join(f"{column} = ?" for column in table.key)
    unguarded.execute(f"DELETE FROM {table.name}")
    for record in (first, second):
        table.put(unguarded, [record])
        assert table.find(unguarded, where, [tuple(key.values())]) == [record]
    assert unguarded.execute(f"SELECT count(*) FROM {table.name}").get == 1


@pytest.mark.parametrize("text", ["", "\0", "a\0b", "\N{PILE OF POO}", "\uffff", "\u202e", "'; DROP TABLE sessions --"])
def test_a_name_is_compared_as_it_is(unguarded: apsw.Connection, text: str) -> None:
    """Ids come from outside. One that a NUL cuts short would meet another's row."""
    unguarded.execute("DELETE FROM sessions")
    named, other = session(text, title=text), session(text[:1] + "b", title="other")
    SESSIONS.put(unguarded, [named, other])
    assert SESSIONS.find(unguarded, "id = ?", [(text,)]) == [named]


@pytest.mark.parametrize(
    "record",
    [session("s", title="\ud800"), session("s", message_count=2**63)],
    ids=["a lone surrogate", "an integer over 64 bits"],
)
def test_what_sqlite_cannot_keep_is_refused(unguarded: apsw.Connection, record: Any) -> None:
    """No edge lets these in (JSON decoding refuses a lone surrogate); one that does is our mistake, not a reason to
    bend text."""
    with pytest.raises(StoreRefused), translated("writing"):
        SESSIONS.put(unguarded, [record])


@pytest.mark.parametrize(
    ("column", "value"),
    [("status", "asleep"), ("attachment", "{"), ("attachment", '{"runtime_id": 1}'), ("last_error", "[]")],
)
def test_a_row_that_no_record_can_hold_is_damage(unguarded: apsw.Connection, column: str, value: str) -> None:
    """Somebody edited the file, or a newer version wrote it: the core must not be given a status that it does not
    know."""
    unguarded.execute("DELETE FROM sessions")
    SESSIONS.put(unguarded, [session("s1")])
    unguarded.execute(f"UPDATE sessions SET {column} = ?", (value,))
    with pytest.raises(StoreCorrupt, match="sessions, id 's1'"):
        SESSIONS.find(unguarded, "id = ?", [("s1",)])


def test_appending_what_is_there_is_refused(unguarded: apsw.Connection) -> None:
    unguarded.execute("DELETE FROM events")
    EVENTS.append(unguarded, [event(1)])
    with pytest.raises(StoreRefused), translated("writing"):
        EVENTS.append(unguarded, [event(1)])


def test_a_row_of_nobody_is_refused(db: apsw.Connection) -> None:
    with pytest.raises(StoreRefused, match="FOREIGN KEY"), translated("writing"):
        PROMPTS.put(db, [prompt("p", "nobody", 0)])
