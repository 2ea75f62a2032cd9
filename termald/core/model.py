"""What the core knows of a live session, in frozen values.

A session is in one of these positions, and `queue.advance` is the only place that moves its queue on:

    setup set                    a thread is being opened; prompts park behind it, whatever else is already known of the
    thread
    outgoing set                 a `turn/start` is written and not answered: its prompt is in no queue
    turn set                     a turn is active on the thread, ours or somebody else's
    bound, none of these         the next prompt starts a turn
    none at all                  the next prompt opens the thread

`outgoing` and `turn` may both be set: the turn began before the answer that would tell whose it is, or it is another
front-end's.
"""

from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from state.records import (
    DELIVERY_FINAL,
    CodexAttachment,
    DisposalRecord,
    ItemId,
    LinkId,
    PromptId,
    PromptRecord,
    RequestId,
    SessionId,
    SessionRecord,
    ThreadId,
    Tokens,
    TurnId,
    TurnRecord,
)
from termald.core.effects import Op
from termald.core.inputs import CallId, Idempotency, Ticket, TurnFailure

MESSAGES: Final = frozenset({"userMessage", "agentMessage"})
"""The types of the items that `messageCount` counts."""
InterruptState = Literal["none", "wanted", "sent", "acked", "unconfirmed"]
Purpose = Literal[
    "open_fresh",
    "open_known",
    "turn",
    "steer",
    "interrupt",
    "read",
    "end_tools",
    "unsubscribe",
    "dispose",
    "operate",
    "look_back",
    "name",
    "fork",
    "ask",
]
DisposalStep = Literal["interrupt", "end_tools", "unsubscribe", "archive", "delete"]


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The one setup in flight. `tag` is set for a fresh thread, `thread` for a known one."""

    call: CallId
    tag: str | None = None
    thread: ThreadId | None = None


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt whose `turn/start` is not answered. `interrupt`: somebody wants its turn ended as soon as it is
    known."""

    prompt: PromptId
    call: CallId
    after: TurnId | None = None
    """The turn that had ended last when it was written."""
    interrupt: bool = False


