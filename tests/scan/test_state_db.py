"""Rows of every known shape become threads; rows of no shape cost themselves alone (DISC-04)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scan.facts import PARENT, SPAWNED
from scan.homemade import AT_MS, EDGES, NOW, THEN, make_db, row, thread_id

from discovery.homes import HomeUnreadable, StateFile
from discovery.state_db import PREVIEW_CHARACTERS_MAX, TITLE_CHARACTERS_MAX, Page, StateDb
from state.records import KnownThread


def opened(path: Path) -> StateDb:
    return StateDb(StateFile(home=path.parent, path=path, number=5))


def pages(database: StateDb, size: int) -> Iterator[Page]:
    page = database.page(None, size)
    yield page
    while page.after is not None:
        page = database.page(page.after, size)
        yield page


def only_thread(path: Path) -> KnownThread:
    page = opened(path).page(None, 10)
    assert page.bad == ()
    (thread,) = page.threads
    return thread


def stamps(path: Path) -> dict[str, str]:
    return {str(thread.thread_id): thread.stamp for thread in opened(path).page(None, 9).threads}


def test_a_row_of_today_is_told_whole(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "created_at_ms": AT_MS + 7,
        "updated_at_ms": AT_MS + 9,
        "preview": "first words",
        "first_user_message": "first words\nand more",
        "name": "a name",
        "model": "gpt",
        "thread_source": "termald:h:s:1",
        "archived": 1,
    }
    thread = only_thread(make_db(tmp_path / "state_5.sqlite", [row(1, **fields)]))
    assert thread.stamp
    assert thread == KnownThread(
        thread_id=thread.thread_id,
        home=str(tmp_path),
        cls="discovered",
        reason="seen in state_5.sqlite",
        title="a name",
        preview="first words",
        cwd="/src",
        model="gpt",
        model_provider="openai",
        source="cli",
        tag="termald:h:s:1",
        rollout_path=f"/gone/rollout-{thread_id(1)}.jsonl",
        archived=True,
        created_at_ms=AT_MS + 7,
        updated_at_ms=AT_MS + 9,
        stamp=thread.stamp,
    )


def test_a_row_of_an_older_build_is_told_as_far_as_it_goes(tmp_path: Path) -> None:
    thread = only_thread(make_db(tmp_path / "s.sqlite", [row(1)], columns=THEN))
    assert (thread.created_at_ms, thread.updated_at_ms) == (AT_MS, AT_MS + 1000), "seconds became milliseconds"
    assert (thread.title, thread.preview, thread.model) == ("thread 1", "", None)
    assert thread.tag is None, "a source that keeps no tags is told apart from a thread without one"


def test_a_thread_without_a_tag_is_told_apart_from_a_source_without_tags(tmp_path: Path) -> None:
    assert only_thread(make_db(tmp_path / "s.sqlite", [row(1)])).tag == ""


def test_a_table_of_ids_alone_is_enough(tmp_path: Path) -> None:
    path = make_db(tmp_path / "s.sqlite", [{"id": thread_id(1)}], columns="id TEXT PRIMARY KEY")
    thread = only_thread(path)
    assert (thread.title, thread.cwd, thread.rollout_path, thread.updated_at_ms) == (None, "", None, 0)
    assert opened(path).rollout_of(thread_id(1)) is None


@pytest.mark.parametrize(
    ("seen", "stands_for"),
    [
        ({"created_at": AT_MS // 1000}, AT_MS),
        ({"created_at": AT_MS}, AT_MS),
        ({"created_at": 1.5e9}, 1_500_000_000_000),
        ({"created_at": 1, "created_at_ms": AT_MS}, AT_MS),
        ({"created_at": AT_MS // 1000, "created_at_ms": None}, AT_MS),
        ({"created_at": AT_MS // 1000, "created_at_ms": 0}, AT_MS),
        ({"created_at": "yesterday"}, 0),
        ({"created_at": -5}, 0),
        ({"created_at": 2**62}, 0),
        ({"created_at": float("inf")}, 0),
    ],
)
def test_a_time_is_read_in_either_unit_and_junk_is_no_time(
    tmp_path: Path, seen: dict[str, Any], stands_for: int
) -> None:
    assert only_thread(make_db(tmp_path / "s.sqlite", [row(1, **seen)])).created_at_ms == stands_for


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"name": "  a name \nof two lines", "title": "t"}, "a name"),
        ({"name": None, "title": "\n\nfirst line\nsecond"}, "first line"),
        ({"name": "", "title": " \n "}, None),
        ({"title": "é" * 1000}, "é" * TITLE_CHARACTERS_MAX),
    ],
)
def test_a_title_is_one_line_of_what_there_is(tmp_path: Path, fields: dict[str, Any], title: str | None) -> None:
    assert only_thread(make_db(tmp_path / "s.sqlite", [row(1, **fields)])).title == title


def test_a_first_message_of_a_megabyte_is_cut(tmp_path: Path) -> None:
    long = "ab€" * 400_000
    fields: dict[str, Any] = {"title": long, "preview": "", "first_user_message": long}
    thread = only_thread(make_db(tmp_path / "s.sqlite", [row(1, **fields)]))
    assert thread.preview == long[:PREVIEW_CHARACTERS_MAX]


@pytest.mark.parametrize(
    ("fields", "script"),
    [
        ({"source": SPAWNED}, ()),
        (
            {"source": '{"subagent":{"other":"x"}}'},
            (EDGES, f"INSERT INTO thread_spawn_edges VALUES ('{PARENT}', '{thread_id(1)}', 'open')"),
        ),
        ({"attached_thread_parent_id": PARENT}, ()),
    ],
    ids=["in its source", "in the table of spawned threads", "attached"],
)
def test_a_parent_is_found_wherever_it_is_named(
    tmp_path: Path, fields: dict[str, Any], script: tuple[str, ...]
) -> None:
    """DISC-11."""
    thread = only_thread(make_db(tmp_path / "s.sqlite", [row(1, **fields)], script=script))
    assert (thread.cls, thread.parent_thread_id) == ("child", PARENT)


def test_rows_of_which_no_thread_can_be_made_are_skipped_and_told(tmp_path: Path) -> None:
    rows = [
        row(1),
        *({**row(n), "id": junk} for n, junk in enumerate(["", "not-an-id", "x" * 9000, "01a22e00/../../x"])),
    ]
    script = [
        "INSERT INTO threads(id) VALUES (NULL)",
        "INSERT INTO threads(id) VALUES (x'00ff')",
        "INSERT INTO threads(id) VALUES (CAST(x'ff61' AS TEXT))",
    ]
    database = opened(make_db(tmp_path / "s.sqlite", rows, script=script))
    page = database.page(None, 100)
    assert [thread.thread_id for thread in page.threads] == [thread_id(1)]
    assert {bad.reason for bad in page.bad} == {"its id is not a thread id"}
    assert sorted(bad.id for bad in page.bad) == ["", "01a22e00/../../x", "not-an-id", "x" * 40, "\ufffda"]
    assert database.rows_without_id() == 2


def test_text_that_is_not_utf8_costs_its_own_characters_only(tmp_path: Path) -> None:
    """One such row would otherwise cost its page, and with it the scan."""
    script = ["INSERT INTO threads(id, title, cwd) VALUES ('" + thread_id(2) + "', CAST(x'6162ff63' AS TEXT), x'2f80')"]
    page = opened(make_db(tmp_path / "s.sqlite", [row(1)], script=script)).page(None, 10)
    assert [(thread.title, thread.cwd) for thread in page.threads] == [("ab\ufffdc", "/"), ("thread 1", "/src")]


def test_pages_hold_every_thread_once_the_newest_first(tmp_path: Path) -> None:
    database = opened(make_db(tmp_path / "s.sqlite", [row(number) for number in range(23)]))
    for size in (1, 5, 23, 24):
        told = [thread.thread_id for page in pages(database, size) for thread in page.threads]
        assert told == [thread_id(number) for number in reversed(range(23))]


def test_a_thread_that_is_used_while_pages_are_read_is_told_once(tmp_path: Path) -> None:
    """Pages by time would miss it: it moves to a place that was already read."""
    path = make_db(tmp_path / "s.sqlite", [row(number) for number in range(6)])
    database = opened(path)
    first = database.page(None, 3)
    make_db(path, columns="", script=["UPDATE threads SET updated_at = updated_at + 999"])
    second = database.page(first.after, 3)
    told = [thread.thread_id for page in (first, second) for thread in page.threads]
    assert told == [thread_id(number) for number in reversed(range(6))]


def test_a_stamp_changes_with_what_is_told_and_with_nothing_else(tmp_path: Path) -> None:
    path = make_db(tmp_path / "s.sqlite", [row(1), row(2)])
    seen = [stamps(path)]
    for change in ("name = 'n'", "archived = 1"):
        make_db(path, columns="", script=[f"UPDATE threads SET {change} WHERE id = '{thread_id(1)}'"])
        seen.append(stamps(path))
    assert len({stamp[thread_id(1)] for stamp in seen}) == 3
    assert len({stamp[thread_id(2)] for stamp in seen}) == 1


def test_a_database_that_is_gone_is_the_homes_trouble(tmp_path: Path) -> None:
    path = make_db(tmp_path / "s.sqlite", [row(1)])
    database = opened(path)
    path.unlink()
    with pytest.raises(HomeUnreadable, match="No such file") as error:
        database.page(None, 1)
    assert (error.value.home, error.value.kind) == (tmp_path, "read-failed")


values = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=30)
columns = [part.split()[0] for part in NOW.split(", ")]


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(columns[1:]), values), max_size=8))
def test_no_row_raises(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    """Whatever stands in any column: the thread is told, with what could be read of it."""
    path = tmp_path / "any.sqlite"
    path.unlink(missing_ok=True)
    loose = ", ".join(column if column != "id" else "id TEXT PRIMARY KEY" for column in columns)
    safe = [{key: _storable(value) for key, value in fields.items()} for fields in rows]
    make_db(path, [{"id": thread_id(number), **fields} for number, fields in enumerate(safe)], columns=loose)
    told = [thread for page in pages(opened(path), 3) for thread in page.threads]
    assert [thread.thread_id for thread in told] == [thread_id(number) for number in reversed(range(len(rows)))]


def _storable(value: Any) -> Any:
    return value.replace("\x00", "") if isinstance(value, str) else value
