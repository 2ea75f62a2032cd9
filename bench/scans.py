"""How discovery grows: homes of 10,000 and 100,000 threads, made by hand, and a daemon in this process over each.

    python bench/scans.py [threads ...] [--ignored 5000] [--json]

The home is what Codex leaves: a state DB of today's columns and a rollout of two messages for each thread. The daemon
is the real one without its Codex: store, core, writer, hub and scanner, as at boot. Told are the seconds until the
store is open, and from the wish to scan until the first session is there and the scan is complete; a second scan with
nothing changed; one with thousands ignored; how late a tick of the daemon's loop was meanwhile; and memory.
"""

import argparse
import contextlib
import json
import random
import resource
import sqlite3
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import trio

from state.records import Changes, IgnoredThread, Seq, SessionId, ThreadId
from state.store import Store, open_store
from termald.core.state import State
from termald.hub import Hub
from termald.scanning import ScanService
from termald.timers import Timers
from termald.writer import Writer, wall_ms

AT_S = 1_796_032_800
PAGE_THREADS = 200
TICK_S = 0.01
COLUMNS = (
    "id TEXT PRIMARY KEY, rollout_path TEXT, created_at INTEGER, updated_at INTEGER, source TEXT, model_provider TEXT, "
    "cwd TEXT, title TEXT, archived INTEGER NOT NULL DEFAULT 0, first_user_message TEXT NOT NULL DEFAULT '', "
    "model TEXT, created_at_ms INTEGER, updated_at_ms INTEGER, thread_source TEXT, "
    "preview TEXT NOT NULL DEFAULT '', name TEXT, attached_thread_parent_id TEXT"
)


def thread_id(number: int) -> str:
    """Return an id as Codex gives it."""
    return f"01a22e00-{number >> 16 & 0xFFFF:04x}-7000-8000-{number:012x}"


def make_home(home: Path, threads: int) -> None:
    """Make a home as Codex leaves it."""
    with contextlib.closing(sqlite3.connect(home / "state_5.sqlite")) as database, database:
        database.execute(f"CREATE TABLE threads({COLUMNS})")
        database.executemany(
            "INSERT INTO threads(id, rollout_path, created_at, updated_at, source, model_provider, cwd, title, model,"
            " thread_source, preview) VALUES (?, ?, ?, ?, 'cli', 'openai', '/src', ?, 'm', '', ?)",
            (_row(home, number) for number in range(threads)),
        )


