"""The whole daemon under everything that may go wrong, by seed. Each run checks I1 to I12 at its end, crashes, boots,
checks again, and boots once more.

`SEEDS=2000` runs so many seeds, `SEEDS=5000-7000` those; `SEED=4711` runs one and shows what happened. `DOOR=http` lets
people ask the API instead of the daemon itself, and listen to its events. A seed that has failed goes into `seeds.txt`,
with its door, and is run for ever.
"""

import os
import time
from pathlib import Path

import pytest
from support.sim_run import DOORS, Door, plan_of, run_and_report

KEPT = Path(__file__).with_name("seeds.txt")
SHORT = range(8)
FAILURES_MAX = 10


def kept() -> list[tuple[int, Door]]:
    """Return the seeds that once failed, each with its door; what follows a `#` says why."""
    lines = (line.partition("#")[0].split() for line in KEPT.read_text().splitlines())
    return [(int(line[0]), as_door(*line[1:])) for line in lines if line]


def as_door(name: str = "inside") -> Door:
    """Return the door of this name."""
    return {str(door): door for door in DOORS}[name]


def asked() -> range | None:
    """Return the seeds that the environment asks for."""
    if one := os.environ.get("SEED"):
        return range(int(one), int(one) + 1)
    if (many := os.environ.get("SEEDS")) is None:
        return None
    first, dash, last = many.partition("-")
    return range(int(first), int(last) + 1) if dash else range(int(first))


@pytest.mark.parametrize(("seed", "door"), sorted({*((seed, door) for seed in SHORT for door in DOORS), *kept()}))
def test_a_seed(seed: int, door: Door) -> None:
    failure = run_and_report(seed, door=door)
    assert failure is None, failure


@pytest.mark.skipif(asked() is None, reason="set SEEDS=2000 (or SEEDS=5000-7000, or SEED=4711)")
def test_the_seeds_that_were_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = asked()
    assert seeds is not None
    door = as_door(os.environ.get("DOOR", "inside"))
    began, failures = time.monotonic(), []
    for number, seed in enumerate(seeds, start=1):
        failure = run_and_report(seed, door=door, lines=400 if len(seeds) == 1 else 0)
        if failure is not None:
            failures.append(failure)
            with capsys.disabled():
                repro = f"SEED={seed} DOOR={door} python -m pytest tests/sim/test_seeds.py"
                print(f"\n{repro}  # {plan_of(seed, door)}\n{failure}")
        if len(failures) == FAILURES_MAX:
            break
        if number % 100 == 0:
            with capsys.disabled():
                print(f"\n{number} seeds, {number / (time.monotonic() - began):.1f} a second", end="")
    assert not failures, f"{len(failures)} seeds failed"
