"""Opening a session's thread: the slot is claimed by exactly one `thread/start` or `thread/resume`, and freed exactly
once.

Competing: the reply, its deadline, stop, close, kill, the loss of the link. Whoever is taken first closes the slot; for
the others it is no longer theirs. A thread is bound only from the reply to our own request (`opened`).
"""

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from state.records import CodexAttachment, IntentRecord, IntentState, Problem, ThreadId, Tokens
from state.tags import mint_tag
from termald.core import disposal, log, looks, prompts, requests
from termald.core.calls import Failure, close_call, entomb, open_call
from termald.core.effects import OpenFresh, OpenKnown
from termald.core.inputs import EndingDeadline, ThreadOpened
from termald.core.model import Call, Route, Session, Setup, with_record
from termald.core.refusals import problem
from termald.core.work import Work

AWAIT_A_WORD: Final = frozenset({"held", "turn-unconfirmed"})
"""Why a queue is held that only its user may let go on: it is not known whether a prompt of it has run."""

AWAIT_THE_ACCOUNT: Final = frozenset({"quota-exhausted", "auth-required"})
"""Why a queue is held that would meet the same refusal, prompt by prompt (`standstill`)."""


def claim(work: Work, session: Session) -> None:
    """Claim the slot and send one request, or line up for the pace."""
    state = work.state
    if state.setups_open.value >= state.limits.setups_max:
        if session.id not in state.setups_waiting.value:
            state.setups_waiting.value += (session.id,)
        return
    link = state.link.value
    assert link is not None
    assert session.setup is None, "I1: one setup per attachment"
    generation = session.record.generation + 1
    attachment = CodexAttachment(runtime_id=link.runtime_id, generation=generation)
    session = with_record(session, generation=generation, attachment=attachment, status="connecting")
    state.setups_open.value += 1
    thread = session.record.thread_id
    session = (
        _open_fresh(work, session, attachment) if thread is None else _open_known(work, session, attachment, thread)
    )
    session = work.put(session)
    if session.record.ending is not None:
        # Its deadline was set under the attachment before this one, or by a daemon that is no more.
        timer = EndingDeadline(at_ms=0, session=session.id, attachment=attachment)
        work.arm(("ending", session.id), timer, work.state.limits.ending_ms)
    log.session(work, session, "connecting")
    log.session(work, session, "threadOpenRequested", how="start" if thread is None else "resume")


def _open_fresh(work: Work, session: Session, attachment: CodexAttachment) -> Session:
    # The intent is committed with a sync before the frame is written: whatever crashes, the thread is found again by
    # its tag (I2).
    give_up_intents(work, session, "a newer setup was claimed")
    tag = mint_tag(work.state.host.id, session.id, attachment.generation)
    work.state.intents.put(
        tag,
        IntentRecord(
            tag=tag,
            session_id=session.id,
            generation=attachment.generation,
            kind="start",
            cwd=session.record.cwd,
            created_at_ms=work.at_ms,
        ),
    )
    work.promise()
    call = open_call(
        work,
        "open_fresh",
        OpenFresh(attachment=attachment, session=session.record, tag=tag),
        deadline_ms=work.state.limits.open_ms,
        session=session.id,
        attachment=attachment,
    )
    return replace(session, setup=Setup(call=call, tag=tag))


def _open_known(work: Work, session: Session, attachment: CodexAttachment, thread: ThreadId) -> Session:
    # The route stands from here on: what Codex says of the thread before it answers belongs to this attachment, and is
    # kept (SETUP-28).
    work.state.routes.put(thread, Route(session=session.id, attachment=attachment))
    call = open_call(
        work,
        "open_known",
        OpenKnown(attachment=attachment, session=session.record, thread=thread),
        deadline_ms=work.state.limits.open_ms,
        session=session.id,
        attachment=attachment,
        thread=thread,
    )
    return replace(session, setup=Setup(call=call, thread=thread))


