"""Codex asks: cards that are held until somebody decides, once (I6).

A request is one per (runtime, rpc id). Codex re-sends an open one to a new subscriber under the same id: it is the same
card, stamped anew, and a decision that was recorded is sent again, not asked again. A card ends exactly once: resolved
by Codex (after our answer, another front-end's, or by itself) or expired with its turn, its session or its process.
None is accepted without a recorded decision: what nobody can decide is declined or refused. Who decided stands with it:
its user, the session's policy at once, or its deadline, which declines.
"""

from typing import Final

from msgspec.structs import replace

from state.records import Decider, Problem, RequestId, RequestRecord, ThreadId, WaitingOn
from termald.core import answers, children, log
from termald.core.effects import AnswerForm, RequestAnswer, SendAnswer, SendRefusal
from termald.core.inputs import AnswerRequest, RequestArrived, RequestDeadline, RequestResolved
from termald.core.model import Session, with_record
from termald.core.work import Work

UNCLAIMED_MAX: Final = 64
"""Threads that nobody here holds and whose requests are kept, and requests of each; more are another front-end's."""

_WAITING: dict[str, WaitingOn] = {
    "command": "approval",
    "fileChange": "approval",
    "permissions": "approval",
    "userInput": "userInput",
    "elicitation": "userInput",
}


def arrived(work: Work, request: RequestArrived) -> None:
    """A request came over the current link: make a card of it, find the one it is, or answer it by rule."""
    session = None
    if request.thread is not None:
        session = work.route(request.thread) or children.parent(work, request.thread)
    if request.kind is None or request.thread is None:
        log.raw(work, session, request.method, request.params_json, request.turn)
        _by_rule(work, request)
        return
    if session is None:
        # Never routed by its turn id (REQ-03).
        _unclaimed(work, request, request.thread)
        return
    known = work.state.requests_by_rpc.get((request.link.runtime_id, request.rpc_id_json))
    if known is not None:
        _again(work, session, work.state.requests[known])
        return
    _open(work, session, request)


def _unclaimed(work: Work, request: RequestArrived, thread: ThreadId) -> None:
    log.raw(work, None, request.method, request.params_json, request.turn)
    if children.was_ours(work, thread):
        # A killed session's thread, or its child, may still ask: that is declined once (REQ-11).
        assert request.decline_json is not None, "each kind of card has something that says no"
        _send(work, request.rpc_id_json, "result", request.decline_json)
        return
    # Sub-agents ask every connection, other front-ends' as well: to answer for a thread that is not ours would take the
    # decision from whoever it belongs to. It waits for the call that names it as a child of ours (EVENT-12).
    kept = work.state.unclaimed.get(thread) or ()
    if len(kept) < UNCLAIMED_MAX and (kept or len(work.state.unclaimed) < UNCLAIMED_MAX):
        work.state.unclaimed.put(thread, (*kept, request))


def claimed(work: Work, thread: ThreadId) -> None:
    """The thread is a child of a session of ours: ask what it asked before that was known."""
    for request in work.state.unclaimed.drop(thread) or ():
        arrived(work, request)


def resolved_elsewhere(work: Work, notice: RequestResolved) -> None:
    """A request that nobody here claimed was answered by whoever it belongs to."""
    left = tuple(one for one in work.state.unclaimed.get(notice.thread) or () if one.rpc_id_json != notice.rpc_id_json)
    if left:
        work.state.unclaimed.put(notice.thread, left)
    else:
        work.state.unclaimed.drop(notice.thread)


def _open(work: Work, session: Session, request: RequestArrived) -> None:
    assert session.record.attachment is not None
    assert request.kind is not None
    assert request.thread is not None
    # The number of the event that opens it is unique and known: the core mints no random ids.
    record = RequestRecord(
        id=RequestId(f"req-{work.state.next_seq.value}"),
        session_id=session.id,
        attachment=session.record.attachment,
        rpc_id_json=request.rpc_id_json,
        method=request.method,
        kind=request.kind,
        thread_id=request.thread,
        turn_id=request.turn,
        item_id=request.item,
        params_json=request.params_json,
        decisions=request.decisions,
        opened_at_ms=work.at_ms,
    )
    work.state.requests.put(record.id, record)
    work.state.requests_by_rpc.put((request.link.runtime_id, request.rpc_id_json), record.id)
    log.request(work, session, record, "opened")
    session = replace(session, requests=(*session.requests, record.id))
    given = answers.by_policy(record, session.record.request_policy)
    if given is not None:
        _decide(work, session, record, given, "policy")
        return
    _show_waiting(work, session)
    _watch(work, session, record)


def _watch(work: Work, session: Session, record: RequestRecord) -> None:
    policy = session.record.request_policy
    chosen = None if policy is None else policy.deadline_ms
    wait_ms = work.state.limits.request_ms if chosen is None else chosen
    timer = RequestDeadline(at_ms=0, session=session.id, request=record.id)
    work.arm(("request", record.id), timer, max(0, record.opened_at_ms + wait_ms - work.at_ms))


def overdue(work: Work, timer: RequestDeadline) -> None:
    """Nobody has decided in time: decline, so that the turn goes on."""
    session = work.session(timer.session)
    record = work.state.requests.get(timer.request)
    if session is None or record is None or record.status != "open" or record.id not in session.requests:
        return
    if record.attachment == session.record.attachment:
        _decide(work, session, record, answers.decline(record), "deadline")


