"""A foreign database is read whole, beside its writer, and not a byte or a file of it changes."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from scan.homemade import make_db, row, snapshot

from discovery import readonly
from discovery.readonly import DatabaseUnreadable, ReadOnlyDatabase

COUNT = "SELECT count(*) FROM threads"

# Speaks one line when it is ready, and acts when it hears one.
WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA busy_timeout = 5000")
{work}
"""
MID_TRANSACTION = """
db.execute("BEGIN IMMEDIATE")
db.execute("INSERT INTO threads(id, title) VALUES ('uncommitted', 'x')")
print("ready", flush=True)
sys.stdin.readline()
db.execute("COMMIT")
print("done", flush=True)
sys.stdin.readline()
"""
# Two rows that always say the same, changed thousands of times, with a checkpoint of every kind in between.
CHURN = """
db.execute("INSERT INTO threads(id, title) VALUES ('a', '0'), ('b', '0')")
print("ready", flush=True)
import select
turn = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    turn += 1
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE threads SET title = ? WHERE id = 'a'", (str(turn) * 50,))
    db.execute("UPDATE threads SET title = ? WHERE id = 'b'", (str(turn) * 50,))
    db.execute("COMMIT")
    if turn % 7 == 0:
        db.execute("PRAGMA wal_checkpoint(" + ("PASSIVE", "RESTART", "TRUNCATE")[turn % 3] + ")").fetchall()
print(turn, flush=True)
"""


