"""What is uncertain, and how it is settled: links that come and go, processes that die, the daemon's own restart.

A lost link is not an exit: nothing is settled, every attachment on it is minted anew, and what was missed is read
(RUNTIME-15). An exit settles every session attached to that process, once (I8). A prompt whose fate is unknown waits at
the head of its queue, past `queued`; Codex's own record decides: found, it is never sent again; absent, and no living
process can still hold it, it is sent again or held, as the session says. So it runs once.
"""

from typing import Final

from msgspec.structs import replace

from state.records import (
    CodexAttachment,
    LinkId,
    Problem,
    PromptId,
    TurnId,
)
from termald.core import (
    disposal,
    ending,
    failures,
    interrupts,
    items,
    log,
    looks,
    operations,
    prompts,
    requests,
    setup,
    standstill,
    turns,
)
from termald.core.calls import Failure, close_call, open_call
from termald.core.effects import OpenFresh, ReadTurns
from termald.core.inputs import (
    Booted,
    ItemCompleted,
    LinkLost,
    LinkUp,
    RuntimeExited,
    SeenTurn,
    SettlePrompt,
    SettleTurn,
    ShuttingDown,
    ThreadOpened,
    TurnCompleted,
    TurnsRead,
)
from termald.core.model import ActiveTurn, Call, Session, ToldEnd, with_record
from termald.core.refusals import problem
from termald.core.work import Work

LOOKS_MAX: Final = 6
"""Looks at a living process for a prompt that it does not show, before the session is held: two seconds, doubling, is
about two minutes."""
LOOKS_SURE: Final = 3
"""Answered looks, with a pause before each but the first, after which an idle thread does not have what it does not
show. The answer to a first turn was seen to precede its record by up to 25 ms; the pauses are seconds."""


# --- links and processes ---


def link_up(work: Work, up: LinkUp) -> None:
    """There is a process to talk to. Sessions that it still holds are attached anew, under a new generation; waiting
    queues go on."""
    state = work.state
    state.link.value = up.link
    for session in state.sessions.values():
        attachment = session.record.attachment
        if attachment is not None and attachment.runtime_id == up.link.runtime_id:
            _reattach(work, session)
        elif session.queue:
            work.move_on(session.id)
    for record in state.disposals.values():
        disposal.proceed(work, record.record.thread_id)


def _reattach(work: Work, session: Session) -> None:
    if session.turn is not None:
        session = replace(session, turn=replace(session.turn, whole=False))
    if session.record.thread_id is None:
        work.put(with_record(session, attachment=None, status="detached"))
    else:
        work.put(replace(session, reattach=True))
    work.move_on(session.id)


def link_lost(work: Work, lost: LinkLost) -> None:
    """The connection ended. A link that is not the current one can end as it likes (RUNTIME-04)."""
    if lost.link == work.state.link.value:
        _drop_link(work, lost.link, problem("link-lost", lost.reason))


def _drop_link(work: Work, link: LinkId, why: Problem) -> None:
    state = work.state
    state.link.value = None
    disposal.link_lost(work)
    for call in state.calls.values():
        if call.link == link:
            _lose_call(work, call, why)
    state.calls_waiting.value = ()
    state.calls_written.value = 0
    state.setups_waiting.value = ()
    for thread in state.routes:
        state.routes.drop(thread)
    for thread in state.early:
        state.early.drop(thread)
    for thread in state.children:
        state.children.drop(thread)
    for thread in state.unclaimed:
        state.unclaimed.drop(thread)


def _lose_call(work: Work, call: Call, why: Problem) -> None:
    work.state.calls.drop(call.id)
    work.disarm("call", str(call.id))
    work.disarm("retry", str(call.id))
    if call.ticket is not None:
        work.refuse_with(call.ticket, why)
    operations.lost(work, call, why)
    if isinstance(call.op, OpenFresh):
        # The thread, if one was minted, has no turn. Whoever sees its tag later ignores it; the prompts get another
        # (BOOT-09).
        setup.close_intent(work, call.op.tag, "ignored" if call.written else "discarded", why.message)
    session = work.accept(call.session, call.attachment)
    if session is None:
        return
    if session.setup is not None and session.setup.call == call.id:
        session = work.put(replace(session, setup=None))
        work.state.setups_open.value -= 1
        if session.record.thread_id is None:
            session = work.put(with_record(session, attachment=None, status="detached"))
            log.session(work, session, "detached", reason=why.message)
    session = prompts.take_back_unanswered(work, session)  # whatever it had written went over this link
    if session.turn is not None and session.turn.id == call.turn and session.turn.interrupt == "sent":
        session = work.put(replace(session, turn=replace(session.turn, interrupt="wanted")))
    reading = None if session.reading == call.id else session.reading
    tools = None if session.tools == call.id else session.tools
    work.put(replace(session, reading=reading, tools=tools))


