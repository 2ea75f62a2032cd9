"""What the word "synced" is worth: crashes and power cuts at every operation on the disk.

I5 and I10 rest on this: what was promised to somebody was committed with a sync before they heard of it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from store.builders import event, runtime, session
from store.power import Disk, Policy, everything, nothing, some

from state.errors import StoreError, StoreFull, StoreIOError, StoreStuck
from state.records import Changes, Seq
from state.store import Store, open_store


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    vfs = Disk(f"disk of {request.node.name}")
    yield vfs
    vfs.unregister()


def batch(number: int) -> Changes:
    """Two rows in two tables that must never be seen apart, and enough bytes for several sectors and pages."""
    return Changes(
        events=(event(number),), sessions=(session("s1", message_count=number, preview="x" * (number % 7) * 1_500),)
    )


async def found_in(folder: Path, disk: Disk) -> int:
    """Open what a crash left, and return the last batch that is there whole; all before it are there too."""
    async with open_store(folder, vfs=disk.name) as store:
        events = (await store.events(Seq(0), 1_000)).events
        image = await store.snapshot()
    last = len(events)
    assert [one.seq for one in events] == list(range(1, last + 1))
    assert [view.record.message_count for view in image.sessions] == ([last] if last else [])
    return last


class Cut(NamedTuple):
    """What would be found after a cut at one operation, and what had been told by then."""

    files: tuple[tuple[str, bytes], ...]
    promised: int
    """The last batch whose commit with a sync has returned."""
    returned: int
    """The last batch whose commit has returned."""


async def every_cut(disk: Disk, folder: Path, policies: list[Policy]) -> list[list[Cut]]:
    """Make a store, commit, checkpoint, close; return all that could be found after a cut at any operation, by
    policy."""
    cuts: list[dict[Cut, None]] = [{} for _ in policies]  # each once, in order
    promised = returned = 0

    def cut(_: str) -> None:
        for found, policy in zip(cuts, policies, strict=True):
            found[Cut(tuple(disk.after_a_cut(folder, policy).items()), promised, returned)] = None

    disk.on_operation = cut
    async with open_store(folder, vfs=disk.name) as store:
        for number in range(1, 8):
            sync = number % 3 == 0
            await store.commit(batch(number), sync=sync)
            returned = number
            promised = number if sync else promised
    cut("end")
    disk.on_operation = lambda kind: None
    return [list(found) for found in cuts]


def lay_out(cut: Cut, folder: Path) -> None:
    folder.mkdir()
    for name, content in cut.files:
        (folder / name).write_bytes(content)


async def found_after(cut: Cut, folder: Path, disk: Disk) -> int:
    """Return the last batch that a start on these files finds."""
    lay_out(cut, folder)
    return await found_in(folder, disk)


async def test_no_crash_takes_what_was_promised(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every write, sync, truncation and deletion, those of the schema's making and of the checkpoints included.

    Every cut leaves a state that opens (not damaged, not foreign, not half migrated), with whole batches, in order. A
    killed process loses none that returned; a power cut none that was synced.
    """
    monkeypatch.setattr("state.schema.CHECKPOINT_PAGES", 8)  # so that several checkpoints are among them
    by_power, by_half, by_kill = await every_cut(disk, tmp_path / "state", [nothing, some(1), everything])
    assert min(len(by_half), len(by_kill)) > 200
    lost_unsynced = False
    for at, cut in enumerate(by_power + by_half[::3]):  # each third one: they are dense, and an opening takes 10 ms
        last = await found_after(cut, tmp_path / f"power{at}", disk)
        assert cut.promised <= last <= cut.returned + 1
        lost_unsynced |= last < cut.returned
    for at, cut in enumerate(by_kill[::3]):
        last = await found_after(cut, tmp_path / f"kill{at}", disk)
        assert cut.returned <= last <= cut.returned + 1
    # The control: the disk of this test does lose what nobody synced, or the above would prove nothing.
    assert lost_unsynced


async def test_without_a_sync_the_last_commit_is_lost(disk: Disk, tmp_path: Path) -> None:
    """The control, by itself: the same batch, with and without."""
    for sync, last in ((True, 2), (False, 1)):
        folder = tmp_path / f"state-{sync}"
        async with open_store(folder, vfs=disk.name) as store:
            await store.commit(batch(1), sync=True)
            await store.commit(batch(2), sync=sync)
            cut = Cut(tuple(disk.after_a_cut(folder, nothing).items()), 1, 2)
        assert await found_after(cut, tmp_path / f"found-{sync}", disk) == last


def failing(kind: str, at: int, error: Exception) -> Callable[[str], None]:
    """Return a disk's fault: the operation of that kind fails, `at` of them from now on, once."""
    seen = 0

    def fail(operation: str) -> None:
        nonlocal seen
        if operation == kind:
            seen += 1
            if seen == at:
                raise error

    return fail


def io_error(extended: int) -> apsw.IOError:
    error = apsw.IOError("the disk of this test")
    error.extendedresult = extended  # type: ignore[attr-defined]  # apsw's stub lacks it
    return error


