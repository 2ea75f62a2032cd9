"""The page and the tests that it names belong together."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_that_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "codex.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", page))
    files = (ROOT / "tests" / "codex").glob("test_*.py")
    there = {name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text())}
    assert len(named) > 20
    assert named <= there, f"named and missing: {sorted(named - there)}"
