"""What the import policy decided about threads that Codex has, and what is told of threads that are owned but not
bound: applied to sessions and to the ignore set.

The policy itself is `discovery.policy`; it is asked on the state of now, inside the batch, so that a scan that saw a
thread before a kill cannot bring it back (DISC-05). Nothing here asks anything of Codex.
"""

from typing import Any

from msgspec.structs import replace

from state.records import KnownThread, SessionRecord
from termald.core import disposal, log, turns
from termald.core.inputs import ThreadDecided, ThreadGone, ThreadNotice, ThreadRenamed, ThreadUnarchived
from termald.core.model import Session, with_record
from termald.core.refusals import problem
from termald.core.work import Work


def decided(work: Work, verdict: ThreadDecided) -> None:
    """Apply one verdict."""
    thread = verdict.thread
    known = work.state.threads.get(thread.thread_id)
    if verdict.foreign and known is not None and known.home not in ("", thread.home):
        return  # a copy of a thread that is known from its own home
    if verdict.outcome == "refresh":
        _refresh(work, verdict)
    elif verdict.outcome == "import":
        _import(work, verdict)
    elif verdict.outcome == "ignore":
        disposal.ignore(work, thread.thread_id, verdict.reason)
    elif verdict.outcome == "skip":
        _seen(work, thread)
    told_only = not thread.home  # by a notice, which knows less than a scan
    if known != thread and not (told_only and (known is not None or verdict.outcome == "refresh")):
        work.state.threads.put(thread.thread_id, thread)


def told(work: Work, notice: ThreadNotice) -> bool:
    """Apply a notice about a thread that a session owns and no link is bound to; return whether it was such a one."""
    owner = work.state.owner(notice.thread)
    session = work.session(owner) if owner is not None else None
    if session is None:
        return False
    match notice:
        case ThreadRenamed():
            change(work, session, title=notice.name or session.record.title)
        case ThreadUnarchived():
            change(work, session, archived=False)
        case ThreadGone(how="archived"):
            change(work, session, archived=True)
        case ThreadGone(how="deleted"):
            _deleted(work, session)
        case _:
            return False
    return True


def change(work: Work, session: Session, **changes: Any) -> None:
    """Write what differs, and tell which fields did."""
    changes = {name: value for name, value in changes.items() if getattr(session.record, name) != value}
    if changes:
        session = work.put(with_record(session, **changes), touch=False)
        log.session(work, session, "updated", changed=sorted(changes))


def _seen(work: Work, thread: KnownThread) -> None:
    entry = work.state.ignored.get(thread.thread_id)
    if entry is not None:
        work.state.ignored.put(thread.thread_id, replace(entry, last_seen_ms=work.at_ms))


def _deleted(work: Work, session: Session) -> None:
    if session.turn is not None:
        # Followed by its record alone, for the thread could not be resumed; and there is no record any more (I7).
        session = turns.finish(work, session, "cancelled", message="Codex deleted the thread", reconciled=True)
    # One of which nothing was ever recorded loses nothing: its next prompt starts anew by itself (SETUP-20).
    if session.record.history and not session.record.resume_lost:
        lost = problem("resume-lost", "the thread was deleted in Codex")
        session = with_record(session, status="error", attachment=None, paused=True, resume_lost=True, last_error=lost)
        log.resume_lost(work, work.put(session), lost)


def _refresh(work: Work, verdict: ThreadDecided) -> None:
    # Owned wins over ignored, in old data too: the entry goes in the commit that sees both (DISC-01).
    thread = verdict.thread
    owner = work.state.owner(thread.thread_id)
    assert owner is not None
    if work.state.ignored.drop(thread.thread_id) is not None:
        log.thread(work, thread.thread_id, "unignored", "owned by a session", owner)
    session = work.session(owner)
    assert session is not None
    if not thread.home:
        return
    record = session.record
    changes: dict[str, Any] = {"archived": thread.archived, **_home(record, verdict)}
    if thread.title and record.origin == "discovered":
        changes["title"] = thread.title
    if thread.preview and not record.preview:
        changes["preview"] = thread.preview
    if record.attachment is None:
        changes |= _counted(record, thread)
        changes |= _readable(record, thread)
    if any(getattr(record, name) != value for name, value in changes.items()):
        changes["updated_at_ms"] = max(record.updated_at_ms, thread.updated_at_ms)
    change(work, session, **changes)


def _home(record: SessionRecord, verdict: ThreadDecided) -> dict[str, Any]:
    if not verdict.foreign:
        return {"home": None}
    # A thread of ours that also lies in a foreign home is a copy there.
    return {"home": verdict.thread.home} if record.origin == "discovered" else {}


def _counted(record: SessionRecord, thread: KnownThread) -> dict[str, Any]:
    if thread.message_count is None:
        return {}
    return {"message_count": thread.message_count, "history": record.history or bool(thread.message_count)}


def _readable(record: SessionRecord, thread: KnownThread) -> dict[str, Any]:
    """Whether Codex could resume it. A prompt may try all the same: what Codex says then is the last word."""
    if thread.rollout_path is None and record.history and record.status == "detached":
        message = f"{thread.home} has the thread but not its rollout; Codex could not resume it"
        return {"status": "error", "last_error": problem("rollout-missing", message)}
    told_missing = record.last_error is not None and record.last_error.slug == "rollout-missing"
    if thread.rollout_path is not None and told_missing and record.status == "error":
        return {"status": "detached", "last_error": None}
    return {}


def _import(work: Work, verdict: ThreadDecided) -> None:
    thread = verdict.thread
    assert thread.thread_id not in work.state.ignored, "I9: an ignored thread is never imported"
    record = SessionRecord(
        id=verdict.new_session,
        title=thread.title,
        origin="discovered",
        cwd=thread.cwd,
        model=thread.model,
        model_provider=thread.model_provider,
        thread_id=thread.thread_id,
        home=thread.home if verdict.foreign else None,
        archived=thread.archived,
        history=True,
        message_count=thread.message_count or 0,
        preview=thread.preview,
        created_at_ms=thread.created_at_ms or work.at_ms,
        updated_at_ms=thread.updated_at_ms or work.at_ms,
    )
    disposal.reclaimed(work, thread.thread_id)
    session = work.put(Session(record=record), touch=False)
    log.session(work, session, "created", origin="discovered", cwd=record.cwd, title=record.title)
