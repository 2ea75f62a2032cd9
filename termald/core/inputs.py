"""What can happen to the daemon, and under which stamp.

Every input carries the time it was taken at. An input about one session that can come back later carries the attachment
it was made under; one from Codex carries the link it came over and, for a reply, the call it answers. Ids that are
needed come in with the input: the core mints none that is not determined by its state.
"""

from typing import Literal, NewType

import msgspec

from state.records import (
    CodexAttachment,
    IgnoredThread,
    ItemId,
    KnownThread,
    LinkId,
    PromptId,
    PromptMode,
    RequestId,
    RequestKind,
    RequestPolicy,
    RuntimeId,
    RuntimeMode,
    RuntimeRecord,
    SessionId,
    ThreadId,
    Tokens,
    TurnId,
)

Ticket = NewType("Ticket", int)
"""Names one waiting caller; the answer goes to it exactly once."""
CallId = NewType("CallId", int)
"""The JSON-RPC id of a request of ours. Unique over all links of one daemon process, so that a late reply cannot meet
another call."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all inputs. `at_ms`: Unix milliseconds at which it was taken in."""

    at_ms: int


# --- commands: somebody asks, and is answered ---


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    """A caller's key and a digest of what was asked under it."""

    key: str
    fingerprint: str


class Command(Input, frozen=True, kw_only=True):
    """Base of what callers ask. The ticket is answered once, after the commit."""

    ticket: Ticket


class NewPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt to be accepted. `input_json` is a JSON array of Codex's user inputs, validated at the edge."""

    id: PromptId
    input_json: str
    mode: PromptMode = "queue"
    model: str | None = None
    effort: str | None = None
    service_tier: str | None = None
    interaction_mode: Literal["default", "plan"] | None = None
    output_schema_json: str | None = None


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a creator may choose. `cwd` is absolute and was seen to be a folder."""

    cwd: str
    title: str | None = None
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
    request_policy: RequestPolicy | None = None


class CreateSession(Command, frozen=True, kw_only=True):
    """Create a session, claim a thread if one is named, accept its first prompt if there is one: all or nothing."""

    session: SessionId
    settings: SessionSettings
    thread: ThreadId | None = None
    prompt: NewPrompt | None = None
    idempotency: Idempotency | None = None


class PatchSession(Command, frozen=True, kw_only=True):
    """Change settings; they take effect at the next turn. `changes` maps `SessionRecord` field names to new values,
    validated at the edge."""

    session: SessionId
    changes: dict[str, str | RequestPolicy | None]


class SubmitPrompt(Command, frozen=True, kw_only=True):
    """Accept a prompt for a session."""

    session: SessionId
    prompt: NewPrompt
    idempotency: Idempotency | None = None


class TakeBackPrompt(Command, frozen=True, kw_only=True):
    """Cancel a prompt that is still queued."""

    session: SessionId
    prompt: PromptId


class ReorderPrompts(Command, frozen=True, kw_only=True):
    """Let these queued prompts run first, in this order; the others follow in theirs."""

    session: SessionId
    prompts: tuple[PromptId, ...]


class InterruptSession(Command, frozen=True, kw_only=True):
    """End the running turn; before any turn is written, cancel the head prompt."""

    session: SessionId


class StopSession(Command, frozen=True, kw_only=True):
    """Interrupt, end the tool processes, detach. Queued prompts stay and go first at the next attach."""

    session: SessionId


class CloseSession(Command, frozen=True, kw_only=True):
    """As stop, for good: queued prompts are cancelled, later ones refused."""

    session: SessionId


class Emptiness(msgspec.Struct, frozen=True, kw_only=True):
    """What a session was when Codex was seen to have nothing of it."""

    thread: ThreadId | None
    prompts: int


class KillSession(Command, frozen=True, kw_only=True):
    """Remove the session and ignore its thread, whatever Codex says. `only_if`: only while it holds nothing, and is as
    it was when that was seen."""

    session: SessionId
    wanted: Literal["ignore", "archive", "delete"] = "ignore"
    dry_run: bool = False
    only_if: Emptiness | None = None


class OperateSession(Command, frozen=True, kw_only=True):
    """Do something to the session's whole thread; refused while it is busy. `target_json`: what a review looks at."""

    session: SessionId
    kind: Literal["compact", "review", "archive", "unarchive"]
    target_json: str | None = None


