"""The scripted app-server as a process: its life, its wires, its threads in memory, its requests and its record.

What it does when it is asked stands in `scripted_codex_calls`, what a turn does in `scripted_codex_turns`.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import trio
from support import scripted_codex_wire as wire
from support.scripted_codex_faults import Deed, Faults
from support.scripted_codex_home import CodexHome, Entry, ThreadRow, TurnRow
from support.scripted_codex_links import Connection, PipeConnection, SocketConnection
from support.scripted_codex_wire import Json, RpcId

ELSEWHERE: Final = ""
"""The working folder of what belongs to no thread."""


class Asked(msgspec.Struct):
    """A request of the server's. `answer` is its result, or None where it was resolved without one."""

    id: RpcId
    method: str
    params: Json
    done: trio.Event
    answer: Any = None
    answers: int = 0


class Turn:
    """A turn from its acknowledgement to its end."""

    def __init__(self, row: TurnRow) -> None:
        self.row = row
        self.active = False
        self.over = False
        self.compacts = False
        self.inputs: list[tuple[str | None, list[Json]]] = []
        self.saying = trio.CancelScope()
        """What the model is saying; cut short when somebody steers."""
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self.interrupted_by_answer = False
        self.diff = ""
        """What it has changed in its folder so far."""
        self.owed: tuple[int, int, int] | None = None
        """What the last model call cost, until it is told: with its tools' end, or when it is interrupted."""

    def steer(self, given: tuple[str | None, list[Json]]) -> None:
        """Say something into it: what the model says is cut short, and it answers the new words."""
        self.inputs.append(given)
        self.saying.cancel()


class Loaded:
    """A thread in memory."""

    def __init__(self, row: ThreadRow) -> None:
        self.row = row
        self.subscribers: list[Connection] = []
        self.turn: Turn | None = None
        self.flags: list[str] = []
        self.failed = False
        self.requests: list[Asked] = []

    @property
    def status(self) -> Json:
        """The thread's status as it is told."""
        if self.failed:
            return {"type": "systemError"}
        if self.turn is not None and self.turn.active:
            return {"type": "active", "activeFlags": list(self.flags)}
        return {"type": "idle"}


