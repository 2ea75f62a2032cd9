"""What answers our calls, and what Codex's refusals mean.

Nearly every refusal bears the code -32600; the meaning is in the text. The texts were measured on Codex 0.163 and
0.171; one that is not known is `other`, and never read as "the thread is gone".
"""

import re
from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec

from state.records import ItemId, LinkId, PromptId, ThreadId, TurnId
from termald.codex import frames
from termald.codex.protocol import types as t
from termald.core.inputs import (
    CallDone,
    CallId,
    CallRefused,
    Reply,
    ReplyMalformed,
    SeenItem,
    SeenTurn,
    ThreadOpened,
    TurnAccepted,
    TurnFailure,
    TurnsRead,
)
from termald.core.model import Purpose

OVERLOADED: Final = -32001
Refusal = Literal[
    "overloaded",
    "no_rollout",
    "thread_not_found",
    "active_writer",
    "archived",
    "provider_missing",
    "no_active_turn",
    "turn_mismatch",
    "input_too_large",
    "other",
]

_TEXTS: Final[tuple[tuple[Refusal, re.Pattern[str]], ...]] = (
    ("no_rollout", re.compile(r"^no rollout found for thread id ")),
    ("no_rollout", re.compile(r"^thread \S+ is not materialized yet")),
    # What a resume without turns, and a read of turns, meet between the first turn's acknowledgement and its rollout.
    ("no_rollout", re.compile(r"^list_turns is not supported yet")),
    ("no_rollout", re.compile(r"^rollout at .* is empty")),
    ("no_rollout", re.compile(r"missing source rollout")),
    ("thread_not_found", re.compile(r"^thread not (?:found|loaded): ")),
    ("active_writer", re.compile(r"^thread \S+ already has an active writer")),
    ("archived", re.compile(r"^session \S+ is archived\.")),
    ("provider_missing", re.compile(r"Model provider .* not found")),
    ("no_active_turn", re.compile(r"^no active turn to interrupt")),
    # A compaction that somebody else began a moment ago takes no prompt, and is over soon: not executed, ask again.
    ("overloaded", re.compile(r"^failed to submit turn input: ActiveTurnNotSteerable")),
    ("turn_mismatch", re.compile(r"^expected active turn id ")),
)
_FOUND_TURN: Final = re.compile(r"but found [`'\"]?([0-9A-Za-z-]+)")


class _Id(msgspec.Struct, frozen=True):
    id: str
    type: str
    client_id: str | None = msgspec.field(name="clientId", default=None)
    receivers: list[str] = msgspec.field(name="receiverThreadIds", default_factory=list)


_Opened = t.ThreadStartResponse | t.ThreadResumeResponse | t.ThreadForkResponse


class _TurnId(msgspec.Struct, frozen=True):
    id: str


class _Operated(msgspec.Struct, frozen=True):
    turn: _TurnId | None = None


item_head: Final = msgspec.json.Decoder(_Id).decode
_decode_start: Final = msgspec.json.Decoder(t.ThreadStartResponse).decode
_decode_resume: Final = msgspec.json.Decoder(t.ThreadResumeResponse).decode
_decode_fork: Final = msgspec.json.Decoder(t.ThreadForkResponse).decode
_decode_operated: Final = msgspec.json.Decoder(_Operated).decode
_decode_turn: Final = msgspec.json.Decoder(t.TurnStartResponse).decode
_decode_steered: Final = msgspec.json.Decoder(t.TurnSteerResponse).decode
_decode_turns: Final = msgspec.json.Decoder(t.ThreadTurnsListResponse).decode


def reply(link: LinkId, purpose: Purpose, frame: frames.Reply, at_ms: int) -> Reply:
    """Return what a successful reply says. One that does not hold what it must leaves the outcome unknown."""
    call = CallId(frame.id) if isinstance(frame.id, int) else CallId(-1)
    head: dict[str, Any] = {"link": link, "call": call, "at_ms": at_ms}
    decode = _BY_PURPOSE.get(purpose)
    if decode is None:
        return CallDone(**head, result_json=bytes(frame.result).decode())
    try:
        return decode(head, frame.result)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return ReplyMalformed(**head, reason=f"{purpose}: {error}")


def refusal(link: LinkId, frame: frames.ReplyError, at_ms: int) -> CallRefused:
    """Return what an error reply means, with code and text kept whole."""
    found = _FOUND_TURN.search(frame.message)
    meaning = _meaning(frame)
    return CallRefused(
        link=link,
        call=CallId(frame.id) if isinstance(frame.id, int) else CallId(-1),
        at_ms=at_ms,
        code=frame.code,
        message=frame.message,
        refusal=meaning,
        active_turn=TurnId(found.group(1)) if meaning == "turn_mismatch" and found else None,
    )


