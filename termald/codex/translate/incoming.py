"""One frame over one link, turned into one input. Never raises, whatever the bytes are."""

from collections.abc import Callable

from state.records import LinkId
from termald.codex import frames
from termald.codex.translate import asks, notices, replies
from termald.core.inputs import BadFrame, CallId, CallRefused, Input, Reply, ReplyMalformed
from termald.core.model import Purpose


def read(link: LinkId, raw: bytes, purpose_of: Callable[[CallId], Purpose | None], at_ms: int) -> Input:
    """Return what a frame says. `purpose_of` tells what the call was made for that a reply answers, or None if there is
    no such call."""
    frame = frames.decode(raw)
    match frame:
        case frames.Notification():
            return notices.notice(link, frame, at_ms)
        case frames.Reply():
            return _reply(link, frame, purpose_of, at_ms)
        case frames.ReplyError():
            return replies.refusal(link, frame, at_ms)
        case frames.ServerRequest():
            return asks.ask(link, frame, at_ms)
        case frames.Malformed():
            if isinstance(frame.id, int):
                # The answer to a call, unreadable: the call ends now, its outcome unknown, and does not wait for its
                # deadline (WIRE-04).
                return ReplyMalformed(link=link, call=CallId(frame.id), at_ms=at_ms, reason=frame.reason)
            return BadFrame(link=link, at_ms=at_ms, reason=frame.reason, excerpt=frame.excerpt)


def _reply(
    link: LinkId, frame: frames.Reply, purpose_of: Callable[[CallId], Purpose | None], at_ms: int
) -> Reply | CallRefused:
    # An id of the other type is nobody's (WIRE-08); the core counts a reply to an unknown call.
    call = CallId(frame.id) if isinstance(frame.id, int) else CallId(-1)
    return replies.reply(link, purpose_of(call) or "ask", frame, at_ms)
