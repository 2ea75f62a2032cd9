"""What Codex asks of us: cards for people where somebody can decide, and a rule where nobody can."""

from typing import Any, Final

import msgspec

from state.records import ItemId, LinkId, RequestKind, ThreadId, TurnId
from termald.codex import frames
from termald.core.inputs import RequestArrived

CARDS: Final[dict[str, RequestKind]] = {
    "item/commandExecution/requestApproval": "command",
    "item/fileChange/requestApproval": "fileChange",
    "item/permissions/requestApproval": "permissions",
    "item/tool/requestUserInput": "userInput",
    "mcpServer/elicitation/request": "elicitation",
}
"""What somebody decides about."""
RULES: Final = {
    "currentTime/read": "the time",
    "item/tool/call": "it failed, for termald offers no tools of its own",
    # The protocol's first version; threads that we open do not use it. Nothing is accepted without somebody's decision.
    "applyPatchApproval": "denied",
    "execCommandApproval": "denied",
}
"""What is answered here, and how."""
REFUSED: Final = {
    "account/chatgptAuthTokens/refresh": "only who gave Codex its tokens can renew them, and termald gives it none",
    "attestation/generate": "termald does not offer it at `initialize`",
}
"""What nobody here can answer. Codex goes on without, as it does after a refusal of anything that it asks."""
_PLAIN_DECISIONS: Final = ('"accept"', '"acceptForSession"', '"decline"', '"cancel"')
"""What Codex takes for every command and change, also where its own offer leaves some out: under `untrusted` it offers
no `decline`, and takes it (measured on 0.163 and 0.171)."""

_DECLINE: Final[dict[RequestKind, str]] = {
    "command": '{"decision":"decline"}',
    "fileChange": '{"decision":"decline"}',
    "permissions": '{"permissions":{}}',
    "userInput": '{"answers":{}}',
    "elicitation": '{"action":"decline"}',
}


class _Place(msgspec.Struct, frozen=True):
    thread: str | None = msgspec.field(name="threadId", default=None)
    turn: str | None = msgspec.field(name="turnId", default=None)
    item: str | None = msgspec.field(name="itemId", default=None)
    decisions: list[msgspec.Raw] | None = msgspec.field(name="availableDecisions", default=None)


_place: Final = msgspec.json.Decoder(_Place).decode


def ask(link: LinkId, frame: frames.ServerRequest, at_ms: int) -> RequestArrived:
    """Return what Codex asks. A malformed or unknown request is refused by itself; it never stalls the turn or the
    pipe."""
    text = bytes(frame.params)
    head: dict[str, Any] = {
        "link": link,
        "at_ms": at_ms,
        "rpc_id_json": msgspec.json.encode(frame.id).decode(),
        "method": frame.method,
    }
    try:
        place = _place(text) if text[:1] == b"{" else _Place()
        params_json = text.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return RequestArrived(
            **head,
            kind=None,
            thread=None,
            turn=None,
            item=None,
            params_json="null",
            rule_error=f"malformed params: {error}",
        )
    known = CARDS.get(frame.method)
    kind = known if place.thread is not None else None
    rule_json, rule_error = (None, None) if kind is not None else _rule(frame.method, known, at_ms)
    return RequestArrived(
        **head,
        kind=kind,
        thread=ThreadId(place.thread) if place.thread is not None else None,
        turn=TurnId(place.turn) if place.turn is not None else None,
        item=ItemId(place.item) if place.item is not None else None,
        params_json=params_json,
        decisions=_decisions(kind, place),
        decline_json=_DECLINE[kind] if kind is not None else None,
        rule_json=rule_json,
        rule_error=rule_error,
    )


def _decisions(kind: RequestKind | None, place: _Place) -> tuple[str, ...]:
    if kind not in ("command", "fileChange"):
        return ()
    offered = tuple(bytes(decision).decode() for decision in place.decisions or ())
    return (*offered, *(plain for plain in _PLAIN_DECISIONS if plain not in offered))


def _rule(method: str, known: RequestKind | None, at_ms: int) -> tuple[str | None, str | None]:
    """Return the result or the refusal that answers a request which nobody here is asked."""
    if known is not None:
        return _DECLINE[known], None  # of no thread: there is nobody to ask
    match method:
        case "currentTime/read":
            return msgspec.json.encode({"currentTimeAt": at_ms // 1000}).decode(), None
        case "item/tool/call":
            content = [{"type": "inputText", "text": "termald offers no tools of its own"}]
            return msgspec.json.encode({"contentItems": content, "success": False}).decode(), None
        case "applyPatchApproval" | "execCommandApproval":
            return '{"decision":"denied"}', None
        case _:
            return None, f"termald does not answer {method}: {REFUSED.get(method, 'it is not known here')}"
