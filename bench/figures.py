"""What a row found, and how it is told: as JSON, and as a table in Markdown."""

import os
import platform
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import apsw
import codex_cli_bin  # type: ignore[import-untyped]  # it carries a binary and says nothing of types
import msgspec

from termald.codex.protocol.methods import CODEX_VERSION

ROOT = Path(__file__).resolve().parents[1]

Side = Callable[[], Awaitable[dict[str, float]]]


class Spread(msgspec.Struct, frozen=True):
    """The median of some values, and the ends."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Return the spread of at least one value."""
        found = sorted(values)
        return cls(statistics.median(found), found[0], found[-1], len(found))


class Figure(msgspec.Struct, frozen=True):
    """One measured quantity of one side."""

    what: str
    unit: str
    spread: Spread


class Verdict(msgspec.Struct, frozen=True):
    """One aim, what was found, and whether it was met. None where this run was too small to tell."""

    what: str
    found: float
    sign: Literal["<=", ">="]
    aim: float
    met: bool | None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    id: str
    measured: str
    beside: str
    figures: list[Figure]
    verdicts: list[Verdict]
    notes: list[str] = []
    seconds: float = 0.0


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What a row is asked for. `size`: quick is a smoke test and proves nothing, full takes minutes, huge takes its
    time."""

    size: Literal["quick", "full", "huge"]
    rounds: int

    def pick(self, quick: Any, full: Any, huge: Any = None) -> Any:
        """Return what fits the size."""
        return {"quick": quick, "full": full, "huge": full if huge is None else huge}[self.size]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run."""

    at: str
    size: str
    machine: dict[str, Any]
    versions: dict[str, str]
    rows: list[Row]


def verdict(what: str, found: float, sign: Literal["<=", ">="], aim: float, given: Given) -> Verdict:
    """Judge a figure; a quick run is never judged."""
    met = found <= aim if sign == "<=" else found >= aim
    return Verdict(what, found, sign, aim, None if given.size == "quick" else met)


def figures(unit: str, found: Mapping[str, Sequence[float]]) -> list[Figure]:
    """Return a figure for each side."""
    return [Figure(what, unit, Spread.of(values)) for what, values in found.items()]


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """Return the median of the rounds' ratios: what disturbed a round disturbed both sides of it."""
    return statistics.median(one / other for one, other in zip(over, under, strict=True))


async def in_turn(rounds: int, sides: Mapping[str, Side]) -> dict[str, dict[str, list[float]]]:
    """Measure each side in each round, beginning with another one each time; return side → quantity → values."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in sides}
    names = list(sides)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            for what, value in (await sides[name]()).items():
                found[name].setdefault(what, []).append(value)
    return found


def machine() -> dict[str, Any]:
    """Return what a figure depends on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memoryMb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "loadBefore": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Return the versions of what was measured."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    codex = subprocess.run(
        [codex_cli_bin.bundled_codex_path(), "--version"], capture_output=True, text=True, check=True
    )
    return {
        "termald": asked.stdout.strip() or "unknown",
        "codex": codex.stdout.strip(),
        "protocol": CODEX_VERSION,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }


def now() -> str:
    """Return the time as files and people like it."""
    return time.strftime("%Y-%m-%dT%H-%M-%SZ", time.gmtime())


def short(value: float) -> str:
    """Return a number with three digits that count."""
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value else "0"


def markdown(report: Report) -> str:
    """Return the report as a page."""
    lines = [
        f"# Measured {report.at} ({report.size})",
        "",
        ", ".join(f"{name} {value}" for name, value in (report.versions | report.machine).items()),
        "",
        "| id | measured | beside | found | aim | met |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in report.rows:
        found = "<br>".join(
            f"{one.what}: {short(one.spread.median)} {one.unit} ({short(one.spread.low)} to {short(one.spread.high)})"
            for one in row.figures
        )
        aims = "<br>".join(f"{one.what}: {short(one.found)} {one.sign} {short(one.aim)}" for one in row.verdicts)
        met = "<br>".join({True: "yes", False: "**no**", None: "not judged"}[one.met] for one in row.verdicts)
        lines.append(f"| {row.id} | {row.measured} | {row.beside} | {found} | {aims or '–'} | {met or '–'} |")
    notes = [f"- {row.id} ({row.seconds:.0f} s): {note}" for row in report.rows for note in row.notes or [""]]
    return "\n".join([*lines, "", *(note.removesuffix(": ") for note in notes), ""])
