"""A turn of the scripted app-server: acknowledged, active, played as its prompt says, and over.

The prompt is a script in the language of `termald.scripted_model`, as it is for the real Codex with the scripted model;
so one text has both do the same.
"""

from typing import Any, Final

import trio
from support import scripted_codex_wire as wire
from support.scripted_codex_home import ITEM, TURN, TurnRow
from support.scripted_codex_links import Connection
from support.scripted_codex_process import Loaded, Process, Turn
from support.scripted_codex_tools import ask_user, patch_files, run_command, tell_diff
from support.scripted_codex_wire import Json

from termald.scripted_model.plan import Ask, Cut, Fail, Hold, ModelCall, NewMessage, Patch, Reason, Say, Shell, Wait
from termald.scripted_model.script import parse_script
from termald.scripted_model.stream import default_usage

Tool = Shell | Patch | Ask
ATTEMPTS_MAX: Final = 3
"""`stream_max_retries = 2`, as the scripted model's home has it."""
COMPACTION: Final = (100, 60, 0)
GAP_S_MAX: Final = 1.0
"""From the acknowledgement of a turn to its activity; the real one was seen to take 25 ms at most."""
HIGH_DEMAND: Final = "We\u2019re currently experiencing high demand, which may cause temporary errors."
DROPPED: Final = "stream disconnected before completion: Transport error: network error: error decoding response body"
_NO_RETRY: Final = (400, 429)
_REASONS: Final = {401: "Unauthorized", 503: "Service Unavailable", 400: "Bad Request"}


class _Failed(Exception):  # noqa: N818 - how an attempt of the model's ends, not a failure of the fake
    """An attempt failed: what is told of it, whether it is tried again, and what it comes to in the end."""

    def __init__(self, retried: Json | None, final: Json) -> None:
        super().__init__(final["message"])
        self.retried = retried
        self.final = final


def acknowledge(codex: Process, loaded: Loaded, given: tuple[str | None, list[Json]]) -> Turn:
    """Return a new turn that is acknowledged, and neither active nor written down."""
    turn = Turn(TurnRow(id=codex.home.mint(TURN), began_s=trio.current_time()))
    turn.inputs.append(given)
    loaded.turn = turn
    loaded.failed = False
    return turn


async def run(codex: Process, loaded: Loaded, turn: Turn) -> None:
    """Live through a turn."""
    cwd = loaded.row.cwd
    deed = await codex.misdeed("gap", cwd)
    await codex.pause(cwd, 0.001, 0.02)
    if deed is not None and deed.name == "slow":
        await trio.sleep(min(deed.seconds, GAP_S_MAX))
    if deed is not None and deed.name == "vanish":
        # Acknowledged and dropped before its user item: nothing of it is ever written down.
        turn.over = True
        loaded.turn = None
        turn.ended.set()
        return
    loaded.row.stored = True
    loaded.row.turns.append(turn.row)
    turn.active = True
    codex.tell_status(loaded)
    codex.tell(loaded, "turn/started", {"turn": wire.turn(turn.row.id, "inProgress")})
    status, failure = "interrupted", None
    with turn.scope:
        try:
            await _Play(codex, loaded, turn).all()
            status = "interrupted" if turn.interrupted_by_answer else "completed"
        except _Failed as failed:
            status, failure = "failed", failed.final
            loaded.failed = True
            codex.tell_status(loaded)
            codex.tell(loaded, "error", {"error": failure, "willRetry": False, "turnId": turn.row.id})
    await _end(codex, loaded, turn, status, failure)


