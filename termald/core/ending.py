"""Interrupt, stop, close, kill: how a turn and a session are brought to an end.

Interrupt is an intention: kept until the turn is known and active, then sent; before any turn is written it cancels the
head prompt. Stop interrupts, waits (bounded) for the end, ends the tool processes, and only then detaches and
unsubscribes: once unsubscribed, a tool's end is not told. Close is the same for good. Kill commits first and asks
afterwards: the session is gone and its thread ignored, whatever Codex says.

Competing: the turn's own end and the deadline. While a session is ending its attachment stays current, so that what its
turn still says is its own.
"""

from typing import Literal

from msgspec.structs import replace

from state.records import DisposalRecord, ThreadId
from termald.core import disposal, interrupts, log, operations, prompts, requests, setup, turns
from termald.core.calls import Failure, close_call, open_call
from termald.core.effects import EndTools, InterruptAnswer, KillAnswer, SessionAnswer, Unsubscribe
from termald.core.inputs import (
    CallId,
    CloseSession,
    DisposalDeadline,
    Emptiness,
    EndingDeadline,
    InterruptSession,
    KillSession,
    StopSession,
)
from termald.core.model import Call, Session, with_record
from termald.core.refusals import problem
from termald.core.work import Work


def interrupt(work: Work, command: InterruptSession) -> None:
    """End the running turn, or keep the intention until there is one to end."""
    session = work.session(command.session)
    if session is None:
        work.refuse(command.ticket, "unknown-session", f"no session {command.session!r}")
        return
    interrupted = interrupt_now(work, session)
    work.answer(command.ticket, InterruptAnswer(interrupted=interrupted))


def interrupt_now(work: Work, session: Session) -> bool:
    """Interrupt what runs or is about to; return whether there was anything."""
    if session.outgoing is not None:
        work.put_prompt(replace(work.prompt(session.outgoing.prompt), interrupt_wanted=True))
        session = work.put(replace(session, outgoing=replace(session.outgoing, interrupt=True)))
        work.promise()
    if session.turn is not None:
        interrupts.want(work, session)
        return True
    if session.outgoing is not None:
        return True
    if not session.queue or work.prompt(session.queue[0]).delivery != "queued":
        return False
    head, *rest = session.queue
    prompts.end(work, session, head, "cancelled", problem("interrupted", "interrupted before it ran"))
    work.put(replace(session, queue=tuple(rest)))
    work.promise()
    return True


# --- stop and close ---


def stop(work: Work, command: StopSession | CloseSession) -> None:
    """Begin to end the session; the caller is answered when it is detached."""
    session = work.session(command.session)
    if session is None:
        work.refuse(command.ticket, "unknown-session", f"no session {command.session!r}")
        return
    if session.record.status == "closed":
        work.answer(command.ticket, SessionAnswer(session=session.record))
        return
    closing = isinstance(command, CloseSession) or session.record.ending == "close"
    first = session.record.ending is None
    # Queued prompts do not run by themselves after a stop: they wait for the next prompt, and go first (STOP-09).
    session = with_record(session, ending="close" if closing else "stop", paused=True)
    session = work.put(replace(session, waiting=(*session.waiting, command.ticket)))
    if closing:
        session = _end_certain(work, session)
    session = operations.give_up(work, session, "stopped", "the session was stopped")
    if session.turn is None:
        # A turn is reached only over an attachment: one that is being made anew (after a crash of ours, or a lost link)
        # is still needed.
        session = setup.abandon(work, work.put(replace(session, reattach=False)))
    if first and session.record.attachment is not None:
        timer = EndingDeadline(at_ms=0, session=session.id, attachment=session.record.attachment)
        work.arm(("ending", session.id), timer, work.state.limits.ending_ms)
    work.promise()
    work.move_on(session.id)


def _end_certain(work: Work, session: Session) -> Session:
    why = problem("closed", "the session was closed")
    for prompt in session.queue:
        uncertain = work.prompt(prompt).delivery != "queued"
        unknown = problem("turn-unconfirmed", "the session was closed before it was known whether Codex has the prompt")
        prompts.end(work, session, prompt, "failed" if uncertain else "cancelled", unknown if uncertain else why)
    return work.put(replace(session, queue=()))


def proceed(work: Work, session: Session) -> None:
    """Take the next step of an ending that was begun: the turn, the tools, the detach."""
    if session.outgoing is not None or session.turn is not None:
        interrupt_now(work, session)
        return
    if session.steering:
        return  # its answer comes under this attachment, or the deadline
    attachment, thread = session.record.attachment, session.record.thread_id
    if attachment is None or thread is None or not work.bound(session) or work.state.link.value is None:
        detach(work, session, "stopped")
        return
    if session.tools is None:
        call = open_call(
            work,
            "end_tools",
            EndTools(attachment=attachment, thread=thread),
            deadline_ms=work.state.limits.ack_ms,
            session=session.id,
            attachment=attachment,
            thread=thread,
        )
        work.put(replace(session, tools=call))


def tools_over(work: Work, call: Call, failure: Failure | None) -> None:
    """The tool processes were ended, or Codex has no way to: leave the thread in both cases."""
    close_call(work, call)
    session = work.accept(call.session, call.attachment)
    if session is None or session.tools != call.id:
        return
    if failure is not None:
        log.notice(work, session, failure.why.slug, f"the tool processes may run on: {failure.why.message}")
    if session.turn is not None or session.outgoing is not None:
        # Somebody else began a turn on the thread meanwhile; it ends first, and its tools with it.
        proceed(work, work.put(replace(session, tools=None)))
    else:
        detach(work, session, "stopped")


