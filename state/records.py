"""The records: frozen values that the core decides on, the store keeps and the other rooms read.

Pure: no I/O, no clock. All times are Unix milliseconds (`*_ms`). Text named `*_json` is JSON as it stands in the
database, kept verbatim. A record is changed by replacing it (`msgspec.structs.replace`); whoever holds one may keep it.
"""

from typing import Final, Literal, NewType

import msgspec

SessionId = NewType("SessionId", str)
PromptId = NewType("PromptId", str)
RequestId = NewType("RequestId", str)
"""Our own, opaque id of a server request; Codex's JSON-RPC id is `RequestRecord.rpc_id`."""
ThreadId = NewType("ThreadId", str)
TurnId = NewType("TurnId", str)
ItemId = NewType("ItemId", str)
RuntimeId = NewType("RuntimeId", str)
Seq = NewType("Seq", int)

SessionStatus = Literal["detached", "connecting", "ready", "running", "error", "closed"]
WaitingOn = Literal["approval", "userInput"]
Origin = Literal["created", "discovered", "forked", "external"]
RuntimeMode = Literal["approval-required", "full-access"]
Delivery = Literal["queued", "sent", "acked", "recorded", "done", "failed", "cancelled", "not_delivered"]
PromptMode = Literal["queue", "steer", "replace", "reject"]
Ending = Literal["stop", "close"]
TurnState = Literal["normal", "cancelled", "length", "error"]
RequestKind = Literal["command", "fileChange", "permissions", "userInput", "elicitation"]
Choice = Literal["ask", "decline", "accept"]
Decider = Literal["user", "policy", "deadline", "kill"]
RequestStatus = Literal["open", "answered", "resolved", "expired"]
IntentState = Literal["open", "claimed", "ignored", "discarded", "orphan"]
ThreadClass = Literal["owned", "ignored", "orphan", "child", "discovered"]

DELIVERY_FINAL: Final[frozenset[Delivery]] = frozenset({"done", "failed", "cancelled", "not_delivered"})


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all records: frozen, built by keyword."""


class CodexAttachment(Record, frozen=True, kw_only=True):
    """One session's tie to one process. Minted at every attach, never reused; what comes back later is compared with it
    before it acts (I4)."""

    runtime_id: RuntimeId
    generation: int


class LinkId(Record, frozen=True, kw_only=True):
    """One connection to one process. A process outlives its connections; frames belong to the connection they came
    over."""

    runtime_id: RuntimeId
    connection: int


class Problem(Record, frozen=True, kw_only=True):
    """Why something failed, in the words shown to a user. `slug` is from the documented list; Codex's own code and text
    are kept beside it."""

    slug: str
    message: str
    retryable: bool = False
    codex_code: int | None = None
    codex_message: str | None = None
    reset_at_ms: int | None = None
    """When it ends by itself, where that is known."""


class RequestPolicy(Record, frozen=True, kw_only=True):
    """Who decides about each kind of request: whoever is asked, or this. A question and an elicitation can only be
    answered by somebody, hence not be accepted. `allow_commands`: beginnings of commands, word by word, that are
    accepted whatever is said of the others. `deadline_ms`: how long one may wait before it is declined; None takes the
    daemon's."""

    command: Choice = "ask"
    file_change: Choice = "ask"
    permissions: Choice = "ask"
    user_input: Literal["ask", "decline"] = "ask"
    elicitation: Literal["ask", "decline"] = "ask"
    allow_commands: tuple[tuple[str, ...], ...] = ()
    deadline_ms: int | None = None


class SessionRecord(Record, frozen=True, kw_only=True):
    """A durable logical session.

    `thread_id` is the claim: unique over all sessions that were not killed. `generation` is the highest one ever minted
    for this session and only grows, also across restarts (I4). `attachment` is set while something live is, or may be,
    behind the session. `history` says that a user item was once recorded in the claimed thread, or that it was found
    with turns: such a thread is never given up on the quiet. `paused` holds the queue until somebody prompts or retries
    (after a stop, a refusal, an unknown outcome). A killed session keeps its row (`killed_at_ms`), so that its id is
    never used again; no read shows it. `home` is the Codex home that the thread was found in where that is not the one
    that Codex runs in: such a session is only ever read. `archived` is what Codex says of the thread.
    """

    id: SessionId
    title: str | None = None
    status: SessionStatus = "detached"
    waiting_on: WaitingOn | None = None
    origin: Origin = "created"
    cwd: str = ""
    model: str | None = None
    model_provider: str | None = None
    effort: str | None = None
    service_tier: str | None = None
    runtime_mode: RuntimeMode = "approval-required"
    approval_policy_json: str | None = None
    sandbox: str | None = None
    developer_instructions: str | None = None
    config_json: str | None = None
    on_resume_lost: Literal["fail", "fresh"] = "fail"
    on_recovery: Literal["resend", "hold"] = "resend"
    thread_id: ThreadId | None = None
    home: str | None = None
    archived: bool = False
    history: bool = False
    resume_lost: bool = False
    paused: bool = False
    generation: int = 0
    attachment: CodexAttachment | None = None
    active_turn_id: TurnId | None = None
    ending: Ending | None = None
    message_count: int = 0
    preview: str = ""
    parent_id: SessionId | None = None
    created_at_ms: int = 0
    updated_at_ms: int = 0
    killed_at_ms: int | None = None
    last_error: Problem | None = None
    request_policy: RequestPolicy | None = None


