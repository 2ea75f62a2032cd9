"""A small honest Codex: what it holds decides what it can say, so that no history is tried that could not happen.

It mints threads, stores one with its first recorded user item, records our prompt ids without deduplicating them, runs
one turn at a time on a thread, steers silently on a second, and forgets what was not recorded when it dies. Requests
that were written to it wait until it reads them; what it says waits until it is delivered. Notices of one connection
stay in order; an answer may come at any time, or never. All of that was measured on the real binary.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec.structs import replace
from support.story import REFUSALS, Sent

from state.records import ItemId, KnownThread, LinkId, PromptId, RuntimeId, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins

TurnStatus = Literal["pending", "active", "completed", "interrupted", "failed"]
RUNNING = ("pending", "active")


@dataclass
class Turn:
    """A turn. `coming` are prompts that it has taken and not recorded yet; `began_by_us`: by a `turn/start`."""

    id: TurnId
    status: TurnStatus = "pending"
    coming: list[PromptId] = field(default_factory=list)
    prompts: list[PromptId] = field(default_factory=list)
    items: list[ins.SeenItem] = field(default_factory=list)
    open_item: ItemId | None = None
    began_by_us: bool = False


@dataclass
class Thread:
    """A thread. `tag` is empty for one that is not ours; `asks` are open requests by their id's JSON text."""

    id: ThreadId
    tag: str = ""
    turns: list[Turn] = field(default_factory=list)
    asks: dict[str, TurnId] = field(default_factory=dict)
    listeners: set[LinkId] = field(default_factory=set)
    loaded: bool = True
    archived: bool = False
    deleted: bool = False
    locked: bool = False

    @property
    def stored(self) -> bool:
        """Whether there is a rollout: from the first recorded item on."""
        return any(turn.items for turn in self.turns) and not self.deleted

    @property
    def running(self) -> Turn | None:
        """The turn that runs, or is about to."""
        return next((turn for turn in self.turns if turn.status in RUNNING), None)


@dataclass
class Wire:
    """One connection of the daemon's: what it wrote and Codex has not read, what Codex said and nobody has heard."""

    link: LinkId
    unread: list[Sent | fx.SendAnswer | fx.SendRefusal] = field(default_factory=list)
    replies: list[ins.Reply] = field(default_factory=list)
    notices: list[ins.FromCodex] = field(default_factory=list)