def _row(home: Path, number: int) -> tuple[Any, ...]:
    name = thread_id(number)
    folder = home / "sessions" / "2026" / "11" / f"{number % 28 + 1:02}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-2026-11-30T10-00-00-{name}.jsonl"
    title = f"thread number {number}"
    lines = [
        {"type": "session_meta", "payload": {"id": name, "cwd": "/src", "source": "cli"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": title, "images": []}},
        {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": "x" * 1_000}},
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "done"}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return name, str(path), AT_S + number, AT_S + number, title, title


class Measured(msgspec.Struct, kw_only=True):
    """Seconds, but for counts and sizes. Those of the CPU are of all threads, and say more on a busy machine."""

    threads: int
    open_s: float = 0.0
    first_import_s: float = 0.0
    complete_s: float = 0.0
    complete_cpu_s: float = 0.0
    rescan_s: float = 0.0
    rescan_cpu_s: float = 0.0
    rescan_ignored_s: float = 0.0
    rescan_ignored_cpu_s: float = 0.0
    ignored: int = 0
    late_ms: float = 0.0
    events: int = 0
    progress_events: int = 0
    database_mb: float = 0.0
    memory_mb: float = 0.0


@contextlib.asynccontextmanager
async def scanner_over(store: Store, home: Path) -> AsyncIterator[tuple[ScanService, Hub]]:
    """Run a writer and a scanner over the store, as a daemon does."""
    image = await store.boot()
    hub = Hub(store, last=Seq(image.next_seq - 1))
    writer = Writer(
        State.boot(image),
        store,
        publish=hub.publish,
        send=lambda _: None,
        restart=lambda: None,
        new_session_id=lambda: SessionId(str(uuid.uuid4())),
        timers=lambda fire: Timers(fire, wall_ms, random.Random(0)),
    )
    scanner = ScanService([home], store, writer, wall_ms, page_threads=PAGE_THREADS, watch_s=1.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        nursery.start_soon(scanner.run)
        yield scanner, hub
        nursery.cancel_scope.cancel()


async def scan(scanner: ScanService, hub: Hub) -> tuple[float, float, float]:
    """Scan, and return the seconds until the first session, until the end, and of the CPU."""
    began, spent = trio.current_time(), time.process_time()
    first = 0.0
    with hub.subscribe(kinds=frozenset({"session/created", "discovery/finished"})) as events:
        scanner.scan_now()
        while True:
            for event in await events.next_batch():
                if event.event == "discovery/finished":
                    took = trio.current_time() - began
                    return first or took, took, time.process_time() - spent
                if event.event == "session/created":
                    first = first or trio.current_time() - began


async def watch_lateness(measured: Measured) -> None:
    """Note how late the loop comes to a tick: what a prompt would wait at most."""
    while True:
        due = trio.current_time() + TICK_S
        await trio.sleep_until(due)
        measured.late_ms = max(measured.late_ms, (trio.current_time() - due) * 1000)


async def measure(folder: Path, threads: int, ignored: int) -> Measured:
    """Make a home and measure it."""
    home = folder / "home"
    home.mkdir()
    make_home(home, threads)
    measured = Measured(threads=threads)
    began = trio.current_time()
    async with open_store(folder / "state") as store:
        async with scanner_over(store, home) as (scanner, hub):
            measured.open_s = trio.current_time() - began
            async with trio.open_nursery() as nursery:
                nursery.start_soon(watch_lateness, measured)
                measured.first_import_s, measured.complete_s, measured.complete_cpu_s = await scan(scanner, hub)
                nursery.cancel_scope.cancel()
            _, measured.rescan_s, measured.rescan_cpu_s = await scan(scanner, hub)
            measured.memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            assert scanner.view.status == "idle", scanner.view.reason
        # Killed sessions, without 5,000 kills: what counts is what a scan meets.
        page = await store.threads(limit=min(ignored, threads))
        entries = tuple(IgnoredThread(thread_id=one.thread_id, reason="noise", at_ms=wall_ms()) for one in page.rows)
        owners = {ThreadId(one.thread_id) for one in page.rows}
        snapshot = await store.snapshot()
        killed = tuple(
            msgspec.structs.replace(view.record, killed_at_ms=wall_ms())
            for view in snapshot.sessions
            if view.record.thread_id in owners
        )
        await store.commit(Changes(sessions=killed, ignored=entries), sync=True)
        del snapshot
        measured.ignored = len(entries)
        async with scanner_over(store, home) as (scanner, hub):
            await scan(scanner, hub)  # each is told once more, as ignored
            _, measured.rescan_ignored_s, measured.rescan_ignored_cpu_s = await scan(scanner, hub)
        measured.events = (await store.event_bounds())[1]
        measured.progress_events = await count_events(store, "discovery/progress")
    measured.database_mb = sum(path.stat().st_size for path in (folder / "state").glob("*.sqlite*")) / 1e6
    return measured


async def count_events(store: Store, kind: str) -> int:
    """Return how many events of this kind the log has."""
    after, found = Seq(0), 0
    while True:
        page = await store.events(after, 1_000, kinds=frozenset({kind}))
        found += len(page.events)
        if page.through == after:
            return found
        after = page.through


def main() -> None:
    """Measure each size and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("threads", nargs="*", type=int, default=[10_000, 100_000])
    parser.add_argument("--ignored", type=int, default=5_000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    for threads in asked.threads:
        with tempfile.TemporaryDirectory(prefix="discovery-") as folder:
            measured = trio.run(measure, Path(folder), threads, asked.ignored)
        if asked.json:
            print(msgspec.json.encode(measured).decode())
        else:
            for name, value in msgspec.structs.asdict(measured).items():
                print(f"{name:20} {value:,.3f}" if isinstance(value, float) else f"{name:20} {value:,}")
            print()
        sys.stdout.flush()


if __name__ == "__main__":
    main()
