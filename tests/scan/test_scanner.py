"""A scan tells of every thread once, counts only what changed, survives every home, and changes none."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import trio
from scan.homemade import (
    agent,
    item,
    make_db,
    rollout_path,
    row,
    snapshot,
    thread_id,
    user,
    write_rollout,
)

from discovery import lines, scanner
from discovery.rollouts import Check, FindBase, Tally, tally_rollout
from discovery.scanner import ScanReport, Told, scan
from discovery.segments import Rollout
from state.records import KnownThread, ThreadId


class Listener:
    """Who is told: remembers it, and the stamps, as the daemon would."""

    def __init__(self) -> None:
        self.pages: list[tuple[KnownThread, ...]] = []
        self.stamps: dict[ThreadId, str] = {}
        self.asked: list[tuple[ThreadId, ...]] = []

    @property
    def threads(self) -> dict[str, KnownThread]:
        """The last that was told of each thread."""
        return {thread.thread_id: thread for page in self.pages for thread in page}

    @property
    def told(self) -> list[str]:
        return [thread.thread_id for page in self.pages for thread in page]

    async def emit(self, threads: tuple[KnownThread, ...]) -> None:
        await trio.lowlevel.checkpoint()
        self.pages.append(threads)
        self.stamps |= {thread.thread_id: thread.stamp for thread in threads}

    async def known_stamps(self, threads: Sequence[ThreadId]) -> Mapping[ThreadId, str]:
        await trio.lowlevel.checkpoint()
        self.asked.append(tuple(threads))
        return {thread: self.stamps[thread] for thread in threads if thread in self.stamps}

    async def scan(self, home: Path, page_size: int = 3) -> ScanReport:
        return await scan(home, emit=self.emit, known_stamps=self.known_stamps, page_size=page_size)


@pytest.fixture
def listener() -> Listener:
    return Listener()


def make_home(home: Path, threads: int = 7) -> Path:
    """A home of legacy threads, each with one more message than its number."""
    make_db(home / "state_5.sqlite", [row(number, home) for number in range(threads)], killed=True)
    for number in range(threads):
        write_rollout(rollout_path(home, number), thread_id(number), [user(f"m{n}") for n in range(number + 1)])
    return home


async def test_every_thread_is_told_once_with_its_count(tmp_path: Path, listener: Listener) -> None:
    home = make_home(tmp_path)
    before = snapshot(home)
    report = await listener.scan(home)
    assert listener.told == [thread_id(number) for number in reversed(range(7))]
    assert [thread.message_count for page in listener.pages for thread in page] == [7, 6, 5, 4, 3, 2, 1]
    assert [len(page) for page in listener.pages] == [3, 3, 1]
    assert (report.told, report.unchanged, report.skipped, report.uncounted, report.error) == (7, 0, (), (), None)
    assert report.state_file == str(home / "state_5.sqlite")
    assert snapshot(home) == before


async def test_a_second_scan_tells_nothing_and_reads_no_rollout(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DISC-12: three scans, one session for each thread."""
    home = make_home(tmp_path)
    await listener.scan(home)

    def unexpected(*_: object) -> None:
        raise AssertionError("a rollout was read that had not changed")

    monkeypatch.setattr(scanner, "tally_rollout", unexpected)
    for _ in range(2):
        report = await listener.scan(home)
        assert (report.told, report.unchanged) == (0, 7)
    assert len(listener.told) == 7


async def test_only_what_changed_is_told_again(tmp_path: Path, listener: Listener) -> None:
    home = make_home(tmp_path)
    await listener.scan(home)
    make_db(home / "state_5.sqlite", columns="", script=[f"UPDATE threads SET name = 'n' WHERE id = '{thread_id(2)}'"])
    # Codex was killed after a message and before it wrote the row.
    with rollout_path(home, 4).open("ab") as file:
        file.write(agent("late") + b"\n")
    report = await listener.scan(home)
    assert (report.told, report.unchanged) == (2, 5)
    assert listener.told[7:] == [thread_id(4), thread_id(2)]
    assert listener.threads[thread_id(4)].message_count == 6
    assert listener.threads[thread_id(2)].title == "n"


async def test_a_thread_left_out_of_the_known_is_told_unchanged(tmp_path: Path, listener: Listener) -> None:
    """DISC-13: an un-ignored thread must come back though nothing of it changed."""
    home = make_home(tmp_path)
    await listener.scan(home)
    del listener.stamps[ThreadId(thread_id(3))]
    assert (await listener.scan(home)).told == 1
    assert listener.told[7:] == [thread_id(3)]


