"""One run of the simulation, from a seed: what goes wrong is drawn, people do things, then all is healed and checked,
and checked again after crashes.

A run that fails is repeated by its seed alone.
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, Literal

import msgspec
import trio
from support import sim_checks
from support.sim_bytes import Mangler
from support.sim_http import HttpWorld
from support.sim_listeners import Listener
from support.sim_people import MORE_SAYINGS, SAYINGS, People, X, stream
from support.sim_scheduling import failure_of, run_seeded
from support.sim_world import World, open_world

from state.records import DELIVERY_FINAL
from termald.core.inputs import Booted
from termald.core.state import State
from termald.core.step import step

Json = dict[str, Any]

Door = Literal["inside", "http"]
"""Whether people ask the daemon itself, or its API, where some listen to its events as well."""
DOORS: Final[dict[Door, type[World]]] = {"inside": World, "http": HttpWorld}

X_TURNS: Final = 6
QUIET_S: Final = 400.0
"""Longer than any deadline and any pause of the daemon's."""
ROUND_S: Final = 40.0
STILL_ROUNDS_MAX: Final = 12
"""So often people look again, before they say that nothing moves."""

WEATHERS: Final[dict[str, Mapping[str, float]]] = {
    "calm": {},
    "order": {"done notices-first": 0.2, "done twice": 0.05, "gap slow": 0.1, "item completed-twice": 0.1},
    "refusals": {
        "taken overload": 0.1,
        "taken unknown-refusal": 0.02,
        "taken:thread/start provider-missing": 0.05,
        "taken:thread/resume archived": 0.1,
        "taken:thread/resume active-writer": 0.1,
        "taken:turn/start not-found": 0.05,
        "taken:turn/start unload": 0.05,
        "taken:turn/start too-large": 0.02,
    },
    "silence": {"taken ignore": 0.03, "taken late": 0.05, "done lose": 0.05, "done late": 0.05, "done malformed": 0.02},
    "replays": {"done:thread/resume usage-again": 0.5},
    "gaps": {"gap slow": 0.2, "gap vanish": 0.1},
    "words": {
        "piece retry": 0.02,
        "piece orphan": 0.03,
        "piece late-turn": 0.03,
        "piece started-again": 0.03,
        "piece unknown-notice": 0.03,
        "piece bad-frame": 0.03,
        "piece status-idle": 0.02,
        "item completed-twice": 0.1,
        "item delta-after": 0.1,
        "item other-text": 0.1,
    },
    "ends": {
        "end end-twice": 0.1,
        "end end-untold": 0.1,
        "end end-late": 0.1,
        "end late-item": 0.1,
        "end error-again": 0.1,
    },
    "asks": {
        "ask string-id": 0.2,
        "ask resolved-elsewhere": 0.2,
        "ask asked-twice": 0.2,
        "ask no-thread": 0.1,
        "ask unknown-request": 0.1,
    },
    "neighbours": {
        "idle foreign-turn": 0.15,
        "idle compaction": 0.1,
        "idle unload": 0.15,
        "idle rename": 0.1,
        "idle stranger": 0.1,
        "idle bad-frame": 0.1,
        "idle no-thread-notice": 0.1,
    },
    "strays": {"done:thread/start untold": 0.1, "done:thread/start no-tag": 0.1, "done:thread/start stored-empty": 0.1},
    "links": {
        "taken hangup": 0.02,
        "done hangup": 0.02,
        "recorded hangup": 0.03,
        "end hangup": 0.03,
        "ask hangup": 0.1,
    },
    "deaths": {
        "taken die": 0.01,
        "done die": 0.01,
        "gap die": 0.02,
        "user die": 0.02,
        "recorded die": 0.02,
        "piece die": 0.003,
        "end die": 0.02,
        "ask die": 0.03,
        "idle die": 0.02,
    },
    "frosts": {"taken freeze": 0.01, "piece freeze": 0.003, "idle freeze": 0.05},
}
"""What may go wrong together, in Codex."""
MORE_WEATHERS: Final[dict[str, Mapping[str, float]]] = {
    "flow": {"idle stall": 0.2, "idle deaf": 0.1},
    "filing": {"idle archive": 0.1, "idle unarchive": 0.2, "idle delete": 0.05},
    "bytes": {},
}
"""As `WEATHERS`, where people come in by HTTP; the seeds that were kept before stay what they were. `bytes`: what is
written to the pipes is cut, joined and soiled."""
TROUBLES: Final = ("slow-disk", "full-disk", "crashes", "missing-folder")
"""What may go wrong elsewhere."""
TOUCHES_X: Final = frozenset({"links", "deaths", "frosts", "flow", *TROUBLES})
"""What happens to everybody, X included."""


