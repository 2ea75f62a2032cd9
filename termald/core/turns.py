"""Turns: who began them, which is active, and their one end (I12).

A prompt is written with `turn/start` and is then *outgoing*: in no queue, its turn not known. A turn begins at the
first sign of it, whatever that is (the answer, `turn/started`, an item), ours or not. The two are tied by the answer's
turn id or by our id in a user item, in whatever order they come; another front-end's turn may have begun in between,
and then the answer names that one: we have steered it (TURN-16).

Competing for the end of a turn: `turn/completed`, what a read says became of it, the process's exit, kill. The first
ends it; the rest is late. What is open in it closes at the same moment: requests expire, open text is taken back, other
items stay as they are and may complete late.
"""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from state.records import Delivery, PromptId, Tokens, TurnId, TurnRecord, TurnState
from termald.core import blocks, disposal, failures, interrupts, log, looks, prompts, requests, setup, standstill
from termald.core.calls import Failure, close_call, entomb, open_call
from termald.core.effects import StartTurn
from termald.core.inputs import (
    TurnAccepted,
    TurnCompleted,
    TurnErrored,
    TurnNews,
    TurnStarted,
    TurnUsage,
)
from termald.core.model import ActiveTurn, Call, Outgoing, Session, with_record
from termald.core.refusals import problem
from termald.core.work import Work

ENDED_TURNS_MAX: Final = 256
"""Ids of ended turns kept in memory, to know a late event by. Codex was seen to repeat an end only within a moment of
it."""

TURN_ATTEMPTS_MAX: Final = 3
"""How often a prompt may meet `thread not found` and be sent again after a resume, before it counts as refused."""

TEXT_ITEMS: Final = frozenset({"agentMessage", "reasoning", "plan"})
"""Items whose text is only worth something whole: left open, they are taken back."""


# --- the prompt goes out ---


def start(work: Work, session: Session) -> None:
    """Write the head prompt's `turn/start`. The thread is bound and idle: `queue.advance` has looked, in the order that
    matters."""
    thread, attachment = session.record.thread_id, session.record.attachment
    assert thread is not None
    assert attachment is not None
    assert session.setup is None, "SETUP-03: no turn on a half-bound thread"
    assert session.turn is None, "I1: one active turn per thread"
    head, *rest = session.queue
    session = work.put(replace(with_record(session, status="running", last_error=None), queue=tuple(rest)))
    prompt = prompts.mark_sent(work, session, work.prompt(head))
    call = open_call(
        work,
        "turn",
        StartTurn(attachment=attachment, session=session.record, thread=thread, prompt=prompt, pin=session.strayed),
        deadline_ms=work.state.limits.turn_ms,
        session=session.id,
        attachment=attachment,
        prompt=prompt.id,
        thread=thread,
    )
    after = session.last_done.id if session.last_done is not None else None
    strayed = prompt.effort is not None or prompt.interaction_mode == "plan"
    work.put(replace(session, outgoing=Outgoing(prompt=prompt.id, call=call, after=after), strayed=strayed))


def accepted(work: Work, call: Call, reply: TurnAccepted) -> None:
    """`turn/start` was answered: the prompt is tied to the turn that the answer names."""
    close_call(work, call)
    session = work.accept(call.session, call.attachment)
    if session is None:
        disposal.stray_turn(work, call, reply.turn)
        return
    outgoing = session.outgoing
    if outgoing is None or outgoing.call != call.id:
        if call.prompt not in session.queue or work.prompt(call.prompt).delivery == "queued":
            return  # tied already, by our id in a user item; or sent again since
        # Answered after all, when its session had given the answer up and was looking for the prompt.
        session = setup.lift(session, *setup.AWAIT_A_WORD)
        session = prompts.without(session, call.prompt)
        outgoing = Outgoing(prompt=call.prompt, call=call.id)
    prompts.mark_acked(work, session, outgoing.prompt, reply.turn)
    tie(work, session, outgoing, reply.turn)


