"""The log is looked after without anybody's help, in small steps, and not at all where nothing happens."""

import pytest
import trio
from trio.testing import MockClock

from state.errors import StoreFull
from state.records import Seq
from state.upkeep import FOLDED_MAX, Folded
from termald.upkeep import PAUSE_S, Upkeep

HOUR_MS = 3_600_000


class Log:
    """A log with so many deltas to fold and so many events. Time is trio's."""

    def __init__(self, deltas: int, events: int) -> None:
        self.deltas, self.events, self.newest = deltas, events, Seq(events)
        self.asked = 0
        self.before: list[int] = []
        self.fails = 0

    async def fold(self, before_ms: int) -> Folded:
        self.asked += 1
        self.before.append(before_ms)
        if self.fails:
            self.fails -= 1
            raise StoreFull("no room")
        await trio.sleep(0.01)
        folded = min(self.deltas, FOLDED_MAX)
        self.deltas -= folded
        return Folded(events=folded, more=self.deltas > 0)

    async def excess(self, events_max: int) -> int:
        return max(0, self.events - events_max)

    async def cut(self, events: int) -> int:
        assert events <= FOLDED_MAX
        await trio.sleep(0.01)
        self.events -= events
        return events


def upkeep(log: Log) -> Upkeep:
    now_ms = lambda: int(trio.current_time() * 1_000)  # noqa: E731
    return Upkeep(log, lambda: log.newest, now_ms, events_max=100, fold_after_ms=HOUR_MS)


async def test_all_of_it_is_done_and_the_writer_has_its_time(autojump_clock: MockClock) -> None:
    log = Log(deltas=3 * FOLDED_MAX, events=100 + 2 * FOLDED_MAX + 1)
    began = trio.current_time()
    await upkeep(log).once()
    assert (log.deltas, log.events) == (0, 100)
    steps = 3 + 3
    assert trio.current_time() - began == pytest.approx(steps * 0.01 * 5)


async def test_a_quiet_log_is_left_alone_once_all_of_it_was_old_enough(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    log = Log(deltas=0, events=1)
    nursery.start_soon(upkeep(log).run)
    await trio.sleep(2 * HOUR_MS / 1_000)
    asked = log.asked
    assert log.before[-1] > 0, "it was looked at until what was there first was an hour old"
    await trio.sleep(HOUR_MS / 1_000)
    assert log.asked == asked
    log.newest = Seq(2)
    await trio.sleep(PAUSE_S + 1)
    assert log.asked == asked + 1


async def test_a_disk_that_takes_nothing_is_tried_again(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    log = Log(deltas=5, events=1)
    log.fails = 1
    nursery.start_soon(upkeep(log).run)
    await trio.sleep(PAUSE_S + 1)
    assert log.deltas == 0
