"""What happened in a session, page by page.

From our own record, where all of it happened here. Of a thread that was found, named or forked we saw only a part, or
nothing yet: its history is read through Codex, which has all of it, and what we know besides is put over it (which
turns were ours, what they spent, the number of an item's first event). Reading loads no thread and resumes none. The
items of a thread that an older Codex wrote can only be had with their turns, and are handed out from there.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import msgspec
from litestar import get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from state.records import ItemRecord, SessionId, SessionRecord, ThreadId, TurnId
from state.views import Cursor, ItemCursor, TurnCursor
from termald.api.commands import Desk
from termald.api.cursors import is_cursor_of, read_cursor, write_cursor
from termald.api.parameters import LIMIT_DEFAULT, CursorText, Limit, Order, OrderChoice, SessionPath
from termald.api.problems import ProblemError, documented
from termald.api.views import history as show
from termald.api.views.shared import Page
from termald.codex.translate.history import (
    HistoryUnreadable,
    ask_items,
    ask_turns,
    ask_whole_turns,
    has_no_item_pages,
    read_items,
    read_items_of_turns,
    read_turns,
)
from termald.core.effects import CodexAnswer
from termald.core.inputs import AskCodex

PREFIX: Final = "/api/sessions/{session_id:str}"
_STORE_ORDER: Final[dict[Order, Literal["oldest", "newest"]]] = {"asc": "oldest", "desc": "newest"}
_RESPONSES: Final = documented(
    "invalid-request",
    "unknown-session",
    "foreign-home",
    "starting",
    "no-answer-yet",
    "runtime-unavailable",
    "runtime-exited",
    "link-lost",
    "codex-refused",
    "codex-unanswered",
    "codex-overloaded",
)

TurnFilter = Annotated[str | None, QueryParameter(name="turnId", description="Only those of this turn")]


class _Asked(msgspec.Struct, frozen=True):
    """Which part of a history."""

    order: Order
    cursor: str | None
    limit: int
    turn: TurnId | None = None


class _CodexCursor(Cursor, frozen=True):
    """Where Codex's own list goes on, in its words."""

    cursor: str


class _TurnsCursor(Cursor, frozen=True):
    """The page of turns whose items are handed out, and how many of these were."""

    cursor: str | None
    given: int


@get(f"{PREFIX}/turns", responses=_RESPONSES)
async def list_turns(
    desk: NamedDependency[Desk],
    session_id: SessionPath,
    *,
    order: OrderChoice = "desc",
    cursor: CursorText = None,
    limit: Limit = LIMIT_DEFAULT,
) -> Page[show.Turn]:
    """Return a session's turns, newest first unless told otherwise.

    Of a session that did not begin here (`origin` is not `created`) they are read through Codex: 503 where it does not
    run, 502 with what it said where it cannot read them.
    """
    record = (await desk.session(session_id)).record
    thread = _elsewhere(record)
    if thread is not None:
        return await _turns_of_codex(desk, record, thread, _Asked(order, cursor, limit))
    sealed = ("turns", session_id, order)
    after = read_cursor(cursor, TurnCursor, *sealed)
    page = await desk.engine.store.turns(SessionId(session_id), order=_STORE_ORDER[order], after=after, limit=limit)
    return Page(data=[show.turn(one) for one in page.rows], next_cursor=write_cursor(page.next, *sealed))


@get(f"{PREFIX}/items", responses=_RESPONSES)
async def list_items(
    desk: NamedDependency[Desk],
    session_id: SessionPath,
    *,
    turn_id: TurnFilter = None,
    order: OrderChoice = "asc",
    cursor: CursorText = None,
    limit: Limit = LIMIT_DEFAULT,
) -> Page[show.Item]:
    """Return a session's items, or those of one turn, oldest first unless told otherwise. Read as its turns are."""
    record = (await desk.session(session_id)).record
    turn = None if turn_id is None else TurnId(turn_id)
    thread = _elsewhere(record)
    if thread is not None:
        return await _items_of_codex(desk, record, thread, _Asked(order, cursor, limit, turn))
    sealed = ("items", session_id, turn_id, order)
    after = read_cursor(cursor, ItemCursor, *sealed)
    page = await desk.engine.store.items(
        SessionId(session_id), turn=turn, order=_STORE_ORDER[order], after=after, limit=limit
    )
    return Page(data=[show.item(one) for one in page.rows], next_cursor=write_cursor(page.next, *sealed))