def exited(work: Work, gone: RuntimeExited) -> None:
    """The process is gone, and all that it had said was applied: every session attached to it is settled, once, and no
    other."""
    link = work.state.link.value
    why = problem("runtime-exited", f"Codex exited: {gone.cause}")
    if link is not None and link.runtime_id == gone.runtime:
        _drop_link(work, link, why)
    for session in work.state.sessions.values():
        attachment = session.record.attachment
        if attachment is not None and attachment.runtime_id == gone.runtime:
            settle(work, session, gone.cause)
    disposal.process_gone(work)
    if gone.record is not None:
        work.state.runtime.value = gone.record
    work.promise()


def shutting_down(work: Work, planned: ShuttingDown) -> None:
    """Start no more turns. Where Codex is to end too, interrupt those that run, so that each ends as what it is: cut
    short by its user."""
    work.state.shutting_down.value = True
    if planned.interrupt:
        for session in work.state.sessions.values():
            if session.turn is not None or session.outgoing is not None:
                ending.interrupt_now(work, session)


def booted(work: Work, boot: Booted) -> None:
    """The first input: whoever is attached to a process that does not live is settled before a command is taken (I7,
    I10)."""
    for tag in work.state.intents:
        # Whatever was being minted when the daemon ended has no turn; its tag is ignored wherever it shows (BOOT-09).
        setup.close_intent(work, tag, "ignored", "the daemon ended before the answer came")
    for session in work.state.sessions.values():
        standstill.watch(work, session)
        attachment = session.record.attachment
        live = attachment is not None or session.record.status in ("connecting", "ready", "running")
        if live and (attachment is None or attachment.runtime_id != boot.alive):
            settle(work, session, "the daemon was not there to see how")
    if boot.alive is None:
        disposal.process_gone(work)
    work.promise()


def settle(work: Work, session: Session, cause: str) -> None:
    """The session's process is gone: end its turn, expire its cards, detach it; its queue is kept."""
    why = problem("runtime-exited", f"Codex exited: {cause}")
    if session.turn is not None and session.turn.told is not None:
        session = _end_as_told(work, session, session.turn.told)
    elif session.turn is not None:
        outcome = failures.exited(cause)
        session = turns.finish(work, session, "error", ending=outcome, requeue_unrecorded=True)
    session = prompts.take_back_unanswered(work, session)
    session = operations.give_up(work, session, why.slug, why.message)
    session = requests.expire_all(work, session, why.message)
    if session.record.thread_id is not None:
        work.state.routes.drop(session.record.thread_id)
    if session.record.ending is not None:
        ending.detach(work, session, why.message)
        return
    session = setup.lift(session, "turn-unconfirmed")  # of a process that is gone it can be known
    shown = session.record.last_error if standstill.stands(session) else why
    session = with_record(session, attachment=None, status="detached", waiting_on=None, last_error=shown)
    session = work.put(replace(session, reading=None, tools=None, reattach=False, looks=0, misses=0))
    work.disarm("prompt", session.id)
    log.session(work, session, "detached", reason=why.message)
    work.move_on(session.id)


# --- reading what Codex has ---


def after_bind(work: Work, session: Session, opened: ThreadOpened) -> None:
    """A thread was bound: what is uncertain about it is read before its queue goes on."""
    session = work.put(replace(session, reattach=False, looks=0, misses=0))
    unknown = session.turn is not None or opened.status == "active" or head_uncertain(work, session)
    if unknown:
        read_turns(work, session)
    else:
        work.move_on(session.id)


def head_uncertain(work: Work, session: Session) -> bool:
    """Whether the head prompt may already be in Codex."""
    return bool(session.queue) and work.prompt(session.queue[0]).delivery != "queued"


def look(work: Work, session: Session) -> None:
    """See whether Codex has the head prompt. The thread is resumed first: of one that is not loaded a read may lack
    what its rollout holds (measured: 3 of 20 kills at the user's item), and a prompt taken for lost would run twice;
    and of one that is, a turn that has just begun may be called interrupted."""
    if session.looks:
        return  # the next look is due
    if session.record.thread_id is None or work.bound(session):
        read_turns(work, session)
    else:
        setup.claim(work, session)


