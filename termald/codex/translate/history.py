"""A thread's history as Codex's own record tells it, page by page: what is asked, and what the answer says.

Codex's cursor is opaque and passed on. Its record is complete, and knows less of a turn than we do of one that we saw
run: what it spent, and who began it.
"""

from typing import Final, Literal

import msgspec

from state.records import ItemId, ItemRecord, Seq, SessionId, ThreadId, TurnId, TurnRecord, TurnState
from termald.codex.protocol import types as t
from termald.codex.translate.replies import item_head, turn_status

Order = Literal["asc", "desc"]
WHOLE_TURNS: Final = 20
"""Turns read at once with all their items; a turn may hold some hundred of them."""
_decode_turns: Final = msgspec.json.Decoder(t.ThreadTurnsListResponse).decode
_decode_items: Final = msgspec.json.Decoder(t.ThreadItemsListResponse).decode
_STATES: Final[dict[str, TurnState]] = {"completed": "normal", "interrupted": "cancelled", "failed": "error"}


class HistoryUnreadable(Exception):  # noqa: N818 - Codex's answer, not a mistake in the program
    """Codex answered with something that is no page of a history."""


def ask_turns(thread: ThreadId, cursor: str | None, limit: int, order: Order) -> tuple[str, str]:
    """Return method and params of a page of turns, without their items."""
    params = t.ThreadTurnsListParams(
        thread_id=thread, cursor=cursor, limit=limit, sort_direction=order, items_view="notLoaded"
    )
    return "thread/turns/list", msgspec.json.encode(params).decode()


def ask_items(thread: ThreadId, turn: TurnId | None, cursor: str | None, limit: int, order: Order) -> tuple[str, str]:
    """Return method and params of a page of items, of one turn or of all."""
    params = t.ThreadItemsListParams(thread_id=thread, turn_id=turn, cursor=cursor, limit=limit, sort_direction=order)
    return "thread/items/list", msgspec.json.encode(params).decode()


def has_no_item_pages(codex_message: str | None) -> bool:
    """Whether a refusal says that the thread keeps its history as older releases did: such a one is read by its
    turns."""
    return codex_message is not None and codex_message.startswith("thread/items/list is not supported yet")


def ask_whole_turns(thread: ThreadId, cursor: str | None, order: Order) -> tuple[str, str]:
    """Return method and params of a page of turns with their items."""
    params = t.ThreadTurnsListParams(
        thread_id=thread, cursor=cursor, limit=WHOLE_TURNS, sort_direction=order, items_view="full"
    )
    return "thread/turns/list", msgspec.json.encode(params).decode()


def read_items_of_turns(
    result_json: str, session: SessionId, turn: TurnId | None, order: Order
) -> tuple[list[ItemRecord], str | None]:
    """Return the items of a page of turns in their order, of one turn or of all, and Codex's cursor to the next.
    Errors: `HistoryUnreadable`."""
    try:
        page = _decode_turns(result_json)
        items = []
        for told in page.data:
            if turn is None or told.id == turn:
                found = [_item(t.ThreadItemEntry(item=item, turn_id=told.id), session) for item in told.items or ()]
                items += found if order == "asc" else found[::-1]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HistoryUnreadable(str(error)) from error
    return items, page.next_cursor


def read_turns(result_json: str, session: SessionId, thread: ThreadId) -> tuple[list[TurnRecord], str | None]:
    """Return the turns of a page, and Codex's cursor to the next. Errors: `HistoryUnreadable`."""
    try:
        page = _decode_turns(result_json)
    except msgspec.MsgspecError as error:
        raise HistoryUnreadable(str(error)) from error
    return [_turn(turn, session, thread) for turn in page.data], page.next_cursor


def read_items(result_json: str, session: SessionId) -> tuple[list[ItemRecord], str | None]:
    """Return the items of a page, and Codex's cursor to the next. Errors: `HistoryUnreadable`."""
    try:
        page = _decode_items(result_json)
        return [_item(entry, session) for entry in page.data], page.next_cursor
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise HistoryUnreadable(str(error)) from error


def _turn(turn: t.Turn, session: SessionId, thread: ThreadId) -> TurnRecord:
    return TurnRecord(
        id=TurnId(turn.id),
        session_id=session,
        thread_id=thread,
        ours=False,
        started_at_ms=(turn.started_at or 0) * 1000,
        ended_at_ms=None if turn.completed_at is None else turn.completed_at * 1000,
        state=_STATES.get(turn_status(turn.status)),
        message=None if turn.error is None else turn.error.message,
    )


def _item(entry: t.ThreadItemEntry, session: SessionId) -> ItemRecord:
    text = bytes(entry.item)
    head = item_head(text)
    return ItemRecord(
        id=ItemId(head.id),
        session_id=session,
        turn_id=TurnId(entry.turn_id),
        type=head.type,
        state="completed",
        item_json=text.decode(),
        first_seq=Seq(0),  # before our log
    )
