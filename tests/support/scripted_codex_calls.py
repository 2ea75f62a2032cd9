"""What the scripted app-server does when it is asked: one function per method, and the steps that all have in common.

A call is taken in, carried out, answered, and then what follows from it is told, in this order unless a misdeed has it
otherwise.
"""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import trio
from support import scripted_codex_turns as turns
from support import scripted_codex_wire as wire
from support.scripted_codex_faults import Deed
from support.scripted_codex_home import THREAD, ThreadRow
from support.scripted_codex_links import Connection
from support.scripted_codex_process import ELSEWHERE, Loaded, Process
from support.scripted_codex_wire import Json, Refusal, refused

INPUT_CHARACTERS_MAX: Final = 1_048_576


class Outcome(NamedTuple):
    """What a call comes to: its result, and what is told after its answer."""

    result: Json
    after: Callable[[], Awaitable[None]] | None = None


class Call(NamedTuple):
    """One request to it."""

    codex: Process
    connection: Connection
    method: str
    params: Json

    @property
    def cwd(self) -> str:
        """The working folder that it is about."""
        named = self.params.get("threadId")
        row = self.codex.home.threads.get(named) if named is not None else None
        return row.cwd if row is not None else str(self.params.get("cwd", ELSEWHERE))

    @property
    def thread(self) -> str:
        """The thread that it names."""
        return str(self.params["threadId"])

    def loaded(self, refusal: str = "not-found") -> Loaded:
        """Return the thread, which must be in memory."""
        found = self.codex.threads.get(self.thread)
        if found is None:
            raise refused(refusal, self.thread)
        return found


async def serve(codex: Process, connection: Connection, frame: Json) -> None:
    """Carry out and answer one request."""
    call = Call(codex, connection, frame["method"], frame.get("params") or {})
    rpc_id = frame["id"]
    try:
        outcome = await _carry_out(call)
    except Refusal as refusal:
        codex.write(connection, wire.error(rpc_id, refusal))
        return
    if outcome is not None:
        await _answer(call, rpc_id, outcome)


async def _carry_out(call: Call) -> Outcome | None:
    """Return what it comes to; None if nothing is done about it, ever."""
    handler = HANDLERS.get(call.method)
    if handler is None:
        raise AssertionError(f"nobody has taught the fake {call.method}: {call.params}")
    await call.codex.pause(call.cwd, 0.0002, 0.004)
    for point in ("taken", f"taken:{call.method}"):
        deed = await _misdeed(call, point)
        if deed is None:
            continue
        match deed.name:
            case "ignore":
                return None
            case "late":
                await trio.sleep(deed.seconds)
            case "overload":
                raise refused("overloaded")
            case "unknown-refusal":
                raise refused("unknown")
            case "unload":
                loaded = call.codex.threads.get(call.thread)
                if loaded is not None and loaded.turn is None:
                    await turns.unload(call.codex, call.thread)
            case name:
                raise refused(name, call.params.get("threadId", ""))
    if call.codex.draining and call.method in ("thread/start", "thread/resume", "turn/start"):
        raise Refusal(*wire.TEXTS["shutting-down"], {"reason": "serverShuttingDown"})
    return await handler(call)


async def _answer(call: Call, rpc_id: wire.RpcId, outcome: Outcome) -> None:
    codex, connection = call.codex, call.connection
    after, frame = outcome.after, wire.reply(rpc_id, outcome.result)
    deed = await _misdeed(call, "done")
    name = deed.name if deed is not None else ""
    if name == "notices-first" and after is not None:
        await after()
        after = None
    if deed is not None and name == "late":
        codex.nursery.start_soon(_say_late, call, deed.seconds, frame)
    elif name == "malformed":
        codex.write(connection, wire.reply(rpc_id, {"sorry": True}))
    elif name != "lose":
        codex.write(connection, frame)
    if name == "twice":
        codex.write(connection, frame)
    if after is not None:
        await codex.pause(call.cwd, 0.0, 0.001)
        await after()


async def _say_late(call: Call, seconds: float, frame: bytes) -> None:
    await trio.sleep(seconds)
    call.codex.write(call.connection, frame)


