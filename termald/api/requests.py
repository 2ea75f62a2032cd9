"""What Codex asks and somebody must decide."""

from typing import Annotated, Final

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter

from state.records import RequestId, RequestStatus, SessionId
from state.views import RequestCursor
from termald.api import bodies
from termald.api.commands import Desk
from termald.api.cursors import read_cursor, write_cursor
from termald.api.parameters import LIMIT_DEFAULT, CursorText, Limit, RequestPath, SessionPath
from termald.api.problems import ProblemError, documented
from termald.api.views import history as show
from termald.api.views.shared import Page
from termald.core.effects import RequestAnswer
from termald.core.inputs import AnswerRequest

PREFIX: Final = "/api/sessions/{session_id:str}/requests"

StatusChoice = Annotated[
    RequestStatus, QueryParameter(name="status", description="`open` is what waits for an answer; the rest is history")
]


@get("/api/requests", responses=documented("invalid-request"))
async def list_requests(
    desk: NamedDependency[Desk],
    status: StatusChoice = "open",
    cursor: CursorText = None,
    limit: Limit = LIMIT_DEFAULT,
) -> Page[show.RequestCard]:
    """Return what waits for an answer in any session, oldest first."""
    return await _page(desk, None, status, cursor, limit)


@get(PREFIX, responses=documented("invalid-request", "unknown-session"))
async def list_session_requests(
    desk: NamedDependency[Desk],
    session_id: SessionPath,
    status: StatusChoice = "open",
    cursor: CursorText = None,
    limit: Limit = LIMIT_DEFAULT,
) -> Page[show.RequestCard]:
    """Return what waits for an answer in this session, oldest first."""
    await desk.session(session_id)
    return await _page(desk, SessionId(session_id), status, cursor, limit)


async def _page(
    desk: Desk, session: SessionId | None, status: RequestStatus, cursor: str | None, limit: int
) -> Page[show.RequestCard]:
    sealed = ("requests", session, status)
    after = read_cursor(cursor, RequestCursor, *sealed)
    page = await desk.engine.store.requests(session=session, status=status, after=after, limit=limit)
    return Page(data=[show.request_card(record) for record in page.rows], next_cursor=write_cursor(page.next, *sealed))


@post(
    f"{PREFIX}/{{request_id:str}}",
    status_code=200,
    responses=documented(
        "malformed-body",
        "unsupported-media-type",
        "invalid-request",
        "decision-not-offered",
        "unknown-session",
        "unknown-request",
        "request-closed",
        "starting",
        "no-answer-yet",
    ),
)
async def answer_request(
    desk: NamedDependency[Desk], session_id: SessionPath, request_id: RequestPath, data: JSONBody[bodies.AnswerRequest]
) -> show.RequestCard:
    """Decide a request, once: `decision` (one of those offered), `answers` (to its questions) or `result`.

    422 leaves it open; 409 once it is answered, expired, or from an older attachment.
    """
    form, text = bodies.answer_form(data)
    await desk.session(session_id)
    # The core knows what is open; whether a request ever was, the store.
    record = await desk.engine.store.request(RequestId(request_id))
    if record is None or record.session_id != session_id:
        raise ProblemError("unknown-request", f"no request {request_id!r} in session {session_id!r}")
    answer = await desk.ask(
        lambda ticket, at_ms: AnswerRequest(
            ticket=ticket,
            at_ms=at_ms,
            session=SessionId(session_id),
            request=RequestId(request_id),
            decision_json=text if form == "decision" else None,
            answers_json=text if form == "answers" else None,
            result_json=text if form == "result" else None,
        ),
        RequestAnswer,
    )
    return show.request_card(answer.request)


HANDLERS: Final = (list_requests, list_session_requests, answer_request)
