"""Requests of ours to Codex: the window, the deadlines, the tombstones.

A call is opened with its purpose and stamp, waits for a place in the window, is written, and ends in exactly one way:
answered, refused, known not to have been written, unanswered at its deadline, or lost with its link. Who competes: the
reply and the deadline; the first to be taken wins. After the deadline a call that opened something stays as a
tombstone, so that its late reply can be adopted or disposed of, never dropped.
"""

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from state.records import (
    CodexAttachment,
    Problem,
    PromptId,
    SessionId,
    ThreadId,
    TurnId,
)
from termald.core.effects import DisposeThread, Op, Send, Unsubscribe
from termald.core.inputs import CallDeadline, CallId, CallRefused, CallRetry, Ticket
from termald.core.model import Call, Purpose
from termald.core.refusals import problem
from termald.core.work import Work

ENTOMBED: Final[frozenset[Purpose]] = frozenset({"open_fresh", "open_known", "turn", "steer", "fork"})
"""What leaves something behind in Codex when its reply is late."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """How a call ended without success. `refused` and `unwritten` are known not to have been executed; of the others
    nothing is known."""

    how: Literal["refused", "unwritten", "unanswered", "malformed"]
    why: Problem
    refusal: str | None = None
    active_turn: TurnId | None = None

    @property
    def definite(self) -> bool:
        """Whether it is known that Codex did nothing."""
        return self.how in ("refused", "unwritten")


def open_call(
    work: Work,
    purpose: Purpose,
    op: Op,
    *,
    deadline_ms: int,
    session: SessionId | None = None,
    attachment: CodexAttachment | None = None,
    prompt: PromptId | None = None,
    turn: TurnId | None = None,
    thread: ThreadId | None = None,
    ticket: Ticket | None = None,
) -> CallId:
    """Open a call on the current link and return its id. It is written at once or when the window has a place, in the
    order opened."""
    state = work.state
    link = state.link.value
    assert link is not None, "a call needs a link; who opens one has looked"
    call_id = state.next_call.value
    state.next_call.value = CallId(call_id + 1)
    state.calls.put(
        call_id,
        Call(
            id=call_id,
            link=link,
            purpose=purpose,
            op=op,
            session=session,
            attachment=attachment,
            prompt=prompt,
            turn=turn,
            thread=thread,
            ticket=ticket,
            deadline_ms=work.at_ms + deadline_ms,
        ),
    )
    work.arm(("call", str(call_id)), CallDeadline(at_ms=0, call=call_id), deadline_ms)
    state.calls_waiting.value += (call_id,)
    _fill_window(work)
    return call_id


def close_call(work: Work, call: Call) -> None:
    """The call is over: give its place to the next one."""
    work.state.calls.drop(call.id)
    _leave_window(work, call)
    work.disarm("call", str(call.id))
    work.disarm("retry", str(call.id))


def entomb(work: Work, call: Call) -> None:
    """Nobody waits for the call any more, but its reply may still come. One that was never written leaves nothing
    behind and is closed."""
    if not call.written:
        close_call(work, call)
        return
    work.state.calls.put(call.id, replace(call, tombstone=True, written=False))
    _leave_window(work, call)
    work.disarm("call", str(call.id))


def pause(work: Work, call: Call) -> None:
    """Codex refused it by overload, hence did not execute it: send the same request again after a pause, under the same
    stamp (TURN-09)."""
    retries = call.retries + 1
    work.state.calls.put(call.id, replace(call, written=False, retries=retries))
    _leave_window(work, call)
    pause_ms = work.state.limits.overload_pause_ms * min(2 ** (retries - 1), 32)
    work.arm(("retry", str(call.id)), CallRetry(at_ms=0, call=call.id), pause_ms, jitter_ms=pause_ms)


def resume_paused(work: Work, retry: CallRetry) -> None:
    """The pause is over."""
    call = work.state.calls.get(retry.call)
    if call is None or call.tombstone or call.written or call.id in work.state.calls_waiting.value:
        return
    if _leaves(call.op) and call.thread is not None and call.thread in work.state.routes:
        # A session has come back to the thread since: leaving it now would leave that one deaf.
        close_call(work, call)
        return
    work.state.calls_waiting.value += (call.id,)
    _fill_window(work)


def _leaves(op: Op) -> bool:
    return isinstance(op, Unsubscribe) or (isinstance(op, DisposeThread) and op.what == "unsubscribe")


def refused(reply: CallRefused, call: Call) -> Failure:
    """Return the failure that an error reply means. The code and text are kept whole; an unknown text is never read as
    a known one (WIRE-09)."""
    slug = {
        "overloaded": "codex-overloaded",
        "active_writer": "active-elsewhere",
        "archived": "thread-archived",
        "provider_missing": "provider-missing",
        "input_too_large": "input-too-large",
    }.get(reply.refusal)
    if slug is None:
        slug = {
            "open_fresh": "setup-refused",
            "open_known": "setup-refused",
            "turn": "turn-refused",
            "steer": "turn-refused",
        }.get(call.purpose, "codex-refused")
    return Failure(
        how="refused",
        why=problem(slug, reply.message, codex_code=reply.code, codex_message=reply.message),
        refusal=reply.refusal,
        active_turn=reply.active_turn,
    )


def _leave_window(work: Work, call: Call) -> None:
    state = work.state
    if call.written:
        state.calls_written.value -= 1
    else:
        state.calls_waiting.value = tuple(waiting for waiting in state.calls_waiting.value if waiting != call.id)
    _fill_window(work)


def _fill_window(work: Work) -> None:
    state = work.state
    while state.calls_waiting.value and state.calls_written.value < state.limits.calls_max:
        call_id, *rest = state.calls_waiting.value
        state.calls_waiting.value = tuple(rest)
        call = replace(state.calls[call_id], written=True)
        state.calls.put(call_id, call)
        state.calls_written.value += 1
        work.do(Send(link=call.link, call=call_id, op=call.op))
