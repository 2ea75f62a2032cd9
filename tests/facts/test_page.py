"""The page that lists the facts, held to the tests: each line has one, and each test has a line."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "codex-facts.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`(test_\w+)`", PAGE))


def named_in(folder: Path) -> set[str]:
    files = (path for path in folder.rglob("test_*.py") if path != Path(__file__))
    return {name for path in files for name in re.findall(r"(?m)^(?:async )?def (test_\w+)", path.read_text("utf-8"))}


def test_each_fact_that_is_measured_has_its_line() -> None:
    assert named_in(TESTS / "facts") - NAMED == set()


def test_the_page_names_no_test_that_is_not_there() -> None:
    assert NAMED - named_in(TESTS) == set()
