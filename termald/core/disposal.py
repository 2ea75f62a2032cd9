"""Letting a thread go: what is still to be asked of Codex for a thread that no session has any more.

After a kill, and for a thread that was minted for nobody: its turn is interrupted, its tools ended, the subscription
given up, in that order (after `thread/unsubscribe` the end of a tool is not told), then it is archived or deleted if
that was wanted. What Codex answers is noted beside it and changes nothing: the decision was committed first. An
unfinished disposal survives a crash and is taken up with the next link.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from state.records import DisposalRecord, IgnoredThread, SessionId, ThreadId, TurnId
from termald.core import log
from termald.core.calls import Failure, close_call, entomb, open_call, pause
from termald.core.effects import DisposeThread, KillAnswer, OpenFresh
from termald.core.inputs import CallId, DisposalDeadline
from termald.core.model import Call, Disposal, DisposalStep
from termald.core.work import Work

INTERRUPTS_MAX: Final = 4
"""How often a turn that is not active yet is asked to end. Doubling from 0.2 s that is some three seconds, and within
`disposal_ms`; a turn was seen to become active within 24 tries at full speed."""

_encoder = msgspec.json.Encoder()


def begin(
    work: Work,
    record: DisposalRecord,
    *,
    loaded: bool,
    waits_for_turn: CallId | None = None,
) -> Disposal:
    """Begin to let a thread go. `loaded`: we are subscribed to it, so there is something to end and to leave."""
    steps: list[DisposalStep] = []
    if loaded:
        steps += ["interrupt"] if record.turn_id is not None else []
        steps += ["end_tools", "unsubscribe"]
    if record.wanted != "ignore":
        steps.append(record.wanted)
    disposal = Disposal(record=record, steps=tuple(steps), waits_for_turn=waits_for_turn)
    work.state.disposals.put(record.thread_id, disposal)
    proceed(work, record.thread_id)
    return work.state.disposals[record.thread_id]


def proceed(work: Work, thread: ThreadId) -> None:
    """Ask for the next step, if there is a link and nothing is asked already."""
    state = work.state
    disposal = state.disposals.get(thread)
    if disposal is None or disposal.record.done or disposal.call is not None:
        return
    if not disposal.steps and disposal.waits_for_turn is None:
        _finish(work, disposal)
        return
    if state.link.value is None or disposal.waits_for_turn is not None:
        return
    step, *_ = disposal.steps
    call = open_call(
        work,
        "dispose",
        DisposeThread(thread=thread, what=step, turn=disposal.record.turn_id),
        deadline_ms=state.limits.ack_ms,
        thread=thread,
    )
    state.disposals.put(thread, replace(disposal, call=call))


def step_over(work: Work, call: Call, failure: Failure | None) -> None:
    """A step was answered, or was not: note it and go on."""
    disposal = work.state.disposals.get(call.thread) if call.thread is not None else None
    if failure is not None and failure.refusal == "no_active_turn" and call.retries < INTERRUPTS_MAX:
        # Upstream: a turn that was accepted and is not active yet cannot be interrupted, and runs on (STOP-15).
        pause(work, call)
        return
    close_call(work, call)
    if disposal is None or disposal.call != call.id:
        return
    assert isinstance(call.op, DisposeThread)
    asked = call.op.what
    said = "ok" if failure is None else failure.why.message
    # A turn that became known meanwhile is still to be interrupted: what was answered is not always what comes first
    # now.
    over = asked != "interrupt" or call.op.turn == disposal.record.turn_id
    steps = tuple(step for step in disposal.steps if step != asked) if over else disposal.steps
    disposal = replace(disposal, steps=steps, said=(*disposal.said, (asked, said)), call=None)
    work.state.disposals.put(disposal.record.thread_id, disposal)
    proceed(work, disposal.record.thread_id)


def turn_known(work: Work, thread: ThreadId, turn: TurnId) -> None:
    """A turn began on a thread that was let go: it is interrupted before anything else (STOP-15)."""
    disposal = work.state.disposals.get(thread)
    if disposal is None or disposal.record.done:
        return
    if disposal.record.turn_id == turn:
        return
    steps: tuple[DisposalStep, ...] = ("interrupt", *(step for step in disposal.steps if step != "interrupt"))
    record = replace(disposal.record, turn_id=turn)
    work.state.disposals.put(thread, replace(disposal, record=record, steps=steps, waits_for_turn=None))
    proceed(work, thread)


def turn_settled(work: Work, call: Call) -> None:
    """The `turn/start` that the disposal waited for began no other turn."""
    disposal = work.state.disposals.get(call.thread) if call.thread is not None else None
    if disposal is not None and disposal.waits_for_turn == call.id:
        work.state.disposals.put(disposal.record.thread_id, replace(disposal, waits_for_turn=None))
        proceed(work, disposal.record.thread_id)


def reclaimed(work: Work, thread: ThreadId) -> None:
    """A session claims a thread that is being let go: nothing more is asked for nobody, least of all to leave it."""
    disposal = work.state.disposals.get(thread)
    if disposal is None or disposal.record.done:
        return
    asked = work.state.calls.get(disposal.call) if disposal.call is not None else None
    if asked is not None:
        entomb(work, asked)
    said = (*disposal.said, ("thread", "claimed by a session"))
    _finish(work, replace(disposal, steps=(), said=said, call=None, waits_for_turn=None))


def deadline(work: Work, timer: DisposalDeadline) -> None:
    """The caller has waited long enough: tell what is known; the rest goes on."""
    disposal = work.state.disposals.get(timer.thread)
    if disposal is not None:
        _answer(work, disposal)
        work.state.disposals.put(timer.thread, replace(disposal, waiting=()))


def link_lost(work: Work) -> None:
    """Nothing was heard of what was asked: it is asked again over the next link."""
    for disposal in work.state.disposals.values():
        if disposal.call is not None or disposal.waits_for_turn is not None:
            again = replace(disposal, call=None, waits_for_turn=None)
            work.state.disposals.put(disposal.record.thread_id, again)


def process_gone(work: Work) -> None:
    """With the process went its turns, its tools and our subscription; what is left to do concerns the stored
    thread."""
    for disposal in work.state.disposals.values():
        if disposal.record.done:
            continue
        steps: tuple[DisposalStep, ...] = tuple(step for step in disposal.steps if step in ("archive", "delete"))
        said = (*disposal.said, ("process", "exited"))
        again = replace(disposal, steps=steps, said=said, call=None, waits_for_turn=None)
        work.state.disposals.put(disposal.record.thread_id, again)
        proceed(work, disposal.record.thread_id)


def _finish(work: Work, disposal: Disposal) -> None:
    outcome = _encoder.encode(dict(disposal.said)).decode() if disposal.said else None
    disposal = replace(disposal, record=replace(disposal.record, done=True, outcome_json=outcome))
    _answer(work, disposal)
    work.state.disposals.put(disposal.record.thread_id, replace(disposal, waiting=()))
    work.disarm("disposal", disposal.record.thread_id)


def _answer(work: Work, disposal: Disposal) -> None:
    upstream = _encoder.encode(dict(disposal.said)).decode() if disposal.said else None
    for ticket in disposal.waiting:
        assert disposal.record.session_id is not None
        work.answer(
            ticket,
            KillAnswer(
                killed=True,
                session=disposal.record.session_id,
                thread=disposal.record.thread_id,
                ignored=True,
                upstream_json=upstream,
            ),
        )


# --- threads that nobody has ---


def ignore(work: Work, thread: ThreadId, reason: str, session: SessionId | None = None) -> None:
    """Put a thread that nobody owns into the ignore set; an entry that is there keeps its reason and time (I9)."""
    assert work.state.owner(thread) is None, "I9: an owned thread is never ignored"
    if thread not in work.state.ignored:
        work.state.ignored.put(thread, IgnoredThread(thread_id=thread, reason=reason, at_ms=work.at_ms))
        log.thread(work, thread, "ignored", reason, session)


def late_thread(work: Work, call: Call, thread: ThreadId) -> None:
    """A thread was opened for a setup that is no longer anybody's. A minted one is ignored and left; a resumed one
    stays its session's."""
    owner = work.state.owner(thread)
    if isinstance(call.op, OpenFresh):
        intent = work.state.intents.get(call.op.tag)
        if owner is not None:
            return
        if intent is not None:
            fate = replace(
                intent,
                state="ignored",
                thread_id=thread,
                reason="minted by a dead attachment",
                closed_at_ms=work.at_ms,
            )
            work.state.intents.put(intent.tag, fate)
        let_go(work, thread, "minted by a dead attachment", call.session)
        return
    # SETUP-06: T0 stays claimed. It is left only if nothing of its session is, or is about to be, subscribed to it.
    session = work.session(owner) if owner is not None else None
    if session is None or (session.setup is None and session.record.attachment is None):
        leave(work, thread)