async def _misdeed(call: Call, point: str) -> Deed | None:
    if call.method == "initialize":
        return None  # an app-server that cannot be talked to at all is the machine's to play
    return await call.codex.misdeed(point, call.cwd, call.connection)


# --- the methods ---


async def _initialize(call: Call) -> Outcome:
    call.connection.initialized = True
    agent = f"{call.params['clientInfo']['name']}/{wire.VERSION} (scripted)"
    home = call.codex.home.path
    return Outcome({"userAgent": agent, "codexHome": home, "platformFamily": "unix", "platformOs": "linux"})


async def _start(call: Call) -> Outcome:
    codex, cwd = call.codex, call.cwd
    if call.params.get("modelProvider", wire.MODEL) != wire.MODEL:
        raise refused("provider-missing")
    tag = call.params.get("threadSource")
    codex.home.starts += 1
    row = ThreadRow(
        id=codex.home.mint(THREAD),
        cwd=cwd,
        tag=tag,
        minted_by=codex.number,
        at_s=codex.now_s(),
        writer=codex.number,
    )
    deed = await _misdeed(call, "done:thread/start")
    name = deed.name if deed is not None else ""
    row.stored = name == "stored-empty"
    codex.home.threads[row.id] = row
    loaded = codex.threads[row.id] = Loaded(row)
    loaded.subscribers.append(call.connection)
    shown = row.object(loaded.status)
    if name == "no-tag":
        shown = {**shown, "threadSource": None}

    async def tell() -> None:
        if name != "untold":
            codex.tell_all("thread/started", {"thread": shown})

    return Outcome(wire.opened(shown), tell)


async def _resume(call: Call) -> Outcome:
    codex, home = call.codex, call.codex.home
    row = home.find(call.thread)
    loaded = codex.threads.get(call.thread)
    if row is None or not row.stored:
        raise refused("no-turns-yet" if loaded is not None and loaded.turn is not None else "no-rollout", call.thread)
    if row.archived:
        raise refused("archived", call.thread)
    if row.writer not in (None, codex.number):
        raise refused("active-writer", call.thread)
    # Told by a thread that is read from its rollout, and to a client that asks for all of its turns.
    replays = loaded is None or not call.params.get("excludeTurns", False)
    if loaded is None:
        row.writer = codex.number
        loaded = codex.threads[row.id] = Loaded(row)
        codex.tell_status(loaded)
    if call.connection not in loaded.subscribers:
        loaded.subscribers.append(call.connection)
    resumed = loaded
    replays = await _misdeed(call, "done:thread/resume") is not None or replays

    async def tell() -> None:
        if replays and row.usage_of:
            turns.tell_usage(codex, resumed, row.usage_of, only=call.connection)
        codex.tell(resumed, "thread/goal/cleared", {})
        for asked in list(resumed.requests):
            codex.write(call.connection, wire.request(asked.id, asked.method, asked.params))

    return Outcome(wire.opened(row.object(loaded.status)), tell)


async def _turn_start(call: Call) -> Outcome:
    codex, loaded = call.codex, call.loaded()
    content = call.params.get("input")
    if content is None:
        raise Refusal(-32600, "Invalid request: missing field `input`")
    if sum(len(part.get("text", "")) for part in content) > INPUT_CHARACTERS_MAX:
        raise refused("too-large")
    given = (call.params.get("clientUserMessageId"), content)
    if loaded.turn is not None and not loaded.turn.over:
        if loaded.turn.compacts:
            raise Refusal(-32603, "failed to submit turn input: ActiveTurnNotSteerable { turn_kind: Compact }")
        loaded.turn.steer(given)  # silently: no other turn begins
        return Outcome({"turn": wire.turn(loaded.turn.row.id, "inProgress")})
    turn = turns.acknowledge(codex, loaded, given)

    async def begin() -> None:
        codex.nursery.start_soon(turns.run, codex, loaded, turn)

    return Outcome({"turn": wire.turn(turn.row.id, "inProgress")}, begin)


