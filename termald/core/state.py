"""All that the core knows, with undo, and what of it must be written.

The state holds sessions that are live or were named by the batch at hand; the rest are in the database alone. The
writer loads what a batch names (`wanted`), lets it be decided, writes what changed (`changes`), and then either keeps
it or takes it all back.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from state.records import (
    BootImage,
    Changes,
    DisposalRecord,
    EventRecord,
    Host,
    IdempotencyRecord,
    IgnoredThread,
    IntentRecord,
    ItemId,
    ItemRecord,
    KnownThread,
    LinkId,
    Loaded,
    PromptId,
    PromptRecord,
    RequestId,
    RequestRecord,
    RuntimeId,
    RuntimeRecord,
    Seq,
    SessionBundle,
    SessionId,
    ThreadId,
    TurnId,
    TurnRecord,
)
from termald.core.inputs import CallId, LimitWindow, RequestArrived, ThreadNotice
from termald.core.limits import Limits
from termald.core.model import ActiveTurn, Call, Disposal, DisposalStep, Route, Session, is_final
from termald.core.tables import Cell, Table

K = TypeVar("K")
V = TypeVar("V")
ItemKey = tuple[SessionId, TurnId, ItemId]
RpcKey = tuple[RuntimeId, str]


class State:
    """The daemon's memory. Changed only by the core, one input at a time."""

    def __init__(self, host: Host, next_seq: Seq, limits: Limits | None = None) -> None:
        self.host = host
        self.limits = limits or Limits()
        self.shutting_down = Cell[bool](False)
        self.runtime = Cell[RuntimeRecord | None](None)
        """The record of a process whose end this batch settles."""
        self.link = Cell[LinkId | None](None)
        self.next_seq = Cell[Seq](next_seq)
        self.next_call = Cell[CallId](CallId(1))
        self.calls_written = Cell[int](0)
        self.calls_waiting = Cell[tuple[CallId, ...]](())
        self.setups_open = Cell[int](0)
        self.setups_waiting = Cell[tuple[SessionId, ...]](())
        self.account_limits = Cell[tuple[LimitWindow, ...]](())
        self.late_frames = Cell[int](0)
        self.bad_frames = Cell[int](0)
        self.sessions = Table[SessionId, Session]()
        self.claims = Table[ThreadId, SessionId]()
        self.routes = Table[ThreadId, Route]()
        self.prompts = Table[PromptId, PromptRecord]()
        self.turns = Table[tuple[SessionId, TurnId], TurnRecord]()
        self.items = Table[ItemKey, ItemRecord]()
        self.requests = Table[RequestId, RequestRecord]()
        self.requests_by_rpc = Table[RpcKey, RequestId]()
        self.calls = Table[CallId, Call]()
        self.intents = Table[str, IntentRecord]()
        self.ignored = Table[ThreadId, IgnoredThread]()
        self.threads = Table[ThreadId, KnownThread]()
        self.disposals = Table[ThreadId, Disposal]()
        self.idempotency = Table[str, IdempotencyRecord]()
        self.unclaimed = Table[ThreadId, tuple[RequestArrived, ...]]()
        """Requests of threads that nobody here holds: another front-end's, or a child's that is not named yet."""
        self.children = Table[ThreadId, Route]()
        self.early = Table[ThreadId, tuple[ThreadNotice, ...]]()
        self.reverted: list[tuple[SessionId, TurnId]] = []
        self.events: list[EventRecord] = []
        self.promised = False

    # --- loading ---

    def load(self, loaded: Loaded) -> None:
        """Take in what the database holds of what a batch names. What is in memory already is newer and stays."""
        for bundle in loaded.bundles:
            if bundle.session.id not in self.sessions:
                self._load_bundle(bundle)
        for entry in loaded.ignored:
            self.ignored.load(entry.thread_id, entry)
        for intent in loaded.intents:
            self.intents.load(intent.tag, intent)
        for thread in loaded.threads:
            self.threads.load(thread.thread_id, thread)
        for disposal in loaded.disposals:
            self.disposals.load(disposal.thread_id, revive_disposal(disposal))
        for answer in loaded.idempotency:
            self.idempotency.load(answer.key, answer)

    @classmethod
    def boot(cls, image: BootImage, limits: Limits | None = None) -> "State":
        """Return the state that a daemon wakes up with."""
        state = cls(image.host, image.next_seq, limits)
        state.load(image.loaded)
        return state

    def _load_bundle(self, bundle: SessionBundle) -> None:
        record = bundle.session
        self.sessions.load(record.id, revive_session(bundle))
        if record.thread_id is not None and record.killed_at_ms is None:
            self.claims.load(record.thread_id, record.id)
        for prompt in bundle.prompts:
            self.prompts.load(prompt.id, prompt)
        for item in bundle.open_items:
            self.items.load((item.session_id, item.turn_id, item.id), item)
        for request in bundle.requests:
            self.requests.load(request.id, request)
            self.requests_by_rpc.load((request.attachment.runtime_id, request.rpc_id_json), request.id)
        for intent in bundle.intents:
            self.intents.load(intent.tag, intent)

    # --- reading ---

    def owner(self, thread: ThreadId) -> SessionId | None:
        """Return the session that claims the thread."""
        return self.claims.get(thread)

    def session_requests(self, session: Session) -> tuple[RequestRecord, ...]:
        """Return the session's requests that are open, or answered and unconfirmed, oldest first."""
        return tuple(self.requests[request] for request in session.requests)

    # --- the batch ---

    @property
    def _tables(self) -> tuple[Table[Any, Any], ...]:
        return tuple(value for value in vars(self).values() if isinstance(value, Table))

    @property
    def _cells(self) -> tuple[Cell[Any], ...]:
        return tuple(value for value in vars(self).values() if isinstance(value, Cell))

    def changes(self) -> Changes:
        """Return what the batch changed and the database must hold. A record that ends as it was is not written."""
        return Changes(
            sessions=tuple(
                change.after.record
                for change in self.sessions.changes()
                if change.after is not None
                and (change.before is None or change.before.record is not change.after.record)
            ),
            prompts=_rows(self.prompts),
            turns=_rows(self.turns),
            items=_rows(self.items),
            requests=_rows(self.requests),
            intents=_rows(self.intents),
            ignored=_rows(self.ignored),
            unignored=tuple(change.key for change in self.ignored.changes() if change.after is None),
            threads=_rows(self.threads),
            disposals=tuple(
                change.after.record
                for change in self.disposals.changes()
                if change.after is not None and (change.before is None or change.before.record != change.after.record)
            ),
            idempotency=_rows(self.idempotency),
            reverted=tuple(self.reverted),
            events=tuple(self.events),
            runtime=self.runtime.value,
        )

    def keep(self) -> None:
        """The batch is committed: make it final, and forget what the database alone can hold."""
        self.runtime.value = None
        touched = {id(table): table.keep() for table in self._tables}
        for cell in self._cells:
            cell.keep()
        self.reverted.clear()
        self.events.clear()
        self.promised = False
        self._evict(touched)

    def undo(self) -> None:
        """The batch is not committed: be as before it."""
        for table in self._tables:
            table.undo()
        for cell in self._cells:
            cell.undo()
        self.reverted.clear()
        self.events.clear()
        self.promised = False

    def _evict(self, touched: dict[int, list[Any]]) -> None:
        """Look at what the batch touched, not at all that there is: the cost of a batch does not grow with the number
        of sessions."""
        for session_id in touched[id(self.sessions)]:
            session = self.sessions[session_id]
            if session.idle:
                self.sessions.forget(session_id)
                if session.record.thread_id is not None and self.claims.get(session.record.thread_id) == session_id:
                    self.claims.forget(session.record.thread_id)
        _forget(self.prompts, touched, is_final)
        _forget(self.turns, touched, lambda _: True)
        _forget(self.items, touched, lambda item: item.state != "open" or not self._item_is_live(item))
        for request_id in touched[id(self.requests)]:
            request = self.requests[request_id]
            if request.status not in LIVE_REQUESTS:
                self.requests.forget(request_id)
                self.requests_by_rpc.forget((request.attachment.runtime_id, request.rpc_id_json))
        _forget(self.intents, touched, lambda intent: intent.state != "open")
        _forget(self.disposals, touched, lambda disposal: disposal.record.done)
        _forget(self.ignored, touched, lambda _: True)
        _forget(self.threads, touched, lambda _: True)
        _forget(self.idempotency, touched, lambda _: True)

    def _item_is_live(self, item: ItemRecord) -> bool:
        session = self.sessions.get(item.session_id)
        return session is not None and session.turn is not None and session.turn.id == item.turn_id


