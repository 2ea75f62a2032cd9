"""One model call of a plan as what the endpoint has to do, in order. Pure: waiting and sending are the endpoint's part.

The answer is opened (status line, headers, `response.created`) with the first thing that has to be on the stream and
not before, so that a script can hold or delay a refusal as well.
"""

from collections.abc import Iterator

import msgspec

from termald.scripted_model.events import ResponseEvents, sse
from termald.scripted_model.plan import (
    Cut,
    Fail,
    Header,
    Hold,
    ModelCall,
    NewMessage,
    Open,
    Raw,
    Reason,
    Say,
    Step,
    ToolStep,
    Usage,
    Wait,
)
from termald.scripted_model.tools import Tools, tool_item

DEFAULT_INPUT_TOKENS = 100

COMPLETED = "completed"
CUT = "cut"
CUT_CLEAN = "cutClean"
REFUSED = "refused"
LEFT = "left"


Headers = tuple[tuple[str, str], ...]


class Begin(msgspec.Struct, frozen=True):
    """Open the answer: status 200, and these headers beside those of every stream. Comes once, before `Send`."""

    headers: Headers


class Send(msgspec.Struct, frozen=True):
    """Put these bytes on the stream."""

    data: bytes


class Pause(msgspec.Struct, frozen=True):
    """Let this time pass."""

    ms: float


class Block(msgspec.Struct, frozen=True):
    """Wait until this name is released."""

    name: str


class Refuse(msgspec.Struct, frozen=True):
    """Answer with this status and a JSON body instead of a stream. Nothing was sent before, nothing comes after."""

    status: int
    headers: Headers
    body: bytes


class Drop(msgspec.Struct, frozen=True):
    """Drop the connection in the middle of the body. Nothing comes after."""


class Finish(msgspec.Struct, frozen=True):
    """End the body. `outcome` is the word for the record: `completed`, `incomplete`, `failed` or `cutClean`."""

    outcome: str


Action = Begin | Send | Pause | Block | Refuse | Drop | Finish


class Opening(msgspec.Struct, frozen=True):
    """What the events of a response are stamped with."""

    response_id: str
    model: str
    created_at_s: int


def default_usage(call: ModelCall) -> Usage:
    """Return the usage of a call that states none: a fixed input, and one output token per piece of text."""
    spoken = sum(len(step.pieces) for step in call.steps if isinstance(step, Say))
    reasoned = sum(len(step.pieces) for step in call.steps if isinstance(step, Reason))
    return Usage(input=DEFAULT_INPUT_TOKENS, output=spoken + reasoned, reasoning=reasoned)


def actions(call: ModelCall, tools: Tools, opening: Opening, attempt: int) -> Iterator[Action]:
    """Yield what answers attempt `attempt` (from 1) of this call; the last action is `Refuse`, `Drop` or `Finish`.

    A failure with `times=N` is met by the N attempts that reach it and passed by those after them.
    Errors: `ToolNotOfferedError`, before anything is yielded.
    """
    items = [
        tool_item(step, tools, f"call_{opening.response_id}_{n}")
        for n, step in enumerate(call.steps)
        if isinstance(step, ToolStep)
    ]
    return _actions(call, items, opening, attempt)


def _actions(call: ModelCall, items: list[dict[str, object]], opening: Opening, attempt: int) -> Iterator[Action]:
    events = ResponseEvents(opening.response_id, opening.model, opening.created_at_s)
    calls = iter(items)
    headers: list[tuple[str, str]] = []
    is_open = False
    for step in call.steps:
        if isinstance(step, Fail | Cut) and step.times is not None and attempt > step.times:
            attempt -= step.times
            continue
        if not is_open and _needs_stream(step):
            is_open = True
            yield Begin(tuple(headers))
            yield Send(events.created())
        if isinstance(step, Fail):
            yield from _fail(step, events, opening, headers)
            return
        if isinstance(step, Cut):
            yield Finish(CUT_CLEAN) if step.clean else Drop()
            return
        if isinstance(step, Header):
            headers.append((step.name, step.value))
        elif isinstance(step, ToolStep):
            yield Send(events.tool_call(next(calls)))
        else:
            yield from _say(step, events)
    if not is_open:
        yield Begin(tuple(headers))
        yield Send(events.created())
    usage = call.usage or default_usage(call)
    if call.incomplete is not None:
        yield Send(events.incomplete(usage, call.incomplete))
        yield Finish("incomplete")
        return
    yield Send(events.completed(usage))
    yield Finish(COMPLETED)


def _needs_stream(step: Step) -> bool:
    return not (isinstance(step, Header | Wait | Hold) or (isinstance(step, Fail) and step.status is not None))


def _say(step: Say | NewMessage | Reason | Open | Wait | Hold | Raw, events: ResponseEvents) -> Iterator[Action]:
    match step:
        case Say() | Reason():
            yield from _paced(step, events)
        case NewMessage():
            if closing := events.close_item():
                yield Send(closing)
        case Wait(ms):
            yield Pause(ms)
        case Hold(name):
            yield Block(name)
        case Raw(event, data):
            yield Send(sse(event, data.encode()))
        case Open():
            pass  # opened by the caller


def _paced(step: Say | Reason, events: ResponseEvents) -> Iterator[Action]:
    write = events.text if isinstance(step, Say) else events.reasoning
    if step.pace_ms == 0 or not step.pieces:
        for chunk in write(step.pieces):
            yield Send(chunk)
        return
    for piece in step.pieces:
        yield Pause(step.pace_ms)
        for chunk in write((piece,)):
            yield Send(chunk)


def _fail(step: Fail, events: ResponseEvents, opening: Opening, headers: list[tuple[str, str]]) -> Iterator[Action]:
    error: dict[str, object] = {"message": step.message, "code": step.code}
    if step.kind is not None:
        error["type"] = step.kind
    if step.resets_in_s is not None:
        error |= {"resets_in_seconds": step.resets_in_s, "resets_at": opening.created_at_s + step.resets_in_s}
    if step.status is None:
        yield Send(events.failed(error))
        yield Finish("failed")
        return
    if step.retry_after_s is not None:
        headers = [*headers, ("retry-after", str(step.retry_after_s))]
    yield Refuse(step.status, tuple(headers), msgspec.json.encode({"error": error}))
