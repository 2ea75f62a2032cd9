"""Letting idle threads go: Codex can unload only what nobody is subscribed to.

A session that was idle for a while is detached, and past a cap the one that was idle for longest. The next prompt
attaches it anew; nobody notices but the memory. Competing: a prompt in the same instant, a newer attachment; both win
(STOP-18).
"""

from termald.core import ending
from termald.core.inputs import IdleUnload
from termald.core.model import Session
from termald.core.work import Work


def watch(work: Work, session: Session) -> None:
    """The session has nothing to do: from now on its time runs. Past the cap the longest idle one goes at once."""
    attachment = session.record.attachment
    if attachment is None or session.busy:
        return
    limits = work.state.limits
    timer = IdleUnload(at_ms=0, session=session.id, attachment=attachment)
    work.arm(("idle", session.id), timer, limits.idle_ms)
    if len(work.state.routes) > limits.attached_max:
        _unload_oldest(work, session)


def unload(work: Work, timer: IdleUnload) -> None:
    """The time is over: detach, unless something runs or waits, or the attachment is another by now."""
    session = work.accept(timer.session, timer.attachment)
    if session is not None and _is_idle(work, session):
        ending.detach(work, session, "idle")


def _unload_oldest(work: Work, but: Session) -> None:
    idle = [one for one in work.state.sessions.values() if one.id != but.id and _is_idle(work, one)]
    if idle:
        ending.detach(work, min(idle, key=lambda one: one.record.updated_at_ms), "idle, past the cap")


def _is_idle(work: Work, session: Session) -> bool:
    quiet = not session.busy and session.reading is None and session.record.ending is None and not session.requests
    return quiet and work.bound(session)
