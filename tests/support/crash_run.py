"""One world of a crash run, from its empty folder to its last cycle."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

import trio
from support.crash_world import ENVIRONMENT, Cycle, World
from support.daemon import open_daemon

from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server

CYCLES_OF_A_WORLD: Final = 25
"""Each comparison reads everything that the world ever did."""


async def run_world(folder: Path, seed: int, crashes: Sequence[str], say: Callable[[int, Cycle], None]) -> list[Cycle]:
    """Run a cycle for each of these crashes over this folder; ends early at the first that finds something wrong."""
    model = ScriptedModel()
    done: list[Cycle] = []
    async with (
        open_server(model) as base_url,
        open_daemon(folder, model, base_url, start=True, **ENVIRONMENT) as daemon,
        trio.open_nursery() as nursery,
    ):
        world = World(daemon, model, Random(seed))
        world.live(nursery)
        for number, crash in enumerate(crashes, 1):
            done.append(await world.cycle(crash))
            say(number, done[-1])
            if done[-1].wrong:
                break
        nursery.cancel_scope.cancel()
    return done