LIVE_REQUESTS: Final = frozenset({"open", "answered"})


def _forget(table: Table[K, V], touched: dict[int, list[Any]], over: Callable[[V], bool]) -> None:
    for key in touched[id(table)]:
        if over(table[key]):
            table.forget(key)


def _rows(table: Table[K, V]) -> tuple[V, ...]:
    return tuple(change.after for change in table.changes() if change.after is not None)


def revive_session(bundle: SessionBundle) -> Session:
    """Return a session as the database tells it. What was in flight when it was written has an unknown outcome:
    recovery decides about it."""
    turn = bundle.turn
    tied = tuple(prompt.id for prompt in bundle.prompts if turn is not None and prompt.turn_id == turn.id)
    return Session(
        record=bundle.session,
        queue=tuple(prompt.id for prompt in bundle.prompts if prompt.id not in tied),
        next_position=bundle.next_position,
        turn=None
        if turn is None
        else ActiveTurn(
            record=turn,
            prompts=tied,
            steered=tuple(prompt.id for prompt in bundle.prompts if prompt.id in tied and not prompt.recorded),
            open_items=tuple(item.id for item in bundle.open_items if item.turn_id == turn.id),
            interrupt="wanted" if turn.interrupt_wanted else "none",
            whole=False,
        ),
        ended=bundle.ended_turns,
        requests=tuple(request.id for request in bundle.requests),
    )


def revive_disposal(record: DisposalRecord) -> Disposal:
    """Return an unfinished disposal with all its steps before it: each of them may be asked twice."""
    steps: list[DisposalStep] = ["interrupt"] if record.turn_id is not None else []
    steps += ["end_tools", "unsubscribe"]
    if record.wanted != "ignore":
        steps.append(record.wanted)
    return Disposal(record=record, steps=tuple(steps))