class ForkSession(Command, frozen=True, kw_only=True):
    """Make a session of its own out of a copy of the thread; refused while the session is busy."""

    session: SessionId
    new_session: SessionId
    title: str | None = None
    idempotency: Idempotency | None = None


class RevertSession(Command, frozen=True, kw_only=True):
    """Take the newest turns back: so many, or one and all after it. Refused while the session is busy."""

    session: SessionId
    turns: int | None = None
    before_turn: TurnId | None = None


class RetrySession(Command, frozen=True, kw_only=True):
    """Let held prompts run again; `fresh` gives up a lost thread for a new one."""

    session: SessionId
    fresh: bool = False


class AnswerRequest(Command, frozen=True, kw_only=True):
    """Decide an open request. Exactly one of the three is set, as JSON text."""

    session: SessionId
    request: RequestId
    decision_json: str | None = None
    answers_json: str | None = None
    result_json: str | None = None


class IgnoreThread(Command, frozen=True, kw_only=True):
    """Put a thread into the ignore set."""

    entry: IgnoredThread


class UnignoreThread(Command, frozen=True, kw_only=True):
    """Take a thread out of the ignore set."""

    thread: ThreadId


class AskCodex(Command, frozen=True, kw_only=True):
    """A read of Codex's that touches no session; answered with the result's JSON. `method` and `params_json` come from
    `codex.translate`."""

    method: str
    params_json: str


class RestartRuntime(Command, frozen=True, kw_only=True):
    """End the process and start another; turns are settled, sessions keep."""


# --- replies: to calls of ours ---


class FromCodex(Input, frozen=True, kw_only=True):
    """Base of what came over a link. Taken only while that link is the current one (I4)."""

    link: LinkId


class Reply(FromCodex, frozen=True, kw_only=True):
    """Base of replies. The call names purpose, attachment and prompt; the reply itself names nothing."""

    call: CallId


class ThreadOpened(Reply, frozen=True, kw_only=True):
    """`thread/start` or `thread/resume` succeeded. `status` is the thread's, so that a turn which already runs is not
    missed."""

    thread: ThreadId
    status: Literal["idle", "active", "systemError", "notLoaded"]
    model: str | None = None
    model_provider: str | None = None
    effort: str | None = None
    service_tier: str | None = None
    title: str | None = None
    turns: "tuple[SeenTurn, ...]" = ()


class TurnAccepted(Reply, frozen=True, kw_only=True):
    """`turn/start` was acknowledged; not yet that the turn is active, and the turn may be one that was running (a
    silent steer)."""

    turn: TurnId


class CallDone(Reply, frozen=True, kw_only=True):
    """A call whose success is all that matters, or a read for a caller."""

    result_json: str


class CallRefused(Reply, frozen=True, kw_only=True):
    """An error reply, kept whole. `refusal` is the meaning read from code and text; unknown texts are `other`, never a
    guess."""

    code: int
    message: str
    refusal: Literal[
        "overloaded",
        "no_rollout",
        "thread_not_found",
        "active_writer",
        "archived",
        "provider_missing",
        "no_active_turn",
        "turn_mismatch",
        "input_too_large",
        "other",
    ]
    active_turn: TurnId | None = None
    """For `turn_mismatch`: the turn that is active, where the text names it."""


class SeenTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as Codex's own record tells it. `prompts` are our ids found in its user items."""

    turn: TurnId
    status: Literal["completed", "interrupted", "failed", "inProgress"]
    prompts: tuple[PromptId, ...] = ()
    items: "tuple[SeenItem, ...]" = ()
    failure: "TurnFailure | None" = None
    user_items: int = 0


class SeenItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item as Codex's own record tells it."""

    item: ItemId
    type: str
    item_json: str
    prompt: PromptId | None = None


class TurnsRead(Reply, frozen=True, kw_only=True):
    """A page of a thread's turns, newest first. `older` is where the next page begins, None at the thread's
    beginning."""

    turns: tuple[SeenTurn, ...]
    older: str | None = None


class CallUnwritten(Input, frozen=True, kw_only=True):
    """A call was not written, and it is known that it was not: its folder is gone, it is larger than the socket
    takes."""

    call: CallId
    slug: str
    message: str


class ReplyMalformed(Reply, frozen=True, kw_only=True):
    """A reply that does not hold what it must (no thread id, say). The outcome in Codex is unknown."""

    reason: str


# --- notices: nobody asked ---


class ThreadNotice(FromCodex, frozen=True, kw_only=True):
    """Base of notices about one thread."""

    thread: ThreadId


