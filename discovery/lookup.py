"""What Codex's files hold of a few threads that are asked for by id: the evidence that a session is empty.

A thread of which neither a row nor a rollout is found is not stored: Codex stores one with its first turn (measured on
codex 0.163 and 0.171). Both are looked for, because a state DB may have been lost or be behind its rollouts. What
cannot be read is no evidence of anything, and is raised.
"""

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

import msgspec

from discovery.homes import HomeUnreadable, find_state_file
from discovery.rollouts import tally_rollout
from discovery.segments import ROOTS, find_segment
from discovery.state_db import StateDb
from state.records import ThreadId

_THREAD_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """`stored`: there is a row or a file of it. `messages`: how many it holds; None if that is not known."""

    stored: bool
    messages: int | None
    reason: str


def look_up(
    home: Path, threads: Collection[ThreadId], sqlite_home: Path | None, check: Callable[[], None]
) -> dict[ThreadId, Held]:
    """Return what the home holds of each thread. Blocks, for one walk over the home's rollouts however many are asked
    for; `check` is called often and may raise to end it. Errors: `HomeUnreadable`."""
    if not threads:
        return {}
    rows = _rows(home, threads, sqlite_home)
    folders = _folders_with(home, threads, check)
    return {thread: _held(thread, thread in rows, folders.get(thread), check) for thread in threads}


def _rows(home: Path, threads: Collection[ThreadId], sqlite_home: Path | None) -> frozenset[ThreadId]:
    try:
        file = find_state_file(home, sqlite_home)
    except HomeUnreadable as error:
        if error.kind in ("no-home", "no-database"):
            return frozenset()  # Codex was never used in it
        raise
    with contextlib.closing(StateDb(file)) as database:
        return frozenset(thread for thread in threads if database.has(thread))


def _folders_with(home: Path, threads: Collection[ThreadId], check: Callable[[], None]) -> dict[ThreadId, Path]:
    wanted = frozenset(threads)
    found: dict[ThreadId, Path] = {}
    for folder, names in _walk(home):
        check()
        for name in names:
            found |= {thread: folder for thread in map(ThreadId, _THREAD_ID.findall(name)) if thread in wanted}
    return found


def _walk(home: Path) -> Iterator[tuple[Path, list[str]]]:
    def failed(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # most homes have no archive
            raise HomeUnreadable(home, "read-failed", f"{error.filename}: {error.strerror}") from error

    for root in ROOTS:
        for folder, _, names in os.walk(home / root, onerror=failed):
            yield Path(folder), names


def _held(thread: ThreadId, row: bool, folder: Path | None, check: Callable[[], None]) -> Held:
    rollout = find_segment([folder], thread) if folder is not None else None
    if rollout is None:
        if row or folder is not None:
            return Held(stored=True, messages=None, reason="its rollout is missing")
        return Held(stored=False, messages=0, reason="neither a row nor a rollout of it")
    # Of a history that goes on from another the count is not asked for: it is not empty.
    tally = tally_rollout(rollout, lambda *_: None, check)
    told = "unknown" if tally.messages is None else str(tally.messages)
    return Held(stored=True, messages=tally.messages, reason=tally.reason or f"messages in its rollout: {told}")
