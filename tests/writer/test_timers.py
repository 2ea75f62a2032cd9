"""Timers come back when they are due, once, and only the newest under a key."""

from random import Random

import pytest
import trio
from trio.testing import MockClock

from termald.core.effects import Arm
from termald.core.inputs import CallDeadline, CallId, Input
from termald.timers import Timers


def arm(call: int, after_ms: int, key: str = "k", jitter_ms: int = 0) -> Arm:
    timer = CallDeadline(at_ms=0, call=CallId(call))
    return Arm(key=("call", key), timer=timer, after_ms=after_ms, jitter_ms=jitter_ms)


class Fired:
    def __init__(self) -> None:
        self.calls: list[tuple[float, int]] = []

    def __call__(self, timer: Input) -> None:
        assert isinstance(timer, CallDeadline)
        assert timer.at_ms == 99
        self.calls.append((round(trio.current_time(), 3), timer.call))


@pytest.fixture
def fired() -> Fired:
    return Fired()


async def test_they_fire_in_order_of_their_deadlines(
    fired: Fired, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    timers = Timers(fired, lambda: 99, Random(0))
    nursery.start_soon(timers.run)
    timers.arm(arm(1, 3_000, "a"))
    timers.arm(arm(2, 1_000, "b"))
    await trio.sleep(1.5)
    timers.arm(arm(3, 500, "c"))
    await trio.sleep(5)
    assert fired.calls == [(1.0, 2), (2.0, 3), (3.0, 1)]
    assert len(timers) == 0


async def test_an_equal_key_replaces_and_disarm_forgets(
    fired: Fired, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    timers = Timers(fired, lambda: 99, Random(0))
    nursery.start_soon(timers.run)
    timers.arm(arm(1, 1_000))
    timers.arm(arm(2, 2_000))
    timers.arm(arm(3, 1_000, "gone"))
    timers.disarm(("call", "gone"))
    await trio.sleep(5)
    assert fired.calls == [(2.0, 2)]


async def test_jitter_is_added_within_its_bound(fired: Fired, nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    timers = Timers(fired, lambda: 99, Random(0))
    nursery.start_soon(timers.run)
    for number in range(50):
        timers.arm(arm(number, 1_000, str(number), jitter_ms=1_000))
    await trio.sleep(5)
    moments = {moment for moment, _ in fired.calls}
    assert len(fired.calls) == 50
    assert all(1.0 <= moment <= 2.0 for moment in moments)
    assert len(moments) > 10


async def test_many_that_are_disarmed_cost_no_memory(fired: Fired) -> None:
    timers = Timers(fired, lambda: 99, Random(0))
    for number in range(10_000):
        timers.arm(arm(number, 60_000, str(number)))
        timers.disarm(("call", str(number)))
    assert len(timers._heap) < 200  # the bound is what is promised; there is no other way to see it
