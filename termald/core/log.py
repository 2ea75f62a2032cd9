"""What subscribers are told: one function per kind of event, and the only place in the core that knows their public
field names.

An event is encoded once, when it is decided, and stands in the log as every reader will see it: `{seq, at, kind,
sessionId, attachment, turnId?, itemId?, ...}`. The sequence grows by one per event and is taken back with the batch, so
that no number is skipped or used twice (I11, EVENT-19).
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from state.records import (
    CodexAttachment,
    EventRecord,
    ItemId,
    Problem,
    PromptRecord,
    RequestRecord,
    Seq,
    SessionId,
    ThreadId,
    Tokens,
    TurnId,
)
from termald.core.model import Session
from termald.core.work import Work

_encoder = msgspec.json.Encoder()


@lru_cache(maxsize=64)  # the events of a burst share milliseconds; formatting was the dearest part of each
def rfc3339(at_ms: int) -> str:
    """Return Unix milliseconds as `2026-11-30T21:00:00.000Z`. A conversion, not a clock."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03}Z"


def append(
    work: Work,
    kind: str,
    *,
    session: SessionId | None = None,
    attachment: CodexAttachment | None = None,
    turn: TurnId | None = None,
    item: ItemId | None = None,
    fields: dict[str, Any] | None = None,
) -> Seq:
    """Append an event and return its sequence number. Absent ids are left out, except `sessionId` and `attachment`,
    which may be null."""
    state = work.state
    seq = state.next_seq.value
    state.next_seq.value = Seq(seq + 1)
    data: dict[str, Any] = {
        "seq": seq,
        "at": rfc3339(work.at_ms),
        "kind": kind,
        "sessionId": session,
        "attachment": attachment and {"runtimeId": attachment.runtime_id, "generation": attachment.generation},
    }
    if turn is not None:
        data["turnId"] = turn
    if item is not None:
        data["itemId"] = item
    if fields:
        data.update(fields)
    state.events.append(
        EventRecord(
            seq=seq,
            at_ms=work.at_ms,
            kind=kind,
            session_id=session,
            turn_id=turn,
            item_id=item,
            data_json=_encoder.encode(data),
        )
    )
    return seq


def _of(
    work: Work,
    session: Session,
    kind: str,
    *,
    turn: TurnId | None = None,
    item: ItemId | None = None,
    payload: str | None = None,
    fields: dict[str, Any],
) -> Seq:
    if payload is not None:
        fields["item"] = msgspec.Raw(payload.encode())
    return append(
        work, kind, session=session.id, attachment=session.record.attachment, turn=turn, item=item, fields=fields
    )


def _problem(why: Problem | None) -> dict[str, Any] | None:
    if why is None:
        return None
    data: dict[str, Any] = {"slug": why.slug, "message": why.message, "retryable": why.retryable}
    if why.codex_code is not None or why.codex_message is not None:
        data["codex"] = {"code": why.codex_code, "message": why.codex_message}
    if why.reset_at_ms is not None:
        data["resetAt"] = rfc3339(why.reset_at_ms)
    return data


# --- sessions ---


def session(work: Work, session: Session, what: str, **fields: Any) -> None:
    """`session/<what>`: every one tells the status that the session has from here on."""
    _of(
        work,
        session,
        f"session/{what}",
        fields={"status": session.record.status, "threadId": session.record.thread_id, **fields},
    )


def session_error(work: Work, session: Session, why: Problem) -> None:
    """`session/error`: the session stands still, or lost something; it may go on."""
    _of(work, session, "session/error", fields={"status": session.record.status, "error": _problem(why)})


def resume_lost(work: Work, session: Session, why: Problem) -> None:
    """`session/resumeLost`: the thread is gone; retry, take a fresh one, or close."""
    _of(
        work,
        session,
        "session/resumeLost",
        fields={
            "threadId": session.record.thread_id,
            "error": _problem(why),
            "choices": ["retry", "fresh", "close"],
        },
    )


# --- prompts ---


def prompt(work: Work, session: Session, prompt: PromptRecord, what: str, **fields: Any) -> None:
    """`prompt/<what>`."""
    if prompt.error is not None:
        fields["error"] = _problem(prompt.error)
    fields |= {"promptId": prompt.id, "state": prompt.delivery}
    _of(work, session, f"prompt/{what}", turn=prompt.turn_id, fields=fields)


# --- turns and items ---


def turn_started(work: Work, session: Session, turn: TurnId, *, ours: bool, prompt: str | None) -> None:
    """`turn/started`: once per turn, at the first sign of it."""
    _of(work, session, "turn/started", turn=turn, fields={"ours": ours, "promptId": prompt})


def turn_news(work: Work, session: Session, turn: TurnId, kind: str, params_json: str) -> None:
    """`turn/diff`, `turn/plan`: Codex's own object under its name."""
    _of(work, session, f"turn/{kind}", turn=turn, fields={kind: msgspec.Raw(params_json.encode())})


def turn_done(work: Work, session: Session, turn: TurnId, fields: dict[str, Any]) -> None:
    """`turn/done`: once per turn (I12)."""
    _of(work, session, "turn/done", turn=turn, fields=fields)