def tie(work: Work, session: Session, outgoing: Outgoing, turn: TurnId) -> None:
    """The outgoing prompt belongs to this turn, which may run, have ended before we heard of it, or be somebody else's
    that we steered."""
    session = work.put(replace(session, outgoing=None, looks=0, misses=0))
    work.disarm("prompt", session.id)
    if turn in session.ended:
        if session.last_done is not None and session.last_done.id == turn and turn != outgoing.after:
            _end_prompt(work, session, outgoing.prompt, session.last_done)
        else:
            # It ended before the one that ended last; how, and whether with the prompt, is on record. Or we said that
            # it ended, unconfirmed, before the prompt was written, and it was not over.
            if session.turn is None:
                session = with_record(session, status="ready")
            prompts.insert(work, session, outgoing.prompt)
        work.move_on(session.id)
        return
    active = session.turn
    if active is None:
        session = begin(work, session, turn, prompt=outgoing.prompt)
    elif active.id != turn:
        # One thread runs one turn: if the answer names another than the one we followed, we missed that one's end.
        session = finish(work, session, "cancelled", message="superseded by another turn", reconciled=True)
        session = begin(work, session, turn, prompt=outgoing.prompt)
    else:
        session = join(work, session, active, outgoing.prompt)
    if outgoing.interrupt:
        interrupts.want(work, session)


def join(work: Work, session: Session, active: ActiveTurn, prompt: PromptId) -> Session:
    """The prompt belongs to the turn that is active already."""
    if prompt in active.prompts:
        return session
    record = active.record
    if not record.ours:
        record = replace(record, ours=True)
        work.state.turns.put((session.id, record.id), record)
    active = replace(active, record=record, prompts=(*active.prompts, prompt))
    return work.put(replace(session, turn=active))


def refused(work: Work, call: Call, failure: Failure) -> None:
    """`turn/start` was refused, not written, or not answered."""
    session = work.accept(call.session, call.attachment)
    if session is None:
        disposal.bury(work, call, failure)
        return
    if failure.how == "unanswered":
        entomb(work, call)
    else:
        close_call(work, call)
    outgoing = session.outgoing
    if outgoing is None or outgoing.call != call.id:
        return  # recorded meanwhile: the deadline fails nothing (TURN-03)
    if not failure.definite:
        # Codex may have it or not; sending it again would run it twice. It is looked for (TURN-04, TURN-05).
        log.notice(work, session, "turn-unconfirmed", failure.why.message, promptId=outgoing.prompt)
        looks.at_prompt(work, replace(session, looks=0, misses=0), outgoing.prompt)
        return
    _not_executed(work, session, outgoing, failure)


def _not_executed(work: Work, session: Session, outgoing: Outgoing, failure: Failure) -> None:
    prompt = work.prompt(outgoing.prompt)
    session = work.put(replace(session, outgoing=None))
    if session.turn is None:
        session = work.put(with_record(session, status="ready"))
    if outgoing.interrupt:
        prompts.end(work, session, prompt.id, "cancelled", problem("interrupted", "interrupted before it ran"))
    elif failure.refusal == "thread_not_found" and prompt.attempts < TURN_ATTEMPTS_MAX:
        # Codex unloaded the thread: one resume, then the prompt once more (TURN-08).
        prompts.requeue(work, prompt.id)
        session = unbind(work, prompts.insert(work, session, prompt.id))
    elif failure.refusal == "overloaded":
        prompts.requeue(work, prompt.id)
        setup.hold(work, prompts.insert(work, session, prompt.id), failure.why)
    else:
        delivery: Delivery = "not_delivered" if failure.how == "unwritten" else "failed"
        session = work.put(with_record(session, last_error=failure.why))
        prompts.end(work, session, prompt.id, delivery, failure.why)
    work.move_on(session.id)


