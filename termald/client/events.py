"""Events as values: one frozen type for each family of kinds, and one for what this version does not know.

A newer daemon may send kinds and fields that are not named here: fields are passed over, kinds become `OtherEvent`, and
an event whose known fields have another shape than expected becomes one too. Nothing of it is lost: `fields` has it.
"""

from typing import Any, Final, Literal

import msgspec

from termald.client.sse import ServerEvent

TurnEnd = Literal["normal", "cancelled", "length", "error"]
PROMPT_ENDS: Final = frozenset({"prompt/done", "prompt/failed", "prompt/cancelled", "prompt/notDelivered"})


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what stands in events."""


class Usage(Part, frozen=True, kw_only=True):
    """Token counts. `input` includes what was read from a cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    total_tokens: int = 0


class Why(Part, frozen=True, kw_only=True):
    """Why something failed; `slug` is one of the documented problems."""

    slug: str = ""
    message: str = ""
    retryable: bool = False


class ProviderError(Part, frozen=True, kw_only=True):
    """What the model's provider said. `reset_at`: when a limit ends, as the provider tells it."""

    type: str = "unclassified"
    reset_at: Any = None
    diagnostics: Any = None


class Attachment(Part, frozen=True, kw_only=True):
    """The session's tie to one process."""

    runtime_id: str
    generation: int


class Event(Part, frozen=True, kw_only=True):
    """What all have. `seq` only grows; `at` is RFC 3339 in UTC; `session_id` is None for what concerns all."""

    seq: int = 0
    kind: str = ""
    at: str | None = None
    session_id: str | None = None
    attachment: Attachment | None = None
    turn_id: str | None = None
    item_id: str | None = None


class OtherEvent(Event, frozen=True, kw_only=True):
    """A kind without a type of its own here; `fields` is all that the daemon said."""

    fields: dict[str, Any] = {}


class SessionEvent(Event, frozen=True, kw_only=True):
    """`session/*`: what became of the session, and the status that it has from here on."""

    status: str | None = None
    thread_id: str | None = None
    title: str | None = None
    origin: str | None = None
    reason: str | None = None
    error: Why | None = None
    changed: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


class PromptEvent(Event, frozen=True, kw_only=True):
    """`prompt/*`: how far a prompt has come. `prompt/done`, `failed`, `cancelled` and `notDelivered` are ends."""

    prompt_id: str
    state: str = ""
    error: Why | None = None

    @property
    def is_end(self) -> bool:
        """Whether nothing more comes of it."""
        return self.kind in PROMPT_ENDS


class TurnStarted(Event, frozen=True, kw_only=True):
    """`turn/started`. `ours`: a prompt of this session began it; `prompt_id` if it was known already which."""

    ours: bool = True
    prompt_id: str | None = None


class TurnDiff(Event, frozen=True, kw_only=True):
    """`turn/diff`: what the turn has changed so far, as Codex tells it."""

    diff: Any = None


class TurnPlan(Event, frozen=True, kw_only=True):
    """`turn/plan`: the plan that the model keeps, as Codex tells it."""

    plan: Any = None


class ItemStarted(Event, frozen=True, kw_only=True):
    """`item/started`; `item` is Codex's own. `thread_id` is said where a sub-agent's thread has the item."""

    item: dict[str, Any] = {}
    thread_id: str | None = None


class ItemDelta(Event, frozen=True, kw_only=True):
    """`item/delta`: more of an item. `channel` says of what: `text`, a command's `output`, …"""

    channel: str = ""
    delta: str = ""
    thread_id: str | None = None


class ItemCompleted(Event, frozen=True, kw_only=True):
    """`item/completed`: the item as it is now, whatever its deltas said. `incomplete`: the turn ended before it did;
    `late`: it came after the turn's end and corrects what was said."""

    item: dict[str, Any] = {}
    incomplete: bool = False
    late: bool = False
    thread_id: str | None = None

    @property
    def type(self) -> str:
        """Codex's type of the item."""
        return str(self.item.get("type", ""))


class Block(Event, frozen=True, kw_only=True):
    """`block/start`, `block/stop`: one attempt of the model, numbered within its turn."""

    block: int = 0


class BlockReset(Event, frozen=True, kw_only=True):
    """`block/reset`: the named items are taken back; what their deltas said does not count."""

    items: tuple[str, ...] = ()
    reason: str = ""


class RequestEvent(Event, frozen=True, kw_only=True):
    """`request/opened|answered|resolved|expired`. `params` and `decisions` stand in the first alone."""

    request_id: str
    request_kind: str = ""
    method: str = ""
    thread_id: str | None = None
    params: Any = None
    decisions: tuple[Any, ...] = ()


