"""The scripted model itself: what it was asked, what it is holding, and the answer to the next request.

`ScriptedModel` is what tests hold in their hand when they run the endpoint in their own process; over HTTP the same is
reached through the control addresses (`app`). Everything happens in one trio thread, so that a change and the look at
it never interleave.
"""

import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import trio

from termald.scripted_model.draft import DEFAULT_TEXT
from termald.scripted_model.plan import ModelCall, NoSuchCallError, Say
from termald.scripted_model.request import ModelRequest, read_request
from termald.scripted_model.script import ScriptError, parse_script
from termald.scripted_model.stream import COMPLETED, Action, Opening, Refuse, actions
from termald.scripted_model.tools import ToolNotOfferedError

CALLS_MAX = 10_000  # a stranger may leave the endpoint running; a call with a long history weighs some 10 kB

Place = tuple[str | None, str | None, int, str, int]  # thread, turn, number of user texts, the last of them, step

BEYOND = ModelCall((Say((DEFAULT_TEXT,)),))


class Call(msgspec.Struct, frozen=True, rename="camel"):
    """One request to the model, as other programs read it.

    `number` counts all requests from 1. `step` is the place of this model call in the turn's script (from 0; beyond it
    when the script is over), `attempt` how often it was asked (from 1). `outcome` is `open` until the answer ended:
    `completed`, `incomplete`, `failed` (an event said so), `refused` (an HTTP status), `cut` or `cutClean` (by the
    script), or `left` (the client went away, or the server was stopped). `error` says why a script was refused with
    400.
    """

    number: int
    thread_id: str | None
    turn_id: str | None
    kind: str | None
    step: int | None
    attempt: int
    prompt: str
    user_texts: tuple[str, ...]
    images: int
    tool_outputs: tuple[str, ...]
    developer_texts: tuple[str, ...]
    tools: tuple[str, ...]
    model: str
    effort: str | None
    service_tier: str | None
    output_schema: dict[str, Any] | None
    outcome: str = "open"
    error: str | None = None


class Held(msgspec.Struct, frozen=True, rename="camel"):
    """A name at which calls are waiting, and their numbers in the order of arrival."""

    name: str
    calls: tuple[int, ...]


