"""What happened in a session, page by page, from our own record of it."""

from typing import Annotated, Final, Literal

from litestar import get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from state.records import SessionId, TurnId
from state.views import ItemCursor, TurnCursor
from termald.api.commands import Desk
from termald.api.cursors import read_cursor, write_cursor
from termald.api.parameters import LIMIT_DEFAULT, CursorText, Limit, Order, OrderChoice, SessionPath
from termald.api.problems import documented
from termald.api.views import history as show
from termald.api.views.shared import Page

PREFIX: Final = "/api/sessions/{session_id:str}"
_STORE_ORDER: Final[dict[Order, Literal["oldest", "newest"]]] = {"asc": "oldest", "desc": "newest"}

TurnFilter = Annotated[str | None, QueryParameter(name="turnId", description="Only those of this turn")]


@get(f"{PREFIX}/turns", responses=documented("invalid-request", "unknown-session"))
async def list_turns(
    desk: NamedDependency[Desk],
    session_id: SessionPath,
    *,
    order: OrderChoice = "desc",
    cursor: CursorText = None,
    limit: Limit = LIMIT_DEFAULT,
) -> Page[show.Turn]:
    """Return a session's turns, newest first unless told otherwise."""
    sealed = ("turns", session_id, order)
    after = read_cursor(cursor, TurnCursor, *sealed)
    await desk.session(session_id)
    page = await desk.engine.store.turns(SessionId(session_id), order=_STORE_ORDER[order], after=after, limit=limit)
    return Page(data=[show.turn(record) for record in page.rows], next_cursor=write_cursor(page.next, *sealed))


@get(f"{PREFIX}/items", responses=documented("invalid-request", "unknown-session"))
async def list_items(
    desk: NamedDependency[Desk],
    session_id: SessionPath,
    *,
    turn_id: TurnFilter = None,
    order: OrderChoice = "asc",
    cursor: CursorText = None,
    limit: Limit = LIMIT_DEFAULT,
) -> Page[show.Item]:
    """Return a session's items, or those of one turn, oldest first unless told otherwise."""
    sealed = ("items", session_id, turn_id, order)
    after = read_cursor(cursor, ItemCursor, *sealed)
    await desk.session(session_id)
    page = await desk.engine.store.items(
        SessionId(session_id),
        turn=None if turn_id is None else TurnId(turn_id),
        order=_STORE_ORDER[order],
        after=after,
        limit=limit,
    )
    return Page(data=[show.item(record) for record in page.rows], next_cursor=write_cursor(page.next, *sealed))


HANDLERS: Final = (list_turns, list_items)