class Retrying(Event, frozen=True, kw_only=True):
    """`retrying`: an attempt failed, and Codex tries again."""

    attempt: int = 0
    reason: Any = None


class UsageSample(Event, frozen=True, kw_only=True):
    """`usage`: one model call, and the thread's running sum."""

    usage: Usage = Usage()
    total: Usage = Usage()


class Done(Event, frozen=True, kw_only=True):
    """`turn/done`, once for each turn; and what `Session.run` ends with. `turn_id` is None where the prompt ended
    without a turn: cancelled in the queue, or refused by Codex."""

    state: TurnEnd | str = "normal"
    error_kind: str | None = None
    message: str | None = None
    provider_error: ProviderError | None = None
    usage: Usage = Usage()
    reconciled: bool = False

    @property
    def ok(self) -> bool:
        """Whether the turn ended as the model meant it to."""
        return self.state == "normal"


class Notice(Event, frozen=True, kw_only=True):
    """`notice`: worth telling, decides nothing."""

    slug: str = ""
    message: str = ""


class Late(Event, frozen=True, kw_only=True):
    """`late`: something arrived that nothing stands open for; it changed nothing."""

    what: str = ""
    reason: str = ""


class ThreadEvent(Event, frozen=True, kw_only=True):
    """`thread/ignored`, `thread/unignored`."""

    thread_id: str = ""
    reason: str | None = None


class RuntimeEvent(Event, frozen=True, kw_only=True):
    """`runtime/*`: the one Codex process."""

    runtime_id: str | None = None
    pid: int | None = None
    reason: str | None = None


class DiscoveryEvent(Event, frozen=True, kw_only=True):
    """`discovery/*`: a scan for threads that Codex has; `homes` is which, and at its end what was found in each.

    `home` is the one that `progress` (`seen` threads were looked at, of those that were `expected` by the last scan, if
    there was one; `told` of them were new or changed) and `imported` (`count` threads became `sessions`, each with its
    `sessionId` and `threadId`) are about.
    """

    homes: tuple[Any, ...] = ()
    home: str = ""
    seen: int = 0
    told: int = 0
    expected: int | None = None
    count: int = 0
    sessions: tuple[Any, ...] = ()


class CodexRaw(Event, frozen=True, kw_only=True):
    """`codex/raw`: what has no kind of its own, verbatim."""

    method: str = ""
    params: Any = None


class Synced(Event, frozen=True, kw_only=True):
    """A mark of the stream: everything up to `seq` was given, what follows is live."""


class Reset(Event, frozen=True, kw_only=True):
    """A mark of the stream: what was asked for cannot be replayed. Read anew what you keep; it goes on from `seq`."""

    reason: str = ""
    snapshot: str = "/api/state"


_FAMILIES: Final[dict[str, type[Event]]] = {
    "session": SessionEvent,
    "prompt": PromptEvent,
    "request": RequestEvent,
    "thread": ThreadEvent,
    "runtime": RuntimeEvent,
    "discovery": DiscoveryEvent,
}
_KINDS: Final[dict[str, type[Event]]] = {
    "turn/started": TurnStarted,
    "turn/diff": TurnDiff,
    "turn/plan": TurnPlan,
    "turn/done": Done,
    "item/started": ItemStarted,
    "item/delta": ItemDelta,
    "item/completed": ItemCompleted,
    "block/start": Block,
    "block/stop": Block,
    "block/reset": BlockReset,
    "retrying": Retrying,
    "usage": UsageSample,
    "notice": Notice,
    "late": Late,
    "codex/raw": CodexRaw,
    "synced": Synced,
    "reset": Reset,
}


def read_event(told: ServerEvent) -> Event:
    """Return the event as a value. Errors: `msgspec.DecodeError` for what is not a JSON object at all."""
    known = _KINDS.get(told.kind) or _FAMILIES.get(told.kind.partition("/")[0])
    if known is not None:
        try:
            return msgspec.json.decode(told.data, type=known)
        except msgspec.ValidationError:
            # Another shape than ours: a newer daemon's. It is still an event, and still has its number.
            pass
    fields = msgspec.json.decode(told.data, type=dict[str, Any])
    seq, at, session, turn = (fields.get(name) for name in ("seq", "at", "sessionId", "turnId"))
    return OtherEvent(
        seq=seq if isinstance(seq, int) else int(told.id) if told.id.isdecimal() else 0,
        kind=told.kind,
        at=at if isinstance(at, str) else None,
        session_id=session if isinstance(session, str) else None,
        turn_id=turn if isinstance(turn, str) else None,
        fields=fields,
    )
