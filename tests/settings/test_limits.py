"""The limits that users may change have the defaults that the core was measured with."""

import pytest

from termald.core.limits import Limits
from termald.limits import CodexLimits, SessionLimits


@pytest.mark.parametrize(
    ("ours", "cores"),
    [
        (CodexLimits().setups_max, Limits().setups_max),
        (CodexLimits().calls_max, Limits().calls_max),
        (CodexLimits().open_deadline_ms, Limits().open_ms),
        (CodexLimits().turn_deadline_ms, Limits().turn_ms),
        (CodexLimits().read_deadline_ms, Limits().read_ms),
        (SessionLimits().queue_prompts_max, Limits().queue_prompts_max),
        (SessionLimits().request_deadline_ms, Limits().request_ms),
    ],
)
def test_a_default_is_the_cores(ours: int, cores: int) -> None:
    assert ours == cores