class PromptRecord(Record, frozen=True, kw_only=True):
    """One accepted prompt. `sent_to` is the process that may have it: only when that one is gone is its absence
    certain.

    `position` orders the prompts of a session (FIFO); `attempts` counts the `turn/start` frames written for it."""

    id: PromptId
    session_id: SessionId
    position: int
    input_json: str
    mode: PromptMode = "queue"
    model: str | None = None
    effort: str | None = None
    service_tier: str | None = None
    interaction_mode: Literal["default", "plan"] | None = None
    output_schema_json: str | None = None
    delivery: Delivery = "queued"
    recorded: bool = False
    attempts: int = 0
    sent_to: RuntimeId | None = None
    interrupt_wanted: bool = False
    turn_id: TurnId | None = None
    created_at_ms: int = 0
    ended_at_ms: int | None = None
    error: Problem | None = None


class Tokens(Record, frozen=True, kw_only=True):
    """Token counts of one model call or of a whole turn. `input` includes what was read from cache; `total = input +
    output`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total: int = 0


class TurnRecord(Record, frozen=True, kw_only=True):
    """One turn of a session's thread, whoever began it. `state` is set exactly once, when the turn ends (I12)."""

    id: TurnId
    session_id: SessionId
    thread_id: ThreadId
    ours: bool
    started_at_ms: int
    ended_at_ms: int | None = None
    state: TurnState | None = None
    kind: str | None = None
    message: str | None = None
    provider_error_json: str | None = None
    usage: Tokens = Tokens()
    interrupt_wanted: bool = False
    reconciled: bool = False


class ItemRecord(Record, frozen=True, kw_only=True):
    """One item of a turn. `item_json` is Codex's item, verbatim, as last told."""

    id: ItemId
    session_id: SessionId
    turn_id: TurnId
    type: str
    state: Literal["open", "completed", "incomplete", "taken_back"]
    late: bool = False
    item_json: str
    first_seq: Seq


class RequestRecord(Record, frozen=True, kw_only=True):
    """A request of Codex's that waits, or waited, for an answer. One per (runtime, rpc id); sent again it is the same
    record, stamped anew.

    `rpc_id_json` keeps the id's JSON text, so that `1` and `"1"` differ. `params_json` is what Codex sent. `decisions`
    are the offered ones, each as JSON text (a bare string in quotes, or an amendment object); empty where Codex offers
    none. `answer_json` is what was decided, in the form that `answer_form` says.
    """

    id: RequestId
    session_id: SessionId
    attachment: CodexAttachment
    rpc_id_json: str
    method: str
    kind: RequestKind
    thread_id: ThreadId
    turn_id: TurnId | None
    item_id: ItemId | None
    params_json: str
    decisions: tuple[str, ...] = ()
    status: RequestStatus = "open"
    answer_form: Literal["decision", "answers", "result"] | None = None
    answer_json: str | None = None
    opened_at_ms: int = 0
    closed_at_ms: int | None = None
    decided_by: Decider | None = None


class IntentRecord(Record, frozen=True, kw_only=True):
    """That we are about to mint a thread; committed before the frame is written (I2). `tag` travels as `threadSource`
    and finds the thread again."""

    tag: str
    session_id: SessionId
    generation: int
    kind: Literal["start", "fork"]
    cwd: str
    state: IntentState = "open"
    thread_id: ThreadId | None = None
    reason: str | None = None
    created_at_ms: int = 0
    closed_at_ms: int | None = None


class IgnoredThread(Record, frozen=True, kw_only=True):
    """A thread that discovery never imports. Ends only by the user's word or because a session owns the thread (I9)."""

    thread_id: ThreadId
    reason: str
    at_ms: int
    last_seen_ms: int | None = None


class KnownThread(Record, frozen=True, kw_only=True):
    """A thread that Codex has, as discovery last saw it. `stamp` is what the source says changed (compared for equality
    only)."""

    thread_id: ThreadId
    home: str
    cls: ThreadClass
    reason: str
    session_id: SessionId | None = None
    parent_thread_id: ThreadId | None = None
    title: str | None = None
    preview: str = ""
    cwd: str = ""
    model: str | None = None
    model_provider: str | None = None
    source: str = ""
    tag: str | None = None
    rollout_path: str | None = None
    archived: bool = False
    message_count: int | None = None
    created_at_ms: int = 0
    updated_at_ms: int = 0
    stamp: str = ""