class Steering(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that was written to join the active turn, and is not answered."""

    prompt: PromptId
    call: CallId
    turn: TurnId


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """Where a revert is to cut: so many turns from the end, or before one. `removed` are the turns behind it that were
    read so far, newest first, and `messages` what they hold."""

    turns: int | None = None
    before_turn: TurnId | None = None
    removed: tuple[TurnId, ...] = ()
    messages: int = 0
    older: str | None = None

    @property
    def found(self) -> bool:
        """Whether the turns behind it are all known."""
        if self.turns is not None:
            return len(self.removed) == self.turns
        return self.before_turn in self.removed


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What is being done to the whole thread. `awaits_turn`: Codex has taken it, and the turn that it is has not
    begun."""

    kind: Literal["compact", "review", "archive", "unarchive", "fork", "revert"]
    ticket: Ticket
    cut: Cut | None = None
    target_json: str | None = None
    tag: str | None = None
    new_session: SessionId | None = None
    title: str | None = None
    idempotency: Idempotency | None = None
    call: CallId | None = None
    awaits_turn: bool = False


class ToldEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How Codex says that the turn ended, kept while what was missed of it is read. `overtook`: the read that is in
    flight was asked before, and may not have it."""

    status: str
    failure: TurnFailure | None
    overtook: bool


class ActiveTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The turn that runs. `seen_active`: Codex said so, hence an interrupt reaches it. `whole`: we heard it from its
    start."""

    record: TurnRecord
    prompts: tuple[PromptId, ...] = ()
    steered: tuple[PromptId, ...] = ()
    """Those of `prompts` that joined it while it ran: until they are seen recorded, the turn may end without having had
    them."""
    open_items: tuple[ItemId, ...] = ()
    closed_items: tuple[ItemId, ...] = ()
    attempt: int = 1
    block: int = 0
    block_open: bool = False
    failure: TurnFailure | None = None
    seen_active: bool = False
    interrupt: InterruptState = "none"
    runs_instead: TurnId | None = None
    """The turn that Codex named when it was asked to end this one: that is the one to end (STOP-07)."""
    whole: bool = True
    told: ToldEnd | None = None
    output: bool = False
    settles: int = 0

    @property
    def id(self) -> TurnId:
        """The turn's id."""
        return self.record.id


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session in memory. `queue` holds the prompts that wait, oldest first; one with delivery past `queued` is
    uncertain: read before use."""

    record: SessionRecord
    queue: tuple[PromptId, ...] = ()
    next_position: int = 0
    setup: Setup | None = None
    outgoing: Outgoing | None = None
    steering: tuple[Steering, ...] = ()
    operation: Operation | None = None
    turn: ActiveTurn | None = None
    last_done: TurnRecord | None = None
    total_seen: Tokens | None = None
    """The thread's running sum as last told, if it was: a sample that leaves it as it is repeats one that was counted,
    and what it has grown by is what was spent."""
    strayed: bool = False
    """The thread may have other settings than the session's: Codex keeps what a turn chose for those after it, and
    other front-ends choose as well."""
    ended: tuple[TurnId, ...] = ()
    requests: tuple[RequestId, ...] = ()
    """Open ones, and answered ones that Codex has not confirmed; oldest first."""
    reading: CallId | None = None
    reattach: bool = False
    """The link was lost and the process lives: the claimed thread is resumed before anything else."""
    looks: int = 0
    """How often an unconfirmed prompt was looked for."""
    misses: int = 0
    """How many of them were answered and did not find it. A look without an answer proves nothing."""
    tools: CallId | None = None
    """Ending: the call that ends the tool processes."""
    waiting: tuple[Ticket, ...] = ()
    """Callers of stop and close, answered when the session is detached."""

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self.record.id

    @property
    def bound(self) -> bool:
        """Whether the claimed thread is ours to start turns on: attached, and no setup is open."""
        return self.record.attachment is not None and self.record.thread_id is not None and self.setup is None

    @property
    def active(self) -> bool:
        """Whether something of it is in flight."""
        return bool(self.setup or self.outgoing or self.steering or self.operation or self.turn)

    @property
    def busy(self) -> bool:
        """Whether something runs or is about to."""
        return self.active or bool(self.queue)

    @property
    def idle(self) -> bool:
        """Whether the database alone can hold it."""
        return not self.busy and self.record.attachment is None and not self.waiting and not self.requests


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request of ours that is not answered. `tombstone`: its deadline passed or its session went on; a late reply is
    adopted or disposed of."""

    id: CallId
    link: LinkId
    purpose: Purpose
    op: Op
    session: SessionId | None = None
    attachment: CodexAttachment | None = None
    prompt: PromptId | None = None
    turn: TurnId | None = None
    thread: ThreadId | None = None
    ticket: Ticket | None = None
    deadline_ms: int = 0
    written: bool = False
    tombstone: bool = False
    retries: int = 0


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Which session a thread's notices belong to, and under which attachment."""

    session: SessionId
    attachment: CodexAttachment


class Disposal(msgspec.Struct, frozen=True, kw_only=True):
    """A thread being let go. `steps` are still to be asked of Codex, in order; `said` is what it answered so far."""

    record: DisposalRecord
    steps: tuple[DisposalStep, ...]
    said: tuple[tuple[str, str], ...] = ()
    call: CallId | None = None
    waits_for_turn: CallId | None = None
    """A `turn/start` that was written and may still begin a turn: unsubscribing now would leave it running unseen."""
    waiting: tuple[Ticket, ...] = ()


def is_final(prompt: PromptRecord) -> bool:
    """Whether the prompt has ended."""
    return prompt.delivery in DELIVERY_FINAL


def with_record(session: Session, **changes: object) -> Session:
    """Return the session with fields of its record replaced."""
    return replace(session, record=replace(session.record, **changes))
