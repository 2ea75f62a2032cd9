"""The whole behaviour: one input on one state, and what follows from it.

`step` finds the handler by the input's type, lets it decide, and then sees to what follows in the same step: notices
that came early for a thread that was bound now, and queues that may go on. So deciding and going on are one step, and
there is nothing in between that could go stale.
"""

from collections.abc import Callable
from typing import Any, Final

from termald.core import (
    calls,
    commands,
    discovery,
    disposal,
    ending,
    inputs,
    interrupts,
    log,
    operations,
    queue,
    recovery,
    requests,
    routing,
    setup,
    standstill,
    steering,
    turns,
    unloading,
)
from termald.core.effects import CodexAnswer, Effect
from termald.core.model import Call
from termald.core.refusals import problem
from termald.core.state import State
from termald.core.work import Work


def step(state: State, happened: inputs.Input) -> list[Effect]:
    """Decide one input: change the state, and return what should be done, in order. Raises only on a broken
    invariant."""
    work = Work(state, happened.at_ms)
    handler = HANDLERS.get(type(happened))
    if handler is not None:
        handler(work, happened)
    elif isinstance(happened, inputs.Reply):
        _reply(work, happened)
    else:
        assert isinstance(happened, inputs.ThreadNotice), f"no handler for {type(happened).__name__}"
        if _current(work, happened):
            routing.notice(work, happened)
    _follow_up(work)
    return work.effects


def _follow_up(work: Work) -> None:
    while work.claimed or work.bound_now or work.moved or setup.wake_next(work):
        if work.claimed:
            requests.claimed(work, work.claimed.pop(0))
        elif work.bound_now:
            session_id, opened = work.bound_now.pop(0)
            routing.replay_early(work, opened.thread)
            session = work.session(session_id)
            if session is not None and work.bound(session):
                recovery.after_bind(work, session, opened)
        else:
            session_id = next(iter(work.moved))
            del work.moved[session_id]
            queue.advance(work, session_id)


def _current(work: Work, happened: inputs.FromCodex) -> bool:
    """Whether it came over the current link: what an earlier one still says touches nothing (RUNTIME-04)."""
    if happened.link == work.state.link.value:
        return True
    work.state.late_frames.value += 1
    return False


# --- replies ---


def _reply(work: Work, reply: inputs.Reply) -> None:
    call = work.state.calls.get(reply.call)
    if call is None or call.link != reply.link or not _current(work, reply):
        work.state.late_frames.value += 1  # WIRE-08
        return
    if isinstance(reply, inputs.CallRefused):
        if reply.refusal == "overloaded" and call.written and work.at_ms < call.deadline_ms:
            calls.pause(work, call)
            return
        _failed(work, call, calls.refused(reply, call))
    elif isinstance(reply, inputs.ReplyMalformed):
        slug = "setup-unanswered" if call.purpose in ("open_fresh", "open_known") else "codex-unanswered"
        _failed(work, call, calls.Failure(how="malformed", why=problem(slug, f"a malformed reply: {reply.reason}")))
    else:
        _succeeded(work, call, reply)


def _succeeded(work: Work, call: Call, reply: inputs.Reply) -> None:
    match reply:
        case inputs.ThreadOpened():
            (operations.forked if call.purpose == "fork" else setup.opened)(work, call, reply)
        case inputs.TurnAccepted():
            _turn_accepted(work, call, reply)
        case inputs.TurnsRead():
            (operations.looked_back if call.purpose == "look_back" else recovery.turns_read)(work, call, reply)
        case inputs.CallDone():
            _done(work, call, reply)
        case _:
            raise AssertionError(f"no handler for {type(reply).__name__}")


def _turn_accepted(work: Work, call: Call, reply: inputs.TurnAccepted) -> None:
    match call.purpose:
        case "steer":
            steering.accepted(work, call, reply)
        case "operate":
            operations.done(work, call, reply)
        case _:
            turns.accepted(work, call, reply)


def _done(work: Work, call: Call, reply: inputs.CallDone) -> None:
    match call.purpose:
        case "interrupt":
            interrupts.answered(work, call, None)
        case "end_tools":
            ending.tools_over(work, call, None)
        case "dispose":
            disposal.step_over(work, call, None)
        case "operate":
            operations.done(work, call, None)
        case "ask":
            calls.close_call(work, call)
            if call.ticket is not None:
                work.answer(call.ticket, CodexAnswer(result_json=reply.result_json))
        case _:
            calls.close_call(work, call)


