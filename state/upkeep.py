"""Keeping the log bounded: deltas go once their item is complete and says the same, and the oldest events are cut off.

Both go in small steps, each one transaction with the number up to which it went, so that a crash leaves either, the
writer is never held up for long, and nothing is looked at twice. Sequence numbers are kept: what is gone leaves a hole,
which a replay passes over. What is not complete is never touched by folding, nor is a delta that its item does not say
itself (a long command's output, which Codex shortens in the end): it stays until it is cut off with everything of its
age.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

import apsw
import msgspec

from state.apply import committed
from state.records import Record, Seq

LOOKED_AT_MAX: Final = 5_000  # events a step looks at: some 5 ms
FOLDED_MAX: Final = 1_000  # deltas a step takes out: some 10 ms

DELTAS: Final = (
    "SELECT seq, data_json FROM events WHERE session_id = ? AND seq > ? AND seq < ?"
    " AND kind = 'item/delta' AND turn_id = ? AND item_id = ? ORDER BY seq LIMIT ?"
)
ITEM: Final = (
    "SELECT first_seq, item_json FROM items WHERE session_id = ? AND turn_id = ? AND id = ? AND state = 'completed'"
)


class Folded(Record, frozen=True, kw_only=True):
    """What a step did. `more`: there is more to be done at once."""

    events: int
    more: bool


class _Delta(msgspec.Struct, frozen=True):
    channel: str
    delta: str


_decode: Final = msgspec.json.Decoder(_Delta).decode


def fold(db: apsw.Connection, before_ms: int) -> Folded:
    """Take out deltas of items that were complete before then; one step."""
    with committed(db, sync=False):
        ((at,),) = cast(list[tuple[int]], db.execute("SELECT folded_through FROM upkeep WHERE one = 1").fetchall())
        rows = db.execute(
            "SELECT seq, at_ms, kind, session_id, turn_id, item_id FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
            (at, LOOKED_AT_MAX),
        ).fetchall()
        through, folded, more = at, 0, len(rows) == LOOKED_AT_MAX
        for row in rows:
            seq, at_ms, kind, *item = cast(tuple[Any, ...], row)
            if at_ms >= before_ms:
                more = False
                break
            if kind == "item/completed":
                taken = _fold_item(db, seq, item, FOLDED_MAX - folded)
                folded += taken
                if folded == FOLDED_MAX:  # there may be more of this item
                    more = True
                    break
            through = seq
        if through != at:
            db.execute("UPDATE upkeep SET folded_through = ? WHERE one = 1", (through,))
        return Folded(events=folded, more=more)


def _fold_item(db: apsw.Connection, completed: int, item: list[Any], room: int) -> int:
    """Take out an item's oldest deltas, as far as the item says them itself; return how many."""
    found = db.execute(ITEM, item).fetchone()
    if found is None:
        return 0
    session, turn, name = item
    first, item_json = cast(tuple[int, str], found)
    deltas = db.execute(DELTAS, (session, first, completed, turn, name, room)).fetchall()
    told: dict[str, list[str]] = {}
    for _, data in cast(list[tuple[int, bytes]], deltas):
        delta = _decode(data)
        told.setdefault(delta.channel, []).append(delta.delta)
    said = "".join(_texts(msgspec.json.decode(item_json)))
    if not all("".join(pieces) in said for pieces in told.values()):
        return 0
    db.executemany("DELETE FROM events WHERE seq = ?", [(seq,) for seq, _ in deltas])
    return len(deltas)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def cut(db: apsw.Connection, events: int) -> int:
    """Cut off so many of the oldest events, never the newest; return how many. One step."""
    with committed(db, sync=False):
        ((newest,),) = db.execute("SELECT coalesce(max(seq), 0) FROM events")
        last = db.execute("SELECT seq FROM events WHERE seq < ? ORDER BY seq LIMIT 1 OFFSET ?", (newest, events - 1))
        row = last.fetchone()
        if row is None:
            return 0
        db.execute("DELETE FROM events WHERE seq <= ?", row)
        gone = db.changes()
        db.execute(
            "UPDATE upkeep SET cut_through = ?, folded_through = max(folded_through, ?) WHERE one = 1", (*row, *row)
        )
        return gone


def read_excess(db: apsw.Connection, events_max: int) -> int:
    """Count the events beyond so many. Where the numbers alone say that there are none, nothing is counted."""
    ((newest, through),) = db.execute(
        "SELECT coalesce((SELECT max(seq) FROM events), 0), cut_through FROM upkeep WHERE one = 1"
    )
    if newest - through <= events_max:
        return 0
    ((count,),) = db.execute("SELECT count(*) FROM events")
    return max(0, int(count) - events_max)


def oldest_kept(db: apsw.Connection) -> Seq:
    """Return the number from which on the log is whole, but for what complete items have swallowed.

    What is missing at its beginning and was not looked at by folding was taken by somebody else: it is not whole there.
    """
    ((folded, cut_off),) = db.execute("SELECT folded_through, cut_through FROM upkeep WHERE one = 1")
    ((first,),) = db.execute("SELECT coalesce(min(seq), 1) FROM events")
    return Seq(first if first > folded + 1 else cut_off + 1)
