"""Whoever asks is cut off at every checkpoint of the request; and the daemon is killed at every step of its tasks.

I5, EVENT-16, EVENT-19, BOOT-05: what was asked and cut off happened wholly or not at all, and asked again under its
key it is done once; nobody else notices.
"""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any

import msgspec
import trio
from support import sim_checks
from support.sim_http import HttpWorld, Said, open_http_world
from support.sim_people import People
from support.sim_run import both_die_and_boot_twice, come_to_rest
from support.sim_scheduling import failure_of, run_seeded
from support.sim_world import DaemonGone

STRIDE = 1 if "SEEDS" in os.environ else 29
"""The long run cuts at every place; the short one at each 29th, beginning elsewhere for each request."""
KILLS = None if "SEEDS" in os.environ else 12
"""So many places of all at which the daemon is killed, evenly spread; None for each of them."""
KEYLESS = frozenset({"GET", "DELETE"})

Ask = Callable[[], Awaitable[Said]]


class Cut(trio.abc.Instrument):
    """Cancels a scope when one task is about to wait for the `number`th time; counts how often it waits."""

    def __init__(self, number: int | None) -> None:
        self.scope = trio.CancelScope()
        self.task: trio.lowlevel.Task | None = None
        self.waits = 0
        self._number = number

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self.task:
            self.waits += 1
            if self.waits == self._number:
                self.scope.cancel()


class Killer(trio.abc.Instrument):
    """Calls something after the `number`th step of all tasks; counts them."""

    def __init__(self, number: int | None) -> None:
        self.steps = 0
        self.kill: Callable[[], None] = lambda: None
        self._number = number

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self.steps == self._number:
            self.kill()


class Story:
    """What is asked, in its order and at its time, over HTTP; whatever became of the rest."""

    def __init__(self, world: HttpWorld, *, cut_off: int | None = None, cut: Cut | None = None) -> None:
        self.asked: list[str] = []
        self._world = world
        self._cut_off = cut_off
        self._cut = cut

    async def tell(self) -> None:
        """Ask everything."""
        ask, s, f = self._ask, "/api/sessions/s", "/api/sessions/f"
        await ask("POST", "/api/sessions", {"id": "s", "cwd": "/s", "prompt": "@say I look.\n@shell ls\n@say so"})
        await trio.sleep(1.0)
        await ask("POST", f"{s}/prompts", {"input": "@wait 2s\n@deltas 3"})
        await ask("POST", f"{s}/prompts", {"input": "second"})
        waiting = await ask("GET", f"{s}/requests")
        for request in waiting.json["data"]:
            await ask("POST", f"{s}/requests/{request['id']}", {"decision": "accept"})
        await trio.sleep(1.0)
        await ask("POST", f"{s}/prompts", {"input": "a word in between", "mode": "steer"})
        await trio.sleep(4.0)
        await ask("POST", f"{s}/prompts", {"input": "@wait 60s\n@say too long"})
        taken = await ask("POST", f"{s}/prompts", {"input": "taken back"})
        await ask("DELETE", f"{s}/prompts/{taken.json['prompt']['id']}")
        await trio.sleep(1.0)
        await ask("GET", "/api/state")
        await ask("PATCH", s, {"title": "the story"})
        await ask("POST", f"{s}/interrupt")
        await trio.sleep(1.0)
        await ask("POST", "/api/sessions", {"id": "f", "cwd": "/f"})
        await ask("POST", "/api/sessions", {"id": "t", "cwd": "/t", "prompt": "@wait 60s\n@say never heard"})
        await ask("POST", f"{f}/prompts", {"input": "@wait 60s\n@say stopped"})
        await trio.sleep(1.0)
        await ask("POST", f"{f}/stop")
        await ask("POST", "/api/sessions/t/kill")
        await ask("POST", "/api/discovery/scan")
        await trio.sleep(3.0)
        await ask("POST", f"{f}/prompts", {"input": "and on"})
        await trio.sleep(5.0)
        await ask("POST", f"{f}/close")
        await ask("GET", f"{s}/turns")

    async def _ask(self, method: str, path: str, body: object = None) -> Said:
        """Ask, and once more if it was cut off, or the daemon died of it: then it may have been done already."""
        number = len(self.asked)
        self.asked.append(f"{method} {path}")
        key = None if method in KEYLESS else f"request {number}"
        ask = partial(self._world.http, method, path, body, key=key)
        said = await (self._be_cut_off(ask) if number == self._cut_off else self._see_it_through(ask))
        if said is None:
            said = await ask()
            assert said.status in (200, 201, 202, 404, 409), f"{method} {path}: {said.body!r}"
        return said

    async def _be_cut_off(self, ask: Ask) -> Said | None:
        assert self._cut is not None
        with self._cut.scope:
            self._cut.task = trio.lowlevel.current_task()
            return await ask()
        return None

    async def _see_it_through(self, ask: Ask) -> Said | None:
        try:
            said = await ask()
        except DaemonGone:
            await self._world.revive()
            return None
        return said if said.status in (200, 201, 202) or self._world.boots > 1 else None


