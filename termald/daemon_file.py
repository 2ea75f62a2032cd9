"""`daemon.json` in the runtime folder: where the running daemon is, for clients. Its reader is `client.locate`.

Written whole or not at all; removed at a clean end while it is still this daemon's. After a crash it stays, and no
reader believes it without a connection.
"""

import contextlib
from pathlib import Path

import msgspec

from termald.client.locate import DAEMON_FILE, RunningDaemon


def write_daemon_file(folder: Path, daemon: RunningDaemon) -> None:
    """Write the file, 0600, by renaming a complete one into its place. Errors: OSError, which names the file."""
    fresh = folder / f".{DAEMON_FILE}.{daemon.pid}"
    try:
        fresh.touch(mode=0o600)
        fresh.write_bytes(msgspec.json.encode(daemon) + b"\n")
        fresh.replace(folder / DAEMON_FILE)
    except OSError as error:  # of a write to a full disk the system says no name
        fresh.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(folder / DAEMON_FILE)) from error


def remove_daemon_file(folder: Path, pid: int) -> None:
    """Remove the file if it still names `pid`; one that is gone or torn is nobody's."""
    path = folder / DAEMON_FILE
    with contextlib.suppress(OSError, msgspec.DecodeError):
        if msgspec.json.decode(path.read_bytes(), type=RunningDaemon).pid == pid:
            path.unlink()
