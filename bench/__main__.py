"""`python -m bench [--rows ROW,ROW] [--quick | --soak] [--rounds N] [--out FOLDER]`.

Writes `bench.md` and `bench.json` into the folder, which is a new one among the temporary files unless it is named,
and prints the page. Exits with 1 where an aim was missed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec
import trio

from bench import standing, storing, streaming, turns
from bench.figures import Given, Report, Row, machine, markdown, now, versions

ROWS: Final[dict[str, Callable[[Given], Awaitable[Row]]]] = {
    "memory": turns.memory,
    "turns": turns.turns,
    "stream": streaming.stream,
    "latency": streaming.latency,
    "accept": storing.accept,
    "setup": turns.setup,
    "boot": storing.boot,
    "replay": storing.replay,
    "fan-out": streaming.fan_out,
    "idle": standing.idle,
    "big": streaming.big,
    "soak": standing.soak,
}


async def measure(rows: list[str], given: Given) -> Report:
    """Measure the rows one after the other."""
    at, where, what = now(), machine(), versions()
    found = []
    for name in rows:
        began = time.perf_counter()
        print(f"{name} …", file=sys.stderr, flush=True)
        row = await ROWS[name](given)
        found.append(msgspec.structs.replace(row, seconds=time.perf_counter() - began))
    return Report(at=at, size=given.size, machine=where, versions=what, rows=found)


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure what users would compare.")
    parser.add_argument("--rows", default=",".join(ROWS), help=f"some of {', '.join(ROWS)}")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="as small as can be: proves that it runs, and no more")
    size.add_argument("--soak", action="store_true", help="the full size of soak and replay; takes long")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="the folder to write into")
    asked = parser.parse_args()
    rows = asked.rows.split(",")
    if unknown := [name for name in rows if name not in ROWS]:
        parser.error(f"there is no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    given = Given(
        size="quick" if asked.quick else "huge" if asked.soak else "full", rounds=1 if asked.quick else asked.rounds
    )
    report = trio.run(measure, rows, given)
    out = asked.out or Path(tempfile.mkdtemp(prefix="termald-bench-"))
    out.mkdir(parents=True, exist_ok=True)
    page = markdown(report)
    (out / "bench.md").write_text(page, encoding="utf-8")
    (out / "bench.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    print(page)
    print(f"{out}/bench.md, {out}/bench.json", file=sys.stderr)
    sys.exit(any(one.met is False for row in report.rows for one in row.verdicts))


if __name__ == "__main__":
    main()