def close_setup(work: Work, session: Session) -> Session:
    """Free the slot; before the step is over, whoever waits for the pace gets the place."""
    assert session.setup is not None
    session = work.put(replace(session, setup=None))
    work.state.setups_open.value -= 1
    return session


def wake_next(work: Work) -> bool:
    """Offer a free place to whoever has waited longest, and say whether there was anybody.

    Asked until nobody waits or no place is free: one that was stopped, held or answered meanwhile does not take it, and
    those behind it must not wait for ever (SETUP-29).
    """
    state = work.state
    if not state.setups_waiting.value or state.setups_open.value >= state.limits.setups_max:
        return False
    first, *rest = state.setups_waiting.value
    state.setups_waiting.value = tuple(rest)
    work.move_on(first)
    return True


def abandon(work: Work, session: Session) -> Session:
    """Give up the setup in flight: stop, close, kill or the loss of the link. Its late reply meets a tombstone
    (SETUP-05)."""
    if session.setup is None:
        give_up_intents(work, session, "its session went on without it")
        return session
    call = work.state.calls.get(session.setup.call)
    if session.setup.thread is not None:
        work.state.routes.drop(session.setup.thread)
    if call is not None:
        if session.setup.tag is not None and not call.written:
            close_intent(work, session.setup.tag, "discarded", "never written")
        entomb(work, call)
    give_up_intents(work, session, "its session went on without it")
    return close_setup(work, session)


def give_up_intents(work: Work, session: Session, reason: str) -> None:
    """What was being minted for the session is nobody's from here on. Of a thread that only a hint told of there may
    never be another sign (SETUP-04)."""
    for tag in work.state.intents:
        intent = work.state.intents[tag]
        if intent.session_id != session.id or intent.state != "open" or intent.kind != "start":
            continue
        close_intent(work, tag, "ignored", reason)
        if intent.thread_id is not None and work.state.owner(intent.thread_id) is None:
            disposal.let_go(work, intent.thread_id, reason, session.id)


# --- the reply ---


def opened(work: Work, call: Call, reply: ThreadOpened) -> None:
    """A thread was opened: bind it, adopt it late, or dispose of it."""
    close_call(work, call)
    session = work.accept(call.session, call.attachment)
    if session is not None and session.setup is not None and session.setup.call == call.id:
        bind(work, close_setup(work, session), call, reply)
    elif session is not None and call.tombstone and session.setup is None and not work.bound(session):
        # Its attachment is current and no newer setup was claimed: the late thread is the one that was asked for
        # (SETUP-11).
        bind(work, with_record(session, paused=False), call, reply)
    else:
        disposal.late_thread(work, call, reply.thread)


def bind(work: Work, session: Session, call: Call, reply: ThreadOpened) -> None:
    """Bind the thread to the session and go on with its queue, in one step: there is no hand-off that could go
    stale."""
    state = work.state
    attachment = session.record.attachment
    assert attachment is not None
    owner = state.owner(reply.thread)
    if owner not in (None, session.id):
        _refuse_all(work, session, problem("thread-owned", f"thread {reply.thread} is owned by session {owner!r}"))
        return
    if isinstance(call.op, OpenFresh):
        close_intent(work, call.op.tag, "claimed", None, reply.thread)
    if state.ignored.drop(reply.thread) is not None:
        log.thread(work, reply.thread, "unignored", "owned by a session", session.id)
    disposal.reclaimed(work, reply.thread)
    record = session.record
    # A queue that a failed setup held goes on with the thread; one that waits for somebody's word, or that a stop
    # holds, does not.
    asked = record.last_error is not None and record.last_error.slug in AWAIT_A_WORD | AWAIT_THE_ACCOUNT
    session = with_record(
        session,
        thread_id=reply.thread,
        paused=record.paused and (asked or record.ending is not None),
        status="ready" if session.turn is None else "running",
        resume_lost=False,
        last_error=record.last_error if record.paused and asked else None,
        model=reply.model or record.model,
        model_provider=reply.model_provider or record.model_provider,
        effort=reply.effort or record.effort,
        service_tier=reply.service_tier or record.service_tier,
        title=record.title or reply.title,
        history=record.history or any(turn.user_items for turn in reply.turns),
    )
    fresh = isinstance(call.op, OpenFresh)
    session = work.put(replace(session, strayed=not fresh, total_seen=Tokens() if fresh else None))
    state.routes.put(reply.thread, Route(session=session.id, attachment=attachment))
    work.promise()
    log.session(work, session, "ready", how="start" if isinstance(call.op, OpenFresh) else "resume")
    work.bound_now.append((session.id, reply))


