"""Interrupts: an intention that is kept until there is an active turn to end, and until it has ended.

`none → wanted → sent → acked | unconfirmed`. Competing: the turn's own end, the interrupt's answer, its deadline, the
loss of the link. Only the turn's own end, told or read, is the end; until then no new turn starts on the thread.
"""

from msgspec.structs import replace

from termald.core import log, looks
from termald.core.calls import Failure, close_call, open_call
from termald.core.effects import Interrupt
from termald.core.model import Call, Session
from termald.core.work import Work


def want(work: Work, session: Session) -> None:
    """Want the active turn ended: written at once if it was seen active, kept until then if not.

    Upstream: an interrupt sent before the turn is active is refused with "no active turn" and the turn runs on; sent on
    `turn/started` it landed 20 times of 20. Hence kept, and sent when it is (STOP-02, STOP-03).
    """
    active = session.turn
    if active is None or active.interrupt not in ("none", "wanted"):
        return
    record = replace(active.record, interrupt_wanted=True)
    work.state.turns.put((session.id, record.id), record)
    session = work.put(replace(session, turn=replace(active, record=record, interrupt="wanted")))
    work.promise()
    if active.seen_active:
        send(work, session)


def send(work: Work, session: Session) -> None:
    """Write the interrupt of a turn that was seen active. Without a link it stays wanted and goes with the next
    attach."""
    active, attachment, thread = session.turn, session.record.attachment, session.record.thread_id
    assert active is not None
    assert thread is not None
    if work.state.link.value is None or attachment is None or not work.bound(session):
        return
    work.put(replace(session, turn=replace(active, interrupt="sent")))
    open_call(
        work,
        "interrupt",
        Interrupt(attachment=attachment, thread=thread, turn=active.id),
        deadline_ms=work.state.limits.ack_ms,
        session=session.id,
        attachment=attachment,
        turn=active.id,
        thread=thread,
    )


def answered(work: Work, call: Call, failure: Failure | None) -> None:
    """The interrupt was answered, or was not. Only the turn's own end is the end: until then it is looked for (STOP-06,
    STOP-07, STOP-08)."""
    close_call(work, call)
    session = work.accept(call.session, call.attachment)
    if session is None or session.turn is None or session.turn.id != call.turn:
        return
    active = session.turn
    if failure is None:
        session = work.put(replace(session, turn=replace(active, interrupt="acked")))
    else:
        active = replace(active, interrupt="unconfirmed", runs_instead=failure.active_turn)
        session = work.put(replace(session, turn=active))
        if failure.refusal not in ("no_active_turn", "turn_mismatch"):
            log.notice(work, session, "turn-unconfirmed", f"the interrupt is unconfirmed: {failure.why.message}")
    looks.at_turn(work, session)
