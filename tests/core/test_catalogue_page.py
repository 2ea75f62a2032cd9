"""The page that says which race is tested where says what is so."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools import races_page  # noqa: E402 - the path comes first

ROWS = re.findall(r"^\| ([A-Z]+-\d\d) \| (.*) \|$", races_page.PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_lists_every_entry_of_the_catalogue_once() -> None:
    """Made anew with `python -m tools.races_page`."""
    assert [entry for entry, _ in ROWS] == races_page.entries()


def test_an_entry_is_tested_where_the_page_says() -> None:
    tested = races_page.tested()
    for entry, where in ROWS:
        if entry not in races_page.UNNAMED:
            named = set(re.findall(r"`([^`]+)`", where))
            assert named <= set(tested.get(entry, ())), f"{entry}: {where}"
            assert bool(named) != where.startswith("not yet"), f"{entry}: {where}"


def test_no_test_names_an_entry_that_is_not_in_the_catalogue() -> None:
    assert set(races_page.tested()) <= set(races_page.entries())


def test_what_is_said_to_be_missing_is_missing() -> None:
    assert not set(races_page.NOT_YET) & set(races_page.tested())
    assert not set(races_page.UNNAMED) & set(races_page.tested())


def test_a_test_under_another_name_is_there() -> None:
    for place in races_page.UNNAMED.values():
        file, _, name = place.partition("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")
