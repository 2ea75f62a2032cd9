"""The daemon itself: who it is, how it does, and all of it at one moment."""

from typing import Any, Literal

from state.records import Host
from state.views import Snapshot
from termald.api.settings import ApiSettings
from termald.api.views.sessions import Session, session
from termald.api.views.shared import View, time_or_none, verbatim
from termald.api.views.threads import Ignored, ignored
from termald.engine import DiscoveryView, RuntimeView


class Health(View, frozen=True, kw_only=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Part(View, frozen=True, kw_only=True):
    """One part of the daemon; `reason` says why it is not ready."""

    state: str
    reason: str | None


class Parts(View, frozen=True, kw_only=True):
    """What readiness is made of. Discovery is told, and never waited for."""

    store: Part
    runtime: Part
    discovery: Part


class Ready(View, frozen=True, kw_only=True):
    """Whether a prompt would be taken and run now."""

    ready: bool
    parts: Parts


class Version(View, frozen=True, kw_only=True):
    """What runs. `codex` is null until a process was seen; `protocolSchema` is the Codex whose schema ours was made
    from."""

    termald: str
    codex: str | None
    protocol_schema: str


class HostView(View, frozen=True, kw_only=True):
    """Which daemon this is. `id` is kept for ever, `epoch` grows at each start."""

    id: str
    epoch: int
    label: str
    platform: str
    version: str
    codex_version: str | None
    capabilities: list[str]


class Runtime(View, frozen=True, kw_only=True):
    """The one Codex process. `adopted`: it lived before this daemon did."""

    id: str | None
    status: Literal["stopped", "starting", "ready", "backoff", "broken", "stopping"]
    reason: str | None
    pid: int | None
    started_at: str | None
    transport: Literal["unix", "stdio"]
    adopted: bool
    codex_version: str | None
    codex_home: str
    restarts: int
    last_exit: Any


class Discovery(View, frozen=True, kw_only=True):
    """The scan that runs, or the last one. `report`: its counts, and the error of each home that had one."""

    status: Literal["idle", "scanning", "failed"]
    reason: str | None
    started_at: str | None
    finished_at: str | None
    report: Any


class State(View, frozen=True, kw_only=True):
    """Everything at one moment. The events behind `lastEventId` continue it, with nothing missing and nothing twice."""

    host: HostView
    runtime: Runtime
    sessions: list[Session]
    ignored_threads: list[Ignored]
    discovery: Discovery
    last_event_id: int


def host(who: Host, process: RuntimeView, settings: ApiSettings) -> HostView:
    """Return who we are."""
    return HostView(
        id=who.id,
        epoch=who.epoch,
        label=settings.label,
        platform=settings.platform,
        version=settings.version,
        codex_version=process.codex_version,
        capabilities=list(settings.capabilities),
    )


def runtime(process: RuntimeView) -> Runtime:
    """Return the process as it is shown."""
    return Runtime(
        id=process.id,
        status=process.status,
        reason=process.reason,
        pid=process.pid,
        started_at=time_or_none(process.started_at_ms),
        transport=process.transport,
        adopted=process.adopted,
        codex_version=process.codex_version,
        codex_home=process.codex_home,
        restarts=process.restarts,
        last_exit=verbatim(process.last_exit_json),
    )


def discovery(scanner: DiscoveryView) -> Discovery:
    """Return the scanner as it is shown."""
    return Discovery(
        status=scanner.status,
        reason=scanner.reason,
        started_at=time_or_none(scanner.started_at_ms),
        finished_at=time_or_none(scanner.finished_at_ms),
        report=verbatim(scanner.report_json),
    )


def state(moment: Snapshot, process: RuntimeView, scanner: DiscoveryView, settings: ApiSettings) -> State:
    """Return the snapshot as it is shown, with the services as they stand beside it."""
    return State(
        host=host(moment.host, process, settings),
        runtime=runtime(process),
        sessions=[session(view) for view in moment.sessions],
        ignored_threads=[ignored(entry) for entry in moment.ignored],
        discovery=discovery(scanner),
        last_event_id=moment.last_seq,
    )


class BrowserLink(View, frozen=True, kw_only=True):
    """Where a browser goes on this daemon's TCP address, once, and until when."""

    path: str
    expires_at: str