WRITES = 12  # of the second batch's pages, each with its header; the last one makes a commit of it
FAULTS = [
    *((("write", at, apsw.FullError("the disk of this test")), StoreFull) for at in range(1, WRITES + 1)),
    *((("write", at, io_error(apsw.SQLITE_IOERR_WRITE)), StoreIOError) for at in range(1, WRITES + 1)),
    (("sync", 1, io_error(apsw.SQLITE_IOERR_FSYNC)), StoreIOError),
]


@pytest.mark.parametrize(("fault", "error"), FAULTS)
async def test_of_a_failed_commit_nothing_is_there(
    disk: Disk, tmp_path: Path, fault: tuple[str, int, Exception], error: type[StoreError]
) -> None:
    """SETUP-14: not now, not after a crash, not when the store has recovered; then the same batch is taken.

    A sync that fails comes after the whole batch was written. Left as it is, a start after a crash would find it
    there and take it for committed: a prompt whose caller was told that it failed would run, beside the one that he
    sent again.
    """
    folder = tmp_path / "state"
    async with open_store(folder, vfs=disk.name) as store:
        await store.commit(batch(1), sync=True)
        disk.on_operation = failing(*fault)
        with pytest.raises(error):
            await store.commit(batch(2), sync=True)
        disk.on_operation = lambda kind: None
        assert not store.stuck
        assert await store.event_bounds() == (1, 1)
        cuts = {name: disk.after_a_cut(folder, policy) for name, policy in (("kill", everything), ("power", nothing))}
        for name, files in cuts.items():
            assert await found_after(Cut(tuple(files.items()), 1, 1), tmp_path / name, disk) == 1
        await store.commit(batch(2), sync=True)
    assert await found_in(folder, disk) == 2


async def test_a_disk_that_stays_broken_leaves_the_outcome_unknown_and_says_so(disk: Disk, tmp_path: Path) -> None:
    """A batch that may come back must not be reported as failed; and nothing is promised on such a disk."""

    def broken(operation: str) -> None:
        if operation == "sync":
            raise io_error(apsw.SQLITE_IOERR_FSYNC)

    async with open_store(tmp_path, vfs=disk.name) as store:
        await store.commit(batch(1), sync=True)
        disk.on_operation = broken
        with pytest.raises(StoreStuck):
            await store.commit(batch(2), sync=True)
        disk.on_operation = lambda kind: None
        with pytest.raises(StoreStuck, match="earlier"):
            await store.commit(batch(2), sync=True)
        assert await store.event_bounds() == (1, 1)


async def trouble(store: Store) -> StoreError | None:
    """Return what readiness would be told."""
    try:
        await store.check_writes()
    except StoreError as error:
        return error
    return None


@contextmanager
def full(disk: Disk) -> Iterator[list[str]]:
    """Let the disk take nothing until the block ends; gives what it was asked for."""
    asked: list[str] = []

    def refuse(operation: str) -> None:
        asked.append(operation)
        raise apsw.FullError("no space left")

    disk.on_operation = refuse
    try:
        yield asked
    finally:
        disk.on_operation = lambda kind: None


async def test_a_disk_that_takes_nothing_is_told_before_anybody_writes_and_comes_back_by_itself(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(tmp_path, vfs=disk.name) as store:
        monkeypatch.setattr("state.store.LOOK_S", 0.0)
        assert await trouble(store) is None
        with full(disk):
            assert isinstance(await trouble(store), StoreFull)
        assert await trouble(store) is None
        assert (await store.boot()).next_seq == 1  # asking left nothing behind
        await store.commit(batch(1), sync=True)


async def test_what_a_commit_met_is_known_without_asking_the_disk(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readiness may be asked as often as anybody likes."""
    monkeypatch.setattr("state.store.LOOK_S", 3_600.0)
    async with open_store(tmp_path, vfs=disk.name) as store:
        assert await trouble(store) is None
        with full(disk) as asked:
            with pytest.raises(StoreFull):
                await store.commit(batch(1), sync=True)
            met = len(asked)
            for _ in range(10):
                assert isinstance(await trouble(store), StoreFull)
            assert len(asked) == met
        assert isinstance(await trouble(store), StoreFull)  # nobody has written since
        await store.commit(batch(1), sync=True)
        assert await trouble(store) is None


async def test_a_write_that_hangs_is_given_up_and_the_rest_refused(disk: Disk, tmp_path: Path) -> None:
    """The daemon must be able to say that its disk hangs. Its outcome is unknown: here it is there in the end."""
    hanging, go_on = threading.Event(), threading.Event()

    def hang(operation: str) -> None:
        if operation == "sync" and not go_on.is_set():
            hanging.set()
            go_on.wait(timeout=20)

    async with open_store(tmp_path, vfs=disk.name, stuck_s=0.05) as store:
        disk.on_operation = hang
        with pytest.raises(StoreStuck, match="within"):
            await store.commit(batch(1), sync=True)
        assert hanging.is_set()
        assert store.stuck
        with pytest.raises(StoreStuck, match="earlier"):
            await store.put_runtime(runtime("r1"))
        assert await store.event_bounds() == (1, 0)
        go_on.set()
    disk.on_operation = lambda kind: None
    assert await found_in(tmp_path, disk) == 1