def unbind(work: Work, session: Session) -> Session:
    """The thread is not loaded in Codex any more: keep the claim, give up the attachment. The next prompt resumes it
    (EVENT-13)."""
    thread = session.record.thread_id
    if thread is not None:
        work.state.routes.drop(thread)
    session = work.put(with_record(session, attachment=None, status="detached"))
    log.session(work, session, "detached", reason="unloaded")
    return session


# --- the turn runs ---


def begin(
    work: Work,
    session: Session,
    turn: TurnId,
    *,
    prompt: PromptId | None = None,
    seen_active: bool = False,
    whole: bool = True,
) -> Session:
    """The first sign of a turn: it is the session's active one from here on."""
    assert session.turn is None, "I1: one active turn per thread"
    assert session.record.thread_id is not None
    record = TurnRecord(
        id=turn,
        session_id=session.id,
        thread_id=session.record.thread_id,
        ours=prompt is not None,
        started_at_ms=work.at_ms,
    )
    work.state.turns.put((session.id, turn), record)
    active = ActiveTurn(
        record=record, prompts=() if prompt is None else (prompt,), seen_active=seen_active, whole=whole
    )
    session = with_record(session, status="running", active_turn_id=turn)
    operation = session.operation
    if operation is not None and operation.awaits_turn:
        work.disarm("operation", session.id)
        operation = None  # this is the turn that it is: from here on the turn keeps the queue back
    # Whose turn it is may not be known yet: that of our own prompt has been seen to by what wrote it.
    strayed = session.strayed or (prompt is None and session.outgoing is None)
    session = work.put(replace(session, turn=active, operation=operation, strayed=strayed))
    log.turn_started(work, session, turn, ours=record.ours, prompt=prompt)
    if not seen_active:
        looks.at_silent_turn(work, session)
    return session


def at_sign(work: Work, session: Session, turn: TurnId, what: str) -> Session | None:
    """Return the session with this turn active, begun now if none is; None, and recorded as late, if the turn is not
    the active one.

    The one place where a turn id is compared. Guards I4 and I12 (EVENT-03, EVENT-04, EVENT-05).
    """
    if session.turn is not None and session.turn.id == turn:
        return session
    if turn in session.ended:
        log.late(work, session, what, turn=turn, reason="the turn has ended")
        work.state.late_frames.value += 1
        return None
    if session.turn is not None:
        log.late(work, session, what, turn=turn, reason="another turn is active")
        work.state.late_frames.value += 1
        return None
    return begin(work, session, turn)


def started(work: Work, session: Session, notice: TurnStarted) -> None:
    """Codex says that the turn is active: an interrupt that was kept for it reaches it now."""
    found = at_sign(work, session, notice.turn, "turn/started")
    if found is None or found.turn is None:
        return
    if not found.turn.seen_active:
        work.disarm("turn", session.id)
    session = work.put(replace(found, turn=replace(found.turn, seen_active=True)))
    if session.outgoing is not None and session.outgoing.interrupt:
        # The answer that ties them has not come. Either this is the prompt's turn, or the prompt will steer it: it is
        # to end in both cases.
        interrupts.want(work, session)
    elif session.turn is not None and session.turn.interrupt == "wanted":
        interrupts.send(work, session)
    work.move_on(session.id)


def errored(work: Work, session: Session, notice: TurnErrored) -> None:
    """An attempt failed. What it had said so far and did not finish is taken back; the turn goes on, or its end follows
    (EVENT-09)."""
    found = at_sign(work, session, notice.turn, "error")
    if found is None or found.turn is None:
        return
    active = found.turn
    reason = failures.reason(notice.failure, work.state.account_limits.value, work.at_ms)
    if not notice.will_retry:
        work.put(replace(found, turn=replace(active, failure=notice.failure)))
        return
    session = blocks.end(work, take_back(work, found, "retry"))
    assert session.turn is not None
    attempt = session.turn.attempt + 1
    session = work.put(replace(session, turn=replace(session.turn, attempt=attempt)))
    log.retrying(work, session, active.id, attempt=attempt, reason=reason)