@contextmanager
def writing(path: Path, work: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that has the database open, from `ready` on; ended with the block."""
    program = WRITER.format(work=work)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert hear(process) == "ready"
            yield process
        finally:
            process.kill()


def hear(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def turn_of(title: str) -> int:
    """The turn in which the churning writer wrote this title: its number, fifty times over."""
    return int(title[: max(1, len(title) // 50)])


def count(path: Path) -> int:
    with ReadOnlyDatabase(path) as database:
        return database.read(lambda connection: int(str(connection.execute(COUNT).get)))


def test_a_killed_writers_wal_is_read_and_left(tmp_path: Path) -> None:
    """All of it is in the WAL: whoever opens the main file alone finds no table in it."""
    path = make_db(tmp_path / "s.sqlite", [row(1), row(2)], killed=True)
    before = snapshot(tmp_path)
    assert set(before) == {"s.sqlite", "s.sqlite-wal", "s.sqlite-shm"}
    assert count(path) == 2
    assert snapshot(tmp_path) == before
    with pytest.raises(apsw.SQLError, match="no such table"):
        apsw.Connection(f"file:{path}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI).execute(
            COUNT
        )


def test_a_closed_database_is_read_without_the_files_that_sqlite_would_make(tmp_path: Path) -> None:
    path = make_db(tmp_path / "s.sqlite", [row(1)])
    before = snapshot(tmp_path)
    assert set(before) == {"s.sqlite"}
    assert count(path) == 1
    assert snapshot(tmp_path) == before


def test_plain_read_only_would_have_made_files(tmp_path: Path) -> None:
    """The reason for all this. Fails when SQLite no longer does so, and then `readonly` can be simpler."""
    path = make_db(tmp_path / "s.sqlite", [row(1)])
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert connection.execute(COUNT).get == 1
    connection.close()
    assert set(snapshot(tmp_path)) == {"s.sqlite", "s.sqlite-wal", "s.sqlite-shm"}


def test_a_wal_without_shared_memory_is_read_from_a_copy(tmp_path: Path) -> None:
    """A home that was copied, or restored from a backup."""
    home = tmp_path / "home"
    path = make_db(home / "s.sqlite", [row(1), row(2)], killed=True)
    path.with_name("s.sqlite-shm").unlink()
    before = snapshot(home)
    assert count(path) == 2
    assert snapshot(home) == before


def test_a_copy_is_made_once_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_db(tmp_path / "home" / "s.sqlite", [row(1)], killed=True)
    path.with_name("s.sqlite-shm").unlink()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    with ReadOnlyDatabase(path) as database:
        for _ in range(3):
            assert database.read(lambda connection: connection.execute(COUNT).get) == 1
            assert len(list(scratch.iterdir())) == 1
    assert not list(scratch.iterdir())


def test_what_is_too_large_to_copy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_db(tmp_path / "s.sqlite", [row(1)], killed=True)
    path.with_name("s.sqlite-shm").unlink()
    monkeypatch.setattr(readonly, "COPY_BYTES_MAX", 100)
    with pytest.raises(DatabaseUnreadable, match="too many to copy"):
        count(path)


def test_a_rollback_journal_database_is_read(tmp_path: Path) -> None:
    """Not known of any Codex, but nothing says that it stays WAL."""
    path = make_db(tmp_path / "s.sqlite", [row(1)], wal=False)
    before = snapshot(tmp_path)
    assert count(path) == 1
    assert snapshot(tmp_path) == before


def test_a_writer_in_mid_transaction_holds_nobody_up(tmp_path: Path) -> None:
    """DISC-04: what is not committed is not there yet; what is, is there at once."""
    path = make_db(tmp_path / "s.sqlite", [row(1)])
    with writing(path, MID_TRANSACTION) as writer:
        before = snapshot(tmp_path)
        assert count(path) == 1
        assert snapshot(tmp_path) == before
        tell(writer)
        assert hear(writer) == "done"
        assert count(path) == 2


def test_a_rollback_journal_writer_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readonly, "BUSY_MS", 20)
    path = make_db(tmp_path / "s.sqlite", [row(1)], wal=False)
    exclusive = MID_TRANSACTION.replace("IMMEDIATE", "EXCLUSIVE")
    with writing(path, exclusive) as writer:
        with pytest.raises(DatabaseUnreadable, match="Busy"):
            count(path)
        tell(writer)
        assert hear(writer) == "done"
        assert count(path) == 2


def test_beside_a_busy_writer_every_answer_is_of_one_moment(tmp_path: Path) -> None:
    """Through commits, checkpoints and WAL restarts: never torn, never an error, never older than the last one."""
    path = make_db(tmp_path / "s.sqlite", [])
    seen: list[int] = []
    with writing(path, CHURN) as writer:
        with ReadOnlyDatabase(path) as database:
            until = time.monotonic() + 30
            # At least so often; on a busy machine until the writer came to write in between.
            while len(seen) < 300 or (len(set(seen)) <= 10 and time.monotonic() < until):
                titles = database.read(lambda c: c.execute("SELECT title FROM threads ORDER BY id").get)
                assert len(set(titles)) == 1, titles
                seen.append(turn_of(titles[0]))
        tell(writer)
        turns = int(hear(writer))
    assert seen == sorted(seen)
    assert len(set(seen)) > 10, "the writer wrote nothing meanwhile, so nothing was shown"
    assert turns >= seen[-1]


def test_a_writer_that_comes_while_a_still_file_is_read_is_noticed(tmp_path: Path) -> None:
    """An immutable connection would go on reading pages that the newcomer's checkpoint replaces."""
    path = make_db(tmp_path / "s.sqlite", [row(1)])
    asked = 0

    def question(connection: apsw.Connection) -> object:
        nonlocal asked
        asked += 1
        if asked == 1:
            make_db(path, [row(2)], columns="", killed=True)
        return connection.execute(COUNT).get

    with ReadOnlyDatabase(path) as database:
        assert database.read(question) == 2
    assert asked == 2


def test_an_error_from_files_that_changed_is_not_believed(tmp_path: Path) -> None:
    """A migration that comes between two looks, say."""
    path = make_db(tmp_path / "s.sqlite", [row(1)])
    asked = 0

    def question(connection: apsw.Connection) -> object:
        nonlocal asked
        asked += 1
        if asked == 1:
            make_db(path, columns="", script=["CREATE TABLE later(id)"])
        return connection.execute("SELECT count(*) FROM later").get

    with ReadOnlyDatabase(path) as database:
        assert database.read(question) == 0
    assert asked == 2


def test_a_copy_of_files_that_changed_meanwhile_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it would be from before a checkpoint, half from after."""
    path = make_db(tmp_path / "s.sqlite", [row(1)], killed=True)
    wal, copied = path.with_name("s.sqlite-wal"), []
    path.with_name("s.sqlite-shm").unlink()
    copy = shutil.copyfile

    def copyfile(source: Path, target: Path) -> None:
        copied.append(source)
        copy(source, target)
        if len(copied) == 1:
            with wal.open("ab") as file:
                file.write(b"\0" * 24)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    assert count(path) == 1
    assert copied == [path, wal, path, wal]


def test_a_file_that_never_stands_still_is_given_up(tmp_path: Path) -> None:
    path = make_db(tmp_path / "s.sqlite", [row(1)])

    def question(connection: apsw.Connection) -> object:
        with path.open("ab") as file:
            file.write(b"more")
        return connection.execute(COUNT).get

    with ReadOnlyDatabase(path) as database, pytest.raises(DatabaseUnreadable, match="changed 4 times"):
        database.read(question)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"not a database, but as long as one " * 200, "NotADB"), (b"", "no such table")],
    ids=["garbage", "empty"],
)
def test_what_is_no_database_is_told_with_sqlites_own_words(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "s.sqlite"
    path.write_bytes(content)
    with pytest.raises(DatabaseUnreadable, match=said):
        count(path)


def test_a_damaged_database_is_told(tmp_path: Path) -> None:
    path = make_db(tmp_path / "s.sqlite", [row(number, title="x" * 500) for number in range(200)])
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
    with pytest.raises(DatabaseUnreadable, match="Corrupt"):
        count(path)


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnreadable, match="No such file"):
        count(tmp_path / "none.sqlite")
    with pytest.raises(DatabaseUnreadable, match=r"IO|CantOpen"):
        count(tmp_path)


def test_a_name_that_means_something_in_a_uri_is_a_name(tmp_path: Path) -> None:
    path = make_db(tmp_path / "a?mode=rwc#b%41 é" / "s.sqlite", [row(1)])
    assert count(path) == 1


def test_nothing_can_be_written_through_it(tmp_path: Path) -> None:
    path = make_db(tmp_path / "s.sqlite", [row(1)], killed=True)
    before = snapshot(tmp_path)
    with ReadOnlyDatabase(path) as database, pytest.raises(DatabaseUnreadable, match="ReadOnly"):
        database.read(lambda connection: connection.execute("DELETE FROM threads").get)
    assert snapshot(tmp_path) == before
    assert len(before) == 3
