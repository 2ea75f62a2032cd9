"""A large home as a user meets it: the whole daemon over the real Codex, in whose state DB there are very many threads.

    python -m bench.large_homes [threads ...]

One thread is made by the real Codex, and copied, row and rollout, as often as asked. Told are, in seconds from the
start of `termald serve`: until it answers, until it is ready, until the first page of sessions is there, until the scan
is complete. Then the same daemon is started again, with all of them in its own state and nothing changed in Codex's.
Memory is the daemon's. `scans.py` measures the scan alone.
"""

import argparse
import contextlib
import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import trio

from bench.lab import Listener, Served, folder, model, peak_mb, served

SCANS: Final = "kinds=discovery/started,discovery/imported,discovery/finished"
COLUMNS: Final = ("answers", "ready", "first page", "complete", "again: ready", "again: complete", "peak MB", "DB MB")


def copy_threads(home: Path, count: int) -> None:
    """Copy the one thread of the home, as a Codex that was used that often would have left it."""
    (path,) = home.glob("state_*.sqlite")
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.row_factory = sqlite3.Row
        (row,) = database.execute("SELECT * FROM threads").fetchall()
        names, old = row.keys(), row["id"]
        rollout = Path(row["rollout_path"])
        text = rollout.read_text()
        marks = ", ".join("?" * len(names))
        database.executemany(
            f"INSERT INTO threads({', '.join(names)}) VALUES ({marks})",
            (_copied(dict(row), rollout, text, old, number) for number in range(count - 1)),
        )


def _copied(row: dict[str, Any], rollout: Path, text: str, old: str, number: int) -> tuple[Any, ...]:
    name = f"{old[:24]}{number:012x}"
    day = rollout.parents[1] / f"{number % 28 + 1:02}"
    day.mkdir(exist_ok=True)
    copy = day / rollout.name.replace(old, name)
    copy.write_text(text.replace(old, name))
    return tuple({**row, "id": name, "rollout_path": str(copy), "title": f"thread number {number}"}.values())


async def scan_times(daemon: Served, began_s: float, wanted: int) -> tuple[float, float]:
    """Return the seconds from the start until the first page of sessions, if any, and until the scan is complete."""
    first: float | None = None
    async with await trio.open_unix_socket(str(daemon.socket)) as stream:
        await stream.send_all(f"GET /api/events?after=0&{SCANS} HTTP/1.0\r\n\r\n".encode())
        listener = Listener(stream)  # the first events may come in one piece with the head
        with trio.fail_after(1_800):
            ends = 0
            while True:
                for event in _events(await listener.lines()):
                    at_s = datetime.fromisoformat(event["at"]).timestamp() - began_s
                    if at_s < 0:
                        continue  # of an earlier start
                    if event["kind"] == "discovery/imported":
                        first = first or at_s
                    ends += event["kind"] == "discovery/finished"
                    if ends:
                        report = event["homes"][0]
                        assert report["told"] + report["unchanged"] == wanted, report
                        return first or at_s, at_s


def _events(lines: bytes) -> Iterator[Any]:
    for line in lines.splitlines():
        if line.startswith(b"data: ") and b'"discovery/' in line:
            yield json.loads(line[len(b"data: ") :])


async def measure(count: int) -> tuple[float, ...]:
    """Make a home of so many threads and measure it."""
    with folder() as place, model() as base_url:
        async with served(place, base_url, {"DISCOVERY_ENABLED": "false"}) as daemon:
            await daemon.first_turns(["one"])
        copy_threads(place / "home", count)
        shutil.rmtree(place / "state")
        figures: list[float] = []
        (place / "home" / "config.toml").unlink()  # it is written anew for each
        began_s = time.time()
        async with served(place, base_url) as daemon:
            figures += [daemon.answering_s, daemon.ready_s, *await scan_times(daemon, began_s, count)]
        (place / "home" / "config.toml").unlink()  # it is written anew for each
        began_s = time.time()
        async with served(place, base_url) as daemon:
            figures += [daemon.ready_s, (await scan_times(daemon, began_s, count))[1], peak_mb(daemon.pid)]
        stored = sum(path.stat().st_size for path in (place / "state").glob("*.sqlite*"))
        return (*figures, stored / 1e6)


def main() -> None:
    """Measure each size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("threads", nargs="*", type=int, default=[100, 10_000, 100_000])
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if not asked.json:
        print("threads".rjust(9), *(name.rjust(max(len(name), 9)) for name in COLUMNS))
    for count in asked.threads:
        figures = trio.run(measure, count)
        if asked.json:
            print(msgspec.json.encode({"threads": count, **dict(zip(COLUMNS, figures, strict=True))}).decode())
        else:
            row = (f"{value:.2f}".rjust(max(len(name), 9)) for name, value in zip(COLUMNS, figures, strict=True))
            print(f"{count:,}".rjust(9), *row, flush=True)


if __name__ == "__main__":
    main()
