"""Prompts of a session: accepted, looked at, taken back."""

from typing import Final

from litestar import delete, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from state.records import PromptId, PromptRecord, SessionId
from state.views import PromptCursor
from termald.api import bodies
from termald.api.commands import Desk, HttpRequest, idempotency
from termald.api.cursors import read_cursor, write_cursor
from termald.api.images import check_images
from termald.api.parameters import LIMIT_DEFAULT, CursorText, IdempotencyKey, Limit, PromptPath, SessionPath
from termald.api.problems import ProblemError, documented
from termald.api.views import sessions as show
from termald.api.views.shared import Page
from termald.core.effects import PromptAnswer, QueueAnswer
from termald.core.inputs import ReorderPrompts, SubmitPrompt, TakeBackPrompt

PREFIX: Final = "/api/sessions/{session_id:str}/prompts"


@post(
    PREFIX,
    status_code=202,
    responses=documented(
        "malformed-body",
        "unsupported-media-type",
        "invalid-request",
        "input-too-large",
        "idempotency-mismatch",
        "unknown-session",
        "session-closed",
        "foreign-home",
        "active-elsewhere",
        "session-busy",
        "queue-full",
        "starting",
        "no-answer-yet",
    ),
)
async def submit_prompt(
    request: HttpRequest,
    desk: NamedDependency[Desk],
    session_id: SessionPath,
    data: JSONBody[bodies.SubmitPrompt],
    key: IdempotencyKey = None,
) -> show.PromptEnvelope:
    """Accept a prompt: 202 once it is on the disk. What becomes of it comes as events.

    `mode`: `queue` (default) runs it in its turn; `reject` refuses it while the session is busy.
    """
    once = await idempotency(request, key)
    prompt = bodies.new_prompt(data)
    wrong = await check_images(desk, data.input)
    if not await desk.answered_before(once):
        if wrong is not None:
            raise wrong
        await _refuse_if_busy_elsewhere(desk, session_id)
    answer = await desk.ask(
        lambda ticket, at_ms: SubmitPrompt(
            ticket=ticket, at_ms=at_ms, session=SessionId(session_id), prompt=prompt, idempotency=once
        ),
        PromptAnswer,
    )
    return show.PromptEnvelope(prompt=show.prompt(answer.prompt))


@post(
    f"{PREFIX}/reorder",
    status_code=200,
    responses=documented(
        "malformed-body",
        "unsupported-media-type",
        "invalid-request",
        "unknown-session",
        "prompt-sent",
        "starting",
        "no-answer-yet",
    ),
)
async def reorder_prompts(
    desk: NamedDependency[Desk], session_id: SessionPath, data: JSONBody[bodies.ReorderPrompts]
) -> show.Queue:
    """Let these queued prompts run first, in this order; the others follow in theirs. 409 if one of them was sent or
    has ended, and then nothing is changed."""
    order = bodies.order(data)
    answer = await desk.ask(
        lambda ticket, at_ms: ReorderPrompts(ticket=ticket, at_ms=at_ms, session=SessionId(session_id), prompts=order),
        QueueAnswer,
    )
    return show.Queue(data=[show.prompt(one) for one in answer.prompts])


@get(PREFIX, responses=documented("invalid-request", "unknown-session"))
async def list_prompts(
    desk: NamedDependency[Desk], session_id: SessionPath, cursor: CursorText = None, limit: Limit = LIMIT_DEFAULT
) -> Page[show.Prompt]:
    """Return a session's prompts in the order of their acceptance."""
    after = read_cursor(cursor, PromptCursor, "prompts", session_id)
    await desk.session(session_id)
    page = await desk.engine.store.prompts(SessionId(session_id), after=after, limit=limit)
    return Page(
        data=[show.prompt(record) for record in page.rows],
        next_cursor=write_cursor(page.next, "prompts", session_id),
    )


@get(f"{PREFIX}/{{prompt_id:str}}", responses=documented("unknown-session", "unknown-prompt"))
async def get_prompt(desk: NamedDependency[Desk], session_id: SessionPath, prompt_id: PromptPath) -> show.Prompt:
    """Return a prompt."""
    return show.prompt(await _found(desk, session_id, prompt_id))


@delete(
    f"{PREFIX}/{{prompt_id:str}}",
    status_code=200,
    responses=documented("unknown-session", "unknown-prompt", "prompt-sent", "starting", "no-answer-yet"),
)
async def take_back_prompt(
    desk: NamedDependency[Desk], session_id: SessionPath, prompt_id: PromptPath
) -> show.PromptEnvelope:
    """Take a queued prompt back. 409 once it was sent, or has ended."""
    record = await _found(desk, session_id, prompt_id)
    answer = await desk.ask(
        lambda ticket, at_ms: TakeBackPrompt(ticket=ticket, at_ms=at_ms, session=record.session_id, prompt=record.id),
        PromptAnswer,
    )
    return show.PromptEnvelope(prompt=show.prompt(answer.prompt))


async def _refuse_if_busy_elsewhere(desk: Desk, session_id: str) -> None:
    """Say at once what Codex would say later: one process at a time writes a thread. Where it cannot be known, or comes
    to be meanwhile, Codex refuses the resume and the prompt is held.

    Errors: `active-elsewhere`.
    """
    view = await desk.engine.store.session(SessionId(session_id))
    if view is None or view.record.thread_id is None or view.record.attachment is not None:
        return
    pid = (await desk.engine.writers_elsewhere()).get(view.record.thread_id)
    if pid is not None:
        process = f"process {pid}" if pid else "another process"
        detail = f"{process} is writing thread {view.record.thread_id}; end it there, then prompt again"
        raise ProblemError("active-elsewhere", detail)


async def _found(desk: Desk, session_id: str, prompt_id: str) -> PromptRecord:
    """Return a prompt of this session. The core knows prompts that have not ended; whether one ever was, the store."""
    await desk.session(session_id)
    record = await desk.engine.store.prompt(PromptId(prompt_id))
    if record is None or record.session_id != session_id:
        raise ProblemError("unknown-prompt", f"no prompt {prompt_id!r} in session {session_id!r}")
    return record


HANDLERS: Final = (submit_prompt, reorder_prompts, list_prompts, get_prompt, take_back_prompt)
