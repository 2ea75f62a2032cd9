"""What callers ask for, apart from endings (`ending`) and answers (`requests`). Each is all or nothing, and answered
after the commit."""

from typing import Final

from msgspec.structs import replace

from state.records import SessionId, SessionRecord
from termald.core import answered, disposal, log, prompts, setup, steering
from termald.core.calls import Failure, close_call, open_call
from termald.core.effects import (
    Ask,
    DoneAnswer,
    IgnoredAnswer,
    NameThread,
    PromptAnswer,
    QueueAnswer,
    RestartProcess,
    SessionAnswer,
)
from termald.core.inputs import (
    AskCodex,
    CreateSession,
    IgnoreThread,
    PatchSession,
    ReorderPrompts,
    RestartRuntime,
    RetrySession,
    SubmitPrompt,
    TakeBackPrompt,
    Ticket,
    UnignoreThread,
)
from termald.core.model import Call, Session, with_record
from termald.core.refusals import problem
from termald.core.work import Work

PATCHABLE: Final = frozenset(
    {
        "title",
        "model",
        "model_provider",
        "effort",
        "service_tier",
        "runtime_mode",
        "approval_policy_json",
        "sandbox",
        "developer_instructions",
        "on_resume_lost",
        "on_recovery",
        "request_policy",
    }
)
"""Fields of a session that its user may change."""


def create(work: Work, command: CreateSession) -> None:
    """Create a session; nothing is asked of Codex before it has a prompt."""
    if answered.before(work, command.ticket, command.idempotency):
        return
    if command.session in work.state.sessions:
        work.refuse(command.ticket, "session-exists", f"session id {command.session!r} is taken, or was once")
        return
    thread = command.thread
    owner = work.state.owner(thread) if thread is not None else None
    if owner is not None:
        message = f"thread {thread} is owned by session {owner!r}; close it or pass another resumeCursor"
        work.refuse(command.ticket, "thread-owned", message)
        return
    settings = command.settings
    record = SessionRecord(
        id=command.session,
        title=settings.title,
        origin="created" if thread is None else "external",
        cwd=settings.cwd,
        model=settings.model,
        model_provider=settings.model_provider,
        effort=settings.effort,
        service_tier=settings.service_tier,
        runtime_mode=settings.runtime_mode,
        approval_policy_json=settings.approval_policy_json,
        sandbox=settings.sandbox,
        developer_instructions=settings.developer_instructions,
        config_json=settings.config_json,
        on_resume_lost=settings.on_resume_lost,
        on_recovery=settings.on_recovery,
        request_policy=settings.request_policy,
        thread_id=thread,
        # A thread that the caller names is taken to hold something: it is never replaced on the quiet.
        history=thread is not None,
        created_at_ms=work.at_ms,
        updated_at_ms=work.at_ms,
    )
    known = work.state.threads.get(thread) if thread is not None else None
    if known is not None:
        record = replace(
            record,
            title=record.title or known.title,
            preview=known.preview,
            message_count=known.message_count or 0,
        )
    if thread is not None and work.state.ignored.drop(thread) is not None:
        log.thread(work, thread, "unignored", "owned by a session", command.session)
    if thread is not None:
        disposal.reclaimed(work, thread)
    session = work.put(Session(record=record))
    work.promise()
    log.session(work, session, "created", origin=record.origin, cwd=record.cwd, title=record.title)
    prompt = None
    if command.prompt is not None:
        session, prompt = prompts.accept(work, session, command.prompt)
        work.move_on(session.id)
    answered.give(work, command.ticket, command.idempotency, SessionAnswer(session=session.record, prompt=prompt))


