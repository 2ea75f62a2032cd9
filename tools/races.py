"""Look for orders of events that break a promise: the model from new seeds, for as long as it may take.

    python tools/races.py --seconds 600
    python tools/races.py --seed 4711 --seconds 0        # one round from this seed, as printed by a run that failed

A failing history is shrunk and told; the seed that led there is printed. Tell it by hand in
`tests/core/test_model_found.py` before it is fixed. Exit status 1 if there was one.
"""

import argparse
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from hypothesis import HealthCheck, Phase, settings  # noqa: E402 - the paths come first
from hypothesis import seed as seeded  # noqa: E402
from hypothesis.stateful import run_state_machine_as_test  # noqa: E402
from support.model_machine import Model  # noqa: E402

EXAMPLES = 200
"""Histories tried from one seed: some five seconds, so that the time is kept."""


def main() -> int:
    """Run rounds until the time is over; return the exit status."""
    wanted = _arguments()
    began = time.monotonic()
    rounds = 0
    seed = wanted.seed if wanted.seed is not None else random.SystemRandom().randrange(2**31)
    while rounds == 0 or time.monotonic() - began < wanted.seconds:
        try:
            _round(seed + rounds, wanted.steps)
        except Exception as found:
            print(f"\nseed {seed + rounds} breaks a promise: {found}")
            print("\n".join(getattr(found, "__notes__", ())))
            return 1
        rounds += 1
        took = time.monotonic() - began
        steps = rounds * EXAMPLES * wanted.steps
        print(f"\r{steps:,} steps in {rounds * EXAMPLES:,} histories, {steps / took:,.0f} a second", end="", flush=True)
    print()
    return 0


def _round(seed: int, steps: int) -> None:
    class Round(Model):
        """Hypothesis keeps what it learns by class."""

    run_state_machine_as_test(
        seeded(seed)(Round),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=steps,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long new rounds are begun")
    parser.add_argument("--seed", type=int, help="the first seed; a random one otherwise")
    parser.add_argument("--steps", type=int, default=50, help="steps of a history")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
