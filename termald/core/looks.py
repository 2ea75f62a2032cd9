"""When to look again at what is uncertain: a turn that should have ended, a prompt that may not have arrived.

A look is a read of Codex's record (`recovery.read_turns`), which changes nothing there. Each one waits twice as long as
the one before, up to a cap.
"""

from msgspec.structs import replace

from state.records import PromptId
from termald.core.inputs import SettlePrompt, SettleTurn
from termald.core.model import Session
from termald.core.work import Work


def at_turn(work: Work, session: Session) -> None:
    """Read what became of the turn if it does not say so by itself."""
    attachment, active = session.record.attachment, session.turn
    assert active is not None
    if attachment is None:
        return
    work.put(replace(session, turn=replace(active, settles=active.settles + 1)))
    timer = SettleTurn(at_ms=0, session=session.id, attachment=attachment, turn=active.id)
    work.arm(("turn", session.id), timer, _pause_ms(work, active.settles))


def at_silent_turn(work: Work, session: Session) -> None:
    """Read what became of a turn that is known by its answer, or by an item, if it does not say that it is active: it
    may have been dropped before it began, and nobody would ever say so (I7)."""
    attachment, active = session.record.attachment, session.turn
    assert active is not None
    if attachment is None:
        return
    timer = SettleTurn(at_ms=0, session=session.id, attachment=attachment, turn=active.id)
    work.arm(("turn", session.id), timer, work.state.limits.turn_ms)


def at_prompt(work: Work, session: Session, prompt: PromptId) -> None:
    """Look for an unconfirmed prompt."""
    attachment = session.record.attachment
    if attachment is None:
        return
    work.put(replace(session, looks=session.looks + 1))
    timer = SettlePrompt(at_ms=0, session=session.id, attachment=attachment, prompt=prompt)
    work.arm(("prompt", session.id), timer, _pause_ms(work, session.looks))


def unsettled(work: Work, session: Session) -> bool:
    """Whether something of the session may be in Codex and is not known to be: it is read before anything is done."""
    return session.turn is not None or any(work.prompt(prompt).delivery != "queued" for prompt in session.queue)


def at_what_is_uncertain(work: Work, session: Session) -> None:
    """Look at whichever of the two stands in the way."""
    if session.turn is not None:
        at_turn(work, session)
    elif session.outgoing is not None:
        at_prompt(work, session, session.outgoing.prompt)
    elif session.queue:
        at_prompt(work, session, session.queue[0])


def _pause_ms(work: Work, looked: int) -> int:
    limits = work.state.limits
    return min(limits.settle_ms << min(looked, 16), limits.settle_again_max_ms)
