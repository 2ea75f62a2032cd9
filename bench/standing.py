"""What goes on for long: idle sessions, and very many of everything."""

import time

import trio

from bench.figures import Figure, Given, Row, Spread, figures, in_turn, verdict
from bench.lab import Served, bare, cpu_s, descriptors, folder, model, served, switches, weight


async def idle(given: Given) -> Row:
    """CPU and wake-ups with idle sessions, after a pause for what follows a turn."""
    sessions, settle_s, watch_s = given.pick((2, 0.2, 1.0), (100, 5.0, 30.0), (100, 10.0, 120.0))
    with model() as url:

        async def alone() -> dict[str, float]:
            with folder() as place:
                async with bare(place, url) as driver:
                    threads = [await driver.thread() for _ in range(sessions)]
                    await driver.turns(dict.fromkeys(threads, "hello"))
                    await trio.sleep(settle_s)
                    return await _watched({"codex": driver.pid}, watch_s)

        async def daemon() -> dict[str, float]:
            with folder() as place:
                async with served(place, url) as one:
                    await one.first_turns([f"s{n}" for n in range(sessions)])
                    await trio.sleep(settle_s)
                    return await _watched({"daemon": one.pid, "codex": await one.codex()}, watch_s)

        took = await in_turn(1, {"app-server alone": alone, "with the daemon": daemon})
    found: list[Figure] = []
    for side, values in took.items():
        for what, seen in values.items():
            found += figures(what.partition(" ")[2], {f"{side}, {what.partition(' ')[0]}": seen})
    spent = took["with the daemon"]["daemon ms of CPU a minute"][0]
    return Row(
        id="idle",
        measured=f"CPU and wake-ups a minute with {sessions} idle sessions",
        beside="the app-server alone",
        figures=found,
        verdicts=[verdict("ms of the daemon's CPU a minute", spent, "<=", 60.0, given)],
        notes=["≈ 0 is taken for a thousandth of a core"],
    )


async def _watched(pids: dict[str, int], seconds: float) -> dict[str, float]:
    before = {name: (cpu_s(pid), switches(pid)) for name, pid in pids.items()}
    began = time.perf_counter()
    await trio.sleep(seconds)
    minutes = (time.perf_counter() - began) / 60
    found = {}
    for name, pid in pids.items():
        spent, woken = before[name]
        found[f"{name} ms of CPU a minute"] = (cpu_s(pid) - spent) * 1_000 / minutes
        found[f"{name} wake-ups a minute"] = (switches(pid) - woken) / minutes
    return found


async def soak(given: Given) -> Row:
    """Memory and descriptors over very many events, sessions and connects, in ten parts: the first warms up."""
    events, sessions, connects = given.pick((500, 10, 20), (50_000, 200, 1_000), (1_000_000, 10_000, 10_000))
    parts = given.pick(2, 5, 10)
    seen: list[dict[str, float]] = []
    with model() as url, folder() as place:
        async with served(place, url) as one:
            for part in range(parts):
                await _part(one, part, events // parts, sessions // parts, connects // parts)
                seen.append(weight(one.pid) | {"files": float(descriptors(one.pid))})
    found = [
        Figure(f"{what} after {'the first part' if at == 0 else 'all'}", unit, Spread.of([seen[at][what]]))
        for what, unit in (("pss", "MB"), ("rss", "MB"), ("files", "descriptors"))
        for at in (0, -1)
    ]
    # Sessions that were attached are kept up to `codex.attached_max`; the first part alone may be below it.
    base = seen[len(seen) // 2]
    return Row(
        id="soak",
        measured=f"memory and descriptors over {events:,} events, {sessions:,} sessions, {connects:,} client connects",
        beside="half of it",
        figures=found,
        verdicts=[
            verdict("PSS at the end ÷ at half", seen[-1]["pss"] / base["pss"], "<=", 1.10, given),
            verdict("descriptors at the end − at half", seen[-1]["files"] - base["files"], "<=", 64, given),
        ],
        notes=[
            "the client keeps up to 64 connections of its own open",
            *([] if given.size == "huge" else ["its full size with `--soak`"]),
        ],
    )


async def _part(one: Served, part: int, events: int, sessions: int, connects: int) -> None:
    names = [f"s{part}-{n}" for n in range(sessions)]
    for first in range(0, sessions, 64):
        await one.first_turns(names[first : first + 64])
    streams = names[:5]
    await one.turns(dict.fromkeys(streams, f"@deltas {max(1, events // len(streams))}"))
    for number in range(connects):
        async with one.listening("?kinds=none" if number % 2 else "?after=0&kinds=session/created"):
            pass
