"""Threads that Codex knows: what each is here, which are passed over, and looking again."""

from typing import Annotated, Final

from litestar import Response, delete, get, post, put
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, QueryParameter

from state.records import IgnoredThread, ThreadClass, ThreadId
from state.views import ThreadCursor
from termald.api import bodies
from termald.api.commands import Desk
from termald.api.cursors import read_cursor, write_cursor
from termald.api.parameters import LIMIT_DEFAULT, CursorText, Limit, ThreadPath
from termald.api.problems import documented
from termald.api.strict import check
from termald.api.views import daemon as show_daemon
from termald.api.views import threads as show
from termald.api.views.shared import Page
from termald.core.effects import IgnoredAnswer
from termald.core.inputs import IgnoreThread, UnignoreThread

_BODY: Final = ("malformed-body", "unsupported-media-type", "invalid-request")

ClassFilter = Annotated[ThreadClass | None, QueryParameter(name="class", description="Only those of this class")]


@get("/api/threads", responses=documented("invalid-request"))
async def list_threads(
    desk: NamedDependency[Desk],
    class_: ClassFilter = None,
    cursor: CursorText = None,
    limit: Limit = LIMIT_DEFAULT,
) -> Page[show.Thread]:
    """Return every known thread with what it is here: owned, ignored, orphan, child or discovered."""
    sealed = ("threads", class_)
    after = read_cursor(cursor, ThreadCursor, *sealed)
    page = await desk.engine.store.threads(cls=class_, after=after, limit=limit)
    busy = await desk.engine.writers_elsewhere()
    return Page(
        data=[show.thread(record, busy_elsewhere=record.thread_id in busy) for record in page.rows],
        next_cursor=write_cursor(page.next, *sealed),
    )


@get("/api/ignored-threads", responses=documented("invalid-request"))
async def list_ignored(
    desk: NamedDependency[Desk], cursor: CursorText = None, limit: Limit = LIMIT_DEFAULT
) -> Page[show.Ignored]:
    """Return the threads that discovery never imports, each with its reason and time."""
    after = read_cursor(cursor, ThreadCursor, "ignored")
    page = await desk.engine.store.ignored(after=after, limit=limit)
    return Page(data=[show.ignored(entry) for entry in page.rows], next_cursor=write_cursor(page.next, "ignored"))


@put(
    "/api/ignored-threads/{thread_id:str}",
    responses=documented(*_BODY, "thread-owned", "starting", "no-answer-yet"),
)
async def ignore_thread(
    desk: NamedDependency[Desk], thread_id: ThreadPath, data: JSONBody[bodies.IgnoreThread]
) -> show.Ignored:
    """Ignore a thread, or give it another reason. Idempotent. 409 names the session that owns it."""
    thread = ThreadId(check(thread_id, bodies.ThreadName, "thread_id"))
    answer = await desk.ask(
        lambda ticket, at_ms: IgnoreThread(
            ticket=ticket,
            at_ms=at_ms,
            entry=IgnoredThread(thread_id=thread, reason=data.reason, at_ms=at_ms),
        ),
        IgnoredAnswer,
    )
    return show.ignored(answer.entry)


@delete(
    "/api/ignored-threads/{thread_id:str}",
    status_code=200,
    responses=documented("not-ignored", "starting", "no-answer-yet"),
)
async def unignore_thread(desk: NamedDependency[Desk], thread_id: ThreadPath) -> show.Ignored:
    """Take a thread out of the ignore set and return the entry that was there; a scan that follows looks at it anew."""
    answer = await desk.ask(
        lambda ticket, at_ms: UnignoreThread(ticket=ticket, at_ms=at_ms, thread=ThreadId(thread_id)), IgnoredAnswer
    )
    desk.engine.scan_now()  # nothing of the thread has changed in Codex: no state DB would tell
    return show.ignored(answer.entry)


@get("/api/discovery", responses=documented())
async def get_discovery(desk: NamedDependency[Desk]) -> show_daemon.Discovery:
    """Return the scan that runs, or the last one, with its counts."""
    return show_daemon.discovery(desk.engine.discovery)


@post(
    "/api/discovery/scan",
    status_code=202,
    responses={
        200: ResponseSpec(show.DryScan, description="What a scan would do", generate_examples=False),
        **documented(*_BODY),
    },
)
async def scan_now(
    desk: NamedDependency[Desk], data: JSONBody[bodies.Scan | None] = None
) -> Response[show_daemon.Discovery | show.DryScan]:
    """Look for threads now. One scan at a time: asked for while one runs, another follows it.

    With `dryRun` nothing is imported or remembered: 200 with what a scan would do, once all homes were looked through.
    """
    if data is not None and data.dry_run:
        return Response(show.dry_scan(await desk.engine.dry_scan()), status_code=200)
    desk.engine.scan_now()
    return Response(show_daemon.discovery(desk.engine.discovery), status_code=202)


HANDLERS: Final = (
    list_threads,
    list_ignored,
    ignore_thread,
    unignore_thread,
    get_discovery,
    scan_now,
)
