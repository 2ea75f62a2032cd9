"""Prompts that do not wait for the turn's end: `steer` joins it, `replace` ends it.

A steer overtakes the queue by nature. It is written with the id of the turn that it is to join; refused, it keeps the
place that its acceptance gave it and gets a turn of its own (TURN-12). Unanswered, or answered and not seen in the turn
before that ended, it is uncertain: it is read before it is used (TURN-13, TURN-19). While a steer is unanswered no
other turn starts, so that the order of acceptance holds.
"""

from msgspec.structs import replace

from state.records import PromptId
from termald.core import ending, log, looks, prompts, turns
from termald.core.calls import Failure, close_call, entomb, open_call
from termald.core.effects import SteerTurn
from termald.core.inputs import TurnAccepted
from termald.core.model import Call, Session, Steering
from termald.core.refusals import problem
from termald.core.work import Work


def join(work: Work, session: Session) -> Session:
    """Write the waiting `steer` prompts into the turn that is active, oldest first."""
    active, attachment, thread = session.turn, session.record.attachment, session.record.thread_id
    if active is None or not active.seen_active or active.interrupt != "none" or session.setup is not None:
        return session
    if attachment is None or thread is None or work.state.link.value is None or not work.bound(session):
        return session
    if session.record.ending is not None or work.state.shutting_down.value:
        return session
    for prompt_id in session.queue:
        prompt = work.prompt(prompt_id)
        if prompt.mode != "steer" or prompt.delivery != "queued" or prompt.attempts:
            continue  # one that found no turn to join gets a turn of its own
        session = work.put(prompts.without(session, prompt_id))
        prompt = prompts.mark_sent(work, session, prompt)
        call = open_call(
            work,
            "steer",
            SteerTurn(attachment=attachment, thread=thread, turn=active.id, prompt=prompt),
            deadline_ms=work.state.limits.turn_ms,
            session=session.id,
            attachment=attachment,
            prompt=prompt_id,
            turn=active.id,
            thread=thread,
        )
        steering = Steering(prompt=prompt_id, call=call, turn=active.id)
        session = work.put(replace(session, steering=(*session.steering, steering)))
    return session


def accepted(work: Work, call: Call, reply: TurnAccepted) -> None:
    """The turn has taken the prompt; that it is in it is seen when its item comes."""
    close_call(work, call)
    session = work.accept(call.session, call.attachment)
    steering = _find(session, call)
    if session is None or steering is None:
        return
    session = _without(work, session, steering)
    prompts.mark_acked(work, session, steering.prompt, reply.turn)
    if session.turn is not None and session.turn.id == reply.turn:
        session = turns.join(work, session, session.turn, steering.prompt)
        assert session.turn is not None
        steered = (*session.turn.steered, steering.prompt)
        work.put(replace(session, turn=replace(session.turn, steered=steered)))
    else:
        # The turn ended between the answer and us: whether it had the prompt is on record.
        session = prompts.insert(work, session, steering.prompt)
    work.move_on(session.id)


def refused(work: Work, call: Call, failure: Failure) -> None:
    """There was no such turn to join, or it is not known: the prompt goes back to its place."""
    if failure.how == "unanswered":
        entomb(work, call)
    else:
        close_call(work, call)
    session = work.accept(call.session, call.attachment)
    steering = _find(session, call)
    if session is None or steering is None:
        return
    session = _without(work, session, steering)
    if failure.refusal == "input_too_large" or failure.how == "unwritten":
        prompts.end(work, session, steering.prompt, "failed", failure.why)
    elif failure.definite:
        prompts.requeue(work, steering.prompt)
        session = prompts.insert(work, session, steering.prompt)
    else:
        log.notice(work, session, "turn-unconfirmed", failure.why.message, promptId=steering.prompt)
        session = prompts.insert(work, session, steering.prompt)
        if session.turn is None and session.queue[0] == steering.prompt:
            looks.at_prompt(work, session, steering.prompt)
    work.move_on(session.id)


def recorded(work: Work, session: Session, prompt: PromptId) -> Session:
    """The prompt's item came before its answer: it is in the turn, whatever the answer will be."""
    steering = next((one for one in session.steering if one.prompt == prompt), None)
    if steering is None:
        return session
    session = _without(work, session, steering)
    if session.turn is not None and session.turn.id == steering.turn:
        session = turns.join(work, session, session.turn, prompt)
    return session


def replace_all(work: Work, session: Session, newest: PromptId) -> None:
    """Cancel what waits, in the commit that accepts the replacement, and end what runs; the replacement follows its end
    (TURN-14)."""
    why = problem("replaced", "a later prompt replaced it")
    left = []
    for prompt in session.queue:
        if prompt == newest or work.prompt(prompt).delivery != "queued":
            left.append(prompt)
        else:
            prompts.end(work, session, prompt, "cancelled", why)
    session = work.put(replace(session, queue=tuple(left)))
    if session.turn is not None or session.outgoing is not None:
        ending.interrupt_now(work, session)


def _find(session: Session | None, call: Call) -> Steering | None:
    return next((one for one in session.steering if one.call == call.id), None) if session is not None else None


def _without(work: Work, session: Session, steering: Steering) -> Session:
    return work.put(replace(session, steering=tuple(one for one in session.steering if one != steering)))
