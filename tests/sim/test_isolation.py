"""I8: whatever others do, and whatever is done to them, X hears what X alone would hear.

Compared are all of X's events, field by field; not their times, nor their numbers, which all sessions share.
"""

from itertools import islice

import pytest
from support.sim_run import Innocent, Json, plan_of, simulate, simulate_x_alone
from support.sim_scheduling import run_seeded

SHARED = frozenset({"at", "seq"})
SEEDS = 5


def told(x: Innocent) -> list[Json]:
    """Return what X heard, without what depends on the others by nature."""
    return [{key: value for key, value in event.items() if key not in SHARED} for event in x.events]


@pytest.mark.parametrize("seed", [*islice((seed for seed in range(1_000) if plan_of(seed).leaves_x_alone), SEEDS)])
def test_x_hears_what_it_would_hear_alone(seed: int) -> None:
    among_others = run_seeded(lambda: simulate(seed), seed).x
    alone = run_seeded(lambda: simulate_x_alone(seed), seed)
    assert among_others.answers == alone.answers
    assert len(alone.events) > len(alone.answers) > 1
    assert told(among_others) == told(alone)
