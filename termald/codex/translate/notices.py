"""What nobody asked for: notifications turned into the core's notices, by method.

A method without a line here passes as it is (`RawNotice`): new ones of a newer Codex reach subscribers verbatim.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from state.records import ItemId, KnownThread, LinkId, ThreadId, Tokens, TurnId
from termald.codex import frames
from termald.codex.message import Message
from termald.codex.protocol import types as t
from termald.codex.translate.replies import children_of, failure, item_head, prompt_of, status, turn_status
from termald.core.inputs import (
    BadFrame,
    FromCodex,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    LimitWindow,
    RawNotice,
    RequestResolved,
    ThreadGone,
    ThreadRenamed,
    ThreadStarted,
    ThreadStatusChanged,
    ThreadUnarchived,
    TurnCompleted,
    TurnErrored,
    TurnFailure,
    TurnNews,
    TurnStarted,
    TurnUsage,
)

M = TypeVar("M", bound=Message)
Head = dict[str, Any]
Handler = Callable[[Head, msgspec.Raw], FromCodex]


class _Place(msgspec.Struct, frozen=True):
    thread: Any = msgspec.field(name="threadId", default=None)
    turn: Any = msgspec.field(name="turnId", default=None)


_place: Final = msgspec.json.Decoder(_Place).decode
_limits_of: Final = msgspec.json.Decoder(t.AccountRateLimitsUpdatedNotification).decode


def notice(link: LinkId, frame: frames.Notification, at_ms: int) -> FromCodex:
    """Return what a notification says; a payload without what it must have is a bad frame, counted, and nothing
    else."""
    head: Head = {"link": link, "at_ms": at_ms}
    handler = HANDLERS.get(frame.method)
    try:
        if handler is not None:
            return handler(head, frame.params)
        return raw(head, frame.method, frame.params)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return BadFrame(link=link, at_ms=at_ms, reason=f"{frame.method}: {error}", excerpt=frames.excerpt(frame.raw))


def raw(head: Head, method: str, params: msgspec.Raw) -> RawNotice:
    """Return a notification verbatim, with the thread and turn that it names, if it names any."""
    text = bytes(params)
    place = _place(text) if text[:1] == b"{" else _Place()
    return RawNotice(
        **head,
        method=method,
        params_json=text.decode(),
        thread=ThreadId(place.thread) if isinstance(place.thread, str) else None,
        turn=TurnId(place.turn) if isinstance(place.turn, str) else None,
    )


def _verbatim(method: str, type_: type[M], make: Callable[[Head, M], FromCodex]) -> Handler:
    decode = msgspec.json.Decoder(type_).decode
    return lambda head, params: make({**head, "method": method, "raw_json": bytes(params).decode()}, decode(params))


def _typed(type_: type[M], make: Callable[[Head, M], FromCodex]) -> Handler:
    decode = msgspec.json.Decoder(type_).decode
    return lambda head, params: make(head, decode(params))


def _thread_started(head: Head, given: t.ThreadStartedNotification) -> FromCodex:
    thread = given.thread
    parent = ThreadId(thread.parent_thread_id) if thread.parent_thread_id else None
    return ThreadStarted(
        **head,
        thread=ThreadId(thread.id),
        tag=thread.thread_source,
        ephemeral=bool(thread.ephemeral),
        parent=parent,
        known=KnownThread(
            thread_id=ThreadId(thread.id),
            home="",
            cls="child" if parent is not None or thread.ephemeral else "discovered",
            reason="told by thread/started",
            parent_thread_id=parent,
            title=thread.name,
            preview=thread.preview or "",
            cwd=thread.cwd or "",
            model=thread.model,
            model_provider=thread.model_provider,
            tag=thread.thread_source or "",  # None would say that the source keeps no tags
            rollout_path=thread.path,
            created_at_ms=(thread.created_at or 0) * 1000,
            updated_at_ms=(thread.updated_at or 0) * 1000,
        ),
    )


def _status(head: Head, given: t.ThreadStatusChangedNotification) -> FromCodex:
    return ThreadStatusChanged(**head, thread=ThreadId(given.thread_id), status=status(given.status))


def _renamed(head: Head, given: t.ThreadNameUpdatedNotification) -> FromCodex:
    return ThreadRenamed(**head, thread=ThreadId(given.thread_id), name=given.thread_name)


def _closed(head: Head, given: t.ThreadClosedNotification) -> FromCodex:
    return ThreadGone(**head, thread=ThreadId(given.thread_id), how="closed")


def _deleted(head: Head, given: t.ThreadDeletedNotification) -> FromCodex:
    return ThreadGone(**head, thread=ThreadId(given.thread_id), how="deleted")


def _archived(head: Head, given: t.ThreadArchivedNotification) -> FromCodex:
    return ThreadGone(**head, thread=ThreadId(given.thread_id), how="archived")


def _turn_started(head: Head, given: t.TurnStartedNotification) -> FromCodex:
    return TurnStarted(**head, thread=ThreadId(given.thread_id), turn=TurnId(given.turn.id))


def _turn_completed(head: Head, given: t.TurnCompletedNotification) -> FromCodex:
    return TurnCompleted(
        **head,
        thread=ThreadId(given.thread_id),
        turn=TurnId(given.turn.id),
        status=turn_status(given.turn.status),
        failure=failure(given.turn.error),
    )


def _error(head: Head, given: t.ErrorNotification) -> FromCodex:
    return TurnErrored(
        **head,
        thread=ThreadId(given.thread_id),
        turn=TurnId(given.turn_id),
        failure=failure(given.error) or TurnFailure(message="no reason given"),
        will_retry=bool(given.will_retry),
    )


def _unarchived(head: Head, given: t.ThreadUnarchivedNotification) -> FromCodex:
    return ThreadUnarchived(**head, thread=ThreadId(given.thread_id))


def _usage(head: Head, given: t.ThreadTokenUsageUpdatedNotification) -> FromCodex:
    return TurnUsage(
        **head,
        thread=ThreadId(given.thread_id),
        turn=TurnId(given.turn_id),
        last=_tokens(given.token_usage.last),
        total=_tokens(given.token_usage.total),
    )


def _tokens(given: t.TokenUsageBreakdown) -> Tokens:
    # Codex's input includes what was cached, as ours does; its total is not used, so that total = input + output always
    # holds.
    spent, made = given.input_tokens or 0, given.output_tokens or 0
    return Tokens(
        input=spent,
        output=made,
        cache_read=given.cached_input_tokens or 0,
        cache_write=given.cache_write_input_tokens or 0,
        total=spent + made,
    )


def _diff(head: Head, params: msgspec.Raw) -> FromCodex:
    return _news(head, params, "diff")


def _plan(head: Head, params: msgspec.Raw) -> FromCodex:
    return _news(head, params, "plan")


def _limits(head: Head, params: msgspec.Raw) -> FromCodex:
    given = _limits_of(params).rate_limits
    windows = (None, None) if given is None else (given.primary, given.secondary)
    told = tuple(
        LimitWindow(used_percent=window.used_percent, resets_at_ms=window.resets_at * 1000)
        for window in windows
        if window is not None and window.used_percent is not None and window.resets_at is not None
    )
    return replace(raw(head, "account/rateLimits/updated", params), limits=told)


class _InTurn(msgspec.Struct, frozen=True):
    thread: str = msgspec.field(name="threadId")
    turn: str = msgspec.field(name="turnId")


_in_turn: Final = msgspec.json.Decoder(_InTurn).decode


def _news(head: Head, params: msgspec.Raw, kind: Any) -> FromCodex:
    place = _in_turn(params)
    return TurnNews(
        **head, thread=ThreadId(place.thread), turn=TurnId(place.turn), kind=kind, params_json=bytes(params).decode()
    )


def _item_started(head: Head, given: t.ItemStartedNotification) -> FromCodex:
    text = bytes(given.item)
    item = item_head(text)
    return ItemStarted(
        **head,
        thread=ThreadId(given.thread_id),
        turn=TurnId(given.turn_id),
        item=ItemId(item.id),
        type=item.type,
        item_json=text.decode(),
        prompt=prompt_of(item),
        children=children_of(item),
    )


def _item_completed(head: Head, given: t.ItemCompletedNotification) -> FromCodex:
    text = bytes(given.item)
    item = item_head(text)
    return ItemCompleted(
        **head,
        thread=ThreadId(given.thread_id),
        turn=TurnId(given.turn_id),
        item=ItemId(item.id),
        type=item.type,
        item_json=text.decode(),
        prompt=prompt_of(item),
        children=children_of(item),
    )


class _Delta(msgspec.Struct, frozen=True):
    thread: str = msgspec.field(name="threadId")
    turn: str = msgspec.field(name="turnId")
    item: str = msgspec.field(name="itemId")
    delta: str


_delta_of: Final = msgspec.json.Decoder(_Delta).decode


def _delta(channel: str) -> Handler:
    def make(head: Head, params: msgspec.Raw) -> FromCodex:
        given = _delta_of(params)
        return ItemDelta(
            **head,
            thread=ThreadId(given.thread),
            turn=TurnId(given.turn),
            item=ItemId(given.item),
            channel=channel,
            delta=given.delta,
        )

    return make


def _resolved(head: Head, given: t.ServerRequestResolvedNotification) -> FromCodex:
    rpc_id = msgspec.json.encode(given.request_id).decode()
    return RequestResolved(**head, thread=ThreadId(given.thread_id), rpc_id_json=rpc_id)


HANDLERS: Final[dict[str, Handler]] = {
    "thread/started": _typed(t.ThreadStartedNotification, _thread_started),
    "thread/status/changed": _typed(t.ThreadStatusChangedNotification, _status),
    "thread/name/updated": _typed(t.ThreadNameUpdatedNotification, _renamed),
    "thread/closed": _typed(t.ThreadClosedNotification, _closed),
    "thread/deleted": _typed(t.ThreadDeletedNotification, _deleted),
    "thread/archived": _typed(t.ThreadArchivedNotification, _archived),
    "thread/unarchived": _typed(t.ThreadUnarchivedNotification, _unarchived),
    "thread/tokenUsage/updated": _typed(t.ThreadTokenUsageUpdatedNotification, _usage),
    "turn/started": _verbatim("turn/started", t.TurnStartedNotification, _turn_started),
    "turn/completed": _verbatim("turn/completed", t.TurnCompletedNotification, _turn_completed),
    "turn/diff/updated": _diff,
    "turn/plan/updated": _plan,
    "error": _verbatim("error", t.ErrorNotification, _error),
    "item/started": _typed(t.ItemStartedNotification, _item_started),
    "item/completed": _typed(t.ItemCompletedNotification, _item_completed),
    "item/agentMessage/delta": _delta("text"),
    "item/plan/delta": _delta("plan"),
    "item/reasoning/summaryTextDelta": _delta("reasoning"),
    "item/reasoning/textDelta": _delta("reasoningText"),
    "item/commandExecution/outputDelta": _delta("output"),
    "item/fileChange/outputDelta": _delta("output"),
    "account/rateLimits/updated": _limits,
    "serverRequest/resolved": _typed(t.ServerRequestResolvedNotification, _resolved),
}
