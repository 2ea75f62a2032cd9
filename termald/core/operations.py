"""What is done to a whole thread: compact, review, revert, archive, unarchive, fork. Each takes the session's slot
while it lasts.

Refused while the session is busy, so that nothing is steered or interrupted by accident; prompts that come meanwhile
park behind it (SETUP-26). Compact and review *are* turns: the slot is kept until that turn has begun, and from then on
the turn itself keeps the queue back. A revert first reads which turns it takes (`reverting`). A fork mints a thread, so
its intent is committed before it is written, and its reply makes a session (SETUP-27).
"""

from typing import Final

from msgspec.structs import replace

from state.records import IntentRecord, Problem, SessionRecord, ThreadId
from state.tags import mint_tag
from termald.core import answered, disposal, log, reverting, setup, turns
from termald.core.calls import Failure, close_call, entomb, open_call
from termald.core.effects import ForkThread, ManageThread, Op, ReadTurns, RevertThread, SessionAnswer
from termald.core.inputs import (
    ForkSession,
    OperateSession,
    OperationDeadline,
    RevertSession,
    ThreadOpened,
    TurnAccepted,
    TurnsRead,
)
from termald.core.model import Call, Cut, Operation, Purpose, Session, with_record
from termald.core.refusals import problem
from termald.core.work import Work

TURNS: Final = frozenset({"compact", "review"})
"""What is a turn of its own."""
LOADED: Final = TURNS | {"revert"}
"""What needs the thread loaded in Codex: the session is attached first."""


def operate(work: Work, command: OperateSession) -> None:
    """Begin an operation; its caller is answered when Codex has taken it."""
    session = _free(work, command)
    if session is not None:
        operation = Operation(kind=command.kind, ticket=command.ticket, target_json=command.target_json)
        work.put(replace(session, operation=operation))
        work.move_on(session.id)


def revert(work: Work, command: RevertSession) -> None:
    """Begin to take the newest turns back; its caller is answered when they are gone."""
    session = _free(work, command)
    if session is not None:
        cut = Cut(turns=command.turns, before_turn=command.before_turn)
        work.put(replace(session, operation=Operation(kind="revert", ticket=command.ticket, cut=cut)))
        work.move_on(session.id)


def fork(work: Work, command: ForkSession) -> None:
    """Begin a fork; its caller gets the new session."""
    if answered.before(work, command.ticket, command.idempotency):
        return
    if command.new_session in work.state.sessions:
        message = f"session id {command.new_session!r} is taken, or was once"
        work.refuse(command.ticket, "session-exists", message)
        return
    session = _free(work, command)
    if session is None:
        return
    generation = session.record.generation + 1
    session = work.put(with_record(session, generation=generation))
    tag = mint_tag(work.state.host.id, session.id, generation)
    work.state.intents.put(
        tag,
        IntentRecord(
            tag=tag,
            session_id=session.id,
            generation=generation,
            kind="fork",
            cwd=session.record.cwd,
            created_at_ms=work.at_ms,
        ),
    )
    work.promise()
    operation = Operation(
        kind="fork",
        ticket=command.ticket,
        tag=tag,
        new_session=command.new_session,
        title=command.title,
        idempotency=command.idempotency,
    )
    work.put(replace(session, operation=operation))
    work.move_on(session.id)


def _free(work: Work, command: OperateSession | RevertSession | ForkSession) -> Session | None:
    session = work.session(command.session)
    if session is None:
        work.refuse(command.ticket, "unknown-session", f"no session {command.session!r}")
    elif session.record.status == "closed":
        work.refuse(command.ticket, "session-closed", f"session {session.id!r} is closed")
    elif session.active or session.record.ending is not None or (session.queue and not session.record.paused):
        # A queue that is held does not run meanwhile: unarchiving a thread is what may let it go on.
        work.refuse(command.ticket, "session-busy", f"session {session.id!r} is busy")
    elif session.record.thread_id is None:
        work.refuse(
            command.ticket, "no-thread", f"session {session.id!r} has no thread yet; its first prompt makes one"
        )
    elif work.state.link.value is None:
        work.refuse(command.ticket, "runtime-unavailable", "Codex is not running")
    else:
        return session
    return None


