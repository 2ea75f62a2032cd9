"""`termald status`: how the daemon, Codex and the sessions are."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
import rich_click as click

from termald.cli.invocation import PLACES, Invocation, json_option, pass_invocation, settings_options, tells_failures
from termald.cli.rows import print_rows
from termald.client.http import Client
from termald.client.locate import RunningDaemon, find_endpoint, read_daemon_file
from termald.client.models import Ready, State


@click.command("status", cls=click.RichCommand)
@settings_options(*PLACES)
@json_option
@pass_invocation
@tells_failures
def command(invocation: Invocation) -> None:
    """Say how the daemon, Codex and the sessions are."""
    settings = invocation.settings().settings
    daemon = read_daemon_file(settings.runtime.dir)
    with Client(find_endpoint(daemon, settings.runtime.dir, settings.state.dir)) as client:
        ready = client.get("/api/ready", Ready, accept=(503,))
        state = client.get("/api/state", State)
    document = status_document(daemon, ready, state)
    if invocation.as_json:
        invocation.print_json(document)
    elif sys.stdout.isatty():
        print_rows((), told(daemon, ready, state))
    else:
        print_rows((), flat(document))


def status_document(daemon: RunningDaemon, ready: Ready, state: State) -> dict[str, object]:
    """Return what `--json` prints; the same in lines is what a pipe gets. Names are kept for ever."""
    return {
        "daemon": {
            "pid": daemon.pid,
            "url": daemon.url,
            "socket": daemon.socket,
            "startedAt": daemon.started_at,
            "version": state.host.version,
            "ready": ready.ready,
            "parts": {name: part.state for name, part in ready.parts.items()},
        },
        "runtime": {
            "status": state.runtime.status,
            "reason": state.runtime.reason,
            "pid": state.runtime.pid,
            "codexVersion": state.runtime.codex_version,
            "codexHome": state.runtime.codex_home,
            "transport": state.runtime.transport,
            "adopted": state.runtime.adopted,
            "restarts": state.runtime.restarts,
        },
        "sessions": {"total": len(state.sessions), **Counter(session.status for session in state.sessions)},
        "ignoredThreads": len(state.ignored_threads),
        "discovery": {
            "status": state.discovery.status,
            "reason": state.discovery.reason,
            "finishedAt": state.discovery.finished_at,
        },
    }


def told(daemon: RunningDaemon, ready: Ready, state: State) -> Iterator[tuple[str, str]]:
    """Yield the same for people: what is well in few words, what is not with its reason."""
    where = " and ".join(place for place in (daemon.url, daemon.socket) if place)
    yield "daemon", f"{'ready' if ready.ready else 'not ready'} at {where} (pid {daemon.pid})"
    for name, part in ready.parts.items():
        if part.reason:
            yield f"  {name}", f"{part.state}: {part.reason}"
    runtime = state.runtime
    process = f", pid {runtime.pid}" if runtime.pid is not None else ""
    restarts = f", {runtime.restarts} restarts" if runtime.restarts else ""
    yield "codex", f"{runtime.status} ({runtime.codex_version or 'version unknown'}{process}{restarts})"
    counts = Counter(session.status for session in state.sessions)
    listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    yield "sessions", f"{len(state.sessions)}: {listed}" if listed else "none"
    scan = state.discovery
    last = f", last scan ended {scan.finished_at}" if scan.finished_at else ""
    yield "discovery", f"{scan.status}{last}{f': {scan.reason}' if scan.reason else ''}"
    ignored = len(state.ignored_threads)
    yield "ignored", "1 thread" if ignored == 1 else f"{ignored} threads"


def flat(document: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value under its dotted name, what is unknown as an empty text."""
    for name, value in document.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", plain(value)


def plain(value: object) -> str:
    """A text as it is, what is unknown as an empty one, the rest as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