async def _steer(call: Call) -> Outcome:
    loaded, expected = call.loaded(), call.params["expectedTurnId"]
    turn = loaded.turn
    if turn is None or turn.over:
        raise refused("no-turn-to-steer")
    if turn.row.id != expected:
        raise wire.mismatch(f"`{expected}`", f"`{turn.row.id}`")
    if turn.compacts:
        told = wire.failure("cannot steer a compact turn", {"activeTurnNotSteerable": {"turnKind": "compact"}})
        raise Refusal(-32600, told["message"], told)
    # Also before the turn is active: what is said then is taken in with the first words.
    turn.steer((call.params.get("clientUserMessageId"), call.params["input"]))
    return Outcome({"turnId": turn.row.id})


async def _interrupt(call: Call) -> Outcome:
    loaded = call.loaded()
    turn, named = loaded.turn, call.params["turnId"]
    if turn is None or not turn.active or turn.over:
        raise refused("no-active-turn")
    if named != turn.row.id:
        raise wire.mismatch(named, turn.row.id)
    turns.tell_owed(call.codex, loaded, turn)

    async def end() -> None:
        turn.scope.cancel()

    return Outcome({}, end)


async def _turns_list(call: Call) -> Outcome:
    row, loaded = call.codex.home.find(call.thread), call.codex.threads.get(call.thread)
    if row is None or (loaded is None and not row.stored):
        raise refused("not-loaded", call.thread)
    if not row.stored:
        raise refused("no-turns-yet" if loaded is not None and loaded.turn is not None else "not-materialized", row.id)
    return Outcome({"data": row.listed(call.params["limit"]), "nextCursor": None})


async def _unsubscribe(call: Call) -> Outcome:
    loaded = call.codex.threads.get(call.thread)
    if loaded is None:
        return Outcome({"status": "notLoaded"})
    if call.connection not in loaded.subscribers:
        return Outcome({"status": "notSubscribed"})
    loaded.subscribers.remove(call.connection)
    return Outcome({"status": "unsubscribed"})


async def _clean(call: Call) -> Outcome:
    call.loaded()
    return Outcome({})


async def _archive(call: Call) -> Outcome:
    return await _put_away(call, "archived")


async def _delete(call: Call) -> Outcome:
    return await _put_away(call, "deleted")


async def _put_away(call: Call, how: str) -> Outcome:
    codex, row = call.codex, call.codex.home.find(call.thread)
    if row is None:
        raise refused("no-rollout", call.thread)
    await put_away(codex, row, how)

    async def tell() -> None:
        codex.tell_all(f"thread/{how}", {"threadId": row.id})

    return Outcome({}, tell)


async def put_away(codex: Process, row: ThreadRow, how: str) -> None:
    """Archive or delete a thread, which unloads it."""
    if how == "archived":
        row.archived = True
    else:
        row.deleted = True
    await turns.unload(codex, row.id)


async def _read(call: Call) -> Outcome:
    loaded = call.codex.threads.get(call.thread)
    row = call.codex.home.find(call.thread)
    if row is None or (loaded is None and not row.stored):
        raise refused("not-loaded", call.thread)
    return Outcome({"thread": row.object(loaded.status if loaded is not None else {"type": "notLoaded"})})


async def _loaded_list(call: Call) -> Outcome:
    return Outcome({"data": list(call.codex.threads), "nextCursor": None})


async def _name(call: Call) -> Outcome:
    row = call.codex.home.find(call.thread)
    if row is None:
        raise refused("no-rollout", call.thread)
    row.name = call.params["name"]

    async def tell() -> None:
        call.codex.tell_all("thread/name/updated", {"threadId": row.id, "threadName": row.name})

    return Outcome({}, tell)


async def _compact(call: Call) -> Outcome:
    loaded = call.loaded()

    async def begin() -> None:
        call.codex.nursery.start_soon(turns.compact, call.codex, loaded)

    return Outcome({}, begin)


HANDLERS: Final[dict[str, Callable[[Call], Awaitable[Outcome]]]] = {
    "initialize": _initialize,
    "thread/start": _start,
    "thread/resume": _resume,
    "thread/read": _read,
    "thread/loaded/list": _loaded_list,
    "thread/turns/list": _turns_list,
    "thread/unsubscribe": _unsubscribe,
    "thread/archive": _archive,
    "thread/delete": _delete,
    "thread/name/set": _name,
    "thread/compact/start": _compact,
    "thread/backgroundTerminals/clean": _clean,
    "turn/start": _turn_start,
    "turn/steer": _steer,
    "turn/interrupt": _interrupt,
}