class Plan(msgspec.Struct, frozen=True):
    """What a seed stands for."""

    seed: int
    weathers: tuple[str, ...]
    troubles: tuple[str, ...]
    transport: Literal["unix", "stdio"]
    seconds: float
    pause_s: float

    @property
    def leaves_x_alone(self) -> bool:
        """Whether nothing happens to the process, the link, the disk or the daemon."""
        return not TOUCHES_X & {*self.weathers, *self.troubles}


def plan_of(seed: int, door: Door = "inside") -> Plan:
    """Return what a seed stands for."""
    dice = Random(f"plan {seed}")
    possible = WEATHERS if door == "inside" else WEATHERS | MORE_WEATHERS
    weathers = tuple(sorted(dice.sample(sorted(possible), dice.randint(1, 4))))
    troubles = tuple(sorted(dice.sample(TROUBLES, dice.choice((0, 0, 1, 1, 2)))))
    return Plan(
        seed=seed,
        weathers=weathers,
        troubles=troubles,
        transport=dice.choice(("unix", "unix", "unix", "stdio")),
        seconds=dice.choice((10.0, 40.0, 120.0)),
        pause_s=dice.choice((0.1, 0.5, 2.0)),
    )


class Innocent(msgspec.Struct):
    """What X saw: every event with its time, and what was said to it in the end, by prompt."""

    events: list[Json]
    answers: dict[str, tuple[str, str]]


class Outcome(msgspec.Struct):
    """What a run leaves behind: enough to tell whether two were the same, and what X saw."""

    trace: list[str]
    x: Innocent


async def simulate(seed: int, *, door: Door = "inside", seen: Callable[[World], None] = lambda world: None) -> Outcome:
    """Live through one run, and check it. `seen` is given the world. Errors: AssertionError, naming the invariant."""
    plan = plan_of(seed, door)
    async with open_world(str(seed), kind=DOORS[door], transport=plan.transport) as world:
        seen(world)
        listeners = _listen(world, seed)
        sayings = SAYINGS if door == "inside" else MORE_SAYINGS
        people = People(world, Random(f"people {seed}"), restarts=not plan.leaves_x_alone, sayings=sayings)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream, world, X_TURNS)
            await trio.sleep(1.0)  # X is there before anything goes wrong
            _brew(world, plan)
            async with trio.open_nursery() as troubles:
                troubles.start_soon(_crash_now_and_then, world, plan)
                await people.act(plan.seconds, plan.pause_s)
                troubles.cancel_scope.cancel()
            _heal(world)
            await world.revive()
        x = innocent_of(world)
        await come_to_rest(world, people)
        sim_checks.at_rest(world)
        for listener in listeners:
            await listener.check()
        for prompt in people.promised:
            assert world.id_of(prompt) in world.rows.prompts, f"I5: {prompt} was promised, and is not there"
        await _crash_and_boot(world, people)
        return Outcome(trace=[str(entry) for entry in world.home.record], x=x)


async def simulate_x_alone(seed: int) -> Innocent:
    """Return what X sees where nobody else is there, and nothing goes wrong."""
    async with open_world(str(seed), transport=plan_of(seed).transport) as world:
        await stream(world, X_TURNS)
        return innocent_of(world)


def run_and_report(seed: int, *, door: Door = "inside", lines: int = 40) -> str | None:
    """Run a seed. Return None, or why it failed, with the last lines of what happened."""
    worlds: list[World] = []

    async def main() -> Outcome:
        return await simulate(seed, door=door, seen=worlds.append)

    failure = failure_of(lambda: run_seeded(main, seed))
    if failure is None:
        return None
    last = [str(entry)[:300] for entry in worlds[-1].home.record[-lines:]] if lines else []
    return "\n".join([*last, f"seed {seed} {door}: {type(failure).__name__}: {failure}"])


def _listen(world: World, seed: int) -> list[Listener]:
    if not isinstance(world, HttpWorld):
        return []
    listeners = [Listener(world, Random(f"listener {seed} {session}"), session) for session in (None, X, "s1")]
    for listener in listeners:
        world.nursery.start_soon(listener.run)
    return listeners


def _brew(world: World, plan: Plan) -> None:
    rates: dict[str, float] = {}
    for weather in plan.weathers:
        rates |= (WEATHERS | MORE_WEATHERS)[weather]
    world.faults.brew(Random(f"faults {plan.seed}"), rates, spared=frozenset({f"/{X}"}))
    if "bytes" in plan.weathers:
        world.machine.mangle = Mangler(Random(f"bytes {plan.seed}"))
    dice = Random(f"troubles {plan.seed}")
    if "slow-disk" in plan.troubles:
        world.troubles.slow_s = lambda: dice.choice((0.0, 0.0, 0.001, 0.05, 2.0, 12.0))
    if "full-disk" in plan.troubles:
        world.troubles.is_full = lambda: dice.random() < 0.1
    if "crashes" in plan.troubles:
        world.troubles.death = lambda: dice.choice(("before", "after")) if dice.random() < 0.01 else None
    if "missing-folder" in plan.troubles:
        world.missing_folders |= {"/s2", "/s3"}


