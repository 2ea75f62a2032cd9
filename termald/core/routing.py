"""Where a notice belongs: by its thread, to the session that holds it now; never by its turn (EVENT-02).

A notice of a thread that nobody holds, while a setup is open whose thread is not known yet, may be that thread's: it is
kept, bounded, and applied in order once the thread is bound. A tag of ours in `thread/started` is a hint, remembered
with the intent; it never binds.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from state.records import ThreadId
from termald.core import children, discovery, disposal, items, log, looks, recovery, requests, turns
from termald.core.inputs import (
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    RawNotice,
    RequestResolved,
    ThreadGone,
    ThreadNotice,
    ThreadRenamed,
    ThreadStarted,
    ThreadStatusChanged,
    ThreadUnarchived,
    TurnCompleted,
    TurnErrored,
    TurnNews,
    TurnStarted,
    TurnUsage,
)
from termald.core.model import Session, with_record
from termald.core.work import Work


def notice(work: Work, notice: ThreadNotice) -> None:
    """Apply a notice to the session that holds its thread."""
    if isinstance(notice, ThreadStarted):
        _hint(work, notice)
        return
    session = work.route(notice.thread)
    if session is None:
        _unrouted(work, notice)
    elif session.setup is not None and not isinstance(notice, RequestResolved):
        # The thread is being resumed: what it says before the answer is kept in order, and applied after the binding
        # (SETUP-28).
        _keep(work, notice)
    else:
        HANDLERS[type(notice)](work, session, notice)


def replay_early(work: Work, thread: ThreadId) -> None:
    """Apply what came before the thread was bound, in order."""
    for kept in work.state.early.drop(thread) or ():
        notice(work, kept)


def raw(work: Work, notice: RawNotice) -> None:
    """Pass on what has no input of its own, under its thread's session if it has one."""
    if notice.limits:
        work.state.account_limits.value = notice.limits
    session = work.route(notice.thread) if notice.thread is not None else None
    log.raw(work, session, notice.method, notice.params_json, notice.turn)


def _hint(work: Work, started: ThreadStarted) -> None:
    intent = work.state.intents.get(started.tag) if started.tag is not None else None
    if intent is None:
        return
    owner = work.state.owner(started.thread)
    if intent.state == "open":
        if owner not in (None, intent.session_id):
            return  # claimed before it was told of: nobody else's to let go
        work.state.intents.put(intent.tag, replace(intent, thread_id=started.thread))
    elif intent.state in ("ignored", "discarded") and owner is None:
        # Minted for a setup that was given up: its only sign may be this notice (SETUP-04).
        work.state.intents.put(intent.tag, replace(intent, state="ignored", thread_id=started.thread))
        disposal.let_go(
            work, started.thread, intent.reason or "minted for a setup that was given up", intent.session_id
        )


def _unrouted(work: Work, notice: ThreadNotice) -> None:
    if isinstance(notice, TurnStarted):
        disposal.turn_known(work, notice.thread, notice.turn)
    if isinstance(notice, RequestResolved):
        session = children.parent(work, notice.thread)
        if session is not None:
            requests.resolved(work, session, notice)
        else:
            requests.resolved_elsewhere(work, notice)
        return
    if children.told(work, notice) or discovery.told(work, notice) or notice.thread in work.state.disposals:
        return
    # Codex tells every connection of every thread's status; that alone is no news of ours. The rest reaches subscribers
    # only: it is of a thread that is being opened, or of a sub-agent whose parent's tool call has not named it yet.
    if work.state.setups_open.value or not isinstance(notice, ThreadStatusChanged):
        _keep(work, notice)


def _keep(work: Work, notice: ThreadNotice) -> None:
    state = work.state
    kept = state.early.get(notice.thread)
    if kept is None:
        if len(state.early) >= state.limits.early_threads_max:
            # The oldest is the least likely to be asked for any more.
            state.late_frames.value += len(state.early.drop(next(iter(state.early))) or ())
        kept = ()
    if len(kept) >= state.limits.early_notices_max:
        state.late_frames.value += 1
        return
    state.early.put(notice.thread, (*kept, notice))


def _status(work: Work, session: Session, notice: ThreadStatusChanged) -> None:
    # A status ends nothing and begins nothing (EVENT-10). Where a turn should have ended with it, its record is read
    # after a while.
    if notice.status == "active":
        return
    if session.turn is not None and session.turn.seen_active:
        looks.at_turn(work, session)
    elif notice.status == "notLoaded":
        _unloaded(work, session)


def _gone(work: Work, session: Session, notice: ThreadGone) -> None:
    if session.turn is not None:
        message = f"Codex {notice.how} the thread"
        session = turns.finish(work, session, "cancelled", message=message, reconciled=True)
    session = requests.expire_all(work, session, f"the thread was {notice.how}")
    if notice.how != "archived":
        _unloaded(work, session)
    else:
        discovery.change(work, session, archived=True)
        log.notice(work, session, "thread-archived", "the thread was archived")
    work.move_on(session.id)


def _unarchived(work: Work, session: Session, notice: ThreadUnarchived) -> None:
    discovery.change(work, session, archived=False)


def _unloaded(work: Work, session: Session) -> None:
    # What is written and not answered is answered under this attachment, in whatever way; and what became of a turn
    # that is known can be asked under it only.
    waits = session.outgoing is not None or session.steering or session.turn is not None or session.setup is not None
    # A revert unloads the thread and loads it again, with its subscribers.
    waits = waits or (session.operation is not None and session.operation.kind == "revert")
    if not waits and work.bound(session):
        turns.unbind(work, session)
        work.move_on(session.id)


def _renamed(work: Work, session: Session, notice: ThreadRenamed) -> None:
    if notice.name and notice.name != session.record.title:
        session = work.put(with_record(session, title=notice.name))
        log.session(work, session, "updated", title=notice.name)


HANDLERS: Final[dict[type[ThreadNotice], Callable[[Work, Session, Any], None]]] = {
    ThreadStatusChanged: _status,
    ThreadGone: _gone,
    ThreadUnarchived: _unarchived,
    ThreadRenamed: _renamed,
    TurnStarted: turns.started,
    TurnCompleted: recovery.turn_completed,
    TurnErrored: turns.errored,
    TurnUsage: turns.used,
    TurnNews: turns.news,
    ItemStarted: items.started,
    ItemDelta: items.delta,
    ItemCompleted: items.completed,
    RequestResolved: requests.resolved,
}
