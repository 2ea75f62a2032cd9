"""Sessions that hold nothing, and how that is known."""

from typing import Literal

from discovery.lookup import Held
from state.views import EmptySession
from termald.api.views.shared import View
from termald.core.log import rfc3339


class InOurRecord(View, frozen=True, kw_only=True):
    """What we have of it. `undelivered`: prompts that were taken back or refused before Codex was told of them."""

    messages: int
    turns: int
    undelivered: int


class InCodex(View, frozen=True, kw_only=True):
    """What Codex's files have of it. `thread`: `none` was ever opened; it was and is `notStored`; it is stored and
    `empty`."""

    thread: Literal["none", "notStored", "empty"]
    messages: int
    reason: str


class Evidence(View, frozen=True, kw_only=True):
    """Why the session is taken to hold nothing."""

    record: InOurRecord
    codex: InCodex


class Phantom(View, frozen=True, kw_only=True):
    """A session that holds nothing."""

    session_id: str
    thread_id: str | None
    title: str | None
    status: str
    cwd: str
    created_at: str
    evidence: Evidence


class Spared(View, frozen=True, kw_only=True):
    """A session that was not killed, and why."""

    session_id: str
    reason: str


class PhantomsKilled(View, frozen=True, kw_only=True):
    """What became of them. With `dryRun`, `killed` are those that would have been."""

    dry_run: bool
    killed: list[str]
    spared: list[Spared]


def phantom(found: EmptySession, held: Held | None) -> Phantom | None:
    """Return the session as it is shown; None if Codex has, or may have, something of it."""
    if held is not None and held.messages != 0:
        return None
    record = found.record
    if held is None:
        codex = InCodex(thread="none", messages=0, reason="no thread was opened for it")
    else:
        codex = InCodex(thread="empty" if held.stored else "notStored", messages=0, reason=held.reason)
    return Phantom(
        session_id=record.id,
        thread_id=record.thread_id,
        title=record.title,
        status=record.status,
        cwd=record.cwd,
        created_at=rfc3339(record.created_at_ms),
        evidence=Evidence(record=InOurRecord(messages=0, turns=0, undelivered=found.undelivered), codex=codex),
    )
