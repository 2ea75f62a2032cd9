"""Opening: one daemon a folder, a file that is ours and whole, and nothing begun anew that was merely damaged."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import apsw
import pytest
import trio
from store.builders import batch_of, session, store_with
from store.power import Disk, everything
from trio.testing import wait_all_tasks_blocked

from state.errors import StateForeign, StateLocked, StateTooNew, StoreBusy, StoreCorrupt, StoreError, StoreIOError
from state.records import SessionId
from state.schema import APPLICATION_ID, Step, migrate, released_steps, shape, tune_writer, use_wal, version_of_ours
from state.store import DATABASE_NAME, open_store
from state.views import SessionFilter

# --- one daemon ---

HOLDER = """
import sys, trio, pathlib
from state.store import open_store

async def main():
    async with open_store(pathlib.Path(sys.argv[1])) as store:
        if len(sys.argv) > 2:
            store.announce(sys.argv[2])
        print("held", flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)

trio.run(main)
"""


@contextmanager
def holder(folder: Path, *url: str) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the state; ends when its input does, or is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), *url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


async def test_a_second_daemon_is_told_who_the_first_is(tmp_path: Path) -> None:
    """BOOT-13: and it changes nothing."""
    with holder(tmp_path, "http://127.0.0.1:8787") as first:
        before = (tmp_path / DATABASE_NAME).read_bytes()
        with pytest.raises(StateLocked, match=rf"process {first.pid} at http://127.0.0.1:8787; stop it") as refused:
            async with open_store(tmp_path):
                pass
        assert refused.value.holder is not None
        assert refused.value.holder.pid == first.pid
        assert (tmp_path / DATABASE_NAME).read_bytes() == before


async def test_a_killed_daemon_holds_nothing(tmp_path: Path) -> None:
    """The kernel lets go; its text stays, and must neither keep anybody out nor be taken for the next one's."""
    with holder(tmp_path, "http://127.0.0.1:8787") as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert str(first.pid) in (tmp_path / "termald.lock").read_text()
        async with open_store(tmp_path) as store:
            assert store.host.epoch == 2
            with pytest.raises(StateLocked, match=f"in use by process {os.getpid()}; stop it"):
                async with open_store(tmp_path):
                    pass


def child_with_all_descriptors() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)


async def test_a_child_that_outlives_the_daemon_holds_nothing(tmp_path: Path) -> None:
    """Codex is such a child, and is meant to."""
    async with open_store(tmp_path):
        child = child_with_all_descriptors()
    with child:
        async with open_store(tmp_path) as store:
            assert store.host.epoch == 2
        assert child.poll() is None
        child.kill()


async def test_a_holder_that_has_not_said_who_it_is_still_holds(tmp_path: Path) -> None:
    async with open_store(tmp_path):
        (tmp_path / "termald.lock").write_text("")
        with pytest.raises(StateLocked, match="another process") as refused:
            async with open_store(tmp_path):
                pass
    assert refused.value.holder is None


async def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    """Prompts are in it. Whatever the umask, and also where an older file was left open."""
    folder = tmp_path / "a" / "state"
    umask = os.umask(0)
    try:
        async with store_with(folder, batch_of(session("s1"))):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / DATABASE_NAME).chmod(0o644)
        async with open_store(folder):
            assert stat.S_IMODE((folder / DATABASE_NAME).stat().st_mode) == 0o600
    finally:
        os.umask(umask)
    names = (DATABASE_NAME, DATABASE_NAME + "-wal", DATABASE_NAME + "-shm", "termald.lock")
    assert modes == dict.fromkeys(names, 0o600)


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def test_a_clean_end_writes_the_log_back(tmp_path: Path) -> None:
    async with store_with(tmp_path, batch_of(session("s1"))):
        pass
    assert names_in(tmp_path) == {DATABASE_NAME, "termald.lock"}
    assert (tmp_path / "termald.lock").read_text() == ""


async def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreIOError, match="cannot be made"):
        async with open_store(tmp_path / "file" / "state"):
            pass


# --- a file that is ours and whole ---


