"""The state DB that is read is the newest whole one, and what was passed over is told (DISC-03, DISC-04)."""

import os
from pathlib import Path

import pytest
from scan.homemade import BACKFILL, MIGRATIONS, make_db, row, snapshot

from discovery.homes import HomeUnreadable, StateFile, find_state_file

COMPLETE = (
    MIGRATIONS,
    "INSERT INTO _sqlx_migrations VALUES (1, 1), (2, 1)",
    BACKFILL,
    "INSERT INTO backfill_state VALUES (1, 'complete')",
)


def reasons(file: StateFile) -> dict[str, str]:
    return {str(passed.path.relative_to(file.home)): passed.reason for passed in file.passed_over}


def test_the_newest_number_is_read(tmp_path: Path) -> None:
    for number in (4, 5, 10):
        make_db(tmp_path / f"state_{number}.sqlite", [row(1)], script=COMPLETE)
    before = snapshot(tmp_path)
    file = find_state_file(tmp_path)
    assert (file.path.name, file.number, file.flaw, file.passed_over) == ("state_10.sqlite", 10, None, ())
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("newest", "reason"),
    [
        (b"", "it has no table `threads`"),
        (b"\0" * 4096, "NotADB: file is not a database"),
        ("CREATE TABLE other(id)", "it has no table `threads`"),
        ("CREATE TABLE threads(name TEXT)", "its table `threads` has no column `id`"),
    ],
    ids=["empty", "zeroes", "another program's", "unusable table"],
)
def test_an_unusable_newest_file_is_passed_over(tmp_path: Path, newest: bytes | str, reason: str) -> None:
    make_db(tmp_path / "state_4.sqlite", [row(1)])
    if isinstance(newest, bytes):
        (tmp_path / "state_5.sqlite").write_bytes(newest)
    else:
        make_db(tmp_path / "state_5.sqlite", columns="", script=[newest])
    file = find_state_file(tmp_path)
    assert file.path.name == "state_4.sqlite"
    assert reasons(file) == {"state_5.sqlite": reason}


@pytest.mark.parametrize(
    ("script", "rows", "reason"),
    [
        ([MIGRATIONS, "INSERT INTO _sqlx_migrations VALUES (1, 1), (2, 0)"], 1, "a migration of it is unfinished"),
        (
            [BACKFILL, "INSERT INTO backfill_state VALUES (1, 'running')"],
            1,
            "Codex still fills it from the rollouts (running)",
        ),
        (COMPLETE, 0, "it holds no thread"),
    ],
    ids=["half migrated", "half filled", "no rows"],
)
def test_a_newest_file_that_is_not_whole_waits_for_want_of_a_better_one(
    tmp_path: Path, script: list[str], rows: int, reason: str
) -> None:
    """After an update Codex fills a new file from the rollouts; until then the old one knows more."""
    make_db(tmp_path / "state_5.sqlite", [row(number) for number in range(rows)], script=script)
    alone = find_state_file(tmp_path)
    assert (alone.path.name, alone.flaw) == ("state_5.sqlite", reason)
    make_db(tmp_path / "state_4.sqlite", [row(1), row(2)])
    beside = find_state_file(tmp_path)
    assert (beside.path.name, beside.flaw) == ("state_4.sqlite", None)
    assert reasons(beside) == {"state_5.sqlite": reason}


def test_the_sqlite_folder_is_looked_into(tmp_path: Path) -> None:
    make_db(tmp_path / "sqlite" / "state_5.sqlite", [row(1)])
    make_db(tmp_path / "state_4.sqlite", [row(1)])
    assert find_state_file(tmp_path).path == tmp_path / "sqlite" / "state_5.sqlite"


@pytest.mark.parametrize("setting", ["config", "environment"])
def test_a_state_folder_named_elsewhere_is_looked_into(tmp_path: Path, setting: str) -> None:
    """Measured: with `sqlite_home` or CODEX_SQLITE_HOME the home itself holds no database at all."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    make_db(elsewhere / "state_5.sqlite", [row(1)])
    if setting == "config":
        (home / "config.toml").write_text(f'model = "m"\nsqlite_home = "{elsewhere}"\n')
    file = find_state_file(home, elsewhere if setting == "environment" else None)
    assert file.path == elsewhere / "state_5.sqlite"


def test_of_two_with_one_number_the_last_written_is_read(tmp_path: Path) -> None:
    """After a move by `sqlite_home`, the old place still has a file of the same number."""
    here = make_db(tmp_path / "state_5.sqlite", [row(1)])
    there = make_db(tmp_path / "sqlite" / "state_5.sqlite", [row(1)])
    for old, new in ((here, there), (there, here)):
        os.utime(old, (1_000, 1_000))
        os.utime(new, (2_000, 2_000))
        assert find_state_file(tmp_path).path == new


def test_what_is_only_in_the_wal_counts_as_written(tmp_path: Path) -> None:
    """Codex writes for hours before it folds its WAL into the main file."""
    here = make_db(tmp_path / "state_5.sqlite", [row(1)], killed=True)
    there = make_db(tmp_path / "sqlite" / "state_5.sqlite", [row(1)])
    os.utime(here, (1_000, 1_000))
    os.utime(there, (2_000, 2_000))
    assert find_state_file(tmp_path).path == here


@pytest.mark.parametrize(
    "config", ["sqlite_home = 7", "torn = ", "\udc80", "sqlite_home = '~no-such-user/x'", 'sqlite_home = "a\\u0000b"']
)
def test_a_configuration_that_cannot_be_read_costs_nothing(tmp_path: Path, config: str) -> None:
    make_db(tmp_path / "state_5.sqlite", [row(1)])
    (tmp_path / "config.toml").write_bytes(config.encode(errors="surrogateescape"))
    assert find_state_file(tmp_path).path == tmp_path / "state_5.sqlite"


def test_a_home_without_a_database_is_told_apart_from_a_broken_one(tmp_path: Path) -> None:
    """A machine on which Codex was never used is no error to shout about."""
    (tmp_path / "state_5.sqlite-wal").touch()
    (tmp_path / "state_x.sqlite").touch()
    with pytest.raises(HomeUnreadable) as absent:
        find_state_file(tmp_path)
    assert absent.value.kind == "no-database"
    (tmp_path / "state_5.sqlite").touch()
    with pytest.raises(HomeUnreadable, match="no table `threads`") as broken:
        find_state_file(tmp_path)
    assert broken.value.kind == "unusable-database"


def test_no_home_and_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for home, reason in ((tmp_path / "none", "no such folder"), (tmp_path / "file", "it is a file")):
        with pytest.raises(HomeUnreadable, match=reason) as error:
            find_state_file(home)
        assert error.value.kind == "no-home"


def test_a_folder_that_bears_the_name_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "state_9.sqlite").mkdir()
    make_db(tmp_path / "state_5.sqlite", [row(1)])
    file = find_state_file(tmp_path)
    assert file.number == 5
    assert set(reasons(file)) == {"state_9.sqlite"}