def submit(work: Work, command: SubmitPrompt) -> None:
    """Accept a prompt. It ends what held the queue, except a lost thread: that needs a word of its own."""
    if answered.before(work, command.ticket, command.idempotency):
        return
    session = _found(work, command.ticket, command.session)
    if session is None:
        return
    if session.record.status == "closed" or session.record.ending == "close":
        message = f"session {session.id!r} is closed; continue its thread with resumeCursor in a new session"
        work.refuse(command.ticket, "session-closed", message)
        return
    if session.record.home is not None:
        message = f"session {session.id!r} lies in {session.record.home}, which is only read; run a daemon on that home"
        work.refuse(command.ticket, "foreign-home", message)
        return
    if command.prompt.mode == "reject" and session.busy:
        work.refuse(command.ticket, "session-busy", f"session {session.id!r} is busy, and the prompt's mode is reject")
        return
    if len(session.queue) >= work.state.limits.queue_prompts_max:
        work.refuse(command.ticket, "queue-full", f"{len(session.queue)} prompts wait in session {session.id!r}")
        return
    session, prompt = prompts.accept(work, session, command.prompt)
    if command.prompt.mode == "replace":
        steering.replace_all(work, session, prompt.id)
        session = work.state.sessions[session.id]
    if session.record.paused and not session.record.resume_lost:
        session = work.put(replace(with_record(session, paused=False), looks=0))
    work.move_on(session.id)
    answered.give(work, command.ticket, command.idempotency, PromptAnswer(prompt=prompt))


def take_back(work: Work, command: TakeBackPrompt) -> None:
    """Cancel a prompt that is still queued; once it was sent it is too late (TURN-25)."""
    session = _found(work, command.ticket, command.session)
    if session is None:
        return
    prompt = work.state.prompts.get(command.prompt)
    if prompt is None or prompt.id not in session.queue or prompt.delivery != "queued":
        work.refuse(command.ticket, "prompt-sent", f"prompt {command.prompt!r} was sent or has ended")
        return
    session = work.put(prompts.without(session, prompt.id))
    prompts.end(work, session, prompt.id, "cancelled", problem("taken-back", "taken back by its sender"))
    work.promise()
    work.move_on(session.id)
    work.answer(command.ticket, PromptAnswer(prompt=work.prompt(prompt.id)))


def reorder(work: Work, command: ReorderPrompts) -> None:
    """Let some prompts run before the others. One that was sent, or may have been, keeps its place (I5)."""
    session = _found(work, command.ticket, command.session)
    if session is None:
        return
    waiting = [prompt for prompt in session.queue if work.prompt(prompt).delivery == "queued"]
    sent = next((prompt for prompt in command.prompts if prompt not in waiting), None)
    if sent is not None:
        work.refuse(command.ticket, "prompt-sent", f"prompt {sent!r} was sent or has ended")
        return
    session = prompts.reorder(
        work, session, (*command.prompts, *(one for one in waiting if one not in command.prompts))
    )
    work.promise()
    queue = [work.prompt(prompt) for prompt in session.queue]
    log.session(work, session, "updated", changed=["queue"], queue=[prompt.id for prompt in queue])
    work.answer(command.ticket, QueueAnswer(prompts=tuple(queue)))


def patch(work: Work, command: PatchSession) -> None:
    """Change settings; the running turn keeps those it began with (TURN-24)."""
    session = _found(work, command.ticket, command.session)
    if session is None:
        return
    unknown = set(command.changes) - PATCHABLE
    assert not unknown, f"the edge lets only known fields through, not {unknown}"
    session = work.put(replace(with_record(session, **command.changes), strayed=True))
    work.promise()
    log.session(work, session, "updated", changed=sorted(command.changes))
    if "title" in command.changes:
        _name_thread(work, session)
    work.answer(command.ticket, SessionAnswer(session=session.record))


def _name_thread(work: Work, session: Session) -> None:
    # Other front-ends show the thread's name. Where Codex does not run, or there is no thread yet, it has none of ours.
    record = session.record
    if record.title and record.thread_id is not None and record.home is None and work.state.link.value is not None:
        op = NameThread(thread=record.thread_id, name=record.title)
        open_call(work, "name", op, deadline_ms=work.state.limits.ack_ms, session=session.id, thread=op.thread)