def retrying(work: Work, session: Session, turn: TurnId, *, attempt: int, reason: dict[str, Any]) -> None:
    """`retrying`: an attempt failed and Codex tries again."""
    _of(work, session, "retrying", turn=turn, fields={"attempt": attempt, "reason": reason})


def block(work: Work, session: Session, turn: TurnId, what: str, number: int) -> None:
    """`block/start`, `block/stop`: one attempt of the model, numbered within its turn."""
    _of(work, session, f"block/{what}", turn=turn, fields={"block": number})


def block_reset(work: Work, session: Session, turn: TurnId, items: tuple[ItemId, ...], reason: str) -> None:
    """`block/reset`: the named items are taken back."""
    _of(work, session, "block/reset", turn=turn, fields={"items": list(items), "reason": reason})


def _child(child: ThreadId | None) -> dict[str, Any]:
    # Only what a sub-agent says names its thread: everything else is the session's own.
    return {} if child is None else {"threadId": child}


def item_started(
    work: Work, session: Session, turn: TurnId, item: ItemId, item_json: str, *, child: ThreadId | None = None
) -> Seq:
    """`item/started`."""
    return _of(work, session, "item/started", turn=turn, item=item, payload=item_json, fields=_child(child))


def item_delta(
    work: Work,
    session: Session,
    turn: TurnId,
    item: ItemId,
    *,
    channel: str,
    delta: str,
    child: ThreadId | None = None,
) -> None:
    """`item/delta`."""
    fields = {"channel": channel, "delta": delta, **_child(child)}
    _of(work, session, "item/delta", turn=turn, item=item, fields=fields)


def item_completed(
    work: Work,
    session: Session,
    turn: TurnId,
    item: ItemId,
    item_json: str,
    *,
    incomplete: bool = False,
    late: bool = False,
    child: ThreadId | None = None,
) -> Seq:
    """`item/completed`. `incomplete`: the turn ended before it did. `late`: it came after its turn's end and corrects
    what was said."""
    return _of(
        work,
        session,
        "item/completed",
        turn=turn,
        item=item,
        payload=item_json,
        fields={
            **({"incomplete": True} if incomplete else {}),
            **({"late": True} if late else {}),
            **_child(child),
        },
    )


def usage(
    work: Work, session: Session, turn: TurnId, last: Tokens, total: Tokens, *, child: ThreadId | None = None
) -> None:
    """`usage`: one model call (`last`) and the thread's running sum (`total`)."""
    fields = {"usage": usage_fields(last), "total": usage_fields(total), **_child(child)}
    _of(work, session, "usage", turn=turn, fields=fields)


def usage_fields(tokens: Tokens) -> dict[str, int]:
    """Return token counts under their public names."""
    return {
        "input": tokens.input,
        "output": tokens.output,
        "cacheRead": tokens.cache_read,
        "cacheWrite": tokens.cache_write,
        "totalTokens": tokens.total,
    }


def late(
    work: Work, session: Session, what: str, *, turn: TurnId | None = None, item: ItemId | None = None, reason: str
) -> None:
    """`late`: something arrived that nothing stands open for; it changed nothing."""
    _of(work, session, "late", turn=turn, item=item, fields={"what": what, "reason": reason})


def notice(work: Work, session: Session | None, slug: str, message: str, **fields: Any) -> None:
    """`notice`: worth telling, decides nothing."""
    if session is None:
        append(work, "notice", fields={"slug": slug, "message": message, **fields})
    else:
        _of(work, session, "notice", fields={"slug": slug, "message": message, **fields})


def raw(work: Work, session: Session | None, method: str, params_json: str, turn: TurnId | None) -> None:
    """`codex/raw`: whatever has no kind of its own, verbatim."""
    fields = {"method": method, "params": msgspec.Raw(params_json.encode())}
    if session is None:
        append(work, "codex/raw", turn=turn, fields=fields)
    else:
        _of(work, session, "codex/raw", turn=turn, fields=fields)


# --- requests ---


def request(work: Work, session: Session, request: RequestRecord, what: str, **fields: Any) -> None:
    """`request/<what>`; `opened` shows what is asked and which decisions are offered."""
    if what == "opened":
        fields["params"] = msgspec.Raw(request.params_json.encode())
        fields["decisions"] = [msgspec.Raw(decision.encode()) for decision in request.decisions]
    _of(
        work,
        session,
        f"request/{what}",
        turn=request.turn_id,
        item=request.item_id,
        fields={
            "requestId": request.id,
            "requestKind": request.kind,
            "method": request.method,
            "threadId": request.thread_id,
            **fields,
        },
    )


# --- threads, the process, discovery ---


def thread(work: Work, thread_id: str, what: str, reason: str | None, session_id: SessionId | None = None) -> None:
    """`thread/ignored`, `thread/unignored`."""
    append(work, f"thread/{what}", session=session_id, fields={"threadId": thread_id, "reason": reason})


def news(work: Work, kind: str, fields_json: str, **fields: Any) -> None:
    """`runtime/*` and `discovery/*`: the fields come from the service that tells them."""
    append(work, kind, fields={**fields, **msgspec.json.decode(fields_json, type=dict[str, Any])})