def _meaning(frame: frames.ReplyError) -> Refusal:
    # A process that is to end and still has a turn to finish refuses new work with a reason of its own: not executed
    # either.
    if frame.code == OVERLOADED or (frame.data is not None and b'"serverShuttingDown"' in bytes(frame.data)):
        return "overloaded"
    if frame.data is not None and b'"input_too_large"' in bytes(frame.data):
        return "input_too_large"
    if frame.data is not None and b'"modelProviderNotConfigured"' in bytes(frame.data):
        return "provider_missing"
    return next((meaning for meaning, text in _TEXTS if text.search(frame.message)), "other")


def status(given: t.ThreadStatus) -> Literal["idle", "active", "systemError", "notLoaded"]:
    """Return the thread's status; one that we do not know of says nothing that we may act on, like one that is not
    loaded."""
    match given.type:
        case "idle" | "active" | "systemError":
            return given.type
        case _:
            return "notLoaded"


def failure(error: t.TurnError | None) -> TurnFailure | None:
    """Return why a turn failed. The variant is a bare word or an object with one key, which may hold an HTTP status."""
    if error is None:
        return None
    info: Any = error.codex_error_info
    variant, http_status = (info, None) if isinstance(info, str) else (None, None)
    if isinstance(info, dict) and len(info) == 1:
        variant, detail = next(iter(info.items()))
        if isinstance(detail, dict) and isinstance(detail.get("httpStatusCode"), int):
            http_status = detail["httpStatusCode"]
    return TurnFailure(
        message=error.message, variant=variant, http_status=http_status, details=error.additional_details
    )


def seen_turn(turn: t.Turn) -> SeenTurn:
    """Return a turn as Codex's record tells it, with our prompt ids found in its user items."""
    items = tuple(_seen_item(bytes(item)) for item in turn.items or ())
    return SeenTurn(
        turn=TurnId(turn.id),
        status=turn_status(turn.status),
        prompts=tuple(item.prompt for item in items if item.prompt is not None),
        items=items,
        failure=failure(turn.error),
        user_items=sum(item.type == "userMessage" for item in items),
    )


def turn_status(given: str) -> Literal["completed", "interrupted", "failed", "inProgress"]:
    """Return the turn's status; an unknown one is taken to go on, since only an end that we understand is an end."""
    match given:
        case "completed" | "interrupted" | "failed":
            return given
        case _:
            return "inProgress"


def _seen_item(raw: bytes) -> SeenItem:
    head = item_head(raw)
    return SeenItem(item=ItemId(head.id), type=head.type, item_json=raw.decode(), prompt=prompt_of(head))


def children_of(head: _Id) -> tuple[ThreadId, ...]:
    """Return the threads that a tool call spawned."""
    return tuple(ThreadId(thread) for thread in head.receivers) if head.type == "collabAgentToolCall" else ()


def prompt_of(head: _Id) -> PromptId | None:
    """Return our id in a user item."""
    return PromptId(head.client_id) if head.type == "userMessage" and head.client_id else None


def _opened(
    head: dict[str, Any], given: t.ThreadStartResponse | t.ThreadResumeResponse | t.ThreadForkResponse
) -> Reply:
    thread = given.thread
    return ThreadOpened(
        **head,
        thread=ThreadId(thread.id),
        status=status(thread.status),
        model=given.model,
        model_provider=given.model_provider,
        effort=given.reasoning_effort,
        service_tier=given.service_tier,
        title=thread.name,
        turns=tuple(seen_turn(turn) for turn in thread.turns or ()),
    )


def _start(head: dict[str, Any], result: msgspec.Raw) -> Reply:
    return _opened(head, _decode_start(result))


def _resume(head: dict[str, Any], result: msgspec.Raw) -> Reply:
    return _opened(head, _decode_resume(result))


def _fork(head: dict[str, Any], result: msgspec.Raw) -> Reply:
    return _opened(head, _decode_fork(result))


def _operated(head: dict[str, Any], result: msgspec.Raw) -> Reply:
    # A review's reply names its turn; the others say nothing.
    turn = _decode_operated(result).turn
    if turn is not None:
        return TurnAccepted(**head, turn=TurnId(turn.id))
    return CallDone(**head, result_json=bytes(result).decode())


def _turn(head: dict[str, Any], result: msgspec.Raw) -> Reply:
    return TurnAccepted(**head, turn=TurnId(_decode_turn(result).turn.id))


def _steered(head: dict[str, Any], result: msgspec.Raw) -> Reply:
    return TurnAccepted(**head, turn=TurnId(_decode_steered(result).turn_id))


def _turns(head: dict[str, Any], result: msgspec.Raw) -> Reply:
    page = _decode_turns(result)
    return TurnsRead(**head, turns=tuple(seen_turn(turn) for turn in page.data), older=page.next_cursor)


_BY_PURPOSE: Final[dict[Purpose, Callable[[dict[str, Any], msgspec.Raw], Reply]]] = {
    "open_fresh": _start,
    "open_known": _resume,
    "fork": _fork,
    "operate": _operated,
    "turn": _turn,
    "steer": _steered,
    "read": _turns,
    "look_back": _turns,
}