def used(work: Work, session: Session, notice: TurnUsage) -> None:
    """Count one model call. A sample that a resume repeats belongs to a turn that ended, and is not counted again
    (RUNTIME-16). So it is no sign of a turn either: of a thread that was found, the ended turns are not known here."""
    seen = session.total_seen
    repeated = seen is not None and notice.total.total == seen.total
    session = work.put(replace(session, total_seen=notice.total))
    if session.turn is None or session.turn.id != notice.turn:
        log.late(work, session, "usage", turn=notice.turn, reason="not the running turn")
        return
    if repeated:
        # Measured: the first of a compaction's samples repeats the last one before it.
        log.late(work, session, "usage", turn=notice.turn, reason="it was counted")
        return
    found = at_sign(work, session, notice.turn, "usage")
    if found is None or found.turn is None:
        return
    usage = found.turn.record.usage
    last = _spent(notice, seen)
    record = replace(
        found.turn.record,
        usage=replace(
            usage,
            input=usage.input + last.input,
            output=usage.output + last.output,
            cache_read=usage.cache_read + last.cache_read,
            cache_write=usage.cache_write + last.cache_write,
            total=usage.total + last.total,
        ),
    )
    work.state.turns.put((session.id, record.id), record)
    work.put(replace(found, turn=replace(found.turn, record=record)))
    log.usage(work, found, record.id, last, notice.total)
    blocks.end(work, work.state.sessions[session.id])


def _spent(notice: TurnUsage, seen: Tokens | None) -> Tokens:
    """What the running sum has grown by, which is the call's own count, except of an answer that was cut short:
    measured, that one counts as nothing and still is in the sum."""
    if seen is None:
        return notice.last
    total = notice.total
    grown = Tokens(
        input=total.input - seen.input,
        output=total.output - seen.output,
        cache_read=total.cache_read - seen.cache_read,
        cache_write=total.cache_write - seen.cache_write,
        total=total.total - seen.total,
    )
    return notice.last if min(msgspec.structs.astuple(grown)) < 0 else grown


def news(work: Work, session: Session, notice: TurnNews) -> None:
    """Pass a diff or a plan on."""
    found = at_sign(work, session, notice.turn, f"turn/{notice.kind}")
    if found is not None:
        log.turn_news(work, found, notice.turn, notice.kind, notice.params_json)


# --- the end ---


def completed(work: Work, session: Session, notice: TurnCompleted) -> None:
    """Codex says how the turn ended."""
    if notice.status == "inProgress":
        log.late(work, session, "turn/completed", turn=notice.turn, reason="it says inProgress")
        return
    found = at_sign(work, session, notice.turn, "turn/completed")
    if found is None:
        return
    finish_as(work, found, notice.status, notice.failure)


def finish_as(work: Work, session: Session, status: str, failure: Any, *, reconciled: bool = False) -> None:
    """End the active turn as Codex tells it, by event or by read: failure is never success, nor is an empty answer
    (TURN-21)."""
    active = session.turn
    assert active is not None
    failure = active.failure or failure
    if status == "interrupted":
        session = finish(work, session, "cancelled", message="interrupted", reconciled=reconciled)
    elif status == "failed":
        ending = failures.classify(failure, work.state.account_limits.value, work.at_ms)
        session = finish(work, session, ending.state, ending=ending, reconciled=reconciled)
        standstill.begin(work, session, ending)
    elif active.whole and not active.output and active.record.ours:
        session = finish(work, session, "error", ending=failures.EMPTY, reconciled=reconciled)
    else:
        session = finish(work, session, "normal", reconciled=reconciled)
    work.move_on(session.id)


