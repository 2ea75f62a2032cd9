"""Sessions and their prompts."""

from typing import Any, Literal

import msgspec

from state import records
from state.records import (
    Choice,
    Delivery,
    Origin,
    PromptMode,
    PromptRecord,
    RuntimeMode,
    SessionRecord,
    SessionStatus,
    WaitingOn,
)
from state.views import SessionView
from termald.api.views.shared import Attachment, View, Why, attachment, time_or_none, verbatim, why
from termald.core.effects import KillAnswer
from termald.core.log import rfc3339


class ResumeCursor(View, frozen=True, kw_only=True):
    """With what another session could go on."""

    thread_id: str


class Session(View, frozen=True, kw_only=True):
    """A session's summary. `home`: the Codex home that it was found in, where that is only read; null for the one that
    Codex runs in. `archived`: Codex keeps its thread in the archive."""

    id: str
    title: str | None
    status: SessionStatus
    waiting_on: WaitingOn | None
    origin: Origin
    cwd: str
    model: str | None
    model_provider: str | None
    effort: str | None
    runtime_mode: RuntimeMode
    thread_id: str | None
    home: str | None
    archived: bool
    resume_cursor: ResumeCursor | None
    attachment: Attachment | None
    active_turn_id: str | None
    queued_prompts: int
    pending_requests: int
    message_count: int
    preview: str
    parent_id: str | None
    created_at: str
    updated_at: str
    last_error: Why | None


class RequestPolicy(View, frozen=True, kw_only=True):
    """Who decides about what Codex asks. `deadlineMs`: null for the daemon's own."""

    command: Choice
    file_change: Choice
    permissions: Choice
    user_input: Choice
    elicitation: Choice
    allow_commands: tuple[tuple[str, ...], ...]
    deadline_ms: int | None


def _policy(chosen: records.RequestPolicy | None) -> RequestPolicy:
    return RequestPolicy(**msgspec.structs.asdict(chosen or records.RequestPolicy()))


class SessionDetail(Session, frozen=True, kw_only=True):
    """A session with all that was chosen for it. `paused`: its queue waits for a prompt or a retry."""

    service_tier: str | None
    approval_policy: Any
    sandbox: str | None
    developer_instructions: str | None
    config: Any
    on_resume_lost: Literal["fail", "fresh"]
    on_recovery: Literal["resend", "hold"]
    request_policy: RequestPolicy
    paused: bool
    resume_lost: bool
    ending: Literal["stop", "close"] | None


def _summary(record: SessionRecord, queued: int, pending: int) -> dict[str, Any]:
    return {
        "id": record.id,
        "title": record.title,
        "status": record.status,
        "waiting_on": record.waiting_on,
        "origin": record.origin,
        "cwd": record.cwd,
        "model": record.model,
        "model_provider": record.model_provider,
        "effort": record.effort,
        "runtime_mode": record.runtime_mode,
        "thread_id": record.thread_id,
        "home": record.home,
        "archived": record.archived,
        "resume_cursor": None if record.thread_id is None else ResumeCursor(thread_id=record.thread_id),
        "attachment": attachment(record.attachment),
        "active_turn_id": record.active_turn_id,
        "queued_prompts": queued,
        "pending_requests": pending,
        "message_count": record.message_count,
        "preview": record.preview,
        "parent_id": record.parent_id,
        "created_at": rfc3339(record.created_at_ms),
        "updated_at": rfc3339(record.updated_at_ms),
        "last_error": why(record.last_error),
    }


def _detail(record: SessionRecord, queued: int, pending: int) -> dict[str, Any]:
    return {
        **_summary(record, queued, pending),
        "service_tier": record.service_tier,
        "approval_policy": verbatim(record.approval_policy_json),
        "sandbox": record.sandbox,
        "developer_instructions": record.developer_instructions,
        "config": verbatim(record.config_json),
        "on_resume_lost": record.on_resume_lost,
        "on_recovery": record.on_recovery,
        "request_policy": _policy(record.request_policy),
        "paused": record.paused,
        "resume_lost": record.resume_lost,
        "ending": record.ending,
    }


def session(view: SessionView) -> Session:
    """Return a session's summary."""
    return Session(**_summary(view.record, view.queued_prompts, view.pending_requests))


def session_detail(view: SessionView) -> SessionDetail:
    """Return a session in full."""
    return SessionDetail(**_detail(view.record, view.queued_prompts, view.pending_requests))


class Prompt(View, frozen=True, kw_only=True):
    """A prompt and what became of it."""

    id: str
    session_id: str
    state: Delivery
    mode: PromptMode
    input: Any
    turn_id: str | None
    created_at: str
    ended_at: str | None
    error: Why | None


def prompt(record: PromptRecord) -> Prompt:
    """Return a prompt as it is shown."""
    return Prompt(
        id=record.id,
        session_id=record.session_id,
        state=record.delivery,
        mode=record.mode,
        input=verbatim(record.input_json),
        turn_id=record.turn_id,
        created_at=rfc3339(record.created_at_ms),
        ended_at=time_or_none(record.ended_at_ms),
        error=why(record.error),
    )


class CreatedSession(SessionDetail, frozen=True, kw_only=True):
    """A new session, with the prompt that came with it."""

    prompt: Prompt | None


def created_session(record: SessionRecord, first: PromptRecord | None) -> CreatedSession:
    """Return the answer to a creation from its records alone, so that it is the same when it is given again."""
    queued = int(first is not None and first.delivery == "queued")
    return CreatedSession(**_detail(record, queued, 0), prompt=None if first is None else prompt(first))


class PromptEnvelope(View, frozen=True, kw_only=True):
    """A prompt that was accepted, or taken back."""

    prompt: Prompt


class Queue(View, frozen=True, kw_only=True):
    """The prompts that wait, in the order in which they will run."""

    data: list[Prompt]


class Interrupted(View, frozen=True, kw_only=True):
    """Whether there was anything to interrupt; its end comes as an event."""

    interrupted: bool


class Killed(View, frozen=True, kw_only=True):
    """What a kill did here, and what Codex said to each step: "ok" or its error; null where it was not asked, or has
    not answered in time."""

    killed: bool
    dry_run: bool
    session_id: str
    thread_id: str | None
    ignored: bool
    upstream: Any


def killed(answer: KillAnswer) -> Killed:
    """Return a kill's answer as it is shown."""
    return Killed(
        killed=answer.killed,
        dry_run=answer.dry_run,
        session_id=answer.session,
        thread_id=answer.thread,
        ignored=answer.ignored,
        upstream=verbatim(answer.upstream_json),
    )
