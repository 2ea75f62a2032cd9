"""Sessions: made, listed, changed, and brought to an end."""

import hashlib
from pathlib import Path
from typing import Annotated, Final

import msgspec
from litestar import Response, get, patch, post
from litestar.datastructures import ResponseHeader
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, QueryParameter

from state.records import Origin, SessionId, SessionStatus, ThreadId
from state.views import SessionCursor, SessionFilter
from termald.api import bodies
from termald.api.commands import Desk, HttpRequest, idempotency
from termald.api.cursors import read_cursor, write_cursor
from termald.api.images import check_images
from termald.api.parameters import LIMIT_DEFAULT, CursorText, IdempotencyKey, IfNoneMatch, Limit, SessionPath
from termald.api.problems import FieldError, ProblemError, documented
from termald.api.views import sessions as show
from termald.api.views.shared import Page
from termald.core.effects import InterruptAnswer, KillAnswer, SessionAnswer
from termald.core.inputs import (
    CloseSession,
    CreateSession,
    InterruptSession,
    KillSession,
    PatchSession,
    RetrySession,
    StopSession,
)

PREFIX: Final = "/api/sessions"
_BODY: Final = ("malformed-body", "unsupported-media-type", "invalid-request")
_COMMAND: Final = ("unknown-session", "starting", "no-answer-yet")

StatusFilter = Annotated[SessionStatus | None, QueryParameter(name="status", description="Only those in this status")]
OriginFilter = Annotated[Origin | None, QueryParameter(name="origin", description="Only those that came about so")]
CwdFilter = Annotated[str | None, QueryParameter(name="cwd", description="Only those in exactly this folder")]


@post(
    PREFIX,
    response_headers=[ResponseHeader("Location", documentation_only=True, description="The session's address")],
    responses=documented(
        *_BODY,
        "cwd-missing",
        "input-too-large",
        "idempotency-mismatch",
        "session-exists",
        "thread-owned",
        "starting",
        "no-answer-yet",
    ),
)
async def create_session(
    request: HttpRequest, desk: NamedDependency[Desk], data: JSONBody[bodies.CreateSession], key: IdempotencyKey = None
) -> Response[show.CreatedSession]:
    """Make a session, with its first prompt if there is one: all or nothing.

    Nothing is asked of Codex before there is a prompt. With `resumeCursor` the session takes over a thread, which then
    belongs to it alone. The `id` may be chosen, and is never used again.
    """
    once = await idempotency(request, key)
    missing = await _folder_missing(desk, data.cwd) or await _images_missing(desk, data)
    # What was answered once is answered again, also when its folder has gone since.
    if missing is not None and not await desk.answered_before(once):
        raise missing
    session, settings = bodies.new_session_id(data), bodies.session_settings(data)
    thread = None if data.resume_cursor is None else ThreadId(data.resume_cursor.thread_id)
    prompt = bodies.first_prompt(data)
    answer = await desk.ask(
        lambda ticket, at_ms: CreateSession(
            ticket=ticket,
            at_ms=at_ms,
            session=session,
            settings=settings,
            thread=thread,
            prompt=prompt,
            idempotency=once,
        ),
        SessionAnswer,
    )
    view = show.created_session(answer.session, answer.prompt)
    return Response(view, headers={"Location": f"{PREFIX}/{view.id}"})


async def _folder_missing(desk: Desk, cwd: str) -> ProblemError | None:
    """Codex does not refuse a folder that is not there (measured on 0.163 and 0.171); so it is refused here."""
    path = Path(cwd)
    try:
        is_folder = path.is_absolute() and await desk.engine.is_folder(path)
        reason = None if is_folder else "is not the absolute path of a folder"
    except OSError as error:
        reason = f"cannot be looked at: {error.strerror}"
    if reason is None:
        return None
    wrong = FieldError(pointer="#/cwd", detail=f"cwd: {cwd!r} {reason}")
    return ProblemError("cwd-missing", wrong.detail, errors=[wrong])


async def _images_missing(desk: Desk, data: bodies.CreateSession) -> ProblemError | None:
    if isinstance(data.prompt, bodies.SubmitPrompt):
        return await check_images(desk, data.prompt.input, "#/prompt")
    return None if data.prompt is None else await check_images(desk, data.prompt, "#/prompt")


@get(PREFIX, responses=documented("invalid-request"))
async def list_sessions(
    desk: NamedDependency[Desk],
    *,
    status: StatusFilter = None,
    origin: OriginFilter = None,
    cwd: CwdFilter = None,
    cursor: CursorText = None,
    limit: Limit = LIMIT_DEFAULT,
) -> Page[show.Session]:
    """Return sessions, newest first."""
    sealed = ("sessions", status, origin, cwd)
    after = read_cursor(cursor, SessionCursor, *sealed)
    wanted = SessionFilter(status=status, origin=origin, cwd=cwd)
    page = await desk.engine.store.list_sessions(wanted, after=after, limit=limit)
    return Page(data=[show.session(view) for view in page.rows], next_cursor=write_cursor(page.next, *sealed))


