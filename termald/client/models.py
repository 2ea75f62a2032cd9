"""The daemon's answers, as far as a client uses them. What is not named here is passed over, so that a newer daemon's
answers still read."""

from typing import Any, Generic, TypeVar

import msgspec

from termald.client.events import ProviderError, Usage, Why

T = TypeVar("T")


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all: frozen, camelCase on the wire."""


class Page(Answer, Generic[T], frozen=True, kw_only=True):
    """A part of a list."""

    data: tuple[T, ...] = ()
    next_cursor: str | None = None


class Session(Answer, frozen=True, kw_only=True):
    """A session, in summary. Times are RFC 3339 in UTC."""

    id: str
    status: str
    title: str | None = None
    origin: str = "created"
    cwd: str = ""
    model: str | None = None
    effort: str | None = None
    runtime_mode: str | None = None
    thread_id: str | None = None
    active_turn_id: str | None = None
    waiting_on: str | None = None
    queued_prompts: int = 0
    pending_requests: int = 0
    message_count: int = 0
    preview: str = ""
    parent_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    last_error: Why | None = None


class Prompt(Answer, frozen=True, kw_only=True):
    """A prompt and how far it has come."""

    id: str
    state: str
    mode: str = "queue"
    input: Any = None
    turn_id: str | None = None
    created_at: str | None = None
    ended_at: str | None = None
    error: Why | None = None


class Prompted(Answer, frozen=True, kw_only=True):
    """The answer to a prompt."""

    prompt: Prompt


class Interrupted(Answer, frozen=True, kw_only=True):
    """Whether there was anything to interrupt."""

    interrupted: bool


class Turn(Answer, frozen=True, kw_only=True):
    """A turn. `state` is None while it runs."""

    id: str
    state: str | None = None
    ours: bool = True
    kind: str | None = None
    message: str | None = None
    provider_error: ProviderError | None = None
    usage: Usage = Usage()
    started_at: str | None = None
    ended_at: str | None = None


class Item(Answer, frozen=True, kw_only=True):
    """An item of a turn; `item` is Codex's own. `state`: open, completed, incomplete, taken_back."""

    id: str
    turn_id: str
    type: str = ""
    state: str = ""
    late: bool = False
    first_seq: int = 0
    item: dict[str, Any] = {}


class Thread(Answer, frozen=True, kw_only=True):
    """A thread that Codex has. `class_`: owned, ignored, orphan, child, discovered."""

    thread_id: str
    class_: str = msgspec.field(default="", name="class")
    reason: str = ""
    session_id: str | None = None
    title: str | None = None
    preview: str = ""
    cwd: str = ""
    archived: bool = False
    message_count: int | None = None
    updated_at: str | None = None


class Runtime(Answer, frozen=True, kw_only=True):
    """The shared process."""

    status: str
    reason: str | None = None
    pid: int | None = None
    transport: str | None = None
    adopted: bool = False
    codex_version: str | None = None
    codex_home: str | None = None
    restarts: int = 0


class Host(Answer, frozen=True, kw_only=True):
    """The daemon. `epoch` counts its starts."""

    id: str
    epoch: int
    version: str = ""
    codex_version: str | None = None


class IgnoredThread(Answer, frozen=True, kw_only=True):
    """A thread that is never imported."""

    thread_id: str
    reason: str = ""
    ignored_at: str | None = None


class Discovery(Answer, frozen=True, kw_only=True):
    """The scan that runs, or the last one."""

    status: str
    reason: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class State(Answer, frozen=True, kw_only=True):
    """One consistent look at everything."""

    host: Host
    runtime: Runtime
    sessions: tuple[Session, ...] = ()
    ignored_threads: tuple[IgnoredThread, ...] = ()
    discovery: Discovery
    last_event_id: int


class Part(Answer, frozen=True, kw_only=True):
    """One part of the daemon."""

    state: str
    reason: str | None = None


class Ready(Answer, frozen=True, kw_only=True):
    """Whether the daemon takes work, and which part keeps it from that."""

    ready: bool
    parts: dict[str, Part] = {}


class Killed(Answer, frozen=True, kw_only=True):
    """What a kill did. `upstream` is what Codex said to it."""

    killed: bool
    session_id: str
    thread_id: str | None = None
    ignored: bool = False
    dry_run: bool = False
    upstream: Any = None


class Version(Answer, frozen=True, kw_only=True):
    """What runs."""

    termald: str
    codex: str | None = None
    protocol_schema: str = ""