async def refused(folder: Path, error: type[StoreError], why: str) -> None:
    """Assert that opening fails, twice, and leaves the file as it was."""
    path = folder / DATABASE_NAME
    before = path.read_bytes() if path.exists() else None
    for _ in range(2):
        with pytest.raises(error, match=why):
            async with open_store(folder):
                pass
    assert (path.read_bytes() if path.exists() else None) == before


def edit(folder: Path, sql: str) -> None:
    db = apsw.Connection(str(folder / DATABASE_NAME))
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    db.execute(sql)
    db.close()


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A state with something to lose."""
    async with store_with(tmp_path, *(batch_of(session(f"s{at}", preview="x" * 3_000)) for at in range(50))):
        pass
    return tmp_path


async def test_a_newer_database_is_refused(folder: Path) -> None:
    """An older termald would not know what the newer one promised."""
    newer = len(released_steps()) + 1
    edit(folder, f"PRAGMA user_version = {newer}")
    await refused(folder, StateTooNew, f"has version {newer}, this termald knows {newer - 1}: install the newer one")


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("PRAGMA application_id = 7", "another program's database"),
        ("DROP TABLE ignored_threads", "table ignored_threads"),
        ("DROP INDEX sessions_claim", "index sessions_claim"),
        ("DROP TRIGGER ignore_of_an_owned_thread", "trigger ignore_of_an_owned_thread"),
        ("ALTER TABLE sessions DROP COLUMN sandbox", "table sessions"),
        ("CREATE TABLE more (x)", "table more"),
        ("PRAGMA user_version = 0", "not what its version 0 says"),
    ],
)
async def test_what_is_not_ours_or_not_whole_is_refused(folder: Path, sql: str, why: str) -> None:
    """BOOT-15: a part that is missing is never made anew and empty; an ignore set would be forgotten by it."""
    edit(folder, sql)
    await refused(folder, StateForeign, why)


async def test_another_programs_file_is_refused(tmp_path: Path) -> None:
    edit(tmp_path, "CREATE TABLE notes (text)")
    await refused(tmp_path, StateForeign, "another program's database")


async def test_no_database_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / DATABASE_NAME).write_text("dear diary, " * 1_000)
    await refused(tmp_path, StateForeign, "not a database")


async def test_a_database_that_is_gone_beside_its_log_is_refused(tmp_path: Path) -> None:
    """What was lost is not begun anew on the quiet: SQLite would delete the log, and with it what can still be
    saved."""
    async with store_with(tmp_path, batch_of(session("s1"))):
        log = (tmp_path / f"{DATABASE_NAME}-wal").read_bytes()
    (tmp_path / DATABASE_NAME).unlink()
    (tmp_path / f"{DATABASE_NAME}-wal").write_bytes(log)
    await refused(tmp_path, StateForeign, "is gone, termald.sqlite-wal is not")
    assert (tmp_path / f"{DATABASE_NAME}-wal").read_bytes() == log


async def test_a_cut_off_database_is_refused(folder: Path) -> None:
    content = (folder / DATABASE_NAME).read_bytes()
    (folder / DATABASE_NAME).write_bytes(content[: len(content) // 2])
    await refused(folder, StoreCorrupt, "damaged|malformed")


async def test_a_small_damaged_database_is_refused_and_a_large_one_tells_where_it_is_met(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check of everything is for files that take no time; in any other, damage is an error and never an empty
    answer."""
    content = bytearray((folder / DATABASE_NAME).read_bytes())
    page = content.index(b"x" * 2_000) // 4_096
    content[page * 4_096 : (page + 1) * 4_096] = b"\xff" * 4_096
    (folder / DATABASE_NAME).write_bytes(content)
    await refused(folder, StoreCorrupt, "is damaged")
    monkeypatch.setattr("state.schema.QUICK_CHECK_BYTES_MAX", 0)
    with pytest.raises(StoreCorrupt, match="malformed"):
        async with open_store(folder) as store:
            await store.list_sessions(SessionFilter(), limit=100)