class Codex:
    """One home, and the processes that serve it one after the other."""

    def __init__(self) -> None:
        self.runtime: RuntimeId | None = None
        self.wire: Wire | None = None
        self.gone: list[Wire] = []
        """Connections that ended. Codex may still read what was written to them, while the process lives."""
        self.threads: dict[ThreadId, Thread] = {}
        self.recorded: Counter[PromptId] = Counter()
        self.record_order: list[PromptId] = []
        self.forgotten: set[PromptId] = set()
        """Prompts that ran in a thread which somebody deleted: nobody can know of them any more."""
        self.not_interrupted: set[ThreadId] = set()
        """Threads on which Codex refused to end something: what runs there is not our doing."""
        self.decisions: dict[tuple[RuntimeId, str], list[str]] = {}
        self._numbers: dict[str, Iterator[int]] = {}

    def _next(self, what: str) -> int:
        return next(self._numbers.setdefault(what, itertools.count(1)))

    # --- processes and connections ---

    def spawn(self) -> RuntimeId:
        """Start a process."""
        assert self.runtime is None
        self.runtime = RuntimeId(f"R{self._next('runtime')}")
        return self.runtime

    def connect(self) -> LinkId:
        """Accept a connection."""
        assert self.runtime is not None
        assert self.wire is None
        self.wire = Wire(LinkId(runtime_id=self.runtime, connection=self._next("connection")))
        return self.wire.link

    def disconnect(self) -> None:
        """End the connection; turns run on."""
        assert self.wire is not None
        for thread in self.threads.values():
            thread.listeners.discard(self.wire.link)
        self.gone.append(self.wire)
        self.wire = None

    def exit(self) -> None:
        """Die: what was not recorded is lost, what was running counts as interrupted, nothing is loaded."""
        if self.wire is not None:
            self.disconnect()
        self.runtime = None
        for wire in self.gone:
            wire.unread.clear()
        for thread in self.threads.values():
            thread.turns = [turn for turn in thread.turns if turn.items]
            for turn in thread.turns:
                turn.coming.clear()
                turn.status = "interrupted" if turn.status in RUNNING else turn.status
            thread.listeners.clear()
            thread.asks.clear()
            thread.loaded = False

    def take(self, effect: Sent | fx.SendAnswer | fx.SendRefusal) -> None:
        """Have something written, if its connection still is."""
        if self.wire is not None and self.wire.link == effect.link:
            self.wire.unread.append(effect)

    def readable(self, wire: Wire) -> list[Sent | fx.SendAnswer | fx.SendRefusal]:
        """Return what may be read next: of one thread, in the order written."""
        first: dict[Any, Any] = {}
        for one in wire.unread:
            first.setdefault(getattr(one.op, "thread", one.call) if isinstance(one, Sent) else one.rpc_id_json, one)
        return list(first.values())

    def catch_up(self) -> None:
        """Time has passed: what was written to an ended connection was read, and an accepted turn is active."""
        for wire in self.gone:
            while wire.unread:
                self.read(wire, 0)
        for thread in self.threads.values():
            turn = thread.running
            if turn is not None and turn.status == "pending":
                self.activate(thread)

    # --- speaking ---

    def _say(self, thread: Thread, notice: type[Any], *, to_all: bool = False, **fields: Any) -> None:
        wire = self.wire
        if wire is not None and (to_all or wire.link in thread.listeners):
            wire.notices.append(notice(at_ms=0, link=wire.link, thread=thread.id, **fields))

    def _status(self, thread: Thread, status: str) -> None:
        self._say(thread, ins.ThreadStatusChanged, to_all=True, status=status)

    # --- requests ---

    def read(self, wire: Wire, which: int, refusal: str | None = None) -> None:
        """Read one of the written requests, carry it out or refuse it, and answer."""
        sent = wire.unread.pop(which)
        if isinstance(sent, fx.SendAnswer | fx.SendRefusal):
            self._answered(sent)
            return
        head: dict[str, Any] = {"at_ms": 0, "link": sent.link, "call": sent.call}
        given = refusal or self._carry_out(sent.op, head)
        if isinstance(given, str):
            if refusal is not None and isinstance(sent.op, fx.Interrupt | fx.DisposeThread):
                self.not_interrupted.add(sent.op.thread)
            refused: Any = given
            code, message = REFUSALS[refused]
            given = ins.CallRefused(**head, code=code, message=message, refusal=refused)
        wire.replies.append(given)

    def _carry_out(self, op: fx.Op, head: dict[str, Any]) -> ins.Reply | str:
        handler = {
            fx.OpenFresh: self._start,
            fx.OpenKnown: self._resume,
            fx.StartTurn: self._start_turn,
            fx.SteerTurn: self._steer,
            fx.ReadTurns: self._list_turns,
            fx.RevertThread: self._revert,
            fx.Interrupt: self._interrupt,
            fx.Unsubscribe: self._unsubscribe,
            fx.DisposeThread: self._dispose,
            fx.ForkThread: self._fork,
            fx.ManageThread: self._manage,
            fx.EndTools: self._nothing,
            fx.Ask: self._nothing,
        }[type(op)]
        answer: ins.Reply | str = handler(op, head)  # type: ignore[operator]  # each handler takes its own kind
        return answer

    def _nothing(self, _: fx.Op, head: dict[str, Any]) -> ins.Reply:
        return ins.CallDone(**head, result_json="{}")

    def _unsubscribe(self, op: fx.Unsubscribe, head: dict[str, Any]) -> ins.Reply:
        self.threads[op.thread].listeners.discard(head["link"])
        return self._nothing(op, head)

    def _dispose(self, op: fx.DisposeThread, head: dict[str, Any]) -> ins.Reply | str:
        thread = self.threads[op.thread]
        match op.what:
            case "interrupt":
                return self._interrupt(op, head)
            case "unsubscribe":
                thread.listeners.discard(head["link"])
            case "archive":
                self.archive(thread)
            case "delete":
                self.delete(thread)
            case "end_tools":
                pass
        return self._nothing(op, head)

    def _start(self, op: fx.OpenFresh, head: dict[str, Any]) -> ins.Reply:
        thread = self.mint(op.tag)
        thread.listeners.add(head["link"])
        return ins.ThreadOpened(**head, thread=thread.id, status="idle")

    def mint(self, tag: str) -> Thread:
        """Make a thread and tell every connection."""
        thread = Thread(ThreadId(f"T{self._next('thread')}"), tag)
        self.threads[thread.id] = thread
        known = self.known(thread)
        self._say(thread, ins.ThreadStarted, to_all=True, tag=tag or None, ephemeral=False, parent=None, known=known)
        return thread

    def _resume(self, op: fx.OpenKnown, head: dict[str, Any]) -> ins.Reply | str:
        thread = self.threads.get(op.thread)
        if thread is None or not thread.stored:
            return "no_rollout"
        if thread.archived or thread.locked:
            return "archived" if thread.archived else "active_writer"
        thread.loaded = True
        thread.listeners.add(head["link"])
        for rpc_id, turn in thread.asks.items():
            self._ask(thread, turn, rpc_id)
        active = thread.running is not None and thread.running.status == "active"
        return ins.ThreadOpened(**head, thread=thread.id, status="active" if active else "idle")

    def _start_turn(self, op: fx.StartTurn, head: dict[str, Any]) -> ins.Reply | str:
        thread = self.threads[op.thread]
        if not thread.loaded or thread.deleted:
            return "thread_not_found"
        if thread.archived:
            return "archived"
        turn = thread.running or self.begin(thread, ours=True)
        turn.coming.append(op.prompt.id)
        return ins.TurnAccepted(**head, turn=turn.id)

    def _steer(self, op: fx.SteerTurn, head: dict[str, Any]) -> ins.Reply | str:
        running = self.threads[op.thread].running
        if running is None or running.status == "pending":
            return "no_active_turn"
        if running.id != op.turn:
            return "turn_mismatch"
        running.coming.append(op.prompt.id)
        return ins.TurnAccepted(**head, turn=running.id)

    def _manage(self, op: fx.ManageThread, head: dict[str, Any]) -> ins.Reply | str:
        thread = self.threads[op.thread]
        if op.what in ("archive", "unarchive"):
            if not thread.stored:
                return "no_rollout"
            self.archive(thread) if op.what == "archive" else self.unarchive(thread)
            return ins.CallDone(**head, result_json="{}")
        if not thread.loaded or thread.deleted:
            return "thread_not_found"
        if thread.running is not None:
            self.end(thread, "interrupted")
        turn = self.begin(thread)
        return ins.TurnAccepted(**head, turn=turn.id) if op.what == "review" else ins.CallDone(**head, result_json="{}")

    def _revert(self, op: fx.RevertThread, head: dict[str, Any]) -> ins.Reply | str:
        thread = self.threads[op.thread]
        if not thread.loaded or thread.deleted:
            return "thread_not_found"
        place = next((place for place, turn in enumerate(thread.turns) if turn.id == op.before_turn), None)
        if place is None:
            return "other"
        if thread.running is not None:
            self.end(thread, "interrupted")
        for turn in thread.turns[place:]:
            self._forget(turn)
        del thread.turns[place:]
        self._status(thread, "notLoaded")
        self._status(thread, "idle")
        return ins.CallDone(**head, result_json="{}")

    def _forget(self, turn: Turn) -> None:
        for prompt in turn.prompts:
            if prompt in self.record_order:
                self.record_order.remove(prompt)
                self.recorded[prompt] -= 1
                self.forgotten.add(prompt)

    def _fork(self, op: fx.ForkThread, head: dict[str, Any]) -> ins.Reply | str:
        source = self.threads[op.thread]
        if not source.stored:
            return "no_rollout"
        thread = self.mint(op.tag)
        thread.turns = [deepcopy(turn) for turn in source.turns if turn.status not in RUNNING]
        thread.listeners.add(head["link"])
        return ins.ThreadOpened(**head, thread=thread.id, status="idle")

    def _list_turns(self, op: fx.ReadTurns, head: dict[str, Any]) -> ins.Reply | str:
        thread = self.threads.get(op.thread)
        if thread is None or not thread.stored:
            return "no_rollout"
        return ins.TurnsRead(**head, turns=tuple(_seen(turn) for turn in reversed(thread.turns) if turn.items))

    def _interrupt(self, op: Any, head: dict[str, Any]) -> ins.Reply | str:
        thread = self.threads[op.thread]
        running = thread.running
        if running is None or running.status == "pending":
            return "no_active_turn"
        if running.id != op.turn:
            return "turn_mismatch"
        self.end(thread, "interrupted")
        return ins.CallDone(**head, result_json="{}")

    # --- turns ---

    def begin(self, thread: Thread, *, ours: bool = False) -> Turn:
        """Accept a turn that is not active yet."""
        turn = Turn(TurnId(f"t{self._next('turn')}"), began_by_us=ours)
        thread.turns.append(turn)
        return turn

    def activate(self, thread: Thread) -> None:
        """The accepted turn is active."""
        turn = thread.running
        assert turn is not None
        turn.status = "active"
        self._status(thread, "active")
        self._say(thread, ins.TurnStarted, turn=turn.id)

    def record(self, thread: Thread) -> None:
        """Write the user's message down, ours with our id."""
        turn = thread.running
        assert turn is not None
        for prompt in turn.coming:
            self.recorded[prompt] += 1
            self.record_order.append(prompt)
            turn.prompts.append(prompt)
            self._item(thread, turn, "userMessage", prompt)
        turn.coming.clear()
        if not turn.items:
            self._item(thread, turn, "userMessage", None)

    def speak(self, thread: Thread, *, whole: bool) -> None:
        """Begin an item of the model's, or finish the one that is open."""
        turn = thread.running
        assert turn is not None
        if turn.open_item is None:
            turn.open_item = ItemId(f"i{self._next('item')}")
            self._say(thread, ins.ItemStarted, turn=turn.id, **_item(turn.open_item, "agentMessage"))
            self._say(thread, ins.ItemDelta, turn=turn.id, item=turn.open_item, channel="text", delta="…")
        if whole:
            self._item(thread, turn, "agentMessage", None)

    def _item(self, thread: Thread, turn: Turn, type_: str, prompt: PromptId | None) -> None:
        item = turn.open_item if type_ == "agentMessage" else None
        item = item or ItemId(f"i{self._next('item')}")
        if item == turn.open_item:
            turn.open_item = None
        else:
            self._say(thread, ins.ItemStarted, turn=turn.id, **_item(item, type_), prompt=prompt)
        turn.items.append(ins.SeenItem(**_item(item, type_), prompt=prompt))
        self._say(thread, ins.ItemCompleted, turn=turn.id, **_item(item, type_), prompt=prompt)

    def fail_attempt(self, thread: Thread) -> None:
        """The stream broke: the open item is given up, and the turn tries again."""
        turn = thread.running
        assert turn is not None
        turn.open_item = None
        failure = ins.TurnFailure(message="stream lost", http_status=500)
        self._say(thread, ins.TurnErrored, turn=turn.id, failure=failure, will_retry=True)

    def end(self, thread: Thread, status: TurnStatus, *, idle_first: bool = False) -> None:
        """End the running turn. One that completes or fails has recorded what it took."""
        turn = thread.running
        assert turn is not None
        if status != "interrupted":
            self.record(thread)
        turn.coming.clear()
        turn.status = status
        turn.open_item = None
        if idle_first:
            self._status(thread, "idle")
        failure = ins.TurnFailure(message="it broke") if status == "failed" else None
        self._say(thread, ins.TurnCompleted, turn=turn.id, status=status, failure=failure)
        if not idle_first:
            self._status(thread, "idle")
        for rpc_id in list(thread.asks):
            self.resolve(thread, rpc_id)

    # --- requests of its own ---

    def ask(self, thread: Thread) -> None:
        """Ask for an approval under a new id: 0, then a string that looks like it, then 1, and so on."""
        turn = thread.running
        assert turn is not None
        number = self._next("ask") - 1
        rpc_id = str(number // 2) if number % 2 == 0 else f'"{number // 2}"'
        thread.asks[rpc_id] = turn.id
        self._ask(thread, turn.id, rpc_id)

    def _ask(self, thread: Thread, turn: TurnId, rpc_id: str) -> None:
        self._say(
            thread,
            ins.RequestArrived,
            rpc_id_json=rpc_id,
            method="item/commandExecution/requestApproval",
            kind="command",
            turn=turn,
            item=ItemId("cmd"),
            params_json="{}",
            decisions=('"accept"', '"decline"'),
            decline_json='{"decision":"decline"}',
        )

    def resolve(self, thread: Thread, rpc_id: str) -> None:
        """Close a request, whoever answered it."""
        del thread.asks[rpc_id]
        self._say(thread, ins.RequestResolved, rpc_id_json=rpc_id)

    def _answered(self, answer: fx.SendAnswer | fx.SendRefusal) -> None:
        holder = next((one for one in self.threads.values() if answer.rpc_id_json in one.asks), None)
        given = "refused"
        if isinstance(answer, fx.SendAnswer):
            said = msgspec.json.decode(answer.answer_json)
            given = str(said["decision"] if isinstance(said, dict) else said)
        self.decisions.setdefault((answer.link.runtime_id, answer.rpc_id_json), []).append(given)
        if holder is not None:
            self.resolve(holder, answer.rpc_id_json)

    # --- what others do to a thread ---

    def unload(self, thread: Thread) -> None:
        """Unload an idle thread."""
        self._say(thread, ins.ThreadGone, how="closed")
        self._status(thread, "notLoaded")
        thread.listeners.clear()
        thread.loaded = False

    def archive(self, thread: Thread) -> None:
        """Archive a thread; what runs on it is interrupted."""
        if thread.running is not None:
            self.end(thread, "interrupted")
        self._say(thread, ins.ThreadGone, how="archived")
        thread.archived, thread.loaded = True, False
        thread.listeners.clear()

    def unarchive(self, thread: Thread) -> None:
        """Take a thread out of the archive."""
        thread.archived = False
        self._say(thread, ins.ThreadUnarchived, to_all=True)

    def delete(self, thread: Thread) -> None:
        """Delete a thread; what runs on it ends without a word."""
        if thread.running is not None:
            thread.running.status = "interrupted"
        thread.deleted, thread.loaded = True, False
        for turn in thread.turns:
            self._forget(turn)
        thread.asks.clear()
        self._say(thread, ins.ThreadGone, how="deleted")
        thread.listeners.clear()

    def known(self, thread: Thread, *, tagless: bool = False) -> KnownThread:
        """Return the thread as a scan tells it. `tagless`: of a source that keeps no tags."""
        items = [item for turn in thread.turns for item in turn.items]
        return KnownThread(
            thread_id=thread.id,
            home="/home",
            cls="discovered",
            reason="seen",
            cwd="/work",
            source="appServer",
            tag=None if tagless else thread.tag,
            rollout_path=f"/home/{thread.id}" if items else None,
            archived=thread.archived,
            message_count=len(items),
            created_at_ms=1,
        )

    def page(self, *, tagless: bool = False) -> tuple[KnownThread, ...]:
        """Return what a scan finds: the stored threads."""
        return tuple(self.known(thread, tagless=tagless) for thread in self.threads.values() if thread.stored)


def _item(item: ItemId, type_: str) -> dict[str, Any]:
    return {"item": item, "type": type_, "item_json": f'{{"id":"{item}","type":"{type_}"}}'}


def _seen(turn: Turn) -> ins.SeenTurn:
    status = "inProgress" if turn.status in RUNNING else turn.status
    users = sum(item.type == "userMessage" for item in turn.items)
    return ins.SeenTurn(
        turn=turn.id,
        status=status,  # type: ignore[arg-type]  # a running status was replaced above
        prompts=tuple(turn.prompts),
        items=tuple(turn.items),
        user_items=users,
    )


def stamped(happened: ins.Input, at_ms: int) -> ins.Input:
    """Return an input as taken at this time."""
    return replace(happened, at_ms=at_ms)
