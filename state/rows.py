"""Records to rows and back, by the records' own fields, so that no field is listed twice.

A column is named for its field. Text, numbers and bytes are kept as they are, a bool as 0 or 1, anything else (a nested
record, a tuple) as JSON text. On the way out every row is validated against its record: a value that no record can hold
is damage, not data.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

import apsw
import msgspec
from msgspec import inspect

from state.errors import StoreCorrupt
from state.records import (
    DisposalRecord,
    EventRecord,
    IdempotencyRecord,
    IgnoredThread,
    IntentRecord,
    ItemRecord,
    KnownThread,
    PromptRecord,
    Record,
    RequestRecord,
    RuntimeRecord,
    SessionRecord,
    TurnRecord,
)

R = TypeVar("R", bound=Record)

_PLAIN: Final = (inspect.StrType, inspect.IntType, inspect.BytesType, inspect.LiteralType)


def _bare(kind: inspect.Type) -> inspect.Type:
    """Return the type without its `None`."""
    if not isinstance(kind, inspect.UnionType):
        return kind
    (bare,) = (one for one in kind.types if not isinstance(one, inspect.NoneType))
    return bare


class Table(Generic[R]):
    """One table and the record that it keeps. `key` are the columns that a record is written by."""

    def __init__(self, name: str, record: type[R], *key: str) -> None:
        info = inspect.type_info(record)
        assert isinstance(info, inspect.StructType)
        shapes = {field.name: _bare(field.type) for field in info.fields}
        self.name: Final = name
        self.record: Final = record
        self.key: Final = key
        self.columns: Final = tuple(shapes)
        self.flags: Final = tuple(column for column, kind in shapes.items() if isinstance(kind, inspect.BoolType))
        self.json: Final = tuple(
            column for column, kind in shapes.items() if not isinstance(kind, (*_PLAIN, inspect.BoolType))
        )
        self._json_at = tuple(self.columns.index(column) for column in self.json)
        listed = ", ".join(self.columns)
        values = ", ".join("?" * len(self.columns))
        self.qualified: Final = ", ".join(f"{name}.{column}" for column in self.columns)
        self.select: Final = f"SELECT {self.qualified} FROM {name}"  # noqa: S608 - names of ours
        self.insert: Final = f"INSERT INTO {name} ({listed}) VALUES ({values})"  # noqa: S608 - names of ours
        # An upsert, not REPLACE: that would delete the row first, and its references and guards with it.
        self.upsert: Final = f"{self.insert} ON CONFLICT ({', '.join(key)}) DO UPDATE SET " + ", ".join(
            f"{column} = excluded.{column}" for column in self.columns if column not in key
        )

    def row(self, record: R) -> Sequence[Any]:
        """Return the record's values in the order of `columns`."""
        values = msgspec.structs.astuple(record)
        if not self._json_at:
            return values
        row = list(values)
        for at in self._json_at:
            if row[at] is not None:
                row[at] = msgspec.json.encode(row[at]).decode()
        return row

    def read(self, row: Sequence[Any]) -> R:
        """Return the record of a row whose first columns are `columns`. Errors: `StoreCorrupt`, naming the row."""
        values = dict(zip(self.columns, row, strict=False))
        try:
            for column in self.flags:
                values[column] = bool(values[column])
            for column in self.json:
                if values[column] is not None:
                    values[column] = msgspec.json.decode(values[column])
            return msgspec.convert(values, self.record)
        except msgspec.DecodeError as error:
            named = ", ".join(f"{column} {values[column]!r}" for column in self.key)
            raise StoreCorrupt(f"{self.name}, {named}: {error}") from error

    def read_all(self, rows: Iterable[Sequence[Any]]) -> list[R]:
        """Return the records of all rows."""
        return [self.read(row) for row in rows]

    def find(self, db: apsw.Connection, where: str, names: Iterable[tuple[Any, ...]]) -> list[R]:
        """Return the records that meet `where` for any of `names`, each looked up by itself with one prepared statement
        (some 2 us): no list is too long, and a name is compared as it is, whatever characters it holds."""
        return self.read_all(db.executemany(f"{self.select} WHERE {where}", names))

    def put(self, db: apsw.Connection, records: Sequence[R]) -> None:
        """Write records whole, by their key."""
        db.executemany(self.upsert, map(self.row, records))

    def append(self, db: apsw.Connection, records: Sequence[R]) -> None:
        """Write records that are new; one that is there already is a violated constraint."""
        db.executemany(self.insert, map(self.row, records))


SESSIONS: Final = Table("sessions", SessionRecord, "id")
PROMPTS: Final = Table("prompts", PromptRecord, "id")
TURNS: Final = Table("turns", TurnRecord, "session_id", "id")
ITEMS: Final = Table("items", ItemRecord, "session_id", "turn_id", "id")
REQUESTS: Final = Table("requests", RequestRecord, "id")
INTENTS: Final = Table("intents", IntentRecord, "tag")
IGNORED: Final = Table("ignored_threads", IgnoredThread, "thread_id")
THREADS: Final = Table("threads", KnownThread, "thread_id")
DISPOSALS: Final = Table("disposals", DisposalRecord, "thread_id")
IDEMPOTENCY: Final = Table("idempotency", IdempotencyRecord, "key")
EVENTS: Final = Table("events", EventRecord, "seq")
RUNTIMES: Final = Table("runtimes", RuntimeRecord, "runtime_id")

TABLES: Final[tuple[Table[Any], ...]] = (
    SESSIONS,
    PROMPTS,
    TURNS,
    ITEMS,
    REQUESTS,
    INTENTS,
    IGNORED,
    THREADS,
    DISPOSALS,
    IDEMPOTENCY,
    EVENTS,
    RUNTIMES,
)