async def test_what_the_row_lacks_the_rollout_gives(tmp_path: Path, listener: Listener) -> None:
    fields = {"title": "", "source": '{"subagent":"review"}'}
    make_db(tmp_path / "state_5.sqlite", [row(1, tmp_path, **fields)])
    first = user("first line\nsecond")
    write_rollout(rollout_path(tmp_path, 1), thread_id(1), [first], parent_thread_id=thread_id(9))
    await listener.scan(tmp_path)
    thread = listener.threads[thread_id(1)]
    assert (thread.title, thread.preview, thread.parent_thread_id) == ("first line", "first line\nsecond", thread_id(9))


async def test_a_fork_is_counted_across_folders(tmp_path: Path, listener: Listener) -> None:
    """What a fork goes on from lies elsewhere once it was archived; a reverted thread's segments lie beside its own."""
    archived = tmp_path / "archived_sessions" / rollout_path(tmp_path, 1).name
    script = f"UPDATE threads SET rollout_path = '{archived}', archived = 1 WHERE id = '{thread_id(1)}'"
    rows = [row(number, tmp_path) for number in (1, 2, 3)]
    make_db(tmp_path / "state_5.sqlite", rows, script=[])
    make_db(tmp_path / "state_5.sqlite", columns="", script=[script])
    mode = {"history_mode": "paginated"}
    messages = [item("UserMessage", "u1", ordinal=1), item("AgentMessage", "a1", ordinal=2)]
    write_rollout(archived, thread_id(1), messages, **mode)
    segment = archived.with_name(archived.stem + f"_{thread_id(50)}.jsonl")
    base = {"thread_id": thread_id(1), "end_ordinal_exclusive": 9}
    write_rollout(segment, thread_id(1), [item("UserMessage", "u2", turn="t2", ordinal=10)], history_base=base, **mode)
    for number, of in ((2, thread_id(1)), (3, thread_id(50))):
        base = {"thread_id": of, "end_ordinal_exclusive": 99}
        origin = {"history_base": base, "forked_from_id": thread_id(1)}
        write_rollout(rollout_path(tmp_path, number), thread_id(number), [], **origin, **mode)
    report = await listener.scan(tmp_path)
    assert report.uncounted == ()
    assert {thread: told.message_count for thread, told in listener.threads.items()} == {
        thread_id(1): 2,
        thread_id(2): 2,
        thread_id(3): 3,
    }


async def test_a_moved_home_finds_its_rollouts(tmp_path: Path, listener: Listener) -> None:
    """DISC-03: its state DB still names the old place."""
    old = make_home(tmp_path / "old", 2)
    new = old.rename(tmp_path / "new")
    await listener.scan(new)
    thread = listener.threads[thread_id(1)]
    assert (thread.home, thread.message_count) == (str(new), 2)
    assert thread.rollout_path == str(rollout_path(new, 1))


async def test_a_thread_without_a_count_is_told_and_says_why(tmp_path: Path, listener: Listener) -> None:
    home = make_home(tmp_path, 4)
    rollout_path(home, 0).unlink()
    packed = rollout_path(home, 1).with_suffix(".jsonl.zst")
    rollout_path(home, 1).rename(packed)
    rollout_path(home, 2).write_bytes(b"{torn")
    report = await listener.scan(home)
    assert [thread.message_count for thread in listener.threads.values()] == [4, None, None, None]
    assert report.uncounted == (
        Told(reason="its first line is not a session_meta", count=1, example=thread_id(2)),
        Told(reason="compressed", count=1, example=thread_id(1)),
        Told(reason="its rollout is missing", count=1, example=thread_id(0)),
    )
    assert listener.threads[thread_id(0)].rollout_path is None, "what could not be resumed is told apart"
    assert listener.threads[thread_id(1)].rollout_path == str(packed)


@pytest.mark.parametrize("told", ["", "/", ".", "..", "a\x01", "x" * 9000, "sessions", "~", "/dev/zero", "/a/sessions"])
async def test_a_path_that_is_no_rollout_is_a_missing_one(tmp_path: Path, listener: Listener, told: str) -> None:
    """Nor is one read that would never end."""
    make_db(tmp_path / "state_5.sqlite", [row(1, rollout_path=told)])
    report = await listener.scan(tmp_path)
    assert [told.reason for told in report.uncounted] == ["its rollout is missing"]
    assert listener.threads[thread_id(1)].rollout_path is None


async def test_junk_rows_are_counted_with_their_reason(tmp_path: Path, listener: Listener) -> None:
    script = ["INSERT INTO threads(id) VALUES (NULL)", "INSERT INTO threads(id) VALUES (x'00')"]
    make_db(tmp_path / "state_5.sqlite", [row(1), {"id": "junk"}, {"id": "more junk"}], script=script)
    report = await listener.scan(tmp_path)
    assert listener.told == [thread_id(1)]
    assert report.skipped == (
        Told(reason="its id is not text", count=2, example=""),
        Told(reason="its id is not a thread id", count=2, example="more junk"),
    )