def proceed(work: Work, session: Session) -> None:
    """Write the operation once nothing else is in flight, attaching first where it needs the thread loaded."""
    operation, thread = session.operation, session.record.thread_id
    assert operation is not None
    assert thread is not None
    if operation.call is not None or operation.awaits_turn or session.setup is not None or session.reading is not None:
        return
    if work.state.link.value is None:
        return
    if session.turn is not None:
        # Another front-end's, which the attaching found: it would be interrupted.
        give_up(work, session, "session-busy", f"a turn runs in session {session.id!r}, and it was not begun here")
        work.move_on(session.id)
        return
    if operation.kind in LOADED and not work.bound(session):
        setup.claim(work, session)
        return
    purpose, op = _asks(session, operation, thread)
    call = open_call(work, purpose, op, deadline_ms=work.state.limits.open_ms, session=session.id, thread=thread)
    work.put(replace(session, operation=replace(operation, call=call)))


def _asks(session: Session, operation: Operation, thread: ThreadId) -> tuple[Purpose, Op]:
    match operation.kind:
        case "fork":
            assert operation.tag is not None
            return "fork", ForkThread(thread=thread, session=session.record, tag=operation.tag)
        case "revert":
            assert operation.cut is not None
            op = reverting.next_step(session, operation.cut, thread)
            return ("look_back" if isinstance(op, ReadTurns) else "operate"), op
        case what:
            return "operate", ManageThread(thread=thread, what=what, target_json=operation.target_json)


def looked_back(work: Work, call: Call, reply: TurnsRead) -> None:
    """A page of what a revert would take was read: read on, cut, or say that there is no such turn."""
    close_call(work, call)
    session = _of(work, call)
    if session is None or session.operation is None:
        return
    operation = session.operation
    assert operation.cut is not None
    cut = reverting.add(operation.cut, reply)
    session = work.put(replace(session, operation=replace(operation, call=None, cut=cut)))
    if not cut.found and cut.older is None:
        give_up(work, session, "unknown-turn", reverting.missing(cut))
    work.move_on(session.id)


def done(work: Work, call: Call, reply: TurnAccepted | None) -> None:
    """Codex has taken the operation. `reply` names the turn that a review is."""
    close_call(work, call)
    if isinstance(call.op, RevertThread):
        reverting.done(work, call, call.op)  # also where nobody waits for it any more
    session = _of(work, call)
    if session is None or session.operation is None:
        return
    operation = session.operation
    work.answer(operation.ticket, SessionAnswer(session=session.record))
    if operation.kind in TURNS and session.turn is None:
        session = work.put(replace(session, operation=replace(operation, awaits_turn=True)))
        if reply is not None and reply.turn not in session.ended:
            turns.begin(work, session, reply.turn)
        else:
            timer = OperationDeadline(at_ms=0, session=session.id, call=call.id)
            work.arm(("operation", session.id), timer, work.state.limits.ack_ms)
    else:
        # A turn that runs has begun since: it is what was asked for, told before the answer, or what that cuts short.
        # Either keeps the queue back.
        session = work.put(replace(session, operation=None))
        if operation.kind == "archive" and work.bound(session):
            turns.unbind(work, session)  # Codex unloads what it archives
        elif operation.kind == "unarchive":
            work.put(setup.lift(session, "thread-archived"))  # what its prompts waited for has come
    work.move_on(session.id)


