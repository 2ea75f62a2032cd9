"""A disk that takes seconds for a commit, while Codex says thousands of things: on the whole daemon.

The reader takes what comes whatever the writer waits for. If it did not, Codex's own queue would fill up: 128 messages,
and this one hangs up (I8), on every session.
"""

import msgspec
import trio
from support.scripted_codex_links import SOCKET_MESSAGES_MAX
from support.sim_scheduling import run_seeded
from support.sim_world import World, open_world

FLOODED = ("a", "b", "c")
PIECES = 2_000
FLOOD = f"@pace 1ms\n@deltas {PIECES} size=8"
SAID = "".join((f"{n} " * 8)[:8] for n in range(1, PIECES + 1))
COMMIT_S = 5.0
"""Longer than the flood."""


def test_runtime_17_slow_commits_under_a_flood_cost_no_event_and_no_connection() -> None:
    run_seeded(flood, "flood")


async def flood() -> None:
    async with open_world("flood") as world:
        await world.create("x", prompt="hello")
        for session in FLOODED:
            await world.create(session, prompt=FLOOD)
        await world.until(lambda: all("item/delta" in world.kinds(session) for session in FLOODED), "the flood")
        world.troubles.slow_s = lambda: COMMIT_S
        longest = await longest_queue(world, COMMIT_S)
        daemon = world.daemon
        assert daemon is not None
        statistics = daemon._writer.statistics()
        # All that was said is here, and waits for the disk: three texts of two seconds.
        assert statistics.inbox > len(FLOODED) * PIECES / 2
        assert longest < SOCKET_MESSAGES_MAX / 4
        world.troubles.slow_s = lambda: 0.0
        await world.prompt("x", "and on")
        await world.until(lambda: len(world.events("turn/done")) == len(FLOODED) + 2, "every end")
        check(world)
        statistics = daemon._writer.statistics()
        assert statistics.inbox == 0
        # What came meanwhile was committed in groups.
        assert statistics.inputs / statistics.batches > 2
        assert statistics.inbox_peak < statistics.inputs < (len(FLOODED) * PIECES) * 2


async def longest_queue(world: World, seconds: float) -> int:
    """Return how much waited in Codex at most, to be read, within so many seconds."""
    longest = 0
    with trio.move_on_after(seconds):
        while True:
            longest = max(longest, *(len(connection.queue) for connection in world.codex.connections))
            await trio.sleep(0.001)
    return longest


def check(world: World) -> None:
    """Nothing was lost, and nobody was hung up on."""
    assert [event.seq for event in world.rows.events] == list(range(1, len(world.rows.events) + 1))
    for session in FLOODED:
        deltas = world.events("item/delta", session=session)
        assert "".join(delta["delta"] for delta in deltas) == SAID
        (done,) = world.events("turn/done", session=session)
        assert done["state"] == "normal"
    assert [connection.number for connection in world.codex.connections] == [1]
    assert not [event for event in world.rows.events if event.kind in ("runtime/adopted", "runtime/exited")]
    texts = [msgspec.json.decode(item.item_json).get("text") for item in world.rows.items.values()]
    assert texts.count(SAID) == len(FLOODED)
