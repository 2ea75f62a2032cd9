"""The daemon's answers, as far as a client uses them. What is not named here is passed over, so that a newer daemon's
answers still read."""

import msgspec


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all: frozen, camelCase on the wire."""


class Session(Answer, frozen=True, kw_only=True):
    """A session, in summary."""

    id: str
    status: str
    title: str | None = None
    origin: str = "created"
    thread_id: str | None = None
    active_turn_id: str | None = None
    waiting_on: str | None = None
    queued_prompts: int = 0
    message_count: int = 0


class Prompt(Answer, frozen=True, kw_only=True):
    """A prompt and how far it has come."""

    id: str
    state: str
    turn_id: str | None = None


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