def read_turns(work: Work, session: Session) -> None:
    """Read the claimed thread's newest turns, once at a time. Loads nothing and changes nothing in Codex."""
    link, thread = work.state.link.value, session.record.thread_id
    if link is None or session.reading is not None:
        return
    if thread is None:
        _absent(work, session, certain=True)
        return
    attachment = session.record.attachment
    if attachment is None:
        attachment = CodexAttachment(runtime_id=link.runtime_id, generation=session.record.generation + 1)
        session = with_record(session, attachment=attachment, generation=attachment.generation, status="connecting")
        session = work.put(session)
        log.session(work, session, "connecting")
    call = open_call(
        work,
        "read",
        ReadTurns(attachment=attachment, thread=thread),
        deadline_ms=work.state.limits.read_ms,
        session=session.id,
        attachment=attachment,
        thread=thread,
    )
    work.put(replace(session, reading=call))


def turn_completed(work: Work, session: Session, notice: TurnCompleted) -> None:
    """Codex says how the turn ended. Of one that was not heard from its start what was missed is read first, while it
    can still be told: text whose end was missed would be taken for text that has none (RUNTIME-16)."""
    active = session.turn
    if active is None or active.id != notice.turn or active.whole or active.told or notice.status == "inProgress":
        turns.completed(work, session, notice)
        return
    told = ToldEnd(status=notice.status, failure=notice.failure, overtook=session.reading is not None)
    read_turns(work, work.put(replace(session, turn=replace(active, told=told, seen_active=True))))


def _as_told(work: Work, session: Session) -> Session:
    """End the turn as Codex said it ended, if the read that is over did not."""
    active = session.turn
    if active is None or active.told is None:
        return session
    if not active.told.overtook:
        return _end_as_told(work, session, active.told)
    session = work.put(replace(session, turn=replace(active, told=replace(active.told, overtook=False))))
    read_turns(work, session)
    return work.state.sessions[session.id]


def _end_as_told(work: Work, session: Session, told: ToldEnd) -> Session:
    turns.finish_as(work, session, told.status, told.failure)
    return work.state.sessions[session.id]


def settle_turn(work: Work, timer: SettleTurn) -> None:
    """The turn has not said that it ended: see what Codex has on record."""
    session = work.accept(timer.session, timer.attachment)
    if session is not None and session.turn is not None and session.turn.id == timer.turn:
        read_turns(work, session)


def settle_prompt(work: Work, timer: SettlePrompt) -> None:
    """The prompt is still unconfirmed: look again."""
    session = work.accept(timer.session, timer.attachment)
    if session is None:
        return
    outgoing = session.outgoing.prompt if session.outgoing is not None else None
    if timer.prompt == outgoing or timer.prompt in session.queue:
        read_turns(work, session)


def turns_read(work: Work, call: Call, reply: TurnsRead) -> None:
    """Apply Codex's record to what was uncertain."""
    close_call(work, call)
    session = work.accept(call.session, call.attachment)
    if session is None or session.reading != call.id:
        return
    session = work.put(replace(session, reading=None))
    instead = session.turn.runs_instead if session.turn is not None else None
    for turn in reversed(reply.turns):
        session = _apply(work, session, turn)
    session = _follow(work, _as_told(work, session), reply.turns)
    if session.turn is not None and session.turn.id == instead:
        interrupts.want(work, session)
        session = work.state.sessions[session.id]
    if session.turn is None and any(_runs_on(session, turn) for turn in reply.turns):
        if session.outgoing is not None or head_uncertain(work, session):
            looks.at_what_is_uncertain(work, session)  # what was written into it is known when it is over
    else:
        _absent(work, session, certain=False)
    _rest(work, work.state.sessions[session.id])


def _rest(work: Work, session: Session) -> None:
    """After a read of a thread that is not ours to run turns on: follow what runs there, or let go of the reading
    attachment (I7)."""
    if session.record.attachment is not None and not work.bound(session) and session.setup is None:
        if session.turn is not None:
            session = work.put(replace(session, reattach=True))
        elif session.record.status == "connecting" and not session.looks:  # the next look bears this attachment's stamp
            session = work.put(with_record(session, attachment=None, status="detached"))
    work.move_on(session.id)