class Process:
    """One process. `run` it in a nursery that outlives the daemon; it returns when the process is gone."""

    def __init__(
        self, home: CodexHome, faults: Faults, *, number: int, now_ms: Callable[[], int], pipes: bool = False
    ) -> None:
        self.home = home
        self.faults = faults
        self.number = number
        self.threads: dict[str, Loaded] = {}
        self.connections: list[Connection] = []
        self.gone = trio.Event()
        self.exit_code: int | None = None
        self.exit_signal: str | None = None
        self.draining = False
        self.mangle: Callable[[bytes], list[bytes]] | None = None
        self._pipes = pipes
        self._now_ms = now_ms
        self._thaw = trio.Event()
        self._thaw.set()
        self._scope = trio.CancelScope()
        self._turnstiles: dict[str, trio.Event] = {}
        self._next_request = 0
        self._next_connection = 1
        self._holds: dict[str, trio.Event] = {}
        self.nursery: trio.Nursery

    # --- its life ---

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until `die`."""
        try:
            with self._scope:
                async with trio.open_nursery() as self.nursery:
                    task_status.started()
                    await self.idle()
        finally:
            self.home.lost(self.number)
            self.gone.set()

    async def idle(self) -> None:
        """What it does by itself, for ever."""
        await trio.sleep_forever()

    async def serve(self, connection: Connection, frame: Json) -> None:
        """Carry out and answer one request."""
        raise NotImplementedError

    def die(self, *, code: int | None = None, signal: str | None = None) -> None:
        """End now. What it had written is still in the wires."""
        if not self._scope.cancel_called:
            self.exit_code, self.exit_signal = code, signal
            self.note(f"dies: {signal or code}")
            for connection in self.connections:
                connection.finish()
            self._scope.cancel()

    def term(self) -> None:
        """SIGTERM: end at once, or once no turn runs; until then nobody new is let in, and no new work taken."""
        self.note("SIGTERM")
        if self.draining or not any(loaded.turn for loaded in self.threads.values()):
            self.die(signal="SIGTERM")
        else:
            self.draining = True

    def freeze(self, seconds: float) -> None:
        """Do nothing at all for a while."""
        self.note(f"freezes for {seconds} s")
        self._thaw = trio.Event()
        self.nursery.start_soon(self._thaw_after, seconds, self._thaw)

    async def _thaw_after(self, seconds: float, thaw: trio.Event) -> None:
        await trio.sleep(seconds)
        thaw.set()

    async def thawed(self) -> None:
        """Return when it does not stand still."""
        await self._thaw.wait()

    # --- its wires ---

    def connect(self) -> Connection | None:
        """Let somebody in; None where nobody is: it is gone, or it drains and its socket is unlinked."""
        if self._scope.cancel_called or self.draining:
            return None
        number, self._next_connection = self._next_connection, self._next_connection + 1
        kind = PipeConnection(number, self, self.mangle) if self._pipes else SocketConnection(number, self)
        self.connections.append(kind)
        self.nursery.start_soon(kind.run)
        return kind

    def clean(self) -> None:
        """Soil nothing any more."""
        self.mangle = None
        for connection in self.connections:
            if isinstance(connection, PipeConnection):
                connection.clean()

    def left(self, connection: Connection) -> None:
        """A client is gone; threads and turns stay, unless the pipes were the only way in."""
        for loaded in self.threads.values():
            if connection in loaded.subscribers:
                loaded.subscribers.remove(connection)
        self.connections.remove(connection)
        if self._pipes and not self._scope.cancel_called:
            self.die(code=0)

    def note(self, event: str) -> None:
        """Put an event of its life into the record."""
        self._record(0, "!", event)

    def _record(self, connection: int, way: str, what: Any) -> None:
        at_s = trio.current_time()
        self.home.record.append(Entry(at_s=at_s, process=self.number, connection=connection, way=way, what=what))

    def write(self, connection: Connection, frame: bytes) -> None:
        """Say a frame on one connection."""
        self._record(connection.number, "<", msgspec.Raw(frame) if frame[:1] == b"{" else repr(frame[:80]))
        connection.say(frame)

    def tell(self, loaded: Loaded, method: str, params: Json) -> None:
        """Tell the thread's subscribers."""
        frame = wire.notification(method, {"threadId": loaded.row.id, **params}, self._now_ms())
        for connection in list(loaded.subscribers):
            self.write(connection, frame)

    def tell_all(self, method: str, params: Json) -> None:
        """Tell every initialised connection."""
        frame = wire.notification(method, params, self._now_ms())
        for connection in list(self.connections):
            if connection.initialized:
                self.write(connection, frame)

    def tell_status(self, loaded: Loaded) -> None:
        """Tell every connection the thread's status."""
        self.tell_all("thread/status/changed", {"threadId": loaded.row.id, "status": loaded.status})

    # --- time and chance ---

    def now_ms(self) -> int:
        """Unix milliseconds."""
        return self._now_ms()

    def now_s(self) -> int:
        """Unix seconds."""
        return self._now_ms() // 1000

    async def pause(self, cwd: str, least_s: float, most_s: float) -> None:
        """Take a little time, drawn from the dice of this working folder."""
        await trio.sleep(self.home.chance(cwd).uniform(least_s, most_s))
        await self.thawed()

    async def misdeed(self, point: str, cwd: str, connection: Connection | None = None) -> Deed | None:
        """Ask what goes wrong here. What can go wrong anywhere is done at once; the rest is the caller's."""
        deed = self.faults.at(point, cwd)
        if deed is None:
            return None
        self.note(f"misdeed at {point}: {deed.name} {deed.seconds}")
        match deed.name:
            case "die":
                self.die(signal="SIGKILL")
                await trio.lowlevel.checkpoint()
            case "hangup":
                for one in [connection] if connection is not None else list(self.connections):
                    one.close()
                await trio.lowlevel.checkpoint()
            case "freeze":
                self.freeze(deed.seconds)
                await self.thawed()
            case _:
                return deed
        return None

    async def held(self, name: str) -> None:
        """Wait until `name` is released."""
        await self._holds.setdefault(name, trio.Event()).wait()

    def release(self, name: str) -> None:
        """Let whoever waits, or will wait, at `name` go on."""
        self._holds.setdefault(name, trio.Event()).set()

    # --- requests to it ---

    async def take(self, connection: Connection, raw: bytes) -> None:
        """Take in one frame: a request, an answer or a notification; anything else is passed over, as by Codex."""
        try:
            frame = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            self._record(connection.number, ">", f"garbage {raw[:80]!r}")
            return
        self._record(connection.number, ">", frame)
        if "method" not in frame:
            self._answered(frame)
        elif "id" in frame:
            # In the order of their arrival for each thread; side by side for different ones.
            params = frame.get("params") or {}
            key = params.get("threadId") or f"{connection.number}/{frame['id']}"
            before, mine = self._turnstiles.get(key), trio.Event()
            self._turnstiles[key] = mine
            self.nursery.start_soon(self._serve, connection, frame, before, mine)

    async def _serve(self, connection: Connection, frame: Json, before: trio.Event | None, mine: trio.Event) -> None:
        if before is not None:
            await before.wait()
        try:
            await self.serve(connection, frame)
        finally:
            mine.set()

    # --- requests of its own ---

    def ask(self, loaded: Loaded, method: str, params: Json, *, rpc_id: RpcId | None = None) -> Asked:
        """Ask the thread's subscribers, and whoever resumes it later."""
        if rpc_id is None:
            rpc_id, self._next_request = self._next_request, self._next_request + 1
        asked = Asked(rpc_id, method, {"threadId": loaded.row.id, **params}, trio.Event())
        loaded.requests.append(asked)
        for connection in list(loaded.subscribers):
            self.write(connection, wire.request(asked.id, asked.method, asked.params))
        return asked

    def ask_nobody(self, connection: Connection, method: str, params: Json, rpc_id: RpcId) -> None:
        """Ask something that belongs to no thread of the record; the answer is only recorded."""
        self.write(connection, wire.request(rpc_id, method, params))

    def resolve(self, loaded: Loaded, asked: Asked) -> None:
        """Close a request, and say so."""
        if asked in loaded.requests:
            loaded.requests.remove(asked)
            self.tell(loaded, "serverRequest/resolved", {"requestId": asked.id})
        asked.done.set()

    def _answered(self, frame: Json) -> None:
        for loaded in self.threads.values():
            for asked in list(loaded.requests):
                if asked.id == frame.get("id") and type(asked.id) is type(frame.get("id")):
                    asked.answers += 1
                    asked.answer = frame.get("result")
                    self.resolve(loaded, asked)
                    return
