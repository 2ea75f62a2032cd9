"""Streamed text: how much, how late, to how many, and how large."""

import re
import statistics
import time
from contextlib import AsyncExitStack
from functools import partial

import trio

from bench.clock_model import STAMP
from bench.figures import Figure, Given, Row, Side, Spread, figures, in_turn, ratio, verdict
from bench.lab import Listener, Served, bare, cpu_s, folder, forget_peak, model, peak_mb, served, weight

DELTA_EVENT = b"event: item/delta"
TURN_EVENT = b"event: turn/done"
STAMPED = re.compile(rb"\d{%d}" % len(STAMP))


async def stream(given: Given) -> Row:
    """Deltas a second, durable, to several clients."""
    cases = given.pick(((2, 50),), ((20, 1_000), (1, 20_000)))
    audiences = given.pick((1,), (1, 10, 100))
    found: list[Figure] = []
    verdicts = []
    for turns, deltas in cases:
        case = f"{turns} × {deltas:,}"
        with model() as url:

            async def direct(turns: int = turns, deltas: int = deltas, url: str = url) -> dict[str, float]:
                with folder() as place:
                    async with bare(place, url) as driver:
                        texts = {await driver.thread(): f"@deltas {deltas}" for _ in range(turns)}
                        spent = cpu_s(driver.pid)
                        took = await driver.turns(texts)
                        assert driver.deltas == turns * deltas, "Codex told fewer deltas than the model"
                        return {
                            "rate": driver.deltas / took,
                            "codex us": (cpu_s(driver.pid) - spent) / driver.deltas * 1e6,
                        }

            async def daemon(
                clients: int, turns: int = turns, deltas: int = deltas, url: str = url
            ) -> dict[str, float]:
                with folder() as place:
                    async with served(place, url) as one:
                        return await _streamed(one, turns, deltas, clients)

            sides: dict[str, Side] = {"bare reader": direct}
            sides |= {f"{clients} clients": partial(daemon, clients) for clients in audiences}
            took = await in_turn(given.rounds, sides)
        for side, values in took.items():
            for what, unit in (
                ("rate", "deltas/s"),
                ("codex us", "µs of Codex a delta"),
                ("us", "µs of the daemon a delivery"),
            ):
                if what in values:
                    found += figures(unit, {f"{case}, {side}": values[what]})
        value = ratio(took["1 clients"]["rate"], took["bare reader"]["rate"])
        verdicts.append(verdict(f"{case}, one client ÷ bare reader", value, ">=", 0.8, given))
    return Row(
        id="stream",
        measured="durable deltas a second, first prompt to the last turn's end at every client",
        beside="a bare reader of the same process over stdio, which decodes nothing",
        figures=found,
        verdicts=verdicts,
        notes=["the model writes 160 deltas at once and is not the bottleneck while `codex µs` stays the largest part"],
    )


async def _streamed(one: Served, turns: int, deltas: int, clients: int) -> dict[str, float]:
    names = [f"s{n}" for n in range(turns)]
    await one.first_turns(names)
    async with AsyncExitStack() as stack:
        listeners = [await stack.enter_async_context(one.listening()) for _ in range(clients)]
        spent, began = cpu_s(one.pid), time.perf_counter()
        async with trio.open_nursery() as nursery:
            for listener in listeners:
                nursery.start_soon(_until_ended, listener, turns, turns * deltas)
            for name in names:
                nursery.start_soon(one.prompt, name, f"@deltas {deltas}")
        took = time.perf_counter() - began
    return {"rate": turns * deltas / took, "us": (cpu_s(one.pid) - spent) / (turns * deltas * clients) * 1e6}


async def _until_ended(listener: Listener, turns: int, deltas: int) -> None:
    ended = heard = 0
    while ended < turns:
        lines = await listener.lines()
        heard += lines.count(DELTA_EVENT)
        ended += lines.count(TURN_EVENT)
    assert heard == deltas, f"{heard} of {deltas} deltas arrived"


async def latency(given: Given) -> Row:
    """From the model's byte to the client."""
    words = given.pick(20, 300)
    text = f"@pace 10ms\n@say {' '.join([STAMP] * words)}"
    found: list[Figure] = []
    verdicts = []
    with model("bench.clock_model") as url:
        for turns in given.pick((1,), (1, 20)):

            async def direct(turns: int = turns) -> dict[str, float]:
                late: list[float] = []
                with folder() as place:
                    async with bare(place, url) as driver:
                        threads = [await driver.thread() for _ in range(turns)]
                        driver.on_delta = lambda line: late.extend(_late_ms(line))
                        await driver.turns(dict.fromkeys(threads, text))
                return _percentiles(late, turns * words)

            async def daemon(turns: int = turns) -> dict[str, float]:
                late: list[float] = []
                with folder() as place:
                    async with served(place, url) as one, one.listening("?kinds=item/delta") as listener:
                        names = [f"s{n}" for n in range(turns)]
                        await one.first_turns(names)
                        async with trio.open_nursery() as nursery:
                            for name in names:
                                nursery.start_soon(one.prompt, name, text)
                            while len(late) < turns * words:
                                late.extend(_late_ms(await listener.lines()))
                return _percentiles(late, turns * words)

            took = await in_turn(given.rounds, {"bare reader": direct, "daemon": daemon})
            for what in ("median", "p99"):
                found += figures(
                    "ms", {f"{turns} turns, {side}, {what}": values[what] for side, values in took.items()}
                )
            for what, aim in (("median", 2.0), ("p99", 10.0)):
                pairs = zip(took["daemon"][what], took["bare reader"][what], strict=True)
                added = statistics.median(one - other for one, other in pairs)
                verdicts.append(verdict(f"{turns} turns, added {what} ms", added, "<=", aim, given))
    return Row(
        id="latency",
        measured="the model's byte to the SSE client, a delta every 10 ms in each turn",
        beside="a bare reader over stdio",
        figures=found,
        verdicts=verdicts,
    )