# --- homes in trouble ---


async def test_a_home_in_trouble_is_a_report_and_touches_no_other(tmp_path: Path, listener: Listener) -> None:
    """DISC-03, DISC-04."""
    (tmp_path / "empty").mkdir()
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "state_5.sqlite").write_bytes(b"no database" * 999)
    file = tmp_path / "file"
    file.touch()
    reports = {home.name: await listener.scan(home) for home in (tmp_path / "none", tmp_path / "empty", broken, file)}
    assert {name: report.trouble for name, report in reports.items()} == {
        "none": "no-home",
        "empty": "no-database",
        "broken": "unusable-database",
        "file": "no-home",
    }
    assert all(report.error and report.told == 0 for report in reports.values())
    assert (await listener.scan(make_home(tmp_path / "whole"))).told == 7
    assert len(listener.asked) == 3, "nobody was asked about a home that told nothing"


async def test_a_file_that_was_passed_over_is_reported(tmp_path: Path, listener: Listener) -> None:
    make_home(tmp_path, 1)
    (tmp_path / "state_6.sqlite").touch()
    report = await listener.scan(tmp_path)
    assert (report.told, report.error) == (1, None)
    (passed,) = report.passed_over
    assert (passed.path.name, passed.reason) == ("state_6.sqlite", "it has no table `threads`")


async def test_what_was_told_before_a_home_failed_stands(tmp_path: Path, listener: Listener) -> None:
    """DISC-15: nothing is taken back, and the next scan goes on."""
    home = make_home(tmp_path)
    database = home / "state_5.sqlite"

    async def emit(threads: tuple[KnownThread, ...]) -> None:
        await listener.emit(threads)
        if len(listener.pages) == 2:
            database.rename(home / "away")

    report = await scan(home, emit=emit, known_stamps=listener.known_stamps, page_size=3)
    assert (report.told, report.trouble) == (6, "read-failed")
    assert report.error is not None
    (home / "away").rename(database)
    assert (await listener.scan(home)).told == 1
    assert sorted(listener.told) == [thread_id(number) for number in range(7)]


async def test_what_the_listener_raises_is_not_the_homes_trouble(tmp_path: Path, listener: Listener) -> None:
    """A store that fails must not look like a home that does."""

    async def fail(threads: tuple[KnownThread, ...]) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("the store is full")

    with pytest.raises(RuntimeError, match="the store is full"):
        await scan(make_home(tmp_path), emit=fail, known_stamps=listener.known_stamps)


# --- ending one ---


async def test_a_scan_cancelled_between_pages_has_told_whole_pages(tmp_path: Path, listener: Listener) -> None:
    """DISC-12: the next scan goes on where it stopped."""
    home = make_home(tmp_path)
    with trio.CancelScope() as scope:

        async def emit(threads: tuple[KnownThread, ...]) -> None:
            await listener.emit(threads)
            scope.cancel()

        await scan(home, emit=emit, known_stamps=listener.known_stamps, page_size=3)
    assert scope.cancelled_caught
    assert len(listener.told) == 3
    assert (await listener.scan(home)).told == 4
    assert sorted(listener.told) == [thread_id(number) for number in range(7)]


@pytest.mark.parametrize("check_bytes", [1, lines.CHECK_BYTES], ids=["within a rollout", "between two"])
async def test_a_cancelled_scan_ends_within_a_page(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch, check_bytes: int
) -> None:
    """A stop of the daemon does not wait for a gigabyte to be read."""
    home = make_home(tmp_path)
    monkeypatch.setattr(lines, "CHECK_BYTES", check_bytes)
    reads = 0
    with trio.CancelScope() as scope:

        def tally(rollout: Rollout, find_base: FindBase, check: Check) -> Tally:
            nonlocal reads
            reads += 1
            trio.from_thread.run_sync(scope.cancel)
            return tally_rollout(rollout, find_base, check)

        monkeypatch.setattr(scanner, "tally_rollout", tally)
        await listener.scan(home)
    assert scope.cancelled_caught
    assert (reads, listener.told) == (1, [])


async def test_two_scans_at_once_tell_the_same(tmp_path: Path) -> None:
    """DISC-12: neither disturbs the other's locks or places."""
    home = make_home(tmp_path, 12)
    listeners = [Listener(), Listener()]
    async with trio.open_nursery() as nursery:
        for one in listeners:
            nursery.start_soon(one.scan, home, 2)
    assert listeners[0].threads == listeners[1].threads
    assert len(listeners[0].told) == 12
