"""Codex's state DB, page by page, as threads.

Columns come and go with Codex's versions (seconds became milliseconds, a `name` and a `preview` were added), so each
question asks only for those that are there. What a row holds is another program's word: text is read as bytes and cut,
numbers may be anything, and a row of which no thread can be made is skipped and told.

Pages go by id, not by time: an id never changes, so that a thread which is used meanwhile is neither missed nor told
twice, and the primary key makes a page cost the same in a home of 100,000 threads. Codex's ids begin with their time
(UUIDv7), so that the newest still come first.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar, cast

import apsw
import msgspec

from discovery.homes import HomeUnreadable, StateFile, columns_of
from discovery.readonly import DatabaseUnreadable, ReadOnlyDatabase
from discovery.source import read_source
from state.records import KnownThread, ThreadId

PREVIEW_CHARACTERS_MAX: Final = 500
TITLE_CHARACTERS_MAX: Final = 120

# Bytes taken of each text. A first message may be a megabyte; a cut source or tag would mean something else.
_TEXTS: Final[Mapping[str, int]] = {
    "rollout_path": 8 << 10,
    "source": 64 << 10,
    "thread_source": 64 << 10,
    "cwd": 8 << 10,
    "model": 256,
    "model_provider": 256,
    "name": 1 << 10,
    "title": 1 << 10,
    "preview": 4 << 10,
    "first_user_message": 4 << 10,
    "attached_thread_parent_id": 64,
}
_NUMBERS: Final = ("created_at_ms", "created_at", "updated_at_ms", "updated_at", "archived")
# Codex refuses anything else as an `invalid session id`.
_THREAD_ID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
# The year 5138 in seconds, March 1973 in milliseconds: what is larger cannot be seconds.
_SECONDS_MAX: Final = 10**11
# The year 33,658 in milliseconds: what is larger is no time at all.
_MS_MAX: Final = 10**15

_EDGE: Final = "spawned_by"
_EDGES: Final = "thread_spawn_edges"

Value = bytes | int | float | str | None
Row = Mapping[str, Value]
T = TypeVar("T")


class BadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of which no thread could be made: why, and the beginning of what stands there as its id."""

    reason: str
    id: str


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Threads in the order of their ids, newest first. `after`: where the next page begins; None at the end."""

    threads: tuple[KnownThread, ...]
    bad: tuple[BadRow, ...]
    after: bytes | None


class StateDb:
    """Reads one state DB. Blocks; not for two threads at once; close it. A thread that it tells of is not decided yet:
    `cls` and `reason` say only what was seen."""

    def __init__(self, file: StateFile) -> None:
        self._file = file
        self._database = ReadOnlyDatabase(file.path)

    def close(self) -> None:
        """Let go of the files."""
        self._database.close()

    def page(self, after: bytes | None, size: int) -> Page:
        """Return up to `size` threads, of ids below `after`. Errors: `HomeUnreadable`."""
        rows, columns = self._read(lambda connection: _rows(connection, after, size))
        threads, bad = [], []
        for row in rows:
            named = dict(zip(columns, row, strict=True))
            thread = self._thread(named)
            if isinstance(thread, KnownThread):
                threads.append(thread)
            else:
                bad.append(thread)
        last = cast(bytes, rows[-1][0]) if len(rows) == size else None
        return Page(threads=tuple(threads), bad=tuple(bad), after=last)

    def rows_without_id(self) -> int:
        """Return how many rows no page shows, because their id is not text. Errors: `HomeUnreadable`."""
        count = "SELECT count(*) FROM threads WHERE typeof(id) <> 'text'"
        return self._read(lambda connection: cast(int, connection.execute(count).get))

    def has(self, thread_id: str) -> bool:
        """Say whether there is a row of this thread. Errors: `HomeUnreadable`."""
        query = "SELECT 1 FROM threads WHERE id = ?"
        return self._read(lambda connection: connection.execute(query, (thread_id,)).get is not None)

    def rollout_of(self, thread_id: str) -> str | None:
        """Return where the DB says that this thread's rollout lies. Errors: `HomeUnreadable`."""

        def ask(connection: apsw.Connection) -> str | None:
            if "rollout_path" not in columns_of(connection, "threads"):
                return None
            query = "SELECT CAST(rollout_path AS BLOB) FROM threads WHERE id = ?"
            return _text(cast(Value, connection.execute(query, (thread_id,)).get)) or None

        return self._read(ask)

    def _read(self, question: Callable[[apsw.Connection], T]) -> T:
        try:
            return self._database.read(question)
        except DatabaseUnreadable as error:
            raise HomeUnreadable(self._file.home, "read-failed", str(error)) from error

    def _thread(self, row: Row) -> KnownThread | BadRow:
        thread_id = _text(row["id"])
        if _THREAD_ID.fullmatch(thread_id) is None:
            return BadRow(reason="its id is not a thread id", id=thread_id[:40])
        source = _text(row.get("source"))
        parent = _parent(row, source)
        return KnownThread(
            thread_id=ThreadId(thread_id),
            home=str(self._file.home),
            cls="child" if parent is not None or read_source(source).subagent else "discovered",
            reason=f"seen in {self._file.path.name}",
            parent_thread_id=parent,
            title=_title(row),
            preview=(_text(row.get("preview")) or _text(row.get("first_user_message")))[:PREVIEW_CHARACTERS_MAX],
            cwd=_text(row.get("cwd")),
            model=_text(row.get("model")) or None,
            model_provider=_text(row.get("model_provider")) or None,
            source=source,
            tag=_text(row["thread_source"]) if "thread_source" in row else None,
            rollout_path=_text(row.get("rollout_path")) or None,
            archived=bool(row.get("archived")),
            created_at_ms=_time_ms(row, "created_at"),
            updated_at_ms=_time_ms(row, "updated_at"),
            stamp=hashlib.blake2b(repr(row).encode(), digest_size=8).hexdigest(),
        )


