"""Pauses, the breaker, and the order of the signs of an end: on a clock that jumps, with processes in memory."""

import errno
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise, permutations
from pathlib import Path
from random import Random

import pytest
import trio
from support.memory_process import MemoryLink, MemoryMachine, MemoryProcess
from support.supervising import Came, Lost, Supervised, payload, supervising
from trio.testing import MockClock, wait_all_tasks_blocked

from termald.codex.connection import DRAIN_DEADLINE_S, OUTBOX_FRAMES_MAX
from termald.codex.errors import CodexNotFound, CodexUnusable
from termald.codex.frames import encode_notification
from termald.codex.hooks import LinkUp, RuntimeExit, RuntimeStatus
from termald.limits import CodexLimits

LIMITS = CodexLimits(
    backoff_first_ms=1_000, backoff_max_ms=8_000, crashes_max=6, stable_ms=30_000, start_deadline_ms=10_000
)
HOUR_S = 3_600.0


class Longest(Random):
    """Draws the longest of the pauses that it may choose from, and keeps what it was offered."""

    def __init__(self) -> None:
        super().__init__(0)
        self.offers: list[tuple[float, float]] = []

    def uniform(self, a: float, b: float) -> float:
        self.offers.append((a, b))
        return b


@asynccontextmanager
async def in_memory(
    folder: Path, *, random: Random | None = None, lifetimes_s: list[float] | None = None, answers: bool = True
) -> AsyncIterator[tuple[Supervised, MemoryMachine]]:
    machine = MemoryMachine(folder / "home", lifetimes_s=lifetimes_s, answers=answers)
    async with supervising(folder / "codex", folder, limits=LIMITS, machine=machine, random=random or Random(0)) as ran:
        yield ran, machine


async def test_pauses_double_up_to_their_limit_and_any_part_of_them_may_be_drawn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    random = Longest()
    async with in_memory(tmp_path, random=random, lifetimes_s=[1.0] * 5) as (ran, machine):
        await ran.told.until(lambda: len(ran.told.all(LinkUp)) == 6, deadline_s=HOUR_S)
        starts = machine.started_at
        pauses = [round(after - before, 2) for before, after in pairwise(starts)]
    assert random.offers == [(0, 1.0), (0, 2.0), (0, 4.0), (0, 8.0), (0, 8.0)]
    assert pauses == [1.0 + longest for _, longest in random.offers]


async def test_stable_run_forgets_the_crashes_before_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Five crashes within a month are no reason to stop."""
    random = Longest()
    async with in_memory(tmp_path, random=random, lifetimes_s=[1.0, 1.0, 31.0, 1.0, 31.0, 31.0, 31.0, 31.0]) as (
        ran,
        _,
    ):
        await ran.told.until(lambda: len(ran.told.all(LinkUp)) == 9, deadline_s=HOUR_S)
    assert [longest for _, longest in random.offers] == [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert "broken" not in ran.told.states


async def test_broken_tries_once_after_a_long_time_and_not_again_at_once(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A machine whose disk was full for an hour comes back by itself, and a hopeless one is not kept busy."""
    async with in_memory(tmp_path, lifetimes_s=[1.0] * 8) as (ran, machine):
        await ran.told.until(lambda: len(ran.told.all(RuntimeExit)) == 8, deadline_s=HOUR_S)
        before = machine.started_at
        assert before[5] - before[0] < 60
        assert before[6] - before[5] > 600
        assert before[7] - before[6] > 600
        await ran.told.until(lambda: len(ran.told.all(LinkUp)) == 9, deadline_s=HOUR_S)


@pytest.mark.parametrize(
    "obstacle",
    [
        pytest.param(OSError(errno.EMFILE, "Too many open files"), id="no descriptor is left"),
        pytest.param(CodexUnusable("codex cannot be started: Text file busy"), id="the binary is being replaced"),
        pytest.param(CodexNotFound("no Codex"), id="the binary is gone for the moment"),
    ],
)
async def test_start_that_is_not_possible_now_is_told_and_tried_again_soon_then_less_and_less_often(
    tmp_path: Path, autojump_clock: MockClock, obstacle: Exception
) -> None:
    """RUNTIME-08: what passes in a moment costs a moment, what does not costs no process table its quiet."""
    async with in_memory(tmp_path) as (ran, machine):
        machine.obstacles = [obstacle] * 13
        await ran.told.until(lambda: ran.supervisor.status.state == "broken", deadline_s=HOUR_S)
        assert ran.supervisor.status.reason == str(obstacle)
        assert ran.supervisor.status.pid is None
        await ran.told.nth(LinkUp, deadline_s=2 * HOUR_S)
        pauses = [round(after - before) for before, after in pairwise(machine.tried_at)]
        assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600]
        assert ran.supervisor.status.slug is None
        machine.obstacles = [obstacle]
        machine.processes[0].die(code=1)
        machine.links[0].end_output()
        await ran.told.nth(LinkUp, 2, deadline_s=60.0)  # a good start forgets them
        assert not ran.told.all(Lost)