def _failed(work: Work, call: Call, failure: calls.Failure) -> None:
    match call.purpose:
        case "open_fresh" | "open_known":
            setup.failed(work, call, failure)
        case "turn":
            turns.refused(work, call, failure)
        case "steer":
            steering.refused(work, call, failure)
        case "operate" | "look_back" | "fork":
            operations.failed(work, call, failure)
        case "read":
            recovery.read_failed(work, call, failure)
        case "interrupt":
            interrupts.answered(work, call, failure)
        case "end_tools":
            ending.tools_over(work, call, failure)
        case "dispose":
            disposal.step_over(work, call, failure)
        case "name":
            commands.not_named(work, call, failure)
        case "ask" | "unsubscribe":
            calls.close_call(work, call)
            if call.ticket is not None:
                work.refuse_with(call.ticket, failure.why)


def _deadline(work: Work, timer: inputs.CallDeadline) -> None:
    call = work.state.calls.get(timer.call)
    if call is None or call.tombstone:
        return
    if not call.written:
        # It never left: refused by overload until now, or no place in the window. Known not to have been executed.
        why = problem("codex-overloaded", "Codex took no request in time")
        failure = calls.Failure(how="refused", why=why, refusal="overloaded")
    else:
        slug = "setup-unanswered" if call.purpose in ("open_fresh", "open_known") else "codex-unanswered"
        failure = calls.Failure(how="unanswered", why=problem(slug, "no answer within the deadline"))
    _failed(work, call, failure)


def _unwritten(work: Work, happened: inputs.CallUnwritten) -> None:
    call = work.state.calls.get(happened.call)
    if call is not None and not call.tombstone:
        why = problem(happened.slug, happened.message)
        _failed(work, call, calls.Failure(how="unwritten", why=why))


# --- what has no room of its own ---


def _request(work: Work, request: inputs.RequestArrived) -> None:
    if _current(work, request):
        requests.arrived(work, request)


def _raw(work: Work, notice: inputs.RawNotice) -> None:
    if _current(work, notice):
        routing.raw(work, notice)


def _bad(work: Work, frame: inputs.BadFrame) -> None:
    work.state.bad_frames.value += 1
    log.notice(work, None, "bad-frame", frame.reason, excerpt=frame.excerpt)


def _runtime_news(work: Work, news: inputs.RuntimeNews) -> None:
    log.news(work, f"runtime/{news.kind}", news.fields_json, runtimeId=news.runtime)


def _scan_news(work: Work, news: inputs.ScanNews) -> None:
    log.news(work, f"discovery/{news.kind}", news.fields_json)


HANDLERS: Final[dict[type[inputs.Input], Callable[[Work, Any], None]]] = {
    inputs.CreateSession: commands.create,
    inputs.PatchSession: commands.patch,
    inputs.SubmitPrompt: commands.submit,
    inputs.TakeBackPrompt: commands.take_back,
    inputs.ReorderPrompts: commands.reorder,
    inputs.RetrySession: commands.retry,
    inputs.OperateSession: operations.operate,
    inputs.RevertSession: operations.revert,
    inputs.ForkSession: operations.fork,
    inputs.InterruptSession: ending.interrupt,
    inputs.StopSession: ending.stop,
    inputs.CloseSession: ending.stop,
    inputs.KillSession: ending.kill,
    inputs.AnswerRequest: requests.answer,
    inputs.IgnoreThread: commands.ignore,
    inputs.UnignoreThread: commands.unignore,
    inputs.AskCodex: commands.ask,
    inputs.RestartRuntime: commands.restart,
    inputs.RequestArrived: _request,
    inputs.RawNotice: _raw,
    inputs.BadFrame: _bad,
    inputs.Booted: recovery.booted,
    inputs.LinkUp: recovery.link_up,
    inputs.LinkLost: recovery.link_lost,
    inputs.RuntimeExited: recovery.exited,
    inputs.ShuttingDown: recovery.shutting_down,
    inputs.RuntimeNews: _runtime_news,
    inputs.CallDeadline: _deadline,
    inputs.CallRetry: calls.resume_paused,
    inputs.CallUnwritten: _unwritten,
    inputs.SettleTurn: recovery.settle_turn,
    inputs.SettlePrompt: recovery.settle_prompt,
    inputs.EndingDeadline: ending.deadline,
    inputs.IdleUnload: unloading.unload,
    inputs.OperationDeadline: operations.deadline,
    inputs.LimitOver: standstill.over,
    inputs.RequestDeadline: requests.overdue,
    inputs.DisposalDeadline: disposal.deadline,
    inputs.ThreadDecided: discovery.decided,
    inputs.ScanNews: _scan_news,
}
