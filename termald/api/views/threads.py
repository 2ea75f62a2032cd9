"""Threads that Codex knows, and those that are passed over."""

from typing import Any

import msgspec

from state.records import IgnoredThread, KnownThread, ThreadClass
from termald.api.views.shared import View, time_or_none, verbatim
from termald.core.log import rfc3339


class Ignored(View, frozen=True, kw_only=True):
    """An entry of the ignore set. `lastSeenAt`: when a scan last met the thread."""

    thread_id: str
    reason: str
    ignored_at: str
    last_seen_at: str | None


def ignored(record: IgnoredThread) -> Ignored:
    """Return an ignore entry as it is shown."""
    return Ignored(
        thread_id=record.thread_id,
        reason=record.reason,
        ignored_at=rfc3339(record.at_ms),
        last_seen_at=time_or_none(record.last_seen_ms),
    )


class Thread(View, frozen=True, kw_only=True):
    """A thread that Codex has. `class` is what it is here, `reason` why. `busyElsewhere`: another process than our
    Codex writes it now. `messageCount` is null where the source does not tell it."""

    thread_id: str
    class_: ThreadClass = msgspec.field(name="class")
    reason: str
    session_id: str | None
    parent_thread_id: str | None
    title: str | None
    preview: str
    cwd: str
    model: str | None
    model_provider: str | None
    source: str
    archived: bool
    busy_elsewhere: bool
    message_count: int | None
    home: str
    rollout_path: str | None
    created_at: str
    updated_at: str


def thread(record: KnownThread, *, busy_elsewhere: bool) -> Thread:
    """Return a known thread as it is shown."""
    return Thread(
        thread_id=record.thread_id,
        class_=record.cls,
        reason=record.reason,
        session_id=record.session_id,
        parent_thread_id=record.parent_thread_id,
        title=record.title,
        preview=record.preview,
        cwd=record.cwd,
        model=record.model,
        model_provider=record.model_provider,
        source=record.source,
        archived=record.archived,
        busy_elsewhere=busy_elsewhere,
        message_count=record.message_count,
        home=record.home,
        rollout_path=record.rollout_path,
        created_at=rfc3339(record.created_at_ms),
        updated_at=rfc3339(record.updated_at_ms),
    )


class DryScan(View, frozen=True, kw_only=True):
    """What a scan of every home would do. `report`: of each home its counts, and under `wouldBe` how many threads would
    come to each outcome."""

    dry_run: bool
    report: Any


def dry_scan(report_json: str) -> DryScan:
    """Return a dry run's report as it is shown."""
    return DryScan(dry_run=True, report=verbatim(report_json))