async def test_start_that_never_answers_is_ended_at_its_deadline(tmp_path: Path, autojump_clock: MockClock) -> None:
    """RUNTIME-09: initialize has a deadline of its own, and the start one over all its tries."""
    async with in_memory(tmp_path, answers=False) as (ran, machine):
        exit_ = await ran.told.nth(RuntimeExit)
        assert exit_.cause == "start-failed"
        assert machine.processes[0].ends >= 1
        assert 10.0 <= trio.current_time() - machine.started_at[0] < 12.0
        assert machine.links[0].closed


Sign = Callable[[MemoryProcess, MemoryLink, Supervised], object]
SIGNS: dict[str, Sign] = {
    "output": lambda process, link, ran: link.end_output(),
    "status": lambda process, link, ran: process.die(code=9),
    "write": lambda process, link, ran: break_a_write(link, ran),
}


def break_a_write(link: MemoryLink, ran: Supervised) -> None:
    link.break_input()
    ran.ask(ran.told.all(LinkUp)[0].link, "x")


@pytest.mark.parametrize("order", list(permutations(SIGNS)), ids="-".join)
@pytest.mark.parametrize("pause", [False, True], ids=["at-once", "apart"])
async def test_signs_of_an_end_make_one_exit_in_any_order(
    tmp_path: Path, autojump_clock: MockClock, order: tuple[str, ...], *, pause: bool
) -> None:
    """RUNTIME-03: every session is settled once, with one cause, after the last word was read (RUNTIME-02)."""
    async with in_memory(tmp_path) as (ran, machine):
        await ran.ready()
        (process,), (link,) = machine.processes, machine.links
        link.say(encode_notification("last-words"))
        for sign in order:
            SIGNS[sign](process, link, ran)
            SIGNS[sign](process, link, ran)  # each of them twice
            if pause:
                await wait_all_tasks_blocked()
        exit_ = await ran.told.nth(RuntimeExit)
        assert (exit_.cause, exit_.report.code) == ("exited", 9)
        told = ran.told.told
        assert [payload(entry)["method"] for entry in told[: told.index(exit_)] if isinstance(entry, Came)] == [
            "last-words"
        ]
        assert not ran.told.all(Lost)
        await ran.ready(2)
        await wait_all_tasks_blocked()
        assert len(ran.told.all(RuntimeExit)) == 1