async def test_another_tool_may_hold_the_database_for_a_while(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("state.schema.BUSY_MS", 50)
    other = apsw.Connection(str(folder / DATABASE_NAME))
    async with open_store(folder) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            await store.commit(batch_of(session("new")), sync=True)
        other.execute("ROLLBACK")
        other.close()
        await store.commit(batch_of(session("new")), sync=True)


async def test_a_tool_that_lets_go_in_time_is_waited_for(folder: Path) -> None:
    other = apsw.Connection(str(folder / DATABASE_NAME))
    async with open_store(folder) as store:
        other.execute("BEGIN IMMEDIATE")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(store.commit, batch_of(session("new")), sync=True))
            await wait_all_tasks_blocked(0.05)  # the commit stands before the locked database
            other.execute("ROLLBACK")
        assert await store.session(SessionId("new")) is not None
    other.close()


# --- migrations ---


def test_the_steps_are_numbered_without_a_gap() -> None:
    assert [step.version for step in released_steps()] == list(range(1, len(released_steps()) + 1))


NEXT = Step(
    len(released_steps()) + 1,
    "next.sql",
    """
    CREATE TABLE labels (session_id TEXT NOT NULL REFERENCES sessions (id), label TEXT NOT NULL) STRICT;
    ALTER TABLE sessions ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey';
    CREATE INDEX sessions_by_colour ON sessions (colour);
    INSERT INTO labels SELECT id, title FROM sessions WHERE title IS NOT NULL;
    """,
)
STEPS = (*released_steps(), NEXT)


def connect(folder: Path, vfs: str | None = None) -> apsw.Connection:
    db = apsw.Connection(str(folder / DATABASE_NAME), vfs=vfs)
    tune_writer(db)
    use_wal(db, folder / DATABASE_NAME)
    return db


def upgrade(db: apsw.Connection, folder: Path) -> None:
    migrate(db, STEPS[version_of_ours(db, folder / DATABASE_NAME, STEPS) :])


def test_a_crash_at_each_statement_of_a_migration_changes_nothing_in_the_end(tmp_path: Path) -> None:
    """BOOT-14: killed before any statement of the first steps or of an upgrade with rows, the next start ends the
    same."""
    disk = Disk("migrations")
    made = tmp_path / "made"
    made.mkdir()
    crashes: list[dict[str, bytes]] = []

    def crash(*_: object) -> bool:
        crashes.append(disk.after_a_cut(made, everything))
        return True

    db = connect(made, disk.name)
    db.exec_trace = crash
    migrate(db, released_steps())
    db.exec_trace = None
    db.execute("INSERT INTO host (one, id, epoch) VALUES (1, 'me', 1)")
    db.exec_trace = crash
    migrate(db, (NEXT,))
    db.exec_trace = None
    whole = shape(db)
    db.close()
    disk.unregister()
    assert len(crashes) > len(whole)
    for at, files in enumerate(crashes):
        folder = tmp_path / str(at)
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        db = connect(folder)
        upgrade(db, folder)
        assert shape(db) == whole
        assert (db.pragma("user_version"), db.pragma("application_id")) == (NEXT.version, APPLICATION_ID)
        db.close()


async def test_a_step_that_fails_leaves_the_version_before_it(folder: Path) -> None:
    broken = Step(NEXT.version, "broken.sql", NEXT.sql + "INSERT INTO labels VALUES (NULL, NULL);")
    db = connect(folder)
    before = shape(db)
    with pytest.raises(apsw.ConstraintError):
        migrate(db, (broken,))
    assert shape(db) == before
    assert db.pragma("user_version") == broken.version - 1
    upgrade(db, folder)
    assert db.execute("SELECT count(*) FROM sessions WHERE colour = 'grey'").get == 50
    db.close()


async def test_a_lock_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full at the start: the system names no file where it is given a descriptor."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(StoreIOError, match=r"termald\.lock cannot be written: .*No space left on device"):
            async with open_store(tmp_path):
                pass
    async with open_store(tmp_path):
        pass  # nothing was left behind that keeps the next start out