class ScriptedModel:
    """The state behind the endpoint.

    `new_id` makes response ids and `now_s` tells the time in seconds since the epoch; both are passed by tests that
    compare bytes.
    """

    def __init__(
        self,
        *,
        new_id: Callable[[], str] = lambda: f"resp_{secrets.token_hex(12)}",
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._new_id = new_id
        self._now_s = now_s
        self._numbers = 0
        self._calls: dict[int, Call] = {}
        self._last_asked: dict[Place, int] = {}
        self._held: dict[str, list[tuple[int, trio.Event]]] = {}
        self._passes: dict[str, int] = {}
        self._changed = trio.Event()

    @property
    def calls(self) -> tuple[Call, ...]:
        """What was asked since the last `reset`, oldest first, at most the last `CALLS_MAX`."""
        return tuple(self._calls.values())

    @property
    def holds(self) -> tuple[Held, ...]:
        """What waits to be released now."""
        return tuple(Held(name, tuple(number for number, _ in waiting)) for name, waiting in self._held.items())

    def begin(self, body: bytes) -> tuple[int, Iterator[Action]]:
        """Record the request in this body; return its number and what answers it.

        A script that cannot be carried out is answered with 400 and recorded with its `error`.
        Errors: `BadRequestError` when the body is not a Responses request; nothing is recorded then.
        """
        request = read_request(body)
        try:
            step, call, key = self._place(request)
            attempt = self._attempt_after(key)
            opening = Opening(self._new_id(), request.model, int(self._now_s()))
            answer = actions(call, request.tools, opening, attempt)
        except (ScriptError, ToolNotOfferedError, NoSuchCallError) as error:
            number = self._record(request, None, 1, str(error))
            return number, iter((refusal(400, str(error)),))
        number = self._record(request, step, attempt, None)
        self._last_asked[key] = number
        if len(self._last_asked) > CALLS_MAX:
            del self._last_asked[next(iter(self._last_asked))]
        return number, answer

    def settle(self, number: int, outcome: str) -> None:
        """Say how the answer to this call ended; a call that was forgotten by `reset` stays forgotten."""
        if number in self._calls:
            self._calls[number] = msgspec.structs.replace(self._calls[number], outcome=outcome)
            self._tell()

    async def hold(self, number: int, name: str) -> None:
        """Wait until `name` is released; at once if it was released ahead of time."""
        if self._passes.get(name, 0) > 0:
            self._passes[name] -= 1
            return
        waiter = (number, trio.Event())
        self._held.setdefault(name, []).append(waiter)
        self._tell()
        try:
            await waiter[1].wait()
        finally:
            # Released together or gone alone: in both cases nobody waits here any more.
            if waiter in self._held.get(name, ()):
                self._held[name].remove(waiter)
                if not self._held[name]:
                    del self._held[name]
            self._tell()

    def release(self, name: str) -> int:
        """Let everyone go on who waits at `name`, and return how many; with nobody waiting, the next to come passes."""
        waiting = self._held.pop(name, [])
        for _, event in waiting:
            event.set()
        if not waiting:
            self._passes[name] = self._passes.get(name, 0) + 1
        return len(waiting)

    def reset(self) -> None:
        """Forget all calls, attempts and early releases, and let everyone go on who waits. Numbers go on growing."""
        for held in self.holds:
            self.release(held.name)
        self._calls, self._last_asked, self._passes = {}, {}, {}
        self._tell()

    async def wait_for_calls(self, count: int, *, thread_id: str | None = None) -> tuple[Call, ...]:
        """Wait until there are `count` calls (of this thread) and return them all. Bound it: it waits for ever."""
        while True:
            calls = tuple(call for call in self._calls.values() if thread_id in (None, call.thread_id))
            if len(calls) >= count:
                return calls
            await self._changed.wait()

    async def wait_settled(self, number: int) -> Call:
        """Wait until the answer to this call ended and return the call. Bound it: it waits for ever.

        Errors: `KeyError` when there is no such call.
        """
        while self._calls[number].outcome == "open":
            await self._changed.wait()
        return self._calls[number]

    async def wait_held(self, name: str, *, count: int = 1) -> tuple[int, ...]:
        """Wait until `count` calls are held at `name` and return their numbers. Bound it: it waits for ever."""
        while len(self._held.get(name, ())) < count:
            await self._changed.wait()
        return tuple(number for number, _ in self._held[name])

    def _place(self, request: ModelRequest) -> tuple[int, ModelCall, Place]:
        """Return the step of the script that this request asks for, its model call, and what identifies it.

        Codex may go on asking in a turn whose script is over: a sub-agent that ends meanwhile is news for the model.
        Such a call is beyond the script. Without a turn id the same request may as well be a new turn, so there the
        script begins again.
        """
        plan = parse_script(request.prompt)
        step, call = plan.call_after(request.tool_calls)
        key = _key(request, step)
        if step == len(plan.calls) - 1 and request.turn_id is not None:
            while self._is_completed(key):
                step, call = step + 1, BEYOND
                key = _key(request, step)
        return step, call, key

    def _is_completed(self, key: Place) -> bool:
        last = self._calls.get(self._last_asked.get(key, 0))
        return last is not None and last.outcome == COMPLETED

    def _attempt_after(self, key: Place) -> int:
        last = self._calls.get(self._last_asked.get(key, 0))
        return last.attempt + 1 if last is not None else 1

    def _record(self, request: ModelRequest, step: int | None, attempt: int, error: str | None) -> int:
        self._numbers += 1
        self._calls[self._numbers] = Call(
            number=self._numbers,
            thread_id=request.thread_id,
            turn_id=request.turn_id,
            kind=request.kind,
            step=step,
            attempt=attempt,
            prompt=request.prompt,
            user_texts=request.user_texts,
            images=request.images,
            tool_outputs=request.tool_outputs,
            developer_texts=request.developer_texts,
            tools=request.tools.names,
            model=request.model,
            effort=request.effort,
            service_tier=request.service_tier,
            output_schema=request.output_schema,
            error=error,
        )
        if len(self._calls) > CALLS_MAX:
            del self._calls[next(iter(self._calls))]
        self._tell()
        return self._numbers

    def _tell(self) -> None:
        changed, self._changed = self._changed, trio.Event()
        changed.set()


def _key(request: ModelRequest, step: int) -> Place:
    # The number of user texts is part of it: a steered turn keeps its id and begins a script of its own. So is the last
    # text, which is all that there is to go by where the client sends no ids.
    return request.thread_id, request.turn_id, len(request.user_texts), request.prompt, step


def refusal(status: int, message: str) -> Refuse:
    """Return the answer to a request that is itself at fault, in the shape of the Responses API."""
    error = {"message": message, "type": "invalid_request_error", "code": "invalid_script", "param": None}
    return Refuse(status, (), msgspec.json.encode({"error": error}))
