"""Codex homes made by hand: state DBs in the shapes that were found or feared, and rollouts line by line.

Databases are made in a process of their own: two SQLite libraries in one process drop each other's file locks.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

SRC = "/src"
AT = "2026-11-30T10:00:00.000Z"
AT_MS = 1_796_032_800_000

# The columns of codex 0.163 and 0.171 that discovery reads, and those of a build before milliseconds and names.
NOW = (
    "id TEXT PRIMARY KEY, rollout_path TEXT, created_at INTEGER, updated_at INTEGER, source TEXT, model_provider TEXT, "
    "cwd TEXT, title TEXT, archived INTEGER NOT NULL DEFAULT 0, first_user_message TEXT NOT NULL DEFAULT '', "
    "model TEXT, created_at_ms INTEGER, updated_at_ms INTEGER, thread_source TEXT, "
    "preview TEXT NOT NULL DEFAULT '', name TEXT, attached_thread_parent_id TEXT"
)
THEN = (
    "id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, "
    "source TEXT NOT NULL, model_provider TEXT NOT NULL, cwd TEXT NOT NULL, title TEXT NOT NULL, "
    "archived INTEGER NOT NULL DEFAULT 0"
)
MIGRATIONS = "CREATE TABLE _sqlx_migrations(version BIGINT PRIMARY KEY, success BOOLEAN NOT NULL)"
BACKFILL = "CREATE TABLE backfill_state(id INTEGER PRIMARY KEY, status TEXT NOT NULL)"
EDGES = "CREATE TABLE thread_spawn_edges(parent_thread_id TEXT, child_thread_id TEXT PRIMARY KEY, status TEXT)"

_RUN = """
import json, sqlite3, sys
path, mode, script, rows = json.load(sys.stdin)
db = sqlite3.connect(path)
db.execute(f"PRAGMA journal_mode = {mode}")
for statement in script:
    db.execute(statement)
for row in rows:
    marks = ", ".join("?" * len(row))
    db.execute(f"INSERT INTO threads({', '.join(row)}) VALUES ({marks})", list(row.values()))
db.commit()
"""
# Leaves the process without closing, as a SIGKILL would: the WAL and the shared memory stay.
_KILLED = "import os; os._exit(0)"


def thread_id(number: int) -> str:
    """An id as Codex gives it; higher numbers are newer."""
    return f"01a22e00-0000-7000-8000-{number:012x}"


def make_db(
    path: Path,
    rows: Iterable[Mapping[str, Any]] = (),
    *,
    columns: str = NOW,
    script: Sequence[str] = (),
    wal: bool = True,
    killed: bool = False,
) -> Path:
    """Make a state DB. `killed`: as its writer left it, with all that it wrote in the WAL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    statements = [f"CREATE TABLE threads({columns})", *script] if columns else list(script)
    asked = json.dumps([str(path), "wal" if wal else "delete", statements, [dict(row) for row in rows]])
    program = _RUN + (_KILLED if killed else "db.close()")
    subprocess.run([sys.executable, "-c", program], input=asked, text=True, check=True, timeout=60)
    return path


def row(number: int, home: Path | None = None, **fields: Any) -> dict[str, Any]:
    """A row as Codex writes it for a conversation. With a `home`, its rollout lies there."""
    told = str(rollout_path(home, number)) if home else f"/gone/rollout-{thread_id(number)}.jsonl"
    return {
        "id": thread_id(number),
        "rollout_path": told,
        "created_at": AT_MS // 1000,
        "updated_at": AT_MS // 1000 + number,
        "source": "cli",
        "model_provider": "openai",
        "cwd": SRC,
        "title": f"thread {number}",
        **fields,
    }


def rollout_path(home: Path, number: int) -> Path:
    return home / "sessions" / "2026" / "11" / "30" / f"rollout-2026-11-30T10-00-00-{thread_id(number)}.jsonl"


def write_rollout(path: Path, thread: str, events: Iterable[Any], **meta: Any) -> Path:
    """Write a rollout: its meta, then the events. A `str` or `bytes` among them is a line as it stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    first = line("session_meta", {"id": thread, "cwd": SRC, "source": "cli", **meta})
    path.write_bytes(b"\n".join([first, *(_bytes(event) for event in events)]) + b"\n")
    return path


def line(kind: str, payload: Mapping[str, Any], ordinal: int | None = None) -> bytes:
    """One line, its keys in Codex's order."""
    number = {} if ordinal is None else {"ordinal": ordinal}
    return json.dumps({"timestamp": AT, **number, "type": kind, "payload": payload}, separators=(",", ":")).encode()


def event(kind: str, ordinal: int | None = None, **fields: Any) -> bytes:
    return line("event_msg", {"type": kind, **fields}, ordinal)


def user(text: str) -> bytes:
    """What a user said, in a legacy rollout."""
    return event("user_message", message=text, images=[])


def agent(text: str) -> bytes:
    """What the agent said, in a legacy rollout."""
    return event("agent_message", message=text, phase=None)


def item(kind: str, item_id: str, *, turn: str = "t1", text: str = "hi", ordinal: int | None = None) -> bytes:
    """An item that is complete, in a paginated rollout."""
    content = [{"type": "text", "text": text, "text_elements": []}]
    told = {"type": kind, "id": item_id, "content": content}
    return event("item_completed", ordinal, thread_id="x", turn_id=turn, item=told, started_at_ms=1)


def said_again(role: str, text: str) -> bytes:
    """The same for the model, which is no message of its own."""
    return line("response_item", {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]})


def snapshot(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Every file below the folder: size, time of change, digest. Two that are equal: nothing was changed or made."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns, _digest(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _bytes(event: Any) -> bytes:
    return event if isinstance(event, bytes) else str(event).encode()