class DisposalRecord(Record, frozen=True, kw_only=True):
    """What is still to be done in Codex for a thread that we let go (kill, a thread minted for nobody). Survives a
    crash; ends with its outcome."""

    thread_id: ThreadId
    session_id: SessionId | None
    wanted: Literal["ignore", "archive", "delete"]
    turn_id: TurnId | None = None
    done: bool = False
    outcome_json: str | None = None
    at_ms: int = 0


class IdempotencyRecord(Record, frozen=True, kw_only=True):
    """The first answer given under a key. `fingerprint` is a digest of method, path and body; `answer_json` is the
    answer's record."""

    key: str
    fingerprint: str
    answer_json: str
    at_ms: int


class EventRecord(Record, frozen=True, kw_only=True):
    """One line of the log. `data_json` is the whole public object (`seq, at, kind, sessionId, …`), encoded once and
    shown to every reader as it stands."""

    seq: Seq
    at_ms: int
    kind: str
    session_id: SessionId | None
    turn_id: TurnId | None
    item_id: ItemId | None
    data_json: bytes


class RuntimeRecord(Record, frozen=True, kw_only=True):
    """The app-server process that we started, found again by pid *and* start time. Written before the process is
    used."""

    runtime_id: RuntimeId
    pid: int
    start_time: str
    transport: Literal["unix", "stdio"]
    socket: str | None
    codex_home: str
    codex_version: str
    codex_path: str
    started_at_ms: int
    ended_at_ms: int | None = None
    exit_json: str | None = None


class Host(Record, frozen=True, kw_only=True):
    """Who we are: `id` is kept for ever, `epoch` grows at each start."""

    id: str
    epoch: int


class Changes(Record, frozen=True, kw_only=True):
    """All that one batch decided, for one transaction. Records are written whole, by their key; events are appended."""

    sessions: tuple[SessionRecord, ...] = ()
    prompts: tuple[PromptRecord, ...] = ()
    turns: tuple[TurnRecord, ...] = ()
    items: tuple[ItemRecord, ...] = ()
    requests: tuple[RequestRecord, ...] = ()
    intents: tuple[IntentRecord, ...] = ()
    ignored: tuple[IgnoredThread, ...] = ()
    unignored: tuple[ThreadId, ...] = ()
    threads: tuple[KnownThread, ...] = ()
    disposals: tuple[DisposalRecord, ...] = ()
    idempotency: tuple[IdempotencyRecord, ...] = ()
    reverted: tuple[tuple[SessionId, TurnId], ...] = ()
    """Turns that were taken back: they and their items are no part of a history any more."""
    events: tuple[EventRecord, ...] = ()
    runtime: RuntimeRecord | None = None

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return any(getattr(self, name) for name in self.__struct_fields__)


class SessionBundle(Record, frozen=True, kw_only=True):
    """A session with all that the core needs to go on with it: what is unfinished, and what it must not take for
    new."""

    session: SessionRecord
    prompts: tuple[PromptRecord, ...] = ()
    """Those without a final delivery, oldest first."""
    next_position: int = 0
    turn: TurnRecord | None = None
    """The one that has not ended."""
    ended_turns: tuple[TurnId, ...] = ()
    """The most recent ended ones, oldest first, bounded."""
    open_items: tuple[ItemRecord, ...] = ()
    requests: tuple[RequestRecord, ...] = ()
    """Open ones, and answered ones that Codex has not confirmed."""
    intents: tuple[IntentRecord, ...] = ()
    """Open ones."""


class Wanted(Record, frozen=True, kw_only=True):
    """What a batch names and the core may need: loaded before the batch is decided."""

    sessions: frozenset[SessionId] = frozenset()
    threads: frozenset[ThreadId] = frozenset()
    """Their owners, ignore entries, known rows and disposals."""
    tags: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything is named."""
        return bool(self.sessions or self.threads or self.tags or self.keys)


class Loaded(Record, frozen=True, kw_only=True):
    """The answer to `Wanted`, and to the load at boot. What was asked for and is not here does not exist."""

    bundles: tuple[SessionBundle, ...] = ()
    """The sessions named by id or as owners of the named threads; killed ones with their tombstone row only."""
    ignored: tuple[IgnoredThread, ...] = ()
    intents: tuple[IntentRecord, ...] = ()
    threads: tuple[KnownThread, ...] = ()
    disposals: tuple[DisposalRecord, ...] = ()
    idempotency: tuple[IdempotencyRecord, ...] = ()


class BootImage(Record, frozen=True, kw_only=True):
    """What the daemon wakes up with: only what is unfinished, however many sessions there are."""

    host: Host
    next_seq: Seq
    loaded: Loaded
    """Sessions that were live or hold unfinished prompts or requests; open intents; unfinished disposals."""
    runtime: RuntimeRecord | None
    """The newest runtime that is not recorded as ended."""