def _elsewhere(record: SessionRecord) -> ThreadId | None:
    """Return the thread whose history we do not have all of. Errors: `foreign-home`."""
    if record.origin == "created" or record.thread_id is None:
        return None
    if record.home is not None:
        detail = f"session {record.id!r} lies in {record.home}, where Codex does not run; its history cannot be read"
        raise ProblemError("foreign-home", detail)
    return record.thread_id


async def _turns_of_codex(desk: Desk, record: SessionRecord, thread: ThreadId, asked: _Asked) -> Page[show.Turn]:
    sealed = ("turns of codex", record.id, thread, asked.order)
    after = read_cursor(asked.cursor, _CodexCursor, *sealed)
    answer = await _ask(desk, *ask_turns(thread, _place(after), asked.limit, asked.order))
    try:
        told, following = read_turns(answer, record.id, thread)
    except HistoryUnreadable as error:
        raise _unreadable(error) from error
    ours = await desk.engine.store.turns_named(record.id, [turn.id for turn in told])
    return Page(data=[show.turn(ours.get(turn.id, turn)) for turn in told], next_cursor=_next(after, following, sealed))


async def _items_of_codex(desk: Desk, record: SessionRecord, thread: ThreadId, asked: _Asked) -> Page[show.Item]:
    sealed = ("items of codex", record.id, thread, asked.turn, asked.order)
    by_turns = ("items of codex by turns", *sealed[1:])
    if asked.cursor is not None and is_cursor_of(asked.cursor, by_turns[0]):
        return await _items_by_turns(desk, record, thread, asked, by_turns)
    after = read_cursor(asked.cursor, _CodexCursor, *sealed)
    try:
        answer = await _ask(desk, *ask_items(thread, asked.turn, _place(after), asked.limit, asked.order))
    except ProblemError as error:
        if after is None and error.codex is not None and has_no_item_pages(error.codex.message):
            return await _items_by_turns(desk, record, thread, asked, by_turns)
        raise
    try:
        told, following = read_items(answer, record.id)
    except HistoryUnreadable as error:
        raise _unreadable(error) from error
    return Page(data=await _with_ours(desk, record, told), next_cursor=_next(after, following, sealed))


async def _items_by_turns(
    desk: Desk, record: SessionRecord, thread: ThreadId, asked: _Asked, sealed: tuple[str | None, ...]
) -> Page[show.Item]:
    listing, *filters = sealed
    place = read_cursor(asked.cursor, _TurnsCursor, str(listing), *filters) or _TurnsCursor(None, 0)
    found: list[ItemRecord] = []
    goes_on: _TurnsCursor | None
    while True:
        answer = await _ask(desk, *ask_whole_turns(thread, place.cursor, asked.order))
        try:
            told, following = read_items_of_turns(answer, record.id, asked.turn, asked.order)
        except HistoryUnreadable as error:
            raise _unreadable(error) from error
        taken = told[place.given : place.given + asked.limit - len(found)]
        found += taken
        given = place.given + len(taken)
        if given < len(told):
            goes_on = _TurnsCursor(place.cursor, given)
            break
        if following is None:
            goes_on = None
            break
        if following == place.cursor:
            raise _same_page()
        place = goes_on = _TurnsCursor(following, 0)
        if len(found) == asked.limit:
            break
    return Page(data=await _with_ours(desk, record, found), next_cursor=write_cursor(goes_on, str(listing), *filters))


async def _with_ours(desk: Desk, record: SessionRecord, told: Sequence[ItemRecord]) -> list[show.Item]:
    ours = await desk.engine.store.items_named(record.id, [(item.turn_id, item.id) for item in told])
    return [show.item(ours.get((item.turn_id, item.id), item)) for item in told]


def _place(after: _CodexCursor | None) -> str | None:
    return None if after is None else after.cursor


async def _ask(desk: Desk, method: str, params_json: str) -> str:
    answer = await desk.ask(
        lambda ticket, at_ms: AskCodex(ticket=ticket, at_ms=at_ms, method=method, params_json=params_json), CodexAnswer
    )
    return answer.result_json


def _next(after: _CodexCursor | None, following: str | None, sealed: tuple[str | None, ...]) -> str | None:
    if following is None:
        return None
    if after is not None and following == after.cursor:
        raise _same_page()
    listing, *filters = sealed
    return write_cursor(_CodexCursor(following), str(listing), *filters)


def _same_page() -> ProblemError:
    # It would be given for ever (DISC-15).
    return ProblemError("codex-refused", "Codex gave the cursor of this page as that of the next")


def _unreadable(error: HistoryUnreadable) -> ProblemError:
    return ProblemError("codex-refused", f"Codex's answer is no page of a history: {error}")


HANDLERS: Final = (list_turns, list_items)