def read_failed(work: Work, call: Call, failure: Failure) -> None:
    """Nothing was read. A thread that Codex does not know has nothing recorded; otherwise it is asked again."""
    close_call(work, call)
    session = work.accept(call.session, call.attachment)
    if session is None or session.reading != call.id:
        return
    session = work.put(replace(session, reading=None))
    if session.turn is not None and session.turn.told is not None:
        session = _end_as_told(work, session, session.turn.told)
    unknown = failure.refusal in ("no_rollout", "thread_not_found")
    if session.turn is not None and (not unknown or session.turn.settles < LOOKS_MAX):
        # "Unknown" is no proof right after a first turn was acknowledged: its rollout follows (BOOT-07).
        looks.at_turn(work, session)
        return
    if session.turn is not None:
        session = _end_unrecorded(work, session)
    if unknown:
        _absent(work, session, certain=False)
    else:
        _wait_or_hold(work, session)
    _rest(work, work.state.sessions[session.id])


def _apply(work: Work, session: Session, seen: SeenTurn) -> Session:
    """One turn of Codex's record, oldest first: our prompts in it are recorded, and ended with it if it has ended."""
    if seen.user_items and not session.record.history:
        session = work.put(with_record(session, history=True))
    session = _overtaken(work, session, seen)
    for prompt in seen.prompts:
        session = _found(work, session, prompt, seen)
    active = session.turn
    if active is None or active.id != seen.turn:
        return session
    if seen.status == "inProgress":
        # While its thread cannot be resumed the looks go on, each after a longer pause.
        settles = 0 if work.bound(session) else active.settles
        return work.put(replace(session, turn=replace(active, seen_active=True, settles=settles)))
    session = _take_in(work, session, active, seen)
    turns.finish_as(work, session, seen.status, seen.failure, reconciled=True)
    return work.state.sessions[session.id]


def _overtaken(work: Work, session: Session, seen: SeenTurn) -> Session:
    """Codex runs one turn at a time: where another one runs, ours has ended unheard, and is not on record."""
    active = session.turn
    if seen.status != "inProgress" or active is None or seen.turn == active.id or seen.turn in session.ended:
        return session
    if active.told is not None:
        return _end_as_told(work, session, active.told)
    return _end_unrecorded(work, session)


def _end_unrecorded(work: Work, session: Session) -> Session:
    outcome = failures.Ending(state="error", kind="unknown", message="Codex has no record of the turn")
    return turns.finish(work, session, "error", ending=outcome, reconciled=True)


def _runs_on(session: Session, seen: SeenTurn) -> bool:
    """Whether it runs, though it was said to be over: an interrupt that nobody confirmed. It is not told twice."""
    return seen.status == "inProgress" and seen.turn in session.ended


def _found(work: Work, session: Session, prompt: PromptId, seen: SeenTurn) -> Session:
    outgoing = session.outgoing
    if _runs_on(session, seen):
        if outgoing is not None and outgoing.prompt == prompt:
            session = prompts.insert(work, replace(session, outgoing=None), prompt)
        if prompt in session.queue:
            prompts.mark_recorded(work, session, prompt, seen.turn)
        return session
    if outgoing is not None and outgoing.prompt == prompt:
        session = work.put(replace(session, outgoing=None, looks=0, misses=0))
    elif prompt in session.queue and work.prompt(prompt).delivery != "queued":
        session = setup.lift(session, *setup.AWAIT_A_WORD)
        session = work.put(replace(prompts.without(session, prompt), looks=0, misses=0))
    else:
        if prompt in work.state.prompts and session.turn is not None and prompt in session.turn.prompts:
            prompts.mark_recorded(work, session, prompt, seen.turn)
        return session
    work.disarm("prompt", session.id)
    prompts.mark_recorded(work, session, prompt, seen.turn)
    if seen.status != "inProgress" and (session.turn is None or session.turn.id != seen.turn):
        _end_found(work, session, prompt, seen)
        return work.state.sessions[session.id]
    if session.turn is None:
        session = _begin_seen(work, session, seen.turn, prompt=prompt)
    elif session.turn.id == seen.turn:
        session = turns.join(work, session, session.turn, prompt)
    if outgoing is not None and outgoing.interrupt:
        interrupts.want(work, session)
    return work.state.sessions[session.id]


