"""Where the running daemon is: `daemon.json` in the runtime folder tells, and a connection proves it.

The file may be left over from a daemon that was killed, and its pid may be somebody else's by now, so neither counts;
only a listener does. The Unix socket is tried first: it needs no token.
"""

import socket
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from termald.client.errors import ClientError, DaemonNotRunning

DAEMON_FILE: Final = "daemon.json"
TOKEN_FILE: Final = "token"  # noqa: S105 - the name of the file, not a token
# A listener on this machine accepts at once; only a full backlog makes a connect wait.
PROBE_DEADLINE_S: Final = 2.0


class RunningDaemon(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a daemon says of itself in `daemon.json`. `url` and `socket` are None where it does not listen on that."""

    pid: int
    url: str | None = None
    socket: str | None = None
    started_at: int | str | None = None


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A listener that accepted a connection. `socket` is set for the Unix socket, `token` for TCP."""

    url: str
    socket: str | None = None
    token: str | None = None


def read_daemon_file(runtime_dir: Path) -> RunningDaemon:
    """Return what the last daemon wrote. Blocks on the file. Errors: `daemon-not-running`, also for a torn file."""
    path = runtime_dir / DAEMON_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunningDaemon)
    except FileNotFoundError as error:
        raise DaemonNotRunning(runtime_dir, f"there is no {path}") from error
    except (OSError, msgspec.DecodeError) as error:
        raise DaemonNotRunning(runtime_dir, f"cannot read {path}: {error}") from error


def find_endpoint(daemon: RunningDaemon, runtime_dir: Path, state_dir: Path) -> Endpoint:
    """Return the listener to use. Blocks for up to `PROBE_DEADLINE_S` each. Errors: `daemon-not-running`."""
    if daemon.socket is not None and _accepts(socket.AF_UNIX, daemon.socket):
        return Endpoint(url="http://localhost", socket=daemon.socket)
    if daemon.url is not None:
        parts = urlsplit(daemon.url)
        family = socket.AF_INET6 if ":" in (parts.hostname or "") else socket.AF_INET
        if _accepts(family, (parts.hostname or "", parts.port or 80)):
            return Endpoint(url=daemon.url, token=_read_token(state_dir / TOKEN_FILE))
    where = " and ".join(place for place in (daemon.socket, daemon.url) if place)
    raise DaemonNotRunning(runtime_dir, f"pid {daemon.pid} was to listen on {where or 'nothing'}, and nobody answers")


def _accepts(family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_DEADLINE_S)
        try:
            probe.connect(address)
        except OSError:
            return False
        return True


def _read_token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"the daemon asks for a token, and {path} cannot be read: {error}") from error
    if not token:
        raise ClientError(f"the daemon asks for a token, and {path} is empty; restart the daemon to make a new one")
    return token
