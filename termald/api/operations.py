"""What is done to a session's whole thread: fork, compact, review, revert, archive, unarchive. Each is 409 while it is
busy."""

import uuid
from typing import Final, Literal

from litestar import Response, post
from litestar.datastructures import ResponseHeader
from litestar.di import NamedDependency
from litestar.params import JSONBody

from state.records import SessionId
from termald.api import bodies
from termald.api.commands import Desk, HttpRequest, idempotency
from termald.api.parameters import IdempotencyKey, SessionPath
from termald.api.problems import documented
from termald.api.sessions import PREFIX
from termald.api.strict import to_json
from termald.api.views import sessions as show
from termald.core.effects import SessionAnswer
from termald.core.inputs import ForkSession, OperateSession, RevertSession

Kind = Literal["compact", "review", "archive", "unarchive"]
_REFUSALS: Final = (
    "malformed-body",
    "unsupported-media-type",
    "invalid-request",
    "unknown-session",
    "session-busy",
    "no-thread",
    "starting",
    "no-answer-yet",
    "runtime-unavailable",
    "codex-refused",
    "codex-unanswered",
)
_RESPONSES: Final = documented(*_REFUSALS)


@post(
    f"{PREFIX}/{{session_id:str}}/fork",
    response_headers=[ResponseHeader("Location", documentation_only=True, description="The new session's address")],
    responses=documented(*_REFUSALS, "session-exists", "idempotency-mismatch"),
)
async def fork_session(
    request: HttpRequest,
    desk: NamedDependency[Desk],
    session_id: SessionPath,
    data: JSONBody[bodies.ForkSession | None] = None,
    key: IdempotencyKey = None,
) -> Response[show.SessionDetail]:
    """Make a session of its own out of a copy of the thread. It is detached until it is prompted."""
    wanted = data or bodies.ForkSession()
    once = await idempotency(request, key)
    new = SessionId(wanted.id or str(uuid.uuid4()))
    answer = await desk.ask(
        lambda ticket, at_ms: ForkSession(
            ticket=ticket,
            at_ms=at_ms,
            session=SessionId(session_id),
            new_session=new,
            title=wanted.title,
            idempotency=once,
        ),
        SessionAnswer,
    )
    view = show.session_detail(await desk.session(answer.session.id))
    return Response(view, headers={"Location": f"{PREFIX}/{view.id}"})


@post(f"{PREFIX}/{{session_id:str}}/compact", status_code=202, responses=_RESPONSES)
async def compact_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.Nothing | None] = None
) -> show.SessionDetail:
    """Have Codex summarise the thread's history. It is a turn of its own; prompts wait for its end."""
    return await _operate(desk, session_id, "compact")


@post(f"{PREFIX}/{{session_id:str}}/review", status_code=202, responses=_RESPONSES)
async def review_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.ReviewSession | None] = None
) -> show.SessionDetail:
    """Have Codex review changes: uncommitted ones unless told otherwise. It is a turn of its own."""
    target = None if data is None or data.target is None else to_json(data.target)
    return await _operate(desk, session_id, "review", target)


@post(f"{PREFIX}/{{session_id:str}}/revert", status_code=200, responses=documented(*_REFUSALS, "unknown-turn"))
async def revert_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.RevertSession]
) -> show.SessionDetail:
    """Take the newest turns back: `turns` of them, or `beforeTurnId` and all after it. Files stay as they are."""
    turns, before = bodies.cut(data)
    await desk.ask(
        lambda ticket, at_ms: RevertSession(
            ticket=ticket, at_ms=at_ms, session=SessionId(session_id), turns=turns, before_turn=before
        ),
        SessionAnswer,
    )
    return show.session_detail(await desk.session(session_id))


@post(f"{PREFIX}/{{session_id:str}}/archive", status_code=200, responses=_RESPONSES)
async def archive_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.Nothing | None] = None
) -> show.SessionDetail:
    """Archive the thread in Codex. The session stays; it can be prompted again once the thread is unarchived."""
    return await _operate(desk, session_id, "archive")


@post(f"{PREFIX}/{{session_id:str}}/unarchive", status_code=200, responses=_RESPONSES)
async def unarchive_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.Nothing | None] = None
) -> show.SessionDetail:
    """Take the thread out of Codex's archive."""
    return await _operate(desk, session_id, "unarchive")


async def _operate(desk: Desk, session_id: str, kind: Kind, target_json: str | None = None) -> show.SessionDetail:
    await desk.ask(
        lambda ticket, at_ms: OperateSession(
            ticket=ticket, at_ms=at_ms, session=SessionId(session_id), kind=kind, target_json=target_json
        ),
        SessionAnswer,
    )
    return show.session_detail(await desk.session(session_id))


HANDLERS: Final = (
    fork_session,
    compact_session,
    review_session,
    revert_session,
    archive_session,
    unarchive_session,
)