def not_named(work: Work, call: Call, failure: Failure) -> None:
    """Codex did not take the name; the session has it all the same."""
    close_call(work, call)
    session = work.session(call.session) if call.session is not None else None
    if session is not None:
        log.notice(work, session, "not-named", failure.why.message)


def retry(work: Work, command: RetrySession) -> None:
    """Let held prompts go on; `fresh` gives up a lost thread for a new one."""
    session = _found(work, command.ticket, command.session)
    if session is None:
        return
    if command.fresh:
        if not session.record.resume_lost:
            message = f"session {session.id!r} has not lost its thread"
            work.refuse(command.ticket, "not-lost", message)
            return
        if session.active:
            work.refuse(command.ticket, "session-busy", f"session {session.id!r} is looking for its thread")
            return
        session = setup.release_thread(work, session, "given up by its user", ignore=False)
    if session.queue and setup.is_held_to_be_sent_again(session):
        prompts.requeue(work, session.queue[0])
    session = with_record(session, paused=False, resume_lost=False)
    if session.record.status == "error" and session.turn is not None:
        session = replace(session, reattach=not work.bound(session))  # what runs is followed from a new attachment
    elif session.record.status == "error":
        bound = work.bound(session)
        attachment = session.record.attachment if bound else None
        session = with_record(session, status="ready" if bound else "detached", attachment=attachment)
    session = work.put(replace(session, looks=0))
    work.promise()
    log.session(work, session, "updated", changed=["paused"])
    work.move_on(session.id)
    work.answer(command.ticket, SessionAnswer(session=session.record))


def ignore(work: Work, command: IgnoreThread) -> None:
    """Put a thread into the ignore set; an owned one is its session's (DISC-01)."""
    entry = command.entry
    owner = work.state.owner(entry.thread_id)
    if owner is not None:
        message = f"thread {entry.thread_id} is owned by session {owner!r}; kill the session to ignore its thread"
        work.refuse(command.ticket, "thread-owned", message)
        return
    known = work.state.ignored.get(entry.thread_id)
    if known is not None:
        entry = replace(known, reason=entry.reason)
    work.state.ignored.put(entry.thread_id, entry)
    work.promise()
    log.thread(work, entry.thread_id, "ignored", entry.reason)
    work.answer(command.ticket, IgnoredAnswer(entry=entry))


def unignore(work: Work, command: UnignoreThread) -> None:
    """Take a thread out of the ignore set; the next scan looks at it anew."""
    entry = work.state.ignored.drop(command.thread)
    if entry is None:
        work.refuse(command.ticket, "not-ignored", f"thread {command.thread} is not ignored")
        return
    known = work.state.threads.get(command.thread)
    if known is not None:
        # Without its stamp the thread counts as changed, so that a scan that passes over unchanged ones decides it
        # again.
        work.state.threads.put(command.thread, replace(known, stamp=""))
    work.promise()
    log.thread(work, command.thread, "unignored", "by the user")
    work.answer(command.ticket, IgnoredAnswer(entry=entry))


def ask(work: Work, command: AskCodex) -> None:
    """Pass a read on to Codex."""
    if work.state.link.value is None:
        work.refuse(command.ticket, "runtime-unavailable", "Codex is not running")
        return
    open_call(
        work,
        "ask",
        Ask(method=command.method, params_json=command.params_json),
        deadline_ms=work.state.limits.read_ms,
        ticket=command.ticket,
    )


def restart(work: Work, command: RestartRuntime) -> None:
    """Have the process replaced; its exit settles the turns."""
    work.do(RestartProcess())
    work.answer(command.ticket, DoneAnswer())


def _found(work: Work, ticket: Ticket, session_id: SessionId) -> Session | None:
    session = work.session(session_id)
    if session is None:
        work.refuse(ticket, "unknown-session", f"no session {session_id!r}")
    return session
