"""What happened in a session, and what Codex asks: turns, items, requests."""

from typing import Any, Literal

from state.records import (
    Decider,
    ItemRecord,
    RequestKind,
    RequestRecord,
    RequestStatus,
    Tokens,
    TurnRecord,
    TurnState,
)
from termald.api.views.shared import Attachment, View, time_or_none, verbatim
from termald.core.log import rfc3339


class Usage(View, frozen=True, kw_only=True):
    """Token counts. `input` includes what was read from a cache."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    total_tokens: int


def usage(tokens: Tokens) -> Usage:
    """Return token counts as they are shown."""
    return Usage(
        input=tokens.input,
        output=tokens.output,
        cache_read=tokens.cache_read,
        cache_write=tokens.cache_write,
        total_tokens=tokens.total,
    )


class Turn(View, frozen=True, kw_only=True):
    """A turn. `state` is null while it runs. `ours`: it was begun by a prompt of this session."""

    id: str
    session_id: str
    thread_id: str
    ours: bool
    state: TurnState | None
    kind: str | None
    message: str | None
    provider_error: Any
    usage: Usage
    started_at: str
    ended_at: str | None
    reconciled: bool


def turn(record: TurnRecord) -> Turn:
    """Return a turn as it is shown."""
    return Turn(
        id=record.id,
        session_id=record.session_id,
        thread_id=record.thread_id,
        ours=record.ours,
        state=record.state,
        kind=record.kind,
        message=record.message,
        provider_error=verbatim(record.provider_error_json),
        usage=usage(record.usage),
        started_at=rfc3339(record.started_at_ms),
        ended_at=time_or_none(record.ended_at_ms),
        reconciled=record.reconciled,
    )


class Item(View, frozen=True, kw_only=True):
    """An item of a turn; `item` is Codex's own. `firstSeq`: the event that it began with; 0 where it happened before
    our log, or elsewhere."""

    id: str
    session_id: str
    turn_id: str
    type: str
    state: Literal["open", "completed", "incomplete", "taken_back"]
    late: bool
    first_seq: int
    item: Any


def item(record: ItemRecord) -> Item:
    """Return an item as it is shown."""
    return Item(
        id=record.id,
        session_id=record.session_id,
        turn_id=record.turn_id,
        type=record.type,
        state=record.state,
        late=record.late,
        first_seq=record.first_seq,
        item=verbatim(record.item_json),
    )


class RequestCard(View, frozen=True, kw_only=True):
    """Something that Codex asks. `params` is Codex's own; `decisions` are those it offers, empty where it wants
    `answers` or a `result`. `answer` is what was decided, by `decidedBy`."""

    id: str
    session_id: str
    kind: RequestKind
    method: str
    status: RequestStatus
    thread_id: str
    turn_id: str | None
    item_id: str | None
    params: Any
    decisions: list[Any]
    answer: Any
    decided_by: Decider | None
    attachment: Attachment
    opened_at: str
    closed_at: str | None


def request_card(record: RequestRecord) -> RequestCard:
    """Return a request as it is shown."""
    return RequestCard(
        id=record.id,
        session_id=record.session_id,
        kind=record.kind,
        method=record.method,
        status=record.status,
        thread_id=record.thread_id,
        turn_id=record.turn_id,
        item_id=record.item_id,
        params=verbatim(record.params_json),
        decisions=[verbatim(decision) for decision in record.decisions],
        answer=None if record.answer_form is None else {record.answer_form: verbatim(record.answer_json)},
        decided_by=record.decided_by,
        attachment=Attachment(runtime_id=record.attachment.runtime_id, generation=record.attachment.generation),
        opened_at=rfc3339(record.opened_at_ms),
        closed_at=time_or_none(record.closed_at_ms),
    )