def deadline(work: Work, timer: EndingDeadline) -> None:
    """The turn did not end in time: say so, and go. What it becomes is seen at the next attach."""
    session = work.accept(timer.session, timer.attachment)
    if session is None or session.record.ending is None:
        return
    session = setup.abandon(work, prompts.take_back_unanswered(work, session))
    if session.turn is not None:
        # It may yet become active; then it is to end, though nobody waits for it any more (STOP-10).
        disposal.end_turn(work, session.turn.record.thread_id, session.turn.id)
        message = "the interrupt was not confirmed in time"
        session = turns.finish(work, session, "cancelled", message=message, reconciled=True)
    detach(work, session, "stopped, unconfirmed")


def detach(work: Work, session: Session, reason: str) -> None:
    """Leave the thread and let go of the attachment; an ending is over with it, and its callers are answered."""
    attachment, thread, ending = session.record.attachment, session.record.thread_id, session.record.ending
    session = requests.expire_all(work, session, reason)
    if thread is not None and attachment is not None and work.bound(session):
        if work.state.link.value is not None:
            open_call(
                work,
                "unsubscribe",
                Unsubscribe(attachment=attachment, thread=thread),
                deadline_ms=work.state.limits.ack_ms,
                thread=thread,
            )
        work.state.routes.drop(thread)
    if ending == "close":
        session = _end_certain(work, session)
    status: Literal["closed", "detached"] = "closed" if ending == "close" else "detached"
    session = with_record(session, attachment=None, status=status, ending=None, waiting_on=None)
    if ending is not None:
        session = setup.no_longer_for_the_account(session)
    waiting = session.waiting
    session = work.put(replace(session, waiting=(), tools=None, reattach=False, looks=0, misses=0))
    work.disarm("ending", session.id)
    work.disarm("prompt", session.id)
    log.session(work, session, status, reason=reason)
    for ticket in waiting:
        work.answer(ticket, SessionAnswer(session=session.record))
    work.move_on(session.id)


# --- kill ---


def kill(work: Work, command: KillSession) -> None:
    """Remove the session and ignore its thread: committed before Codex hears a word. A second kill is a success."""
    found = work.state.sessions.get(command.session)
    if found is None:
        work.refuse(command.ticket, "unknown-session", f"no session {command.session!r}")
        return
    thread = found.record.thread_id
    if found.record.killed_at_ms is not None or command.dry_run:
        answer = KillAnswer(
            killed=not command.dry_run,
            session=found.id,
            thread=thread,
            ignored=thread is not None,
            upstream_json=None,
            dry_run=command.dry_run,
        )
        work.answer(command.ticket, answer)
        return
    if command.only_if is not None and not _is_empty(found, command.only_if):
        work.refuse(command.ticket, "not-a-phantom", f"session {found.id!r} came alive since it was looked at")
        return
    record, loaded, waits = _remove(work, found)
    work.promise()
    if thread is None:
        answer = KillAnswer(killed=True, session=found.id, thread=None, ignored=False, upstream_json=None)
        work.answer(command.ticket, answer)
        return
    begun = disposal.begin(work, replace(record, wanted=command.wanted), loaded=loaded, waits_for_turn=waits)
    if begun.record.done or work.state.link.value is None:
        answer = KillAnswer(
            killed=True,
            session=found.id,
            thread=thread,
            ignored=True,
            upstream_json=begun.record.outcome_json,
        )
        work.answer(command.ticket, answer)
        return
    work.state.disposals.put(thread, replace(begun, waiting=(*begun.waiting, command.ticket)))
    timer = DisposalDeadline(at_ms=0, thread=thread)
    work.arm(("disposal", thread), timer, work.state.limits.disposal_ms)


def _is_empty(session: Session, seen: Emptiness) -> bool:
    """Whether nothing was said in it, then and until now (DISC-16)."""
    record = session.record
    said = record.history or record.message_count or session.ended or session.busy or session.last_done is not None
    return not said and (record.thread_id, session.next_position) == (seen.thread, seen.prompts)


def _remove(work: Work, session: Session) -> tuple[DisposalRecord, bool, CallId | None]:
    """Take the session out of everything, in one commit; return what is left to do in Codex."""
    why = problem("killed", "the session was killed")
    thread = session.record.thread_id
    loaded = session.record.attachment is not None  # also without a link: the process may live, and its turn run on
    call = work.state.calls.get(session.outgoing.call) if session.outgoing is not None else None
    # Not for one whose deadline has passed, or whose answer could not be read: nothing would end the waiting.
    waits = call.id if call is not None and not call.tombstone else None
    turn = session.turn.id if session.turn is not None else None
    session = requests.decline_all(work, session, why)
    if session.turn is not None:
        session = turns.finish(work, session, "cancelled", message=why.message)
    if session.outgoing is not None:
        prompts.end(work, session, session.outgoing.prompt, "cancelled", why)
    for one in session.steering:
        prompts.end(work, session, one.prompt, "cancelled", why)
    session = prompts.end_queue(work, session, "cancelled", why)
    session = operations.give_up(work, session, "killed", why.message)
    session = setup.abandon(work, session)
    for ticket in session.waiting:
        work.refuse_with(ticket, why)
    session = with_record(
        session, status="closed", attachment=None, ending=None, waiting_on=None, killed_at_ms=work.at_ms
    )
    session = replace(session, outgoing=None, steering=(), waiting=(), reading=None, tools=None, reattach=False)
    session = work.put(session)
    for timer in ("ending", "prompt", "turn"):
        work.disarm(timer, session.id)
    log.session(work, session, "killed")
    if thread is not None:
        work.state.routes.drop(thread)
        disposal.ignore(work, thread, "killed", session.id)
    record = DisposalRecord(
        thread_id=thread or ThreadId(""),
        session_id=session.id,
        wanted="ignore",
        turn_id=turn,
        at_ms=work.at_ms,
    )
    return record, loaded, waits