@get(
    f"{PREFIX}/{{session_id:str}}",
    response_headers=[ResponseHeader("ETag", documentation_only=True, description="Changes with the session")],
    responses={304: ResponseSpec(None, description="Not changed since that ETag"), **documented("unknown-session")},
)
async def get_session(
    desk: NamedDependency[Desk], session_id: SessionPath, known: IfNoneMatch = None
) -> Response[show.SessionDetail]:
    """Return a session in full, with an `ETag`; with `If-None-Match`, 304 while nothing of it has changed."""
    view = show.session_detail(await desk.session(session_id))
    tag = f'"{hashlib.sha256(msgspec.json.encode(view)).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if known is not None and {"*", tag} & {each.strip().removeprefix("W/") for each in known.split(",")}:
        return Response(None, status_code=304, headers=headers)  # type: ignore[arg-type]  # 304 has no body
    return Response(view, headers=headers)


@patch(f"{PREFIX}/{{session_id:str}}", responses=documented(*_BODY, *_COMMAND))
async def patch_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.PatchSession]
) -> show.SessionDetail:
    """Change settings. They take effect at the next turn; `modelProvider` and `developerInstructions` at the next
    attach."""
    changes = bodies.session_changes(data)
    if changes:
        await desk.ask(
            lambda ticket, at_ms: PatchSession(
                ticket=ticket, at_ms=at_ms, session=SessionId(session_id), changes=changes
            ),
            SessionAnswer,
        )
    return show.session_detail(await desk.session(session_id))


@post(
    f"{PREFIX}/{{session_id:str}}/interrupt",
    status_code=202,
    responses={
        200: ResponseSpec(show.Interrupted, description="There was nothing to interrupt", generate_examples=False),
        **documented(*_BODY, *_COMMAND),
    },
)
async def interrupt_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.Nothing | None] = None
) -> Response[show.Interrupted]:
    """End the running turn, or cancel the prompt that was about to run: 202, and its end comes as an event.

    200 with `interrupted: false` where there was nothing to interrupt. Queued prompts go on.
    """
    answer = await desk.ask(
        lambda ticket, at_ms: InterruptSession(ticket=ticket, at_ms=at_ms, session=SessionId(session_id)),
        InterruptAnswer,
    )
    return Response(show.Interrupted(interrupted=answer.interrupted), status_code=202 if answer.interrupted else 200)


@post(f"{PREFIX}/{{session_id:str}}/stop", status_code=200, responses=documented(*_BODY, *_COMMAND, "killed"))
async def stop_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.Nothing | None] = None
) -> show.SessionDetail:
    """Interrupt, end the tool processes, detach. Answers when the session is detached, or after a deadline.

    Queued prompts stay; they go first when the next prompt attaches the session anew.
    """
    await desk.ask(
        lambda ticket, at_ms: StopSession(ticket=ticket, at_ms=at_ms, session=SessionId(session_id)), SessionAnswer
    )
    return show.session_detail(await desk.session(session_id))


@post(f"{PREFIX}/{{session_id:str}}/close", status_code=200, responses=documented(*_BODY, *_COMMAND, "killed"))
async def close_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.Nothing | None] = None
) -> show.SessionDetail:
    """As stop, for good: queued prompts are cancelled, later ones refused. Its `resumeCursor` goes on elsewhere."""
    await desk.ask(
        lambda ticket, at_ms: CloseSession(ticket=ticket, at_ms=at_ms, session=SessionId(session_id)), SessionAnswer
    )
    return show.session_detail(await desk.session(session_id))


@post(f"{PREFIX}/{{session_id:str}}/kill", status_code=200, responses=documented(*_BODY, *_COMMAND))
async def kill_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.KillSession | None] = None
) -> show.Killed:
    """Remove the session and ignore its thread, whatever Codex says to it. Idempotent; works on ghosts.

    `thread`: what becomes of the thread in Codex besides (`ignore` leaves it). `dryRun` only tells.
    """
    wanted = data or bodies.KillSession()
    answer = await desk.ask(
        lambda ticket, at_ms: KillSession(
            ticket=ticket,
            at_ms=at_ms,
            session=SessionId(session_id),
            wanted=wanted.thread or "ignore",
            dry_run=wanted.dry_run,
        ),
        KillAnswer,
    )
    return show.killed(answer)


@post(f"{PREFIX}/{{session_id:str}}/retry", status_code=200, responses=documented(*_BODY, *_COMMAND, "not-lost"))
async def retry_session(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.RetrySession | None] = None
) -> show.SessionDetail:
    """Let held prompts go on; with `fresh`, give up a lost thread for a new one."""
    fresh = data is not None and data.fresh
    await desk.ask(
        lambda ticket, at_ms: RetrySession(ticket=ticket, at_ms=at_ms, session=SessionId(session_id), fresh=fresh),
        SessionAnswer,
    )
    return show.session_detail(await desk.session(session_id))


HANDLERS: Final = (
    create_session,
    list_sessions,
    get_session,
    patch_session,
    interrupt_session,
    stop_session,
    close_session,
    kill_session,
    retry_session,
)
