"""Phantoms: sessions that hold nothing, neither in our record nor in Codex's, each with the evidence.

What holds a single message is never offered, and neither is what cannot be known. Between the look and the kill a
session may come alive: each is looked at again, and once more by the core when it commits (DISC-16).
"""

from collections.abc import AsyncIterator
from typing import Final

from litestar import get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody

from discovery.homes import HomeUnreadable
from state.records import SessionId
from state.views import EmptySession, SessionCursor
from termald.api import bodies
from termald.api.commands import Desk
from termald.api.cursors import read_cursor, write_cursor
from termald.api.parameters import LIMIT_DEFAULT, LIMIT_MAX, CursorText, Limit
from termald.api.problems import ProblemError, documented
from termald.api.views import phantoms as show
from termald.api.views.shared import Page
from termald.core.effects import KillAnswer
from termald.core.inputs import Emptiness, KillSession

_BODY: Final = ("malformed-body", "unsupported-media-type", "invalid-request")
Found = tuple[EmptySession, show.Phantom]


@get("/api/phantoms", responses=documented("invalid-request", "home-unreadable"))
async def list_phantoms(
    desk: NamedDependency[Desk], cursor: CursorText = None, limit: Limit = LIMIT_DEFAULT
) -> Page[show.Phantom]:
    """Return the sessions that hold nothing, newest first, each with the evidence from our record and from Codex's.

    A page may hold fewer than asked for, even none, and not be the last: what Codex has something of is left out.
    503 where Codex's home cannot be read, for then nothing is known.
    """
    after = read_cursor(cursor, SessionCursor, "phantoms")
    page = await desk.engine.store.empty_sessions(after=after, limit=limit)
    found = await _with_evidence(desk, page.rows)
    return Page(data=[phantom for _, phantom in found], next_cursor=write_cursor(page.next, "phantoms"))


@post(
    "/api/phantoms/kill",
    status_code=200,
    responses=documented(*_BODY, "home-unreadable", "starting", "no-answer-yet"),
)
async def kill_phantoms(
    desk: NamedDependency[Desk], data: JSONBody[bodies.KillPhantoms | None] = None
) -> show.PhantomsKilled:
    """Kill those of the named sessions, or of all, that hold nothing; their threads are ignored.

    The evidence is gathered anew, and checked once more when the kill is committed: what came alive is spared.
    """
    wanted = data or bodies.KillPhantoms()
    named = None if wanted.ids is None else dict.fromkeys(map(SessionId, wanted.ids))
    found = {
        session.record.id: session async for session, _ in _all(desk) if named is None or session.record.id in named
    }
    spared = [
        show.Spared(session_id=name, reason="it holds something, or there is no such session")
        for name in named or ()
        if name not in found
    ]
    killed = []
    for session in found.values():
        why = None if wanted.dry_run else await _kill(desk, session)
        if why is None:
            killed.append(session.record.id)
        else:
            spared.append(show.Spared(session_id=session.record.id, reason=why))
    return show.PhantomsKilled(dry_run=wanted.dry_run, killed=list(killed), spared=spared)


async def _kill(desk: Desk, session: EmptySession) -> str | None:
    """Kill it if it is still as it was seen; return why not."""
    only_if = Emptiness(thread=session.record.thread_id, prompts=session.undelivered)
    try:
        await desk.ask(
            lambda ticket, at_ms: KillSession(ticket=ticket, at_ms=at_ms, session=session.record.id, only_if=only_if),
            KillAnswer,
        )
    except ProblemError as error:
        if error.slug in ("not-a-phantom", "unknown-session"):
            return error.detail
        raise
    return None


async def _all(desk: Desk) -> AsyncIterator[Found]:
    after: SessionCursor | None = None
    while True:
        page = await desk.engine.store.empty_sessions(after=after, limit=LIMIT_MAX)
        for found in await _with_evidence(desk, page.rows):
            yield found
        if page.next is None:
            return
        after = page.next


async def _with_evidence(desk: Desk, rows: tuple[EmptySession, ...]) -> list[Found]:
    """Return those of which Codex has nothing either. Errors: `home-unreadable`."""
    threads = [row.record.thread_id for row in rows if row.record.thread_id is not None]
    try:
        held = await desk.engine.look_up(threads)
    except HomeUnreadable as error:
        raise ProblemError("home-unreadable", str(error)) from error
    shown = [(row, show.phantom(row, held[row.record.thread_id] if row.record.thread_id else None)) for row in rows]
    return [(row, phantom) for row, phantom in shown if phantom is not None]


HANDLERS: Final = (list_phantoms, kill_phantoms)