def _heal(world: World) -> None:
    world.faults.heal()
    world.home.unarchive()
    world.machine.mangle = None
    for process in world.machine.living:
        process.codex.clean()
    world.troubles.slow_s = lambda: 0.0
    world.troubles.is_full = lambda: False
    world.troubles.death = lambda: None
    world.missing_folders.clear()


async def _crash_now_and_then(world: World, plan: Plan) -> None:
    dice = Random(f"crashes {plan.seed}")
    while True:
        if world.daemon is None:
            await trio.sleep(dice.uniform(0.0, 20.0))
            await world.revive()
        if "crashes" in plan.troubles and dice.random() < 0.3:
            await world.crash()
            if dice.random() < 0.3 and world.machine.living:
                world.codex.die(signal="SIGKILL")
        await trio.sleep(dice.uniform(0.0, 5.0))


async def come_to_rest(world: World, people: People) -> None:
    """Let everybody finish; what stands still is set going by those to whom it belongs."""
    restarted = False
    still = 0
    await trio.sleep(ROUND_S)  # what was asked last may not be accepted yet
    while left := [prompt for prompt in world.rows.prompts.values() if prompt.delivery not in DELIVERY_FINAL]:
        before = sum(prompt.delivery in DELIVERY_FINAL for prompt in world.rows.prompts.values())
        await trio.sleep(ROUND_S)
        await people.settle()
        moved = sum(prompt.delivery in DELIVERY_FINAL for prompt in world.rows.prompts.values()) != before
        still = 0 if moved else still + 1
        if still > STILL_ROUNDS_MAX:
            # What a living process was given, does not have on record and may still hold is said to be unconfirmed,
            # and not sent again before that process has gone (TURN-05).
            told = {event["sessionId"] for event in world.events("notice") if event["slug"] == "turn-unconfirmed"}
            in_silence = [prompt.id for prompt in left if prompt.session_id not in told]
            assert not restarted, f"I5: {left[0].id} of {left[0].session_id} stands still, whatever is done"
            assert not in_silence, f"I5: {in_silence} stand still in silence"
            await people.restart()
            restarted, still = True, 0
    await people.scan()
    await trio.sleep(QUIET_S)


async def _crash_and_boot(world: World, people: People) -> None:
    """All is quiet: whatever crashes now changes nothing."""
    await world.crash()
    await world.boot()
    await come_to_rest(world, people)
    sim_checks.at_rest(world)
    await both_die_and_boot_twice(world)


async def both_die_and_boot_twice(world: World) -> None:
    """Kill the daemon and its Codex, and boot."""
    await world.crash()
    if world.machine.living:
        world.codex.die(signal="SIGKILL")
        await world.codex.gone.wait()
    _boot_twice(world)


def _boot_twice(world: World) -> None:
    """A second boot finds nothing left to settle (I10)."""
    for times in (1, 2):
        before = len(world.rows.events)
        state = State.boot(world.rows.boot())
        step(state, Booted(at_ms=world.now_ms(), alive=None))
        changes = state.changes()
        world.rows.commit_now(changes, sync=True)
        if times == 2:
            assert len(world.rows.events) == before, "I10: a second boot had something to tell"
            assert not changes, f"I10: a second boot had something to write: {changes}"


def innocent_of(world: World) -> Innocent:
    """Return what X has seen so far, with ids in the order of their appearance."""
    names: dict[str, str] = {}
    seen = []
    for event in world.events(session=X):
        told = {key: value for key, value in event.items() if key not in ("seq", "attachment", "threadId")}
        for key in ("turnId", "itemId"):
            if key in told:
                told[key] = names.setdefault(told[key], f"{key} {len(names)}")
        if "item" in told:
            told["item"] = {key: value for key, value in told["item"].items() if key != "id"}
        seen.append(told)
    answers: dict[str, tuple[str, str]] = {}
    for prompt in world.rows.prompts.values():
        if prompt.session_id == X:
            items = [item for item in world.rows.items.values() if item.turn_id == prompt.turn_id]
            texts = [msgspec.json.decode(item.item_json).get("text", "") for item in items if item.state == "completed"]
            answers[str(prompt.id)] = (prompt.delivery, "".join(texts))
    return Innocent(events=seen, answers=answers)