def _decide(work: Work, session: Session, record: RequestRecord, given: answers.Checked, by: Decider) -> RequestRecord:
    record = replace(record, status="answered", answer_form=given.form, answer_json=given.answer_json, decided_by=by)
    work.state.requests.put(record.id, record)
    work.disarm("request", record.id)
    work.promise()
    log.request(work, session, record, "answered", by=by)
    _show_waiting(work, session)
    _send(work, record.rpc_id_json, given.form, given.answer_json)
    return record


def _again(work: Work, session: Session, record: RequestRecord) -> None:
    assert session.record.attachment is not None
    stamped = replace(record, attachment=session.record.attachment)
    work.state.requests.put(record.id, stamped)
    if record.id not in session.requests:
        session = replace(session, requests=(*session.requests, record.id))
    _show_waiting(work, session)
    if record.status == "answered":
        assert record.answer_form is not None
        assert record.answer_json is not None
        _send(work, record.rpc_id_json, record.answer_form, record.answer_json)
    else:
        _watch(work, session, stamped)  # the daemon that had armed it may be no more


def answer(work: Work, command: AnswerRequest) -> None:
    """Decide an open request. The first answer that is committed wins; any other is 409 (REQ-05)."""
    session = work.session(command.session)
    if session is None:
        work.refuse(command.ticket, "unknown-session", f"no session {command.session!r}")
        return
    record = work.state.requests.get(command.request)
    if record is None or record.session_id != session.id or record.id not in session.requests:
        # The API looks the request up first and answers 404 for one that never was; one that is known and not here has
        # closed.
        work.refuse(command.ticket, "request-closed", f"request {command.request!r} is no longer open")
        return
    if record.status != "open" or record.attachment != session.record.attachment:
        work.refuse(command.ticket, "request-closed", f"request {record.id!r} is {record.status}")
        return
    checked = answers.check(record, command)
    if isinstance(checked, str):
        work.refuse(command.ticket, "decision-not-offered", checked)
        return
    record = _decide(work, session, record, checked, "user")
    work.answer(command.ticket, RequestAnswer(request=record))


def resolved(work: Work, session: Session, notice: RequestResolved) -> None:
    """Codex closed it: by our answer, another front-end's, or by itself. What it resolved alone gets no answer of ours
    (REQ-09)."""
    known = work.state.requests_by_rpc.get((notice.link.runtime_id, notice.rpc_id_json))
    record = work.state.requests.get(known) if known is not None else None
    if record is None or record.id not in session.requests:
        return
    by = "us" if record.status == "answered" else "elsewhere"
    _close(work, session, replace(record, status="resolved"), "resolved", by=by)


def expire_all(work: Work, session: Session, reason: str) -> Session:
    """Close every card of the session: its turn, its attachment or its process is gone (REQ-07, REQ-08)."""
    for record in work.state.session_requests(session):
        session = _close(work, session, replace(record, status="expired"), "expired", reason=reason)
    return session


def decline_all(work: Work, session: Session, why: Problem) -> Session:
    """Decline what is open before its session goes, so that Codex does not wait for somebody who left; each once, and
    recorded."""
    for record in work.state.session_requests(session):
        if record.status == "open":
            given = answers.decline(record)
            _send(work, record.rpc_id_json, given.form, given.answer_json)
            record = replace(  # noqa: PLW2901 - what is closed is what was answered
                record, answer_form=given.form, answer_json=given.answer_json, decided_by="kill"
            )
        session = _close(work, session, replace(record, status="expired"), "expired", reason=why.message)
    return session


def _close(work: Work, session: Session, record: RequestRecord, what: str, **fields: str) -> Session:
    work.state.requests.put(record.id, replace(record, closed_at_ms=work.at_ms))
    work.disarm("request", record.id)
    session = replace(session, requests=tuple(other for other in session.requests if other != record.id))
    log.request(work, session, record, what, **fields)
    return _show_waiting(work, session)


def _show_waiting(work: Work, session: Session) -> Session:
    kinds = [request.kind for request in work.state.session_requests(session) if request.status == "open"]
    waiting = _WAITING[kinds[0]] if kinds else None
    if waiting != session.record.waiting_on:
        session = work.put(with_record(session, waiting_on=waiting))
        log.session(work, session, "updated", waitingOn=waiting)
        return session
    return work.put(session)


def _by_rule(work: Work, request: RequestArrived) -> None:
    if request.rule_json is not None:
        _send(work, request.rpc_id_json, "result", request.rule_json)
    else:
        _refuse(work, request, request.rule_error or f"termald does not answer {request.method}")


def _send(work: Work, rpc_id_json: str, form: AnswerForm, answer_json: str) -> None:
    link = work.state.link.value
    if (
        link is not None
    ):  # without a link Codex asks again on the next one, and the recorded decision goes out then (BOOT-04)
        work.do(SendAnswer(link=link, rpc_id_json=rpc_id_json, form=form, answer_json=answer_json))


def _refuse(work: Work, request: RequestArrived, message: str) -> None:
    work.do(SendRefusal(link=request.link, rpc_id_json=request.rpc_id_json, message=message))
