"""The crash loops in short: real daemon, real Codex, everybody at work. `make crash CYCLES=…` runs them for long."""

from pathlib import Path

import pytest
from support.crash_run import run_world

pytestmark = pytest.mark.real


async def test_what_was_promised_is_kept_whoever_is_killed(tmp_path: Path) -> None:
    crashes = ("daemon", "both")
    done = await run_world(tmp_path, 5, crashes, print)
    assert [cycle.wrong for cycle in done] == [[]] * len(crashes)
