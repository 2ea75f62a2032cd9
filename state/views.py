"""What reads answer: pages, cursors and the values that are more than one record. Pure, as the records are."""

from typing import Generic, TypeVar

import msgspec

from state.records import (
    EventRecord,
    Host,
    IgnoredThread,
    ItemId,
    Origin,
    PromptId,
    Record,
    RequestId,
    RuntimeRecord,
    Seq,
    SessionId,
    SessionRecord,
    SessionStatus,
    ThreadClass,
    ThreadId,
    TurnId,
)

T = TypeVar("T")
C = TypeVar("C", bound="Cursor")


class Cursor(msgspec.Struct, frozen=True):
    """Base of cursors: the last row that was shown, by the columns that order the list. The list goes on behind it,
    whatever has been added or removed, the row itself included."""


class SessionCursor(Cursor, frozen=True):
    """Sessions run by the time of their making, which never changes, so a pager meets each exactly once."""

    created_at_ms: int
    id: SessionId


class PromptCursor(Cursor, frozen=True):
    """Prompts run in their session's order."""

    position: int
    id: PromptId


class TurnCursor(Cursor, frozen=True):
    """Turns run by their beginning."""

    started_at_ms: int
    id: TurnId


class ItemCursor(Cursor, frozen=True):
    """Items run by their first event."""

    first_seq: Seq
    turn_id: TurnId
    id: ItemId


class RequestCursor(Cursor, frozen=True):
    """Requests run by their opening."""

    opened_at_ms: int
    id: RequestId


class ThreadCursor(Cursor, frozen=True):
    """Threads, known or ignored, run by their id (Codex's ids grow with time)."""

    thread_id: ThreadId


class Page(Record, Generic[T, C], frozen=True, kw_only=True):
    """A part of a list. `next` is None at its end; otherwise there is at least one more row."""

    rows: tuple[T, ...]
    next: C | None


class SessionFilter(Record, frozen=True, kw_only=True):
    """What must be equal; None asks for nothing."""

    status: SessionStatus | None = None
    origin: Origin | None = None
    cwd: str | None = None


class SessionView(Record, frozen=True, kw_only=True):
    """A session with what waits in it: prompts not yet sent, and requests that nobody has answered."""

    record: SessionRecord
    queued_prompts: int
    pending_requests: int


class Standing(Record, frozen=True, kw_only=True):
    """How a known thread stands here: what was decided of it last, and who owns or ignores it now."""

    thread_id: ThreadId
    stamp: str
    cls: ThreadClass
    owner: SessionId | None
    owner_home: str | None
    ignored: bool
    last_seen_ms: int | None


class EmptySession(Record, frozen=True, kw_only=True):
    """A session in whose record nothing was ever said: no turn, no item, no history, and no prompt but `undelivered`
    ones, which were never written to Codex."""

    record: SessionRecord
    undelivered: int


class EventPage(Record, frozen=True, kw_only=True):
    """A stretch of the log. Go on with `after=through`; the log's end is reached once `through` no longer grows.

    A page may hold fewer events than were asked for and not be the last, since it is bounded in bytes; with a filter it
    may hold none, since a read looks at a bounded number of them.
    """

    events: tuple[EventRecord, ...]
    through: Seq


class Snapshot(Record, frozen=True, kw_only=True):
    """Everything at one moment. The log goes on behind `last_seq` with nothing missing and nothing twice."""

    host: Host
    sessions: tuple[SessionView, ...]
    """Newest first; killed ones left out."""
    ignored: tuple[IgnoredThread, ...]
    last_seq: Seq
    runtime: RuntimeRecord | None
    """The newest that is not recorded as ended."""