def let_go(work: Work, thread: ThreadId, reason: str, session: SessionId | None) -> None:
    """Ignore a thread that nobody owns, and leave it."""
    ignore(work, thread, reason, session)
    work.promise()
    if thread not in work.state.disposals:
        record = DisposalRecord(thread_id=thread, session_id=session, wanted="ignore", at_ms=work.at_ms)
        begin(work, record, loaded=True)


def leave(work: Work, thread: ThreadId) -> None:
    """Give up a subscription that nobody uses; the thread keeps its owner. Nobody waits for the answer."""
    if work.state.link.value is not None:
        open_call(
            work,
            "dispose",
            DisposeThread(thread=thread, what="unsubscribe"),
            deadline_ms=work.state.limits.ack_ms,
            thread=thread,
        )


def stray_turn(work: Work, call: Call, turn: TurnId) -> None:
    """A turn began under an attachment that is gone: end it, so that it does not run on unseen (STOP-10, STOP-15)."""
    assert call.thread is not None
    disposal = work.state.disposals.get(call.thread)
    if disposal is not None and not disposal.record.done:
        turn_known(work, call.thread, turn)
        turn_settled(work, call)  # also where its turn was known already
    else:
        end_turn(work, call.thread, turn)


def end_turn(work: Work, thread: ThreadId, turn: TurnId) -> None:
    """Ask for the end of a turn that nobody follows. Nobody waits for the answer."""
    if work.state.link.value is not None:
        open_call(
            work,
            "dispose",
            DisposeThread(thread=thread, what="interrupt", turn=turn),
            deadline_ms=work.state.limits.ack_ms,
            thread=thread,
        )


def bury(work: Work, call: Call, failure: Failure) -> None:
    """A `turn/start` whose session is gone ended without a turn, or without an answer."""
    if failure.how == "unanswered":
        entomb(work, call)
    else:
        close_call(work, call)
    turn_settled(work, call)