def _rows(connection: apsw.Connection, after: bytes | None, size: int) -> tuple[list[tuple[Value, ...]], list[str]]:
    there = columns_of(connection, "threads")
    texts = [name for name in _TEXTS if name in there]
    numbers = [name for name in _NUMBERS if name in there]
    # Names come from the tables above, never from the file. Text is taken as bytes: one row that is not UTF-8 would
    # otherwise cost its whole page.
    asked = ["CAST(id AS BLOB)", *(f"substr(CAST({name} AS BLOB), 1, {_TEXTS[name]})" for name in texts), *numbers]
    columns = ["id", *texts, *numbers]
    if columns_of(connection, _EDGES) >= {"parent_thread_id", "child_thread_id"}:
        parent = f"SELECT CAST(parent_thread_id AS BLOB) FROM {_EDGES} WHERE child_thread_id = threads.id LIMIT 1"  # noqa: S608
        asked.append(f"({parent})")
        columns.append(_EDGE)
    below = "" if after is None else "AND id < CAST(?2 AS TEXT)"
    query = f"SELECT {', '.join(asked)} FROM threads WHERE typeof(id) = 'text' {below} ORDER BY id DESC LIMIT ?1"  # noqa: S608
    values = (size,) if after is None else (size, after)
    return list(connection.execute(query, values)), columns


def _text(value: Value) -> str:
    if isinstance(value, bytes):
        # A cut may have split the last character.
        return value.decode("utf-8", "replace").rstrip("\ufffd")
    return "" if value is None else str(value)


def _parent(row: Row, source: str) -> ThreadId | None:
    """The thread that it works for. Reviews name theirs only in the rollout (measured on codex 0.163 and 0.171)."""
    told = (read_source(source).parent, _text(row.get(_EDGE)), _text(row.get("attached_thread_parent_id")))
    return next((ThreadId(parent) for parent in told if parent and _THREAD_ID.fullmatch(parent)), None)


def title_of(text: str) -> str | None:
    """Return the text's first line that says something, cut to a title's length; None if there is none."""
    text = text.strip()
    return text.splitlines()[0][:TITLE_CHARACTERS_MAX].rstrip() if text else None


def _title(row: Row) -> str | None:
    """The name that a user gave it; else the first line of what Codex calls its title, which is the first message."""
    return title_of(_text(row.get("name"))) or title_of(_text(row.get("title")))


def _time_ms(row: Row, name: str) -> int:
    for value in (row.get(f"{name}_ms"), row.get(name)):
        if isinstance(value, int | float) and 0 < value <= _MS_MAX:
            return int(value * 1000) if value < _SECONDS_MAX else int(value)
    return 0