class ThreadStarted(ThreadNotice, frozen=True, kw_only=True):
    """A thread exists. A hint at most: it never binds. `known` is what discovery may make of it once Codex has stored
    it."""

    tag: str | None
    ephemeral: bool
    parent: ThreadId | None
    known: KnownThread


class ThreadStatusChanged(ThreadNotice, frozen=True, kw_only=True):
    """Ends nothing and begins nothing by itself."""

    status: Literal["idle", "active", "systemError", "notLoaded"]


class ThreadGone(ThreadNotice, frozen=True, kw_only=True):
    """Codex unloaded, deleted or archived it."""

    how: Literal["closed", "deleted", "archived"]


class ThreadUnarchived(ThreadNotice, frozen=True, kw_only=True):
    """It was taken out of Codex's archive."""


class ThreadRenamed(ThreadNotice, frozen=True, kw_only=True):
    """Its name was changed, by us or elsewhere."""

    name: str | None


class TurnFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a turn failed: Codex's message, its error variant (`usageLimitExceeded`, ...) and HTTP status where it has
    one."""

    message: str
    variant: str | None = None
    http_status: int | None = None
    details: str | None = None


class TurnNotice(ThreadNotice, frozen=True, kw_only=True):
    """Base of notices about one turn."""

    turn: TurnId


class ToldVerbatim(TurnNotice, frozen=True, kw_only=True):
    """Base of those that are passed on as they came where they are a sub-agent's, whose turn is no turn of the
    session's. `raw_json` are the parameters as they stood on the wire."""

    method: str = ""
    raw_json: str = "null"


class TurnStarted(ToldVerbatim, frozen=True, kw_only=True):
    """The turn is active: from now on an interrupt reaches it."""


class TurnCompleted(ToldVerbatim, frozen=True, kw_only=True):
    """The turn ended, in Codex's words."""

    status: Literal["completed", "interrupted", "failed", "inProgress"]
    failure: TurnFailure | None = None


class TurnErrored(ToldVerbatim, frozen=True, kw_only=True):
    """An attempt failed. Only `TurnCompleted` ends the turn."""

    failure: TurnFailure
    will_retry: bool


class TurnUsage(TurnNotice, frozen=True, kw_only=True):
    """One model call's token counts (`last`) and the thread's running sum (`total`)."""

    last: Tokens
    total: Tokens


class TurnNews(TurnNotice, frozen=True, kw_only=True):
    """A diff or a plan, verbatim."""

    kind: Literal["diff", "plan"]
    params_json: str


class ItemStarted(TurnNotice, frozen=True, kw_only=True):
    """An item opened. `prompt` is our id where the item is the user's message and carries it; `children` are threads
    that it spawned."""

    item: ItemId
    type: str
    item_json: str
    prompt: PromptId | None = None
    children: tuple[ThreadId, ...] = ()


class ItemDelta(TurnNotice, frozen=True, kw_only=True):
    """More of an open item. `channel` says which stream of it (`text`, `reasoning`, `output`, ...)."""

    item: ItemId
    channel: str
    delta: str


class ItemCompleted(TurnNotice, frozen=True, kw_only=True):
    """An item is final; its text wins over its deltas."""

    item: ItemId
    type: str
    item_json: str
    prompt: PromptId | None = None
    children: tuple[ThreadId, ...] = ()


class LimitWindow(msgspec.Struct, frozen=True, kw_only=True):
    """One of the account's limits as Codex told it last."""

    used_percent: int
    resets_at_ms: int


class RawNotice(FromCodex, frozen=True, kw_only=True):
    """Whatever has no input of its own, verbatim. Routed by thread only, never by turn. `limits`: the account's, where
    it is these that are told."""

    method: str
    params_json: str
    thread: ThreadId | None = None
    turn: TurnId | None = None
    limits: tuple[LimitWindow, ...] = ()


class BadFrame(FromCodex, frozen=True, kw_only=True):
    """A frame that could not be read. Counted; costs nothing else (I8)."""

    reason: str
    excerpt: str


# --- requests of Codex's ---


class RequestArrived(FromCodex, frozen=True, kw_only=True):
    """Codex asks. `kind` is None where no card can be made of it; then `rule` says how it is answered at once.

    `decisions` are the offered ones as JSON text; `rule_json` is a `result`, `rule_error` a refusal with JSON-RPC code
    -32601.
    """

    rpc_id_json: str
    method: str
    kind: RequestKind | None
    thread: ThreadId | None
    turn: TurnId | None
    item: ItemId | None
    params_json: str
    decisions: tuple[str, ...] = ()
    decline_json: str | None = None
    """The result that declines it, where the method has one."""
    rule_json: str | None = None
    rule_error: str | None = None