# --- no thread ---


def failed(work: Work, call: Call, failure: Failure) -> None:
    """The setup did not succeed: free the slot, and say what becomes of the prompts."""
    session = work.accept(call.session, call.attachment)
    if failure.how == "unanswered":
        entomb(work, call)
    else:
        close_call(work, call)
        if isinstance(call.op, OpenFresh):
            # A reply without a thread id may have minted one: its tag is closed as ignored, so that discovery never
            # imports it.
            close_intent(work, call.op.tag, "discarded" if failure.definite else "ignored", failure.why.message)
    if session is None or session.setup is None or session.setup.call != call.id:
        return  # a setup of old: the slot is not its to free (SETUP-10)
    session = close_setup(work, replace(session, reattach=False))
    if isinstance(call.op, OpenKnown):
        session = _unrouted(work, session, call.op.thread, failure)
    if session.operation is not None:
        work.refuse_with(session.operation.ticket, failure.why)
        session = work.put(replace(session, operation=None))
    unsettled = looks.unsettled(work, session)
    if session.record.ending is not None:
        work.move_on(session.id)  # it was on its way out, and goes on without the thread
    elif failure.how == "unwritten" and not unsettled:
        _drop_head(work, session, failure.why)
    elif failure.how == "refused" and isinstance(call.op, OpenFresh):
        _refuse_all(work, session, failure.why)
    elif failure.refusal in ("no_rollout", "thread_not_found"):
        _thread_unknown(work, session, call.op, failure.why)
    else:
        hold(work, session, failure.why if failure.definite else problem("setup-unanswered", failure.why.message))
        if unsettled:
            # What still runs, or may, is in Codex whether the thread can be resumed or not: its end is read.
            looks.at_what_is_uncertain(work, work.state.sessions[session.id])


def _unrouted(work: Work, session: Session, thread: ThreadId, failure: Failure) -> Session:
    """Nothing of the thread is the session's from here on."""
    work.state.routes.drop(thread)
    if failure.how != "refused" or session.turn is not None:
        return session  # Codex asks again where it is resumed after all; what a followed turn asked ends with it
    return requests.expire_all(work, session, failure.why.message)


def hold(work: Work, session: Session, why: Problem) -> None:
    """Keep claim and prompts, and stand still until somebody prompts or retries. No second request is written by
    itself."""
    session = work.put(with_record(session, status="error", paused=True, last_error=why))
    log.session_error(work, session, why)


def lift(session: Session, *reasons: str) -> Session:
    """Return the session without its hold, if it was held for one of these reasons: what it waited for has come."""
    held = is_held_for(session, reasons)
    return with_record(session, paused=False, last_error=None) if held else session


def is_held_for(session: Session, reasons: Collection[str]) -> bool:
    """Whether its queue is held for one of these reasons, and not by a stop or a close."""
    why = session.record.last_error
    return session.record.paused and session.record.ending is None and why is not None and why.slug in reasons


def no_longer_for_the_account(session: Session) -> Session:
    """Return the session without that reason for its hold: its user holds it from here on, and no reset lifts that."""
    why = session.record.last_error
    waits = why is not None and why.slug in AWAIT_THE_ACCOUNT
    return with_record(session, last_error=None) if waits else session