def _late_ms(text: bytes) -> list[float]:
    now = time.monotonic_ns()
    return [(now - int(stamp)) / 1e6 for stamp in STAMPED.findall(text)]


def _percentiles(late: list[float], wanted: int) -> dict[str, float]:
    assert len(late) == wanted, f"{len(late)} of {wanted} stamps arrived"
    late.sort()
    return {"median": late[len(late) // 2], "p99": late[min(len(late) - 1, len(late) * 99 // 100)]}


async def fan_out(given: Given) -> Row:
    """Many clients, most of them idle, one of them not reading."""
    idle, live, words = given.pick((5, 3, 20), (1_000, 100, 100))
    text = f"@pace {given.pick(10, 50)}ms\n@say {' '.join([STAMP] * words)}"
    found: list[Figure] = []
    verdicts = []
    options = {"SERVER_CONNECTIONS_MAX": "4096", "SERVER_STREAMS_MAX": "4096"}
    with model("bench.clock_model") as url:

        async def side(slow: bool) -> dict[str, float]:
            with folder() as place:
                async with served(place, url, options) as one, AsyncExitStack() as stack:
                    await one.first_turns(["s0"])
                    before = weight(one.pid)["pss"]
                    for _ in range(idle):
                        await stack.enter_async_context(one.listening("?kinds=none"))
                    after = weight(one.pid)["pss"]
                    listeners = [
                        await stack.enter_async_context(one.listening("?kinds=item/delta")) for _ in range(live)
                    ]
                    if slow:
                        await stack.enter_async_context(one.listening())
                    late: list[list[float]] = [[] for _ in listeners]
                    async with trio.open_nursery() as nursery:
                        for listener, own in zip(listeners, late, strict=True):
                            nursery.start_soon(_stamps, listener, own, words)
                        await one.prompt("s0", text)
                    every = [value for own in late for value in own]
                    return {"kb": (after - before) / idle * 1024, **_percentiles(every, live * words)}

        async def alone() -> dict[str, float]:
            return await side(False)

        async def beside_a_slow_one() -> dict[str, float]:
            return await side(True)

        took = await in_turn(given.rounds, {"all read": alone, "one does not": beside_a_slow_one})
    for name, values in took.items():
        found += figures("kB an idle client", {name: values["kb"]})
        found += figures("ms", {f"{name}, {what}": values[what] for what in ("median", "p99")})
    value = ratio(took["one does not"]["p99"], took["all read"]["p99"])
    verdicts.append(verdict("p99 beside a slow reader ÷ without", value, "<=", 1.25, given))
    return Row(
        id="fan-out",
        measured=f"{idle:,} idle and {live} live SSE clients, with and without one that does not read",
        beside="all of them reading",
        figures=found,
        verdicts=verdicts,
        notes=["all clients are one process in Python: with 100 of them a delta's lateness is mostly theirs"],
    )


async def _stamps(listener: Listener, late: list[float], wanted: int) -> None:
    while len(late) < wanted:
        late.extend(_late_ms(await listener.lines()))


async def big(given: Given) -> Row:
    """Items so large that Codex tells each in one line of this many MiB."""
    found: list[Figure] = []
    with model() as url:
        for mib in given.pick((1,), (1, 16, 60)):
            with folder() as place:
                async with served(place, url) as one:
                    await one.first_turns(["s0"])
                    before = weight(one.pid)["rss"]
                    forget_peak(one.pid)
                    await one.turns({"s0": f"@deltas {mib * 1_048_576 // 65_536} size=65536"})
                    grown = peak_mb(one.pid) - before
                    line = len((await one.client.get("/api/sessions/s0/items?order=desc&limit=1")).content) / 1_048_576
            found += [
                Figure(f"{mib} MiB, its item as told", "MiB", Spread.of([line])),
                Figure(f"{mib} MiB, peak ÷ line", "times", Spread.of([grown / mib])),
            ]
    return Row(
        id="big",
        measured="a line of so many MiB from Codex, stored and told to clients",
        beside="–",
        figures=found,
        verdicts=[],
        notes=["the last size is 60, not 64: the line must stay within 64 MiB with its envelope"],
    )
