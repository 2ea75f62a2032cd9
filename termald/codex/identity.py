"""Which process is meant: pid and start time together, so that a number that was given to a stranger is never
signalled.

On Linux a process is signalled through a descriptor that was opened before its start time was compared: between the
comparison and the signal nobody can take its place. Who belongs to an app-server is read from /proc. Codex gives each
tool
that it runs a session and a group of its own, so that ending the app-server's group alone would leave them all running:
they are known by their descent and their sessions, and once that is lost by the mark that they inherit.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

# In the environment of each app-server and so of what it starts; the value is the runtime's id.
MARK_NAME: Final = "TERMALD_RUNTIME"

_PROC: Final = Path("/proc")
_DEAD: Final = frozenset("ZX")  # exited, and not reaped yet
_PS_COLUMNS: Final = ("-o", "pid=,ppid=,pgid=,state=,lstart=")
_LINUX: Final = sys.platform == "linux"


class ProcessIdentity(msgspec.Struct, frozen=True):
    """One process, for as long as the machine is up and after. `start_time` is opaque: compare it, nothing else."""

    pid: int
    start_time: str


class _Seen(msgspec.Struct, frozen=True):
    """One line of the process table."""

    identity: ProcessIdentity
    parent: int
    session: int
    remains: bool
    """It has exited and was not reaped yet."""


def identify(pid: int) -> ProcessIdentity | None:
    """Return who has this pid now; None if nobody does. Unreaped remains still have their number."""
    seen = _look(pid)
    return seen.identity if seen is not None else None


def is_alive(identity: ProcessIdentity) -> bool:
    """Say whether this very process runs: not another with its number, and not its unreaped remains."""
    seen = _look(identity.pid)
    return seen is not None and seen.identity == identity and not seen.remains


def send_signal(identity: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal this very process; False if it is gone. A process of another user is none of ours and counts as gone."""
    with suppress(ProcessLookupError, PermissionError):
        if not _LINUX:
            if is_alive(identity):
                os.kill(identity.pid, number)
                return True
            return False
        descriptor = os.pidfd_open(identity.pid)
        try:
            if is_alive(identity):
                signal.pidfd_send_signal(descriptor, number)
                return True
        finally:
            os.close(descriptor)
    return False


def family_of(leader: ProcessIdentity, mark: str | None) -> frozenset[ProcessIdentity]:
    """Return everybody who belongs to an app-server: itself, who descends from it, and who shares a session with those.

    Once the leader is gone nobody descends from it; then the mark tells, for a session whose own leader is gone as
    well. Not a member is who left on purpose: it made a session of its own and descends from none of them any more,
    as a daemon does that somebody had Codex start. Blocks for some 10 ms per thousand processes.
    """
    table = {seen.identity.pid: seen for seen in _table() if not seen.remains}
    holder = table.get(leader.pid)
    replaced = holder is not None and holder.identity != leader
    # The leader's session is its own for as long as anybody is in it: its number is not given out again before.
    own = set[int]() if replaced else {pid for pid, seen in table.items() if leader.pid in (pid, seen.session)}
    grown = own
    while grown:
        # A session whose leader lives outside of the family is not the family's.
        sessions = {table[pid].session for pid in own if table[pid].session in own or table[pid].session not in table}
        grown = {pid for pid, seen in table.items() if seen.parent in own or seen.session in sessions} - own
        own |= grown
    marked = find_marked(mark) if mark is not None else ()
    orphans = {one for one in marked if one.pid in table and table[one.pid].session not in table}
    members = {table[pid].identity for pid in own} | orphans
    return frozenset(member for member in members if member.pid != os.getpid())


def find_marked(mark: str) -> Iterator[ProcessIdentity]:
    """Yield the processes of this user that were started with this mark in their environment."""
    return _find(_environments(), {f"{MARK_NAME}={mark}".encode()})


def find_listening(socket: Path) -> Iterator[ProcessIdentity]:
    """Yield the app-servers that were told to listen at this path, whoever started them."""
    return _find(_command_lines(), {b"app-server", b"unix://" + os.fsencode(socket)})


def _find(described: Iterable[tuple[int, list[bytes]]], wanted: set[bytes]) -> Iterator[ProcessIdentity]:
    for pid, words in described:
        if wanted.issubset(words):
            seen = _look(pid)
            if seen is not None and not seen.remains:
                yield seen.identity


# --- /proc, and `ps` where there is none ---


def _table() -> Iterator[_Seen]:
    if _LINUX:
        return (seen for seen in map(_read_stat, _pids()) if seen is not None)
    return _parse_ps(_ps("-ax", *_PS_COLUMNS))


def _look(pid: int) -> _Seen | None:
    return _read_stat(pid) if _LINUX else next(_parse_ps(_ps("-p", str(pid), *_PS_COLUMNS)), None)


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    return _proc_words("environ") if _LINUX else _ps_words("-axwwE")


def _command_lines() -> Iterator[tuple[int, list[bytes]]]:
    return _proc_words("cmdline") if _LINUX else _ps_words("-axww")


def _pids() -> list[int]:
    return [int(entry.name) for entry in os.scandir(_PROC) if entry.name.isdecimal()]


def _read_stat(pid: int) -> _Seen | None:
    # Gone between the listing and the reading: as good as never seen.
    try:
        line = Path(_PROC, str(pid), "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in brackets and may hold any character, brackets included: what counts begins behind the last one.
    fields = line.rpartition(")")[2].split()
    state, parent, session, start_ticks = fields[0], int(fields[1]), int(fields[3]), fields[19]
    return _Seen(ProcessIdentity(pid, f"{_boot()}/{start_ticks}"), parent, session, state in _DEAD)


def _proc_words(name: str) -> Iterator[tuple[int, list[bytes]]]:
    for pid in _pids():
        # Gone, or another user's: in neither case ours.
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            yield pid, Path(_PROC, str(pid), name).read_bytes().split(b"\0")


@cache
def _boot() -> str:
    """Start times are counted from the boot: after another one the same number may be anybody's."""
    return Path(_PROC, "sys/kernel/random/boot_id").read_text().strip()


def _ps(*arguments: str) -> bytes:
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    # Status 1 with no output means that nobody matched.
    return subprocess.run(["/bin/ps", *arguments], check=False, capture_output=True, env=environment).stdout  # noqa: S603 - fixed words and a number


def _parse_ps(output: bytes) -> Iterator[_Seen]:
    for line in output.decode(errors="replace").splitlines():
        # macOS names no session there; what a shell without a terminal starts stays in its group as well.
        pid, parent, group, state, *started = line.split()
        yield _Seen(ProcessIdentity(int(pid), " ".join(started)), int(parent), int(group), state[0] in _DEAD)


def _ps_words(flags: str) -> Iterator[tuple[int, list[bytes]]]:
    for line in _ps(flags, "-o", "pid=,command=").splitlines():
        pid, *words = line.split()
        yield int(pid), words
