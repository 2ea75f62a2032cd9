"""One story, and something goes wrong at every single step of it: of Codex's, of the wire, of the disk, of the daemon.

RUNTIME-06, BOOT-05, SETUP-14, SETUP-15: wherever it is cut, every prompt has one end that is true, nothing runs twice,
no thread is left over, nobody is busy with nothing behind it, and a second boot finds nothing to do.
"""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any, Literal

import pytest
import trio
from support import sim_checks
from support.scripted_codex_faults import ANYWHERE
from support.sim_people import People
from support.sim_run import both_die_and_boot_twice, come_to_rest
from support.sim_scheduling import failure_of, run_seeded
from support.sim_world import DaemonGone, World, open_world

from termald.core import inputs as ins

STRIDE = 1 if "SEEDS" in os.environ else 23
"""The long run has trouble at every step; the short one at each 23rd, beginning elsewhere for each kind."""
FREEZES_S = (3.0, 40.0)
"""Below and above what the daemon waits for."""
Transport = Literal["unix", "stdio"]


async def story(world: World) -> People:
    """A setup, an approval, a queue, a steer, an interrupt, a stop, another setup, a kill: each asked at its time,
    whatever has become of the rest."""
    people = People(world, Random(0))

    async def at(seconds: float, *wishes: Callable[[], Awaitable[Any]]) -> None:
        await trio.sleep(max(0.0, seconds - trio.current_time()))
        for wish in wishes:
            try:
                await wish()
            except DaemonGone:
                continue

    prompt = partial(world.prompt, "s")
    await at(0.0, partial(world.create, "s", prompt="@say I look.\n@shell ls\n@say I looked."))
    await at(1.0, people.settle, partial(prompt, "@wait 2s\n@deltas 3"), partial(prompt, "second"))
    await at(2.0, partial(prompt, "a word in between", mode="steer"))
    await at(6.0, partial(prompt, "@wait 60s\n@say too long"))
    await at(8.0, partial(world.command, ins.InterruptSession, "s"))
    await at(9.0, partial(world.create, "t", prompt="@wait 60s\n@say never heard"))
    await at(9.5, partial(prompt, "@wait 60s\n@say stopped"))
    await at(10.0, partial(world.command, ins.StopSession, "s"), partial(world.command, ins.KillSession, "t"))
    await at(13.0, partial(prompt, "and on"))
    await at(15.0)
    return people


async def tell(world: World) -> None:
    """Tell the story, hold what is left of it against every invariant, kill both sides, and boot twice."""
    people = await story(world)
    world.troubles.death = lambda: None
    world.troubles.is_full = lambda: False
    await world.revive()
    await come_to_rest(world, people)
    sim_checks.at_rest(world)
    await both_die_and_boot_twice(world)


def run(prepare: Callable[[World], None], *, transport: Transport = "unix") -> World:
    """Tell the story in a world that was prepared for trouble, and return what is left of it."""
    worlds: list[World] = []

    async def main() -> None:
        async with open_world("story", boot=False, transport=transport) as world:
            worlds.append(world)
            prepare(world)
            await world.revive()
            await tell(world)

    run_seeded(main, "story")
    return worlds[0]


def nth(number: int, deed: Callable[[], Any]) -> Callable[[], Any]:
    """Return a hook that says nothing, but `deed` at its `number`th call."""
    calls = 0

    def hook() -> Any:
        nonlocal calls
        calls += 1
        return deed() if calls == number else None

    return hook


def places(count: int, kind: int) -> range:
    """Return the places at which something goes wrong, for one kind of trouble."""
    return range(1 + kind % STRIDE, count + 1, STRIDE)


def fail_together(failures: list[str]) -> None:
    """Fail with everything that was found, not with the first of it."""
    assert not failures, f"{len(failures)} places:\n" + "\n".join(failures)


def attempt(what: str, prepare: Callable[[World], None], *, transport: Transport = "unix") -> list[str]:
    """Run once; return what failed."""
    failure = failure_of(lambda: run(prepare, transport=transport))
    return [] if failure is None else [f"{what}: {type(failure).__name__}: {failure}"]


@pytest.mark.parametrize("transport", ["unix", "stdio"])
@pytest.mark.parametrize("deed", ANYWHERE)
def test_runtime_06_codex_is_cut_at_each_of_its_steps(deed: str, transport: Transport) -> None:
    reached = run(lambda world: None, transport=transport).faults.reached
    failures: list[str] = []
    for seconds in FREEZES_S if deed == "freeze" else (0.0,):
        for number in places(len(reached), ANYWHERE.index(deed) + (transport == "stdio")):
            failures += attempt(
                f"{deed} for {seconds} s at step {number}, {reached[number - 1]}",
                lambda world, number=number, seconds=seconds: world.faults.at_step(number, deed, seconds=seconds),  # type: ignore[misc]  # bound at once
                transport=transport,
            )
    fail_together(failures)


@pytest.mark.parametrize("codex", ["lives", "dies", "stdio"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_boot_05_the_daemon_dies_at_each_of_its_commits(when: str, codex: str) -> None:
    """Between its commit and the frame, and before it: the next daemon finds the one or the other, and Codex alive with
    its turns, or dead."""
    transport: Transport = "stdio" if codex == "stdio" else "unix"

    def die_with(world: World) -> str:
        if codex == "dies" and world.machine.living:
            world.codex.die(signal="SIGKILL")
        return when

    def prepare(world: World, number: int) -> None:
        world.troubles.death = nth(number, partial(die_with, world))

    failures: list[str] = []
    for number in places(commits(transport), len(when) + len(codex)):
        failures += attempt(f"death {when} commit {number}", partial(prepare, number=number), transport=transport)
    fail_together(failures)


def test_setup_14_15_each_commit_fails_once() -> None:
    """Nothing of it was sent or seen, its callers are told, and it is done once when it is asked or decided again."""
    failures: list[str] = []

    def prepare(world: World, number: int) -> None:
        world.troubles.is_full = nth(number, lambda: True)

    for number in places(commits("unix"), 0):
        failures += attempt(f"commit {number} fails", partial(prepare, number=number))
    fail_together(failures)


def commits(transport: Transport) -> int:
    """Return how often the daemon writes in the story."""
    count = 0

    def counted() -> str | None:
        nonlocal count
        count += 1
        return None

    run(lambda world: setattr(world.troubles, "death", counted), transport=transport)
    return count
