"""Tables that are taken back with their batch (SETUP-14): whatever was done to a key, it is as it was."""

from collections.abc import Callable

import pytest

from termald.core.tables import Change, Table


def put(table: Table[str, str]) -> None:
    table.put("old", "changed")
    table.put("new", "made")


def drop(table: Table[str, str]) -> None:
    assert table.drop("old") == "kept"
    assert table.drop("old") is None
    assert table.drop("new") is None


def put_and_drop(table: Table[str, str]) -> None:
    table.put("new", "made")
    assert table.drop("new") == "made"
    table.put("old", "changed")
    table.drop("old")


def drop_and_put(table: Table[str, str]) -> None:
    table.drop("old")
    table.put("old", "another")


DONE = [put, drop, put_and_drop, drop_and_put]


@pytest.fixture
def table() -> Table[str, str]:
    table: Table[str, str] = Table()
    table.put("old", "kept")
    table.keep()
    return table


@pytest.mark.parametrize("do", DONE)
def test_what_a_batch_did_is_taken_back_whole(table: Table[str, str], do: Callable[[Table[str, str]], None]) -> None:
    do(table)
    table.undo()
    assert [(key, table[key]) for key in table] == [("old", "kept")]
    assert list(table.changes()) == []
    assert table.keep() == []


@pytest.mark.parametrize(
    ("do", "changes"),
    [
        (put, [Change("old", "kept", "changed"), Change("new", None, "made")]),
        (drop, [Change("old", "kept", None)]),
        (put_and_drop, [Change("old", "kept", None)]),
        (drop_and_put, [Change("old", "kept", "another")]),
    ],
)
def test_a_change_is_told_once_from_what_stood_before_the_batch(
    table: Table[str, str], do: Callable[[Table[str, str]], None], changes: list[Change[str, str]]
) -> None:
    do(table)
    assert list(table.changes()) == changes
    table.keep()
    assert list(table.changes()) == []
    after = [(key, table[key]) for key in table]
    table.undo()
    assert [(key, table[key]) for key in table] == after


def test_what_is_loaded_is_no_change_and_never_covers_something_newer(table: Table[str, str]) -> None:
    table.load("old", "stale")
    table.load("loaded", "from the disk")
    assert (table["old"], table["loaded"]) == ("kept", "from the disk")
    assert list(table.changes()) == []
    table.drop("old")
    table.load("old", "stale")  # it is gone in this batch: the row is older than that
    assert "old" not in table
    table.undo()
    assert table["old"] == "kept"
    assert table.keep() == ["loaded"]  # looked at for eviction, though nothing changed it
    assert table.keep() == []


def test_a_key_is_not_forgotten_in_the_middle_of_its_batch(table: Table[str, str]) -> None:
    table.put("old", "changed")
    with pytest.raises(AssertionError, match="in the middle of a batch"):
        table.forget("old")
    table.keep()
    table.forget("old")
    table.forget("old")
    assert len(table) == 0
    assert list(table.changes()) == []
