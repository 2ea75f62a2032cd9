"""The crash loops: `python tests/crash --cycles 100 --seed 1` (`make crash CYCLES=100 SEED=1`).

Exits with 1 at the first cycle in which something was wrong, says its seed, and leaves its folder to be looked at.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

import trio

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.crash_run import CYCLES_OF_A_WORLD, run_world
from support.crash_world import CRASHES, Cycle


def main() -> int:
    """Run the cycles; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    done: list[Cycle] = []
    for number in range(0, asked.cycles, CYCLES_OF_A_WORLD):
        seed = asked.seed + number // CYCLES_OF_A_WORLD
        folder = Path(tempfile.mkdtemp(prefix="termald-crash-"))
        crashes = Random(seed).choices(CRASHES, k=min(CYCLES_OF_A_WORLD, asked.cycles - number))
        ran = trio.run(run_world, folder, seed, crashes, _say)
        done += ran
        if any(cycle.wrong for cycle in ran):
            print(f"seed {seed}; everything is in {folder}")
            return 1
        shutil.rmtree(folder)
    print(summary(done))
    return 0


def _say(number: int, cycle: Cycle) -> None:
    adopted = "" if cycle.adopted_after_s is None else f", adopted after {cycle.adopted_after_s:.2f} s"
    print(
        f"{number:4} {cycle.crash:22} {cycle.turns_went_on}/{cycle.turns_open} turns went on{adopted},"
        f" at rest after {cycle.rest_after_s:.1f} s; descriptors {cycle.daemon_descriptors}/{cycle.codex_descriptors},"
        f" MB {cycle.daemon_memory_kb // 1024}/{cycle.codex_memory_kb // 1024}",
        flush=True,
    )
    for wrong in cycle.wrong:
        print(f"     WRONG: {wrong}", flush=True)


def summary(done: Sequence[Cycle]) -> str:
    """Return what the closing note of a long run says."""
    turns, went_on = sum(cycle.turns_open for cycle in done), sum(cycle.turns_went_on for cycle in done)
    return "\n".join(
        (
            f"{len(done)} cycles, nothing wrong.",
            f"Turns that ran when the daemon alone went: {turns}; went on to their own end: {went_on}.",
            _spread("From start to adopted", [c.adopted_after_s for c in done if c.adopted_after_s is not None]),
            _spread("To the first event", [c.first_event_after_s for c in done if c.first_event_after_s is not None]),
        )
    )


def _spread(what: str, seconds: Sequence[float]) -> str:
    if not seconds:
        return f"{what}: never."
    return f"{what}: median {statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s ({len(seconds)} times)."


if __name__ == "__main__":
    sys.exit(main())
