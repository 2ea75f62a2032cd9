"""Take each guard out, one at a time, and see the test that it is for fail: `make guards`.

It works on a copy of the packages and their tests, never on the checkout. A snippet that does not stand exactly once
is an error, for a mutation that did not apply proves nothing; so is a test that fails for another reason than an
assertion. Exit status 1 if a guard is missed.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from guards.guard import Guard  # noqa: E402 - the path comes first
from guards.mutations import GUARDS  # noqa: E402

COPIED = ("termald", "state", "discovery", "tests", "docs", "pyproject.toml", "README.md")
TEST_S = 120.0
"""A test that takes longer with its guard missing hangs, and that is no assertion."""

Verdict = Literal["noticed", "missed", "broken"]


class NotAppliedError(Exception):
    """The snippet does not stand exactly once in its file."""


def applied(root: Path, guard: Guard) -> str:
    """Return the file's text without the guard. Errors: `NotAppliedError`."""
    text = (root / guard.file).read_text(encoding="utf-8")
    times = text.count(guard.snippet)
    if times != 1:
        raise NotAppliedError(f"{guard.name!r}: its snippet stands {times} times in {guard.file}")
    return text.replace(guard.snippet, guard.replacement)


@contextmanager
def copy_of_the_checkout() -> Iterator[Path]:
    """Give a folder in which everything may be broken."""
    with tempfile.TemporaryDirectory(prefix="guards-") as folder:
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, folder)
        yield Path(folder)


def take_out(copy: Path, guard: Guard) -> tuple[Verdict, str]:
    """Run the guard's test without the guard; return whether it noticed, and what it said."""
    mutated = applied(copy, guard)
    path = copy / guard.file
    whole = path.read_text(encoding="utf-8")
    path.write_text(mutated, encoding="utf-8")
    try:
        return run(copy, [guard.test])
    finally:
        path.write_text(whole, encoding="utf-8")


def run(copy: Path, tests: Sequence[str]) -> tuple[Verdict, str]:
    """Run tests in the copy: `missed` if they pass, `noticed` if an assertion fails, else `broken`."""
    report = copy / "report.xml"
    report.unlink(missing_ok=True)
    # -B: a file changed twice within a second and to the same length would be taken for its own bytecode.
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
    try:
        ended = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=TEST_S, check=False)
    except subprocess.TimeoutExpired:
        return "broken", f"no end within {TEST_S:.0f} s"
    if ended.returncode == 0:
        return "missed", "its test passes without it"
    if not report.exists():
        return "broken", ended.stdout.strip().splitlines()[-1] if ended.stdout.strip() else ended.stderr[-200:]
    suite = ElementTree.parse(report).getroot()
    said = [one.get("message", "") for one in suite.iter("failure")]
    if any(suite.iter("error")) or not said:
        return "broken", next((one.get("message", "") for one in suite.iter("error")), "nothing ran")
    other = [text for text in said if not text.startswith(("AssertionError", "assert ", "Failed:"))]
    if other:
        return "broken", other[0].splitlines()[0]
    return "noticed", said[0].splitlines()[0]


def main() -> int:
    """Print a table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only guards whose name or promise holds one of these")
    words = parser.parse_args().words
    chosen = [one for one in GUARDS if not words or any(word in f"{one.name} {one.promise}" for word in words)]
    failed = 0
    with copy_of_the_checkout() as copy:
        verdict, said = run(copy, sorted({guard.test for guard in chosen}))
        if verdict != "missed":
            print(f"the tests do not pass with every guard in its place: {said}")
            return 1
        for guard in chosen:
            verdict, said = take_out(copy, guard)
            failed += verdict != "noticed"
            print(f"{verdict:8} {guard.promise:16} {guard.name}\n{'':25} {said[:110]}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} guards are noticed when they are missing")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