def _end_found(work: Work, session: Session, prompt: PromptId, seen: SeenTurn) -> None:
    if seen.turn not in session.ended:
        # Its turn came and went while nobody listened: it is told whole, and ended once.
        session = turns.begin(work, session, seen.turn, prompt=prompt, seen_active=True, whole=False)
        assert session.turn is not None
        session = _take_in(work, session, session.turn, seen)
        turns.finish_as(work, session, seen.status, seen.failure, reconciled=True)
    elif seen.status == "completed":
        prompts.end(work, session, prompt, "done")
    else:
        link = work.state.link.value
        why = problem("runtime-exited", "Codex exited while its turn ran")
        if link is not None and work.prompt(prompt).sent_to == link.runtime_id:
            why = problem("turn-failed", f"its turn ended as {seen.status}")
        prompts.end(work, session, prompt, "failed", why)


def _take_in(work: Work, session: Session, active: ActiveTurn, seen: SeenTurn) -> Session:
    """Tell the items that were missed, once: those that are complete already are left as they are (RUNTIME-16)."""
    thread, link = session.record.thread_id, work.state.link.value
    assert thread is not None
    assert link is not None
    for item in seen.items:
        if item.item not in active.closed_items:
            notice = ItemCompleted(
                at_ms=work.at_ms,
                link=link,
                thread=thread,
                turn=seen.turn,
                item=item.item,
                type=item.type,
                item_json=item.item_json,
            )
            items.completed(work, work.state.sessions[session.id], notice)
    return work.state.sessions[session.id]


def _follow(work: Work, session: Session, listed: tuple[SeenTurn, ...]) -> Session:
    """See to the turn that runs: follow one that we did not know, interrupt one that is to end, look again at one that
    is not listed."""
    running = next((turn for turn in listed if turn.status == "inProgress"), None)
    if session.turn is None and running is not None and running.turn not in session.ended:
        session = _begin_seen(work, session, running.turn)
    active = session.turn
    if active is None or active.told is not None:
        return session
    if running is not None and running.turn == active.id:
        if active.interrupt in ("wanted", "unconfirmed"):
            interrupts.send(work, session)
        elif active.interrupt in ("sent", "acked"):
            looks.at_turn(work, session)
    elif not _listed(listed, active.id):
        if active.settles >= LOOKS_MAX:
            # Looked for often enough, and Codex has no such turn: it will not end by itself any more (I7).
            return _end_unrecorded(work, session)
        looks.at_turn(work, session)
    return work.state.sessions[session.id]


def _begin_seen(work: Work, session: Session, turn: TurnId, prompt: PromptId | None = None) -> Session:
    """Follow a turn that a read shows running, and look once more: its end may have been told before the answer came,
    while another one was taken for the turn that runs."""
    session = turns.begin(work, session, turn, prompt=prompt, seen_active=True, whole=False)
    looks.at_turn(work, session)
    return work.state.sessions[session.id]


def _listed(listed: tuple[SeenTurn, ...], turn: TurnId) -> bool:
    return any(seen.turn == turn for seen in listed)


def _absent(work: Work, session: Session, *, certain: bool) -> None:
    """What is still uncertain was not found. Sent again only where no living process can still hold it (TURN-05,
    BOOT-05)."""
    link = work.state.link.value
    if session.outgoing is not None:
        # Its request went over this very link and is not answered: Codex may still take it.
        _wait_or_hold(work, session)
        return
    if session.turn is not None:
        # What runs may be what the prompt was written into, and have it yet: its record is read when it has ended.
        work.put(replace(session, looks=0, misses=0))
        return
    # Of a process that lives one look is no proof: a turn that was accepted is for some milliseconds neither active nor
    # on record (BOOT-06), and what was written to a lost connection may still be read.
    session = work.put(replace(session, misses=session.misses + 1))
    uncertain = prompts.uncertain(work, session)
    sure = certain or session.misses >= LOOKS_SURE
    if sure or link is None or all(prompt.sent_to != link.runtime_id for prompt in uncertain):
        if setup.absent(work, session):
            work.move_on(session.id)
    else:
        _wait_or_hold(work, session)


def _wait_or_hold(work: Work, session: Session) -> None:
    prompt = session.outgoing.prompt if session.outgoing is not None else next(iter(session.queue), None)
    if prompt is None:
        return
    if session.looks < LOOKS_MAX:
        looks.at_prompt(work, session, prompt)
        return
    if session.turn is not None:
        looks.at_prompt(work, session, prompt)  # it may have joined what runs
        return
    # Over a link that took it once it is not written again but by its user's word.
    session = prompts.take_back_unanswered(work, session)
    why = "Codex neither answered nor has the prompt on record; retry to look again, and to send it if it is not there"
    setup.hold(work, session, problem("turn-unconfirmed", why))
