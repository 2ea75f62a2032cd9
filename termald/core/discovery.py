"""What the import policy decided about threads that Codex has, applied to sessions and to the ignore set.

The policy itself is `discovery.policy`; it is asked on the state of now, inside the batch, so that a scan that saw a
thread before a kill cannot bring
it back (DISC-05). Nothing here asks anything of Codex.
"""

from state.records import KnownThread, SessionRecord
from termald.core import disposal, log
from termald.core.inputs import ThreadDecided
from termald.core.model import Session, with_record
from termald.core.work import Work


def decided(work: Work, verdict: ThreadDecided) -> None:
    """Apply one verdict."""
    thread = verdict.thread
    if verdict.outcome == "refresh":
        _refresh(work, thread)
    elif verdict.outcome == "import":
        _import(work, verdict)
    elif verdict.outcome == "ignore":
        disposal.ignore(work, thread.thread_id, verdict.reason)
    known = work.state.threads.get(thread.thread_id)
    if known != thread:
        work.state.threads.put(thread.thread_id, thread)


def _refresh(work: Work, thread: KnownThread) -> None:
    # Owned wins over ignored, in old data too: the entry goes in the commit that sees both (DISC-01).
    owner = work.state.owner(thread.thread_id)
    assert owner is not None
    if work.state.ignored.drop(thread.thread_id) is not None:
        log.thread(work, thread.thread_id, "unignored", "owned by a session", owner)
    session = work.session(owner)
    assert session is not None
    record = session.record
    changes: dict[str, object] = {}
    if thread.title and thread.title != record.title and record.origin == "discovered":
        changes["title"] = thread.title
    if thread.preview and not record.preview:
        changes["preview"] = thread.preview
    counts = thread.message_count is not None and record.attachment is None
    if counts and thread.message_count != record.message_count:
        changes["message_count"] = thread.message_count
        changes["history"] = record.history or bool(thread.message_count)
    if changes:
        session = with_record(session, **changes, updated_at_ms=max(record.updated_at_ms, thread.updated_at_ms))
        session = work.put(session, touch=False)
        log.session(work, session, "updated", changed=sorted(changes))


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
        history=True,
        message_count=thread.message_count or 0,
        preview=thread.preview,
        created_at_ms=thread.created_at_ms or work.at_ms,
        updated_at_ms=thread.updated_at_ms or work.at_ms,
    )
    session = work.put(Session(record=record), touch=False)
    log.session(work, session, "created", origin="discovered", cwd=record.cwd, title=record.title)