async def _end(codex: Process, loaded: Loaded, turn: Turn, status: str, failure: Json | None) -> None:
    deed = await codex.misdeed("end", loaded.row.cwd)
    name = deed.name if deed is not None else ""
    turn.active, turn.over = False, True
    turn.row.status, turn.row.failure = status, failure
    loaded.turn = None
    loaded.flags.clear()
    if status != "failed":
        codex.tell_status(loaded)
    messages = [item for item in turn.row.items if item["type"] == "agentMessage"]
    shown = wire.turn(turn.row.id, status, items=messages[-1:], view="summary", failure=failure)
    if status != "completed" or not messages:
        shown = wire.turn(turn.row.id, status, failure=failure)
    if name == "end-late" and deed is not None:
        await trio.sleep(deed.seconds)
    if name != "end-untold":
        codex.tell(loaded, "turn/completed", {"turn": shown})
    for asked in list(loaded.requests):
        codex.resolve(loaded, asked)
    if name == "end-twice":
        codex.tell(loaded, "turn/completed", {"turn": shown})
    elif name == "error-again":
        told = wire.failure("late", "other")
        codex.tell(loaded, "error", {"error": told, "willRetry": False, "turnId": turn.row.id})
    elif name == "late-item":
        item = wire.agent_message(codex.home.mint(ITEM), "an afterthought")
        turn.row.items.append(item)
        codex.tell(loaded, "item/completed", {"item": item, "turnId": turn.row.id})
    turn.ended.set()
    if codex.draining and not any(one.turn for one in codex.threads.values()):
        codex.die(signal="SIGTERM")


def tell_usage(codex: Process, loaded: Loaded, turn: str, *, only: Connection | None = None) -> None:
    """Tell what the last model call cost, and all of them so far. `only`: the replay that a resume brings."""
    total, last = wire.tokens(*loaded.row.usage), wire.tokens(*loaded.row.last_usage)
    told = {"total": total, "last": last, "modelContextWindow": 258_400}
    params = {"threadId": loaded.row.id, "turnId": turn, "tokenUsage": told}
    if only is None:
        codex.tell(loaded, "thread/tokenUsage/updated", params)
    else:
        codex.write(only, wire.notification("thread/tokenUsage/updated", params, codex.now_ms()))


def tell_owed(codex: Process, loaded: Loaded, turn: Turn) -> None:
    """Tell what the last model call cost, if that was not told yet."""
    if turn.owed is None:
        return
    spent, turn.owed = turn.owed, None
    before = loaded.row.usage
    loaded.row.usage = (before[0] + spent[0], before[1] + spent[1], before[2] + spent[2])
    loaded.row.last_usage, loaded.row.usage_of = spent, turn.row.id
    tell_usage(codex, loaded, turn.row.id)
    tell_diff(codex, loaded, turn)


async def unload(codex: Process, thread_id: str) -> None:
    """Take a thread out of memory; its turn ends as it would for an interrupt."""
    loaded = codex.threads.pop(thread_id, None)
    if loaded is None:
        return
    if loaded.turn is not None and loaded.turn.active:
        loaded.turn.scope.cancel()
        await loaded.turn.ended.wait()
    loaded.row.writer = None
    codex.tell_all("thread/status/changed", {"threadId": thread_id, "status": {"type": "notLoaded"}})


async def compact(codex: Process, loaded: Loaded) -> None:
    """A turn that nobody prompted; it cuts a running one short."""
    if loaded.turn is not None:
        loaded.turn.scope.cancel()
        await loaded.turn.ended.wait()
    turn = acknowledge(codex, loaded, (None, []))
    turn.inputs.clear()
    turn.compacts = True
    loaded.row.turns.append(turn.row)
    turn.active = True
    codex.tell_status(loaded)
    codex.tell(loaded, "turn/started", {"turn": wire.turn(turn.row.id, "inProgress")})
    item = {"type": "contextCompaction", "id": codex.home.mint(ITEM)}
    with turn.scope:
        codex.tell(loaded, "item/started", {"item": item, "turnId": turn.row.id})
        await codex.pause(loaded.row.cwd, 0.1, 0.4)
        tell_usage(codex, loaded, turn.row.id)
        turn.owed = COMPACTION
        tell_owed(codex, loaded, turn)
        tell_usage(codex, loaded, turn.row.id)
        turn.row.items.append(item)
        codex.tell(loaded, "item/completed", {"item": item, "turnId": turn.row.id})
    await _end(codex, loaded, turn, "interrupted" if turn.scope.cancelled_caught else "completed", None)