async def bring_to_rest(world: HttpWorld) -> None:
    """Let everybody finish, and hold what is left against every invariant; then kill both sides, and boot twice."""
    await world.revive()
    await come_to_rest(world, People(world, Random(0)))
    sim_checks.at_rest(world)
    await both_die_and_boot_twice(world)


def outcome(world: HttpWorld) -> Any:
    """Return what it all came to: each session, with each of its prompts and the end of it."""
    prompts = sorted(world.rows.prompts.values(), key=lambda prompt: (prompt.session_id, prompt.position))
    said = [(prompt.session_id, msgspec.json.decode(prompt.input_json), prompt.delivery) for prompt in prompts]
    sessions = sorted((record.id, record.title, record.status) for record in world.rows.sessions.values())
    return sessions, said


class Told(msgspec.Struct, frozen=True):
    """A story that was told: what was asked, how often the one that was cut off had waited, and what it came to."""

    asked: list[str]
    waits: int
    outcome: Any


def tell(*, cut_off: int | None = None, at: int | None = None) -> Told:
    """Tell the story; cut off one request of it when it waits for the `at`th time."""
    cut = Cut(at)
    found: list[Told] = []

    async def main() -> None:
        async with open_http_world("story") as world:
            story = Story(world, cut_off=cut_off, cut=cut)
            await story.tell()
            await bring_to_rest(world)
            found.append(Told(asked=story.asked, waits=cut.waits, outcome=outcome(world)))

    run_seeded(main, "story", instruments=(cut,))
    return found[0]


def tell_and_kill(at: int | None) -> int:
    """Tell the story; kill the daemon after the `at`th step of all tasks. Return how many there were."""
    killer = Killer(at)

    async def main() -> int:
        async with open_http_world("story") as world:
            killer.kill = world.kill
            await Story(world).tell()
            steps = killer.steps
            killer.kill = lambda: None
            await bring_to_rest(world)
            return steps

    return run_seeded(main, "story", instruments=(killer,))


def test_event_16_19_whoever_asks_is_cut_off_at_each_checkpoint_of_each_request() -> None:
    """The outcome is that of the story in which nobody was."""
    whole = tell()
    failures: list[str] = []
    places = 0
    for number, name in enumerate(whole.asked):
        waits = tell(cut_off=number).waits
        assert waits, f"{name} never waits"
        for at in range(1 + number % STRIDE, waits + 1, STRIDE):
            places += 1
            failure = failure_of(lambda number=number, at=at: same(tell(cut_off=number, at=at), whole))  # type: ignore[misc]  # bound at once
            if failure is not None:
                failures.append(f"{name} cut off at {at} of {waits}: {type(failure).__name__}: {failure}")
    assert places >= len(whole.asked) // 2
    assert not failures, f"{len(failures)} of {places} places:\n" + "\n".join(failures)


def same(told: Told, whole: Told) -> None:
    """Hold one outcome against the other."""
    assert told.outcome == whole.outcome, f"it came to {told.outcome}"


def test_boot_05_the_daemon_is_killed_at_each_step_of_its_tasks() -> None:
    steps = tell_and_kill(None)
    failures: list[str] = []
    for at in range(1, steps + 1, 1 if KILLS is None else steps // KILLS):
        failure = failure_of(lambda at=at: tell_and_kill(at))  # type: ignore[misc]  # bound at once
        if failure is not None:
            failures.append(f"killed at step {at} of {steps}: {type(failure).__name__}: {failure}")
    assert not failures, f"{len(failures)} places:\n" + "\n".join(failures)