async def test_output_that_somebody_holds_open_does_not_hold_up_the_exit(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A tool that inherited the pipe keeps its end from coming; what is in it is read all the same."""
    async with in_memory(tmp_path) as (ran, machine):
        await ran.ready()
        died_at = trio.current_time()
        machine.processes[0].die(code=9)
        machine.links[0].say(encode_notification("last-words"))
        exit_ = await ran.told.nth(RuntimeExit)
        assert (exit_.cause, exit_.report.code) == ("exited", 9)
        assert trio.current_time() - died_at <= DRAIN_DEADLINE_S
        assert [payload(came)["method"] for came in ran.told.all(Came)] == ["last-words"]
        assert machine.links[0].closed


async def test_broken_write_to_a_living_process_costs_the_link_alone(tmp_path: Path, autojump_clock: MockClock) -> None:
    """WIRE-14: nothing follows on the torn link; what Codex had said on it is still heard."""
    async with in_memory(tmp_path) as (ran, machine):
        first = await ran.ready()
        machine.links[0].say(encode_notification("before"))
        machine.links[0].break_input()
        assert ran.ask(first.link, "torn")
        second = await ran.ready(2)
        (lost,) = ran.told.all(Lost)
        assert (lost.link, lost.reason) == (first.link, "its input is broken")
        assert second.adopted
        assert [payload(came)["method"] for came in ran.told.all(Came)] == ["before"]
        assert not any(b"torn" in frame for frame in machine.links[1].heard)


async def test_process_that_is_reached_no_more_is_ended_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    """RUNTIME-10: a frozen process holds every thread's lock. Until it is given up it may still go on."""
    async with in_memory(tmp_path) as (ran, machine):
        await ran.ready()
        machine.frozen = True
        machine.links[0].end_output()
        await ran.told.nth(Lost)
        lost_at = trio.current_time()
        exit_ = await ran.told.nth(RuntimeExit, deadline_s=HOUR_S)
        assert exit_.cause == "unresponsive"
        assert 20 <= trio.current_time() - lost_at < 22
        machine.frozen = False
        await ran.ready(2)
        assert len(ran.told.all(RuntimeExit)) == 1


async def test_process_that_answers_nothing_is_told_and_is_ready_again_when_it_does(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """RUNTIME-11: stopped for a minute, with its link whole. Nobody asked it for anything meanwhile."""
    async with in_memory(tmp_path) as (ran, machine):
        await ran.ready()
        await trio.sleep(HOUR_S)
        assert ran.told.states == ["starting", "ready"]
        machine.links[0].answering = trio.Event()
        stopped_at = trio.current_time()
        await ran.told.until(lambda: ran.told.states[-1] == "starting", deadline_s=60.0)
        assert trio.current_time() - stopped_at <= 20.0
        assert ran.supervisor.status.reason == "it has answered nothing for 10 s"
        await trio.sleep(60.0 - (trio.current_time() - stopped_at))
        machine.links[0].answering.set()
        await ran.told.until(lambda: ran.told.states[-1] == "ready")
        assert ran.told.all(RuntimeStatus)[-1].reason is None
        await trio.sleep(HOUR_S)
        assert ran.told.states == ["starting", "ready", "starting", "ready"]
        assert not ran.told.all(Lost)
        assert not ran.told.all(RuntimeExit)
        assert len(ran.told.all(LinkUp)) == 1


async def test_process_that_answers_nothing_for_minutes_is_replaced(tmp_path: Path, autojump_clock: MockClock) -> None:
    """RUNTIME-10."""
    async with in_memory(tmp_path) as (ran, machine):
        await ran.ready()
        machine.links[0].answering = trio.Event()
        stopped_at = trio.current_time()
        exit_ = await ran.told.nth(RuntimeExit, deadline_s=HOUR_S)
        assert (exit_.cause, exit_.reason) == ("unresponsive", "it has answered nothing for 180 s")
        assert 180.0 <= trio.current_time() - stopped_at <= 200.0
        await ran.ready(2)
        assert len(ran.told.all(RuntimeExit)) == 1


async def test_silent_process_that_is_being_ended_is_not_called_ready_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with in_memory(tmp_path) as (ran, machine):
        await ran.ready()
        machine.links[0].answering = trio.Event()
        await ran.told.until(lambda: ran.supervisor.status.state == "starting", deadline_s=60.0)
        machine.processes[0].takes_s = 4.0
        ran.supervisor.restart()
        machine.links[0].answering.set()
        await ran.told.nth(RuntimeExit)
        assert ran.told.states[:4] == ["starting", "ready", "starting", "stopping"]
        await ran.ready(2)
        assert ran.told.states[4:] == ["starting", "ready"]


async def test_frames_leave_in_the_order_in_which_they_were_given(tmp_path: Path, autojump_clock: MockClock) -> None:
    """WIRE-15: no interrupt before its turn."""
    async with in_memory(tmp_path) as (ran, machine):
        up = await ran.ready()
        for number in range(200):
            assert ran.ask(up.link, str(number))
        await wait_all_tasks_blocked()
        heard = [frame for frame in machine.links[0].heard if b'"params"' in frame and b"initialize" not in frame]
        assert [f'"method":"{number}"'.encode() in frame for number, frame in enumerate(heard)] == [True] * 200


async def test_queue_that_is_full_gives_the_link_up(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A frame dropped out of the middle would be an interrupt that nobody sent."""
    async with in_memory(tmp_path) as (ran, _machine):
        up = await ran.ready()
        await wait_all_tasks_blocked()
        taken = [ran.ask(up.link, str(number)) for number in range(OUTBOX_FRAMES_MAX + 3)]
        assert taken[:OUTBOX_FRAMES_MAX] == [True] * OUTBOX_FRAMES_MAX
        assert taken[-1] is False
        second = await ran.ready(2)
        assert "wait to be written" in ran.told.all(Lost)[0].reason
        assert ran.ask(second.link, "after")


async def test_stop_during_a_pause_does_not_wait_for_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with in_memory(tmp_path, random=Longest(), lifetimes_s=[1.0] * 9) as (ran, machine):
        await ran.told.until(lambda: ran.supervisor.status.state == "broken", deadline_s=HOUR_S)
        began = trio.current_time()
        await ran.supervisor.stop(leave=False)
        assert trio.current_time() == began
        assert len(machine.processes) == LIMITS.crashes_max