class _Play:
    """What happens within a turn."""

    def __init__(self, codex: Process, loaded: Loaded, turn: Turn) -> None:
        self._codex = codex
        self._loaded = loaded
        self._turn = turn
        self._cwd = loaded.row.cwd
        self._open: Json | None = None
        self._text = ""

    async def all(self) -> None:
        """Take in what was said, answer it, and again for as long as more is said meanwhile."""
        while self._turn.inputs and not self._turn.interrupted_by_answer:
            text = ""
            while self._turn.inputs:
                text = await self._take_in(*self._turn.inputs.pop(0))
            for call in parse_script(text).calls:
                if not await self._call(call):
                    break

    async def _take_in(self, client_id: str | None, content: list[Json]) -> str:
        await self._codex.pause(self._cwd, 0.001, 0.02)
        await self._codex.misdeed("user", self._cwd)
        item = wire.user_message(self._codex.home.mint(ITEM), client_id, content)
        self._loaded.row.preview = self._loaded.row.preview or str(content[0].get("text", ""))[:200]
        self._tell("item/started", {"item": item})
        self._turn.row.items.append(item)
        self._tell("item/completed", {"item": item})
        await self._codex.misdeed("recorded", self._cwd)
        return "\n".join(str(part.get("text", "")) for part in content)

    async def _call(self, call: ModelCall) -> bool:
        """Have the model answer; False if somebody cut in, or the turn ends with what was decided."""
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                return await self._attempt(call, attempt)
            except _Failed as failed:
                if self._loaded.row.usage != (0, 0, 0) and self._open is not None:
                    tell_usage(self._codex, self._loaded, self._turn.row.id)
                self._open = None
                if failed.retried is None or attempt == ATTEMPTS_MAX:
                    raise
                told = {**failed.retried, "message": f"Reconnecting... {attempt}/{ATTEMPTS_MAX - 1}"}
                self._tell("error", {"error": told, "willRetry": True})
                await self._codex.pause(self._cwd, 0.1, 0.4)
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, call: ModelCall, attempt: int) -> bool:
        tools: list[Tool] = []
        with trio.CancelScope() as self._turn.saying:
            await self._codex.pause(self._cwd, 0.005, 0.1)
            tools = await self._say(call, attempt)
        if self._turn.saying.cancelled_caught:
            self._open = None  # left as it is, and never completed
            return False
        cost = call.usage or default_usage(call)
        self._turn.owed = (cost.input, cost.output, cost.reasoning)
        used = [await self._use(tool) for tool in tools]
        tell_owed(self._codex, self._loaded, self._turn)
        return all(used) and not self._turn.inputs

    async def _say(self, call: ModelCall, attempt: int) -> list[Tool]:
        tools: list[Tool] = []
        for step in call.steps:
            match step:
                case Fail() | Cut() if step.times is not None and attempt > step.times:
                    attempt -= step.times
                case Fail() | Cut():
                    raise _failure(step)
                case Say():
                    for piece in step.pieces:
                        await self._piece(piece, step.pace_ms)
                case Reason():
                    await self._reason(step)
                case NewMessage():
                    await self._close()
                case Wait():
                    await trio.sleep(step.ms / 1000)
                case Hold():
                    await self._codex.held(step.name)
                case Shell() | Patch() | Ask():
                    tools.append(step)
                case _:
                    raise AssertionError(f"the fake does not play {step}")
        await self._close()
        return tools

    # --- what the model says ---

    async def _piece(self, piece: str, pace_ms: float) -> None:
        if pace_ms:
            await trio.sleep(pace_ms / 1000)
        else:
            await self._codex.pause(self._cwd, 0.0, 0.003)
        if self._open is None:
            self._open, self._text = wire.agent_message(self._codex.home.mint(ITEM), ""), ""
            self._tell("item/started", {"item": self._open})
        self._text += piece
        self._tell("item/agentMessage/delta", {"itemId": self._open["id"], "delta": piece})
        deed = await self._codex.misdeed("piece", self._cwd)
        if deed is not None:
            self._misbehave(deed.name)

    def _misbehave(self, name: str) -> None:
        loaded, item = self._loaded, self._codex.home.mint(ITEM)
        match name:
            case "retry":
                raise _Failed(wire.failure("", {"responseStreamDisconnected": {}}, DROPPED), wire.failure("", "other"))
            case "orphan":
                self._tell("item/agentMessage/delta", {"itemId": item, "delta": "nobody's"})
            case "late-turn":
                before = loaded.row.turns[-2].id if len(loaded.row.turns) > 1 else "019a0008-none"
                self._codex.tell(loaded, "item/completed", {"item": wire.agent_message(item, "old"), "turnId": before})
                turn = wire.turn(before, "completed")
                self._codex.tell(loaded, "turn/completed", {"turn": turn})
            case "started-again":
                self._tell("turn/started", {"turn": wire.turn(self._turn.row.id, "inProgress")})
            case "unknown-notice":
                self._tell("thread/somethingNew", {"level": "high"})
            case "bad-frame":
                self._tell("item/completed", {"item": {"type": "agentMessage"}})
            case "status-idle":
                params = {"threadId": loaded.row.id, "status": {"type": "idle"}}
                self._codex.tell_all("thread/status/changed", params)

    async def _close(self) -> None:
        if self._open is None:
            return
        item_id, self._open = self._open["id"], None
        deed = await self._codex.misdeed("item", self._cwd)
        name = deed.name if deed is not None else ""
        item = wire.agent_message(item_id, self._text + (" (reworded)" if name == "other-text" else ""))
        self._turn.row.items.append(item)
        for _ in range(2 if name == "completed-twice" else 1):
            self._tell("item/completed", {"item": item})
        if name == "delta-after":
            self._tell("item/agentMessage/delta", {"itemId": item_id, "delta": "too late"})

    async def _reason(self, step: Reason) -> None:
        await self._close()
        item_id = self._codex.home.mint(ITEM)
        self._tell("item/started", {"item": wire.reasoning(item_id, ())})
        self._tell("item/reasoning/summaryPartAdded", {"itemId": item_id, "summaryIndex": 0})
        for piece in step.pieces:
            self._tell("item/reasoning/summaryTextDelta", {"itemId": item_id, "delta": piece, "summaryIndex": 0})
        item = wire.reasoning(item_id, ["".join(step.pieces)])
        self._turn.row.items.append(item)
        self._tell("item/completed", {"item": item})

    # --- what it asks ---

    async def _use(self, tool: Tool) -> bool:
        if isinstance(tool, Shell):
            return await run_command(self._codex, self._loaded, self._turn, tool.command)
        if isinstance(tool, Patch):
            return await patch_files(self._codex, self._loaded, self._turn, tool.text)
        return await ask_user(self._codex, self._loaded, self._turn, tool)

    def _tell(self, method: str, params: Json) -> None:
        self._codex.tell(self._loaded, method, {"turnId": self._turn.row.id, **params})


def _failure(step: Fail | Cut) -> _Failed:
    """Return what a scripted failure looks like from the other side of Codex (measured)."""
    lost: Any = {"responseStreamDisconnected": {"httpStatusCode": None}}
    if isinstance(step, Cut):
        return _Failed(wire.failure("", lost, DROPPED), wire.failure(DROPPED, "other"))
    status = step.status
    assert status is not None, "the fake plays HTTP failures only"
    if status == 429:
        told = "exceeded retry limit, last status: 429 Too Many Requests"
        return _Failed(None, wire.failure(told, {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}))
    if status == 500:
        return _Failed(wire.failure("", lost, HIGH_DEMAND), wire.failure(HIGH_DEMAND, "internalServerError"))
    text = f"unexpected status {status} {_REASONS[status]}: {step.message}, url: http://127.0.0.1/v1/responses"
    retried = None
    if status not in _NO_RETRY:
        retried = wire.failure("", {"responseStreamDisconnected": {"httpStatusCode": status}}, text)
    return _Failed(retried, wire.failure(text, {"httpConnectionFailed": {"httpStatusCode": status}}))
