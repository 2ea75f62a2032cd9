"""Sub-agents: threads that a session's turn spawned. What they say and ask is their parent's to show, and moves nothing
of the parent's.

Measured on 0.163 and 0.171: a child's turns, items and requests reach whoever is subscribed to its parent, without a
`thread/started` of its own; the parent's tool call names it only when it completes. What the child says before that is
kept, bounded, and never given to a wrong parent (EVENT-11, EVENT-12, REQ-12).
"""

from typing import Final

from state.records import ThreadId
from termald.core import log
from termald.core.inputs import (
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    ThreadNotice,
    ToldVerbatim,
    TurnUsage,
)
from termald.core.model import Route, Session
from termald.core.work import Work

CHILDREN_MAX: Final = 1_024
"""Children remembered over all sessions; the oldest is forgotten first. A turn was seen to spawn a handful."""


def learn(work: Work, session: Session, notice: ItemStarted | ItemCompleted) -> None:
    """The parent's tool call names the threads that it spawned: from here on they are the parent's."""
    attachment = session.record.attachment
    assert attachment is not None
    for child in notice.children:
        if child in work.state.routes or work.state.owner(child) is not None:
            continue
        if child not in work.state.children and len(work.state.children) >= CHILDREN_MAX:
            work.state.children.drop(next(iter(work.state.children)))
        work.state.children.put(child, Route(session=session.id, attachment=attachment))
        for kept in work.state.early.drop(child) or ():
            told(work, kept)
        work.claimed.append(child)


def was_ours(work: Work, thread: ThreadId) -> bool:
    """Whether the thread was let go here, or spawned by a session that has gone: nobody else will answer for it."""
    return thread in work.state.disposals or thread in work.state.children


def parent(work: Work, child: ThreadId) -> Session | None:
    """Return the session whose turn spawned the thread, while it is attached as it was then."""
    route = work.state.children.get(child)
    return None if route is None else work.accept(route.session, route.attachment)


def told(work: Work, notice: ThreadNotice) -> bool:
    """Show what a child says in its parent's stream; return whether it is a child's at all."""
    session = parent(work, notice.thread)
    if session is None:
        return False
    child = notice.thread
    match notice:
        case ItemStarted():
            log.item_started(work, session, notice.turn, notice.item, notice.item_json, child=child)
            learn(work, session, notice)
        case ItemCompleted():
            log.item_completed(work, session, notice.turn, notice.item, notice.item_json, child=child)
            learn(work, session, notice)
        case ItemDelta():
            log.item_delta(
                work, session, notice.turn, notice.item, channel=notice.channel, delta=notice.delta, child=child
            )
        case TurnUsage():
            log.usage(work, session, notice.turn, notice.last, notice.total, child=child)
        case ToldVerbatim():
            # A child's turn is no turn of the session's: its beginning and end pass in Codex's own words, and end
            # nothing here.
            log.raw(work, session, notice.method, notice.raw_json, notice.turn)
        case _:
            pass
    return True
