"""What can be counted without asking the daemon: processes of the system, rows of Codex's own database."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from termald.cli.demonstration.house import House


def app_servers(house: House) -> list[int]:
    """Return the pids of every `codex app-server` that has the house's Codex home in its environment. Blocks."""
    return [pid for pid, words in _processes_in(house) if b"app-server" in words]


def end_leftovers(house: House) -> list[int]:
    """Kill what still runs with the house's Codex home, and return it; nothing, if the daemon kept its word. Blocks."""
    left = [pid for pid, _ in _processes_in(house)]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


def _processes_in(house: House) -> Iterator[tuple[int, list[bytes]]]:
    """Every process of ours but this one that has the home in its environment, with its command line."""
    mark = f"CODEX_HOME={house.codex_home}".encode()
    if sys.platform != "linux":
        # `-E` shows the environment behind the command line, to its owner alone.
        listed = subprocess.run(["/bin/ps", "-axwwE", "-o", "pid=,command="], capture_output=True, check=True).stdout
        for line in listed.splitlines():
            pid, *words = line.split()
            if mark in words:
                yield int(pid), words
        return
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        # Gone since it was listed, or somebody else's.
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name), (entry / "cmdline").read_bytes().split(b"\0")


def stored_threads(house: House) -> set[str]:
    """Return the ids of all threads in Codex's own state database. Blocks; reads only."""
    newest = max(_state_databases(house.codex_home), key=lambda path: int(path.stem.rpartition("_")[2]), default=None)
    if newest is None:
        return set()
    with closing(sqlite3.connect(f"{newest.as_uri()}?mode=ro", uri=True, timeout=5.0)) as database:
        return {row[0] for row in database.execute("SELECT id FROM threads")}


def _state_databases(home: Path) -> Iterator[Path]:
    for folder in (home, home / "sqlite"):
        yield from folder.glob("state_*.sqlite")