class RequestResolved(ThreadNotice, frozen=True, kw_only=True):
    """The request is closed in Codex: by our answer, another front-end's, or by itself."""

    rpc_id_json: str


# --- the process ---


class LinkUp(Input, frozen=True, kw_only=True):
    """A connection is initialised and is now the current one. `adopted`: the process lived before this daemon or this
    connection did."""

    link: LinkId
    adopted: bool


class LinkLost(Input, frozen=True, kw_only=True):
    """The connection ended, the process lives. Nothing is settled; what was in flight has an unknown outcome."""

    link: LinkId
    reason: str


class RuntimeExited(Input, frozen=True, kw_only=True):
    """The process is gone, and all that it had said was read. Settles every session attached to it, once (I8)."""

    runtime: RuntimeId
    cause: str
    record: RuntimeRecord | None = None
    """The process's record with its end, written with what its end settles."""


class Booted(Input, frozen=True, kw_only=True):
    """The first input of a daemon. Sessions attached to any other process than `alive` are settled, once, before a
    command is taken."""

    alive: RuntimeId | None


class ShuttingDown(Input, frozen=True, kw_only=True):
    """A planned stop begins: no new turn starts. `interrupt`: Codex is to end too, so the running ones are interrupted
    first."""

    interrupt: bool


class RuntimeNews(Input, frozen=True, kw_only=True):
    """The supervisor's state changed; told to subscribers, decides nothing."""

    kind: Literal["starting", "ready", "adopted", "backoff", "broken", "exited"]
    runtime: RuntimeId | None
    fields_json: str


# --- timers: each under the stamp it was armed with ---


class CallDeadline(Input, frozen=True, kw_only=True):
    """No reply came in time."""

    call: CallId


class CallRetry(Input, frozen=True, kw_only=True):
    """The pause after an overload refusal is over."""

    call: CallId


class SettleTurn(Input, frozen=True, kw_only=True):
    """A turn should have ended by now (interrupt acknowledged, thread idle): read what became of it."""

    session: SessionId
    attachment: CodexAttachment
    turn: TurnId


class SettlePrompt(Input, frozen=True, kw_only=True):
    """Look again whether an unconfirmed prompt was recorded."""

    session: SessionId
    attachment: CodexAttachment
    prompt: PromptId


class EndingDeadline(Input, frozen=True, kw_only=True):
    """Stop or close waited long enough for the turn's end."""

    session: SessionId
    attachment: CodexAttachment


class IdleUnload(Input, frozen=True, kw_only=True):
    """A session has had nothing to do for a while."""

    session: SessionId
    attachment: CodexAttachment


class OperationDeadline(Input, frozen=True, kw_only=True):
    """The turn that an operation is should have begun by now."""

    session: SessionId
    call: CallId


class LimitOver(Input, frozen=True, kw_only=True):
    """What a session's queue stands still for should be over by now."""

    session: SessionId
    until_ms: int


class RequestDeadline(Input, frozen=True, kw_only=True):
    """Nobody has decided about a request in time."""

    session: SessionId
    request: RequestId


class DisposalDeadline(Input, frozen=True, kw_only=True):
    """A killed thread's clean-up has taken long enough for its caller."""

    thread: ThreadId


# --- discovery ---


class ThreadsSeen(Input, frozen=True, kw_only=True):
    """A page of a scan. Each thread is decided on the state of now, not of when it was read (I9). `foreign`: of a home
    that Codex does not run in."""

    home: str
    threads: tuple[KnownThread, ...]
    foreign: bool = False


class ThreadDecided(Input, frozen=True, kw_only=True):
    """What the import policy made of one seen thread, on the state of now. `outcome` is the policy's verdict."""

    thread: KnownThread
    outcome: Literal["refresh", "skip", "child", "ignore", "orphan", "import"]
    reason: str
    new_session: SessionId
    """The id that an imported session gets; it is ours, and never derived from the thread's."""
    foreign: bool = False


class ScanNews(Input, frozen=True, kw_only=True):
    """A scan began, goes on, brought sessions, or ended; told to subscribers."""

    kind: Literal["started", "progress", "imported", "finished"]
    fields_json: str