def finish(
    work: Work,
    session: Session,
    state: TurnState,
    *,
    ending: failures.Ending | None = None,
    message: str | None = None,
    reconciled: bool = False,
    requeue_unrecorded: bool = False,
) -> Session:
    """End the active turn, once, with all that is open in it, and return the session without it.

    `requeue_unrecorded`: the process is gone, so that a prompt which was acknowledged but not seen recorded may be
    lost: it goes back to the head of the queue as uncertain, and is read before it is used. So does one that was
    steered into the turn and not seen in it (TURN-19).
    """
    active = session.turn
    assert active is not None, "I12: a turn ends once"
    if ending is None:
        ending = failures.Ending(state=state, message=message)
    session = blocks.end(work, _close_items(work, session, state))
    session = requests.expire_all(work, session, "the turn ended")
    record = replace(
        active.record,
        ended_at_ms=work.at_ms,
        state=state,
        kind=ending.kind,
        message=ending.message,
        provider_error_json=ending.provider_json,
        reconciled=reconciled,
    )
    work.state.turns.put((session.id, record.id), record)
    uncertain = tuple(
        prompt
        for prompt in active.prompts
        if not work.prompt(prompt).recorded and (requeue_unrecorded or prompt in active.steered)
    )
    for prompt in active.prompts:
        if prompt not in uncertain:
            _end_prompt(work, session, prompt, record)
    log.turn_done(work, session, record.id, failures.done_fields(record, ending))
    held_for = session.record.last_error if session.record.paused else None
    session = with_record(
        session,
        history=session.record.history or state == "normal",
        status="ready" if session.record.attachment is not None else "detached",
        active_turn_id=None,
        waiting_on=None,
        last_error=problem("turn-failed", ending.message or "the turn failed") if state == "error" else held_for,
    )
    work.disarm("turn", session.id)
    ended = (*session.ended, record.id)[-ENDED_TURNS_MAX:]
    session = work.put(replace(session, turn=None, last_done=record, ended=ended))
    for prompt in uncertain:
        session = prompts.insert(work, session, prompt)
    return session


def _end_prompt(work: Work, session: Session, prompt: PromptId, turn: TurnRecord) -> None:
    if turn.state in ("normal", "length"):
        prompts.end(work, session, prompt, "done")
    elif turn.state == "cancelled":
        why = turn.message or "its turn was interrupted"
        prompts.end(work, session, prompt, "cancelled", problem("interrupted", why))
    else:
        why = turn.message or "the turn failed"
        prompts.end(work, session, prompt, "failed", problem("turn-failed", why))


def _close_items(work: Work, session: Session, state: TurnState) -> Session:
    """Close what is open in the turn, before it is done. Text that a steer cut short is never finished, and is taken
    back also where the turn completed; what else is open then may be a command that runs on, and completes late."""
    session = take_back(work, session, "turnEnd")
    assert session.turn is not None
    if state == "normal":
        return session
    turn = session.turn.id
    for open_item in session.turn.open_items:
        item = work.state.items.get((session.id, turn, open_item))
        if item is not None:
            work.state.items.put((session.id, turn, item.id), replace(item, state="incomplete"))
            log.item_completed(work, session, turn, item.id, item.item_json, incomplete=True)
    return session


def take_back(work: Work, session: Session, reason: str) -> Session:
    """Take back the text that was begun and not finished: exactly the items named in `block/reset`."""
    active = session.turn
    assert active is not None
    items = [work.state.items.get((session.id, active.id, item)) for item in active.open_items]
    text = tuple(item for item in items if item is not None and item.type in TEXT_ITEMS)
    if not text:
        return session
    for item in text:
        work.state.items.put((session.id, active.id, item.id), replace(item, state="taken_back"))
    taken = tuple(item.id for item in text)
    log.block_reset(work, session, active.id, taken, reason)
    active = replace(active, block_open=False)
    left = tuple(item for item in active.open_items if item not in taken)
    return work.put(
        replace(session, turn=replace(active, open_items=left, closed_items=(*active.closed_items, *taken)))
    )