def is_held_to_be_sent_again(session: Session) -> bool:
    """Whether its head prompt was looked for, is nowhere, and waits for somebody's word to be sent again. Without that,
    a retry of a prompt whose fate is not known would run it twice (TURN-05)."""
    why = session.record.last_error
    return session.record.paused and why is not None and why.slug == "held"


def _refuse_all(work: Work, session: Session, why: Problem) -> None:
    # A definite refusal of a start ends every prompt parked behind it, in order (SETUP-09).
    session = with_record(session, status="error", attachment=None, last_error=why)
    session = work.put(session)
    session = prompts.end_queue(work, session, "not_delivered", why)
    log.session_error(work, session, why)


def _drop_head(work: Work, session: Session, why: Problem) -> None:
    session = work.put(with_record(session, status="error", attachment=None, last_error=why))
    if session.queue:
        head, *rest = session.queue
        prompts.end(work, session, head, "not_delivered", why)
        session = work.put(replace(session, queue=tuple(rest)))
    log.session_error(work, session, why)
    work.move_on(session.id)


def _thread_unknown(work: Work, session: Session, op: object, why: Problem) -> None:
    assert isinstance(op, OpenKnown)
    link = work.state.link.value
    living = any(link is not None and prompt.sent_to == link.runtime_id for prompt in prompts.uncertain(work, session))
    if session.turn is not None or living:
        # "Unknown" from a living process right after the first turn was acknowledged means "ask again" (BOOT-07): the
        # rollout follows the answer by 10-25 ms. What became of the turn is settled first; the attachment stays for it.
        looks.at_what_is_uncertain(work, work.put(replace(session, reattach=False)))
        return
    # Whoever else may have had a prompt is gone, and nothing of the thread is stored: it has none of them.
    if not absent(work, session):
        return
    session = work.state.sessions[session.id]
    if not session.record.history:
        # No user item was ever recorded in it: nothing is lost, so no word of loss (SETUP-20).
        release_thread(work, session, "replaced, empty", ignore=True)
        work.move_on(session.id)
        return
    lost = problem("resume-lost", why.message, codex_code=why.codex_code, codex_message=why.codex_message)
    if session.record.on_resume_lost == "fresh":
        session = release_thread(work, session, "replaced, lost", ignore=False)
        work.move_on(session.id)
        return
    session = with_record(session, status="error", attachment=None, paused=True, resume_lost=True, last_error=lost)
    session = work.put(session)
    log.resume_lost(work, session, lost)


def absent(work: Work, session: Session) -> bool:
    """Codex does not have what is uncertain, and nobody can still hold it: it is queued again, or held where the
    session says so. Return whether the queue may go on (BOOT-05)."""
    uncertain = prompts.uncertain(work, session)
    if uncertain and session.record.on_recovery == "hold":
        hold(work, session, problem("held", "Codex does not have it on record; retry to send it again"))
        return False
    for prompt in uncertain:
        prompts.requeue(work, prompt.id)
    work.put(replace(session, looks=0, misses=0))
    return True


def release_thread(work: Work, session: Session, reason: str, *, ignore: bool) -> Session:
    """Give up the claimed thread in the commit that allows another. An empty one is ignored; one with history never is
    on the quiet."""
    thread = session.record.thread_id
    assert thread is not None
    session = with_record(
        session, thread_id=None, history=False, attachment=None, status="detached", resume_lost=False, last_error=None
    )
    session = work.put(session)
    work.state.routes.drop(thread)
    if ignore:
        disposal.ignore(work, thread, reason, session.id)
    work.promise()
    log.session(work, session, "threadResumeFallback", lostThreadId=thread, reason=reason)
    return session


def close_intent(work: Work, tag: str, state: IntentState, reason: str | None, thread: ThreadId | None = None) -> None:
    """Give the intent its one fate; one that has it keeps it."""
    intent = work.state.intents.get(tag)
    if intent is not None and intent.state == "open":
        work.state.intents.put(
            tag,
            replace(
                intent,
                state=state,
                reason=reason,
                thread_id=thread or intent.thread_id,
                closed_at_ms=work.at_ms,
            ),
        )
