"""The one place that moves a session's queue on.

For the head prompt, in this order and in one step: a setup is in flight, so the prompt stays parked behind it; a thread
is bound and idle, so the turn starts; neither, so the slot is claimed and exactly one `thread/start` or `thread/resume`
goes out. The setup is looked at *before* the thread: for a resume the route stands from the claim on, and a turn
started on it would race the reply (SETUP-03, SETUP-28).
"""

from state.records import SessionId
from termald.core import ending, operations, recovery, setup, steering, turns, unloading
from termald.core.work import Work


def advance(work: Work, session_id: SessionId) -> None:
    """Move the session's queue on as far as it goes now."""
    session = work.session(session_id)
    if session is None or session.record.status == "closed":
        return
    if session.reattach and work.state.link.value is not None and session.setup is None:
        setup.claim(work, session)
        return
    if session.record.ending is not None:
        if session.reading is None and session.setup is None:
            ending.proceed(work, session)
        return
    if session.operation is not None:
        operations.proceed(work, session)
        return
    if not session.queue:
        unloading.watch(work, session)
    if not session.queue or session.record.paused or work.state.link.value is None or work.state.shutting_down.value:
        return
    session = steering.join(work, session)
    if session.setup is not None:  # before the thread is looked at: SETUP-03
        return
    if session.outgoing is not None or session.turn is not None or session.steering or session.reading is not None:
        return
    if recovery.head_uncertain(work, session):
        recovery.look(work, session)
        return
    if work.bound(session):
        turns.start(work, session)
        return
    setup.claim(work, session)