def forked(work: Work, call: Call, reply: ThreadOpened) -> None:
    """The fork's thread is there: it becomes a session of its own, detached until somebody prompts it."""
    close_call(work, call)
    session = _of(work, call)
    assert isinstance(call.op, ForkThread)
    owner = work.state.owner(reply.thread)
    if session is None or session.operation is None or owner is not None:
        setup.close_intent(work, call.op.tag, "ignored", "nobody waits for the fork any more", reply.thread)
        if owner is None:
            disposal.let_go(work, reply.thread, "forked for nobody", call.session)
        elif session is not None:
            # Somebody has seen it in Codex, and claimed it before the answer came.
            give_up(work, session, "thread-owned", f"thread {reply.thread} is owned by session {owner!r}")
            work.move_on(session.id)
        return
    operation = session.operation
    assert operation.new_session is not None
    setup.close_intent(work, call.op.tag, "claimed", None, reply.thread)
    disposal.reclaimed(work, reply.thread)
    if work.state.ignored.drop(reply.thread) is not None:
        log.thread(work, reply.thread, "unignored", "owned by a session", operation.new_session)
    parent = session.record
    record = SessionRecord(
        id=operation.new_session,
        title=operation.title or parent.title,
        origin="forked",
        cwd=parent.cwd,
        model=parent.model,
        model_provider=parent.model_provider,
        effort=parent.effort,
        service_tier=parent.service_tier,
        runtime_mode=parent.runtime_mode,
        approval_policy_json=parent.approval_policy_json,
        sandbox=parent.sandbox,
        developer_instructions=parent.developer_instructions,
        config_json=parent.config_json,
        on_resume_lost=parent.on_resume_lost,
        on_recovery=parent.on_recovery,
        request_policy=parent.request_policy,
        thread_id=reply.thread,
        history=True,
        message_count=parent.message_count,
        preview=parent.preview,
        parent_id=parent.id,
        created_at_ms=work.at_ms,
        updated_at_ms=work.at_ms,
    )
    new = work.put(Session(record=record))
    work.promise()
    log.session(work, new, "created", origin="forked", cwd=record.cwd, title=record.title, parentId=parent.id)
    work.put(replace(session, operation=None))
    disposal.leave(work, reply.thread)  # the fork subscribed us; the new session attaches when it is prompted
    answered.give(work, operation.ticket, operation.idempotency, SessionAnswer(session=new.record))
    work.move_on(session.id)


def failed(work: Work, call: Call, failure: Failure) -> None:
    """Codex refused, or did not answer: nothing is known to have changed."""
    if failure.how == "unanswered":
        entomb(work, call)
    else:
        close_call(work, call)
    if isinstance(call.op, ForkThread) and failure.definite:
        setup.close_intent(work, call.op.tag, "discarded", failure.why.message)
    session = _of(work, call)
    if session is not None and session.operation is not None:
        work.refuse_with(session.operation.ticket, failure.why)
        work.put(replace(session, operation=None))
        work.move_on(session.id)


def give_up(work: Work, session: Session, slug: str, message: str) -> Session:
    """The session cannot go on with its operation: its setup failed, its process is gone, somebody ends it."""
    operation = session.operation
    if operation is None:
        return session
    if not operation.awaits_turn:
        work.refuse_with(operation.ticket, problem(slug, message))
        if operation.tag is not None and operation.call is None:
            setup.close_intent(work, operation.tag, "discarded", message)
    work.disarm("operation", session.id)
    return work.put(replace(session, operation=None))


def deadline(work: Work, timer: OperationDeadline) -> None:
    """The turn that the operation is has not begun; it will be followed as anybody's if it does. The queue goes on."""
    session = work.session(timer.session)
    if session is not None and session.operation is not None and session.operation.call == timer.call:
        work.put(replace(session, operation=None))
        work.move_on(session.id)


def _of(work: Work, call: Call) -> Session | None:
    session = work.session(call.session) if call.session is not None else None
    operation = session.operation if session is not None else None
    return session if operation is not None and operation.call == call.id else None


def lost(work: Work, call: Call, why: Problem) -> None:
    """The link, or the process, is gone with the operation on it; whether Codex did it is not known."""
    session = _of(work, call)
    if session is not None:
        give_up(work, session, why.slug, why.message)
