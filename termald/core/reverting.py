"""Taking turns back: which ones a revert cuts off, and what is gone with them.

Codex cuts before a turn that it is told by id, and says nothing of what it cut. So its record is read first, newest
turns first, until the cut is found: only then is it known which turns go and how many messages with them. The session's
slot is held from the first page on, so that nothing of ours comes between reading and cutting.

Measured on 0.163 and 0.171 (`tests/facts/test_revert.py`): the thread must be loaded, is unloaded and loaded again on
the way, and keeps its subscribers. Local files stay as they are.
"""

from msgspec.structs import replace

from state.records import ThreadId
from termald.core import log
from termald.core.effects import ReadTurns, RevertThread
from termald.core.inputs import TurnsRead
from termald.core.model import MESSAGES, Call, Cut, Session, with_record
from termald.core.work import Work


def next_step(session: Session, cut: Cut, thread: ThreadId) -> ReadTurns | RevertThread:
    """Return what is to be asked: one more page, or the cut itself."""
    attachment = session.record.attachment
    assert attachment is not None
    if not cut.found:
        return ReadTurns(attachment=attachment, thread=thread, older=cut.older)
    return RevertThread(
        attachment=attachment,
        thread=thread,
        before_turn=cut.removed[-1],
        removed=cut.removed,
        messages=cut.messages,
    )


def add(cut: Cut, page: TurnsRead) -> Cut:
    """Return the cut with the turns of one more page behind it, as far as they go."""
    for turn in page.turns:
        if cut.found:
            break
        messages = cut.messages + sum(item.type in MESSAGES for item in turn.items)
        cut = replace(cut, removed=(*cut.removed, turn.turn), messages=messages)
    return replace(cut, older=page.older)


def missing(cut: Cut) -> str:
    """Return why there is nothing to cut."""
    if cut.turns is None:
        return f"turn {cut.before_turn!r} is not in the thread"
    return f"the thread has {len(cut.removed)} turns, not {cut.turns}"


def done(work: Work, call: Call, op: RevertThread) -> None:
    """Codex has cut: what was taken back is no part of the session's history any more. The log keeps it."""
    session = work.session(call.session) if call.session is not None else None
    if session is None or session.record.thread_id != op.thread:
        return
    work.state.reverted += [(session.id, turn) for turn in op.removed]
    work.promise()
    if session.last_done is not None and session.last_done.id in op.removed:
        session = replace(session, last_done=None)
    count = max(0, session.record.message_count - op.messages)
    # The running sum of tokens begins anew: a sample that equals the last one told is no repetition of it.
    session = work.put(replace(with_record(session, message_count=count), total_seen=None, strayed=True))
    log.session(
        work, session, "updated", changed=["history"], beforeTurnId=op.before_turn, revertedTurns=list(op.removed)
    )
