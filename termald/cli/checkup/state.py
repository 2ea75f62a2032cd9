"""Our own: the folders, what an earlier daemon left, and the database. Everything is only read."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from state.store import DATABASE_NAME
from termald.api.token import FILE_NAME as TOKEN_NAME
from termald.cli.checkup.findings import Finding, note, ok, problem
from termald.client.errors import ClientError, DaemonNotRunning
from termald.client.locate import DAEMON_FILE, find_endpoint, read_daemon_file
from termald.codex.identity import find_listening
from termald.codex.supervisor import SOCKET_NAME as CODEX_SOCKET_NAME
from termald.settings import Settings

PRIVATE_FOLDER: Final = 0o700
PRIVATE_FILE: Final = 0o600
BUSY_S: Final = 5.0
NAMED_MAX: Final = 3


def running_pid(settings: Settings) -> int | None:
    """Return the pid of the daemon that listens with these folders; None if nobody does."""
    try:
        daemon = read_daemon_file(settings.runtime.dir)
    except DaemonNotRunning:
        return None
    try:
        find_endpoint(daemon, settings.runtime.dir, settings.state.dir)
    except DaemonNotRunning:
        return None
    except ClientError:
        pass  # it listens; that its token cannot be read is told of the token
    return daemon.pid


def look(settings: Settings, daemon: int | None) -> Iterator[Finding]:
    """Yield what is found; `daemon` is the pid of the one that runs."""
    yield from _private(settings.state.dir)
    yield from _leftovers(settings, daemon)
    yield from _database(settings.state.dir / DATABASE_NAME)


def _private(folder: Path) -> Iterator[Finding]:
    if not folder.exists():
        yield note("state folder", f"{folder} does not exist yet; the first start makes it")
        return
    for path, mode in ((folder, PRIVATE_FOLDER), (folder / TOKEN_NAME, PRIVATE_FILE)):
        if not path.exists():
            continue
        name = "state folder" if path == folder else "token"
        found = stat.S_IMODE(path.stat().st_mode)
        if found & 0o077:
            says = f"{path} has mode {found:o}: others can get at it"
            yield problem(name, says, f"chmod {mode:o} {path}", partial(path.chmod, mode))
        else:
            yield ok(name, str(path))


def _leftovers(settings: Settings, daemon: int | None) -> Iterator[Finding]:
    folder = settings.runtime.dir
    if daemon is not None:
        yield ok("daemon", f"runs (pid {daemon}) with {folder}")
        return
    sockets = (settings.server.unix_socket, folder / CODEX_SOCKET_NAME)
    codex = sorted(process.pid for process in find_listening(folder / CODEX_SOCKET_NAME))
    if codex:
        # Not mended: it may be in the middle of turns, and the next daemon takes it over with them.
        yield note(
            "processes",
            f"Codex of an earlier daemon still runs: pid {', '.join(map(str, codex))}",
            "`termald serve` takes it over with its turns; to end it instead: kill -TERM -- the pid",
        )
    left = [folder / DAEMON_FILE, *(each for each in sockets if isinstance(each, Path))]
    if codex:
        left.remove(folder / CODEX_SOCKET_NAME)
    left = [path for path in left if path.exists()]
    if left:
        named = ", ".join(path.name for path in left)
        says = f"left by a daemon that is gone: {named} in {folder}"
        yield note("sockets", says, "harmless; the next start replaces them", partial(_remove, left))
    if not codex and not left:
        yield ok("daemon", f"does not run, and nothing is left of one in {folder}")


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _database(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield note("database", f"{path} does not exist yet; the first start makes it")
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as database:
            damage = [row[0] for row in database.execute("PRAGMA quick_check(3)")]
            if damage != ["ok"]:
                yield problem("database", f"{path} is damaged: {'; '.join(damage)}", "see docs/state.md; keep a copy")
                return
            yield ok("database", f"{path} is whole")
            yield from _owned_and_ignored(database)
    except sqlite3.Error as error:
        yield problem("database", f"{path} cannot be read: {error}", "see docs/state.md; keep a copy")


def _owned_and_ignored(database: sqlite3.Connection) -> Iterator[Finding]:
    rows = database.execute(
        "SELECT s.id, s.thread_id FROM sessions s JOIN ignored_threads i USING (thread_id) WHERE s.killed_at_ms IS NULL"
    ).fetchall()
    if not rows:
        yield ok("ignore set", "no thread is both a session's and ignored")
        return
    named = ", ".join(f"{thread} (session {session})" for session, thread in rows[:NAMED_MAX])
    count = "1 thread is" if len(rows) == 1 else f"{len(rows)} threads are"
    says = f"{count} a session's and ignored as well: {named}"
    yield problem(
        "ignore set", says, "this is a fault of termald's, please report it; termald unignore THREAD mends it"
    )
