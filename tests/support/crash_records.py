"""The three records beside the clients' own, read from outside: Codex's store, the daemon's database, the processes."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from termald.codex.identity import MARK_NAME

Row = dict[str, Any]


class UserItem(msgspec.Struct, frozen=True, kw_only=True):
    """A user's item as Codex stored it. `client_id` is the prompt's id, if the prompt was ours."""

    thread: str
    turn: str
    client_id: str | None
    text: str


class CodexStore(msgspec.Struct, frozen=True):
    """What lies in Codex's home: its threads, and the user items of all rollouts in the order of each file."""

    threads: dict[str, str | None]
    """The tag of each thread in the state DB."""
    items: tuple[UserItem, ...]


def read_codex_store(home: Path) -> CodexStore:
    """Read Codex's own record. Blocks."""
    threads: dict[str, str | None] = {}
    for path in home.glob("state_*.sqlite"):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            threads |= dict(database.execute("select id, thread_source from threads").fetchall())
    return CodexStore(threads, tuple(_user_items(home)))


def _user_items(home: Path) -> Iterator[UserItem]:
    for rollout in sorted(home.glob("sessions/**/*.jsonl")):
        for line in rollout.read_bytes().splitlines():
            if b'"UserMessage"' not in line or b'"item_completed"' not in line:
                continue
            try:
                payload = msgspec.json.decode(line)["payload"]
            except msgspec.DecodeError:
                continue  # the line that a killed Codex was writing
            item = payload.get("item", {})
            if payload.get("type") == "item_completed" and item.get("type") == "UserMessage":
                text = "".join(part.get("text", "") for part in item["content"])
                yield UserItem(
                    thread=payload["thread_id"], turn=payload["turn_id"], client_id=item.get("client_id"), text=text
                )


def rows(state: Path, query: str, *values: object) -> list[Row]:
    """Query the daemon's database as any other program could. Blocks."""
    with contextlib.closing(sqlite3.connect(f"file:{state / 'termald.sqlite'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(query, values)]


class Process(msgspec.Struct, frozen=True):
    """What one process holds of the machine."""

    descriptors: int
    memory_kb: int


def process(pid: int) -> Process:
    """Look at a living process. Blocks."""
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return Process(descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())), memory_kb=int(resident.split()[1]))


def app_servers(home: Path) -> list[int]:
    """Return the app-servers over this home: marked processes that serve and were not started by another of them.

    A tool that Codex is just starting looks like Codex itself until it is executed.
    """
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes()
                if b"\0app-server\0" not in words:
                    continue
                environment = (entry / "environ").read_bytes().split(b"\0")
                ours = any(word.startswith(MARK_NAME.encode()) for word in environment)
                if ours and f"CODEX_HOME={home}".encode() in environment:
                    found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return sorted(pid for pid, parent in found.items() if parent not in found)
