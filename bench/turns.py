"""First turns, what they weigh, and many starts under slow login shells."""

import contextlib
import time
from functools import partial
from pathlib import Path

import trio

from bench.figures import Figure, Given, Row, Spread, figures, in_turn, ratio, verdict
from bench.lab import PROMPT, Bare, bare, folder, model, served, weight


async def turns(given: Given) -> Row:
    """Many first turns at once, beside a bare driver over both transports."""
    found: list[Figure] = []
    verdicts = []
    for count in given.pick((2,), (32, 128)):
        with model() as url:

            async def direct(count: int = count, url: str = url) -> dict[str, float]:
                with folder() as place:
                    async with bare(place, url) as driver:
                        return {"s": await _first_turns(driver, count)}

            async def socket(count: int = count, url: str = url) -> dict[str, float]:
                with folder() as place:
                    async with bare(place, url, transport="socket") as driver:
                        return {"s": await _first_turns(driver, count)}

            async def daemon(count: int = count, url: str = url) -> dict[str, float]:
                with folder() as place:
                    async with served(place, url) as one:
                        return {"s": await one.first_turns([f"s{n}" for n in range(count)])}

            took = await in_turn(given.rounds, {"stdio": direct, "socket": socket, "daemon": daemon})
        found += figures("s", {f"{count} by {side}": values["s"] for side, values in took.items()})
        for side in ("stdio", "socket"):
            value = ratio(took["daemon"]["s"], took[side]["s"])
            verdicts.append(verdict(f"{count}, daemon ÷ {side}", value, "<=", 1.10, given))
    return Row(
        id="turns",
        measured="concurrent first turns, prompt to `turn/done` seen by a client",
        beside="a bare driver over stdio; over the control socket",
        figures=found,
        verdicts=verdicts,
        notes=["the daemon's side has 64 HTTP connections of one client in Python, which share the cores"],
    )


async def _first_turns(driver: Bare, count: int) -> float:
    async def go(thread: str) -> None:
        await driver.prompt(thread, PROMPT)

    driver.on_thread = go
    began = time.perf_counter()
    for _ in range(count):
        await driver.put("thread/start", cwd=str(driver.cwd), approvalPolicy="untrusted", sandbox="workspace-write")
    await driver.until(lambda: driver.ended == count)
    return time.perf_counter() - began


async def memory(given: Given) -> Row:
    """PSS and RSS after a turn in each session."""
    found: list[Figure] = []
    verdicts = []
    counts = given.pick((1,), (1, 8, 32, 128))
    weights: dict[str, dict[str, float]] = {}
    with model() as url:
        for count in counts:
            with folder() as place:
                async with served(place, url) as one:
                    await one.first_turns([f"s{n}" for n in range(count)])
                    weights[f"{count}, daemon"] = weight(one.pid)
                    weights[f"{count}, its Codex"] = weight(await one.codex())
            with folder() as place:
                async with bare(place, url) as driver:
                    await _first_turns(driver, count)
                    weights[f"{count}, one driven directly"] = weight(driver.pid)
            weights[f"{count}, a process each"] = await _a_process_each(count, url)
    for label, parts in weights.items():
        found += [Figure(f"{label} ({name})", "MB", Spread.of([value])) for name, value in parts.items()]
    for count in counts:
        ours = weights[f"{count}, daemon"]["pss"] + weights[f"{count}, its Codex"]["pss"]
        share = ours / weights[f"{count}, a process each"]["pss"]
        aim = {32: 1 / 3, 128: 1 / 8}.get(count)
        if aim is not None:
            verdicts.append(verdict(f"{count}, PSS ÷ a process each", share, "<=", aim, given))
        own = weights[f"{count}, daemon"]["pss"]
        verdicts.append(verdict(f"{count}, the daemon's own MB", own, "<=", 60 + 0.1 * count, given))
    return Row(
        id="memory",
        measured="PSS and RSS of daemon + Codex after a turn in each session",
        beside="an app-server for each session; one driven directly",
        figures=found,
        verdicts=verdicts,
    )


async def _a_process_each(count: int, url: str) -> dict[str, float]:
    """Weigh that many app-servers with one thread each, all alive at once."""
    with folder() as place:
        async with contextlib.AsyncExitStack() as stack:
            drivers = []
            for number in range(count):
                own = place / str(number)
                (own / "work").mkdir(parents=True)
                drivers.append(await stack.enter_async_context(bare(own, url)))
                await _first_turns(drivers[-1], 1)
            found = [weight(driver.pid) for driver in drivers]
    return {name: sum(one[name] for one in found) for name in ("pss", "rss")}


async def setup(given: Given) -> Row:
    """Session starts where Codex forks a login shell for each, slow or fast: paced as by default, and not."""
    count = given.pick(2, 128)
    found: list[Figure] = []
    verdicts = []
    with model() as url:
        for shell, pause in given.pick((("fast", "0"),), (("slow", "0.5"), ("fast", "0"))):

            async def starts(setups: str, pause: str = pause, url: str = url) -> dict[str, float]:
                with folder() as place:
                    user = place / "user"
                    user.mkdir()
                    for name in (".bash_profile", ".bashrc", ".profile", ".zshenv"):
                        (user / name).write_text(f"sleep {pause}\n")
                    options = {
                        "HOME": str(user),
                        "CODEX_SHELL_SNAPSHOT": "true",
                        "CODEX_SETUPS_MAX": setups,
                        "CODEX_ATTACHED_MAX": "1000",
                    }
                    async with served(place, url, options) as one, trio.open_nursery() as nursery:
                        peak = [0]
                        nursery.start_soon(_watch_children, await one.codex(), peak)
                        took = await one.first_turns([f"s{n}" for n in range(count)])
                        nursery.cancel_scope.cancel()
                        return {"s": took, "shells": float(peak[0])}

            sides = {"paced": partial(starts, "4"), "unpaced": partial(starts, "64")}
            took = await in_turn(max(1, given.rounds // 3), sides)
            for side, values in took.items():
                found += figures("s", {f"{shell} shell, {side}": values["s"]})
                found += figures("processes at once", {f"{shell} shell, {side}": values["shells"]})
            value = ratio(took["paced"]["s"], took["unpaced"]["s"])
            verdicts.append(verdict(f"{shell} shell, paced ÷ unpaced", value, "<=", 1.10, given))
    return Row(
        id="setup",
        measured=f"{count} session starts with their first turns, a login shell forked for each",
        beside="the same without pacing",
        figures=found,
        verdicts=verdicts,
        notes=["by default Codex forks no login shell here (`codex.shell_snapshot`); it is turned on for this row"],
    )


async def _watch_children(pid: int, peak: list[int]) -> None:
    children = Path(f"/proc/{pid}/task")
    while True:
        found = 0
        for task in list(children.iterdir()):  # noqa: ASYNC240 - /proc is memory
            with contextlib.suppress(OSError):
                found += len((task / "children").read_text().split())
        peak[0] = max(peak[0], found)
        await trio.sleep(0.05)
