"""One scan of one home: every thread that its state DB knows, told in pages, with its true message count.

A scan reads and tells; it decides nothing. Only what changed since it was last told is counted and told again, by
`KnownThread.stamp`: a digest of the row, and the rollout's size, because the row of a thread whose Codex was killed
may be older than its rollout. A scan that is cancelled, or whose home fails on page three, has told whole pages only,
and the next one goes on from what was remembered of them (DISC-12, DISC-15).
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import trio

from discovery.homes import HomeUnreadable, PassedOver, StateFile, Trouble, find_state_file
from discovery.listed import Listing, listed_pages, with_tags
from discovery.rollouts import Base, Meta, Tally, tally_rollout
from discovery.segments import Rollout, archive_of, find_rollout, find_segment
from discovery.source import read_source
from discovery.state_db import Page, StateDb, title_of
from state.records import KnownThread, ThreadId

# About 300 kB of records, and few milliseconds of reading, between two looks at whether to go on.
PAGE_THREADS: Final = 200

Emit = Callable[[tuple[KnownThread, ...]], Awaitable[None]]
T = TypeVar("T")
KnownStamps = Callable[[Sequence[ThreadId]], Awaitable[Mapping[ThreadId, str]]]


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """How often something was the case, and one place where it was."""

    reason: str
    count: int
    example: str


class ScanReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan did. `told` threads were emitted, `unchanged` ones were not; `skipped` rows are no threads;
    `uncounted` ones were told without a message count. With an `error`, what was told before it stands. `listed`:
    Codex was asked, because its state DB could not be read."""

    home: str
    state_file: str | None = None
    flaw: str | None = None
    passed_over: tuple[PassedOver, ...] = ()
    told: int = 0
    unchanged: int = 0
    skipped: tuple[Told, ...] = ()
    uncounted: tuple[Told, ...] = ()
    duration_ms: int = 0
    trouble: Trouble | None = None
    error: str | None = None
    listed: bool = False


async def scan(
    home: Path,
    *,
    emit: Emit,
    known_stamps: KnownStamps,
    page_size: int = PAGE_THREADS,
    sqlite_home: Path | None = None,
) -> ScanReport:
    """Tell `emit` of the home's threads, a page at a time, and return what came of it.

    `known_stamps` gives the stamps of those threads that need not be told again while they are unchanged; a thread that
    is to be told in any case (un-ignored, released) is left out of its answer. `emit` is awaited before the next page
    is read. A scan may be cancelled at any point.
    Errors: none about the home, which are in the report; what `emit` and `known_stamps` raise passes through.
    """
    began = trio.current_time()
    counts = _Counts()
    file: StateFile | None = None
    trouble: HomeUnreadable | None = None
    try:
        file = await _in_thread(partial(find_state_file, home, sqlite_home))
        with contextlib.closing(StateDb(file)) as database:
            await _tell_all(home, database, _Telling(emit, known_stamps, counts), page_size)
    except HomeUnreadable as error:
        trouble = error
    return ScanReport(
        home=str(home),
        state_file=str(file.path) if file else None,
        flaw=file.flaw if file else None,
        passed_over=file.passed_over if file else (),
        told=counts.told,
        unchanged=counts.unchanged,
        skipped=counts.skipped.as_told(),
        uncounted=counts.uncounted.as_told(),
        duration_ms=round((trio.current_time() - began) * 1000),
        trouble=trouble.kind if trouble else None,
        error=trouble.reason if trouble else None,
    )


async def scan_listed(
    home: Path, listing: Listing, why: str, *, emit: Emit, known_stamps: KnownStamps, page_size: int = PAGE_THREADS
) -> ScanReport:
    """Tell `emit` of the threads that the home's own Codex lists, as `scan` does of those in its state DB; `why` that
    could not be read.

    Errors: none about the home or its Codex, which are in the report.
    """
    began = trio.current_time()
    counts = _Counts()
    error: str | None = None
    paths: dict[str, str] = {}
    files = _Files(home, paths.get)
    telling = _Telling(emit, known_stamps, counts)
    try:
        async with contextlib.aclosing(listed_pages(home, listing, page_size)) as pages:
            async for threads in pages:
                if not threads:
                    continue
                paths.update((thread.thread_id, thread.rollout_path) for thread in threads if thread.rollout_path)
                placed, rollouts = await _in_thread(partial(files.placed, threads))
                changed = await telling.changed(placed)
                await telling.tell(files, await with_tags(home, listing, changed), rollouts)
    except HomeUnreadable as trouble:
        error = f"{why}; and Codex does not list its threads: {trouble.reason}"
    return ScanReport(
        home=str(home),
        flaw=None if error else f"Codex listed its threads, because its state DB could not be read: {why}",
        told=counts.told,
        unchanged=counts.unchanged,
        uncounted=counts.uncounted.as_told(),
        duration_ms=round((trio.current_time() - began) * 1000),
        trouble="read-failed" if error else None,
        error=error,
        listed=True,
    )


class _Reasons:
    def __init__(self) -> None:
        self._told: dict[str, Told] = {}

    def add(self, reason: str, example: str, count: int = 1) -> None:
        before = self._told.get(reason, Told(reason=reason, count=0, example=example))
        self._told[reason] = msgspec.structs.replace(before, count=before.count + count)

    def as_told(self) -> tuple[Told, ...]:
        return tuple(self._told.values())


class _Counts:
    def __init__(self) -> None:
        self.told = 0
        self.unchanged = 0
        self.skipped = _Reasons()
        self.uncounted = _Reasons()

    def tell(self, threads: Sequence[KnownThread], tallies: Sequence[Tally]) -> None:
        self.told += len(threads)
        for thread, tally in zip(threads, tallies, strict=True):
            if tally.reason is not None:
                self.uncounted.add(tally.reason, thread.thread_id)


class _Files:
    """The blocking half: the rollouts of one home. Runs in one worker thread at a time. `rollout_of` says where the
    home's own record has the rollout of a thread."""

    def __init__(self, home: Path, rollout_of: Callable[[str], str | None]) -> None:
        self._home = home
        self._rollout_of = rollout_of

    def placed(self, threads: Sequence[KnownThread]) -> tuple[tuple[KnownThread, ...], dict[ThreadId, Rollout]]:
        """Return the threads with stamps and paths that say what lies on disk, and the rollouts that do."""
        rollouts: dict[ThreadId, Rollout] = {}
        placed = []
        for thread in threads:
            rollout = find_rollout(self._home, thread.rollout_path)
            if rollout is not None:
                rollouts[thread.thread_id] = rollout
            path, size_now = (str(rollout.path), rollout.bytes) if rollout else (None, "gone")
            placed.append(msgspec.structs.replace(thread, rollout_path=path, stamp=f"{thread.stamp}-{size_now}"))
        return tuple(placed), rollouts

    def tally(self, rollouts: Sequence[Rollout | None]) -> list[Tally]:
        """Return what each rollout holds. Ends at once when the scan is cancelled."""
        check = trio.from_thread.check_cancelled
        tallies = []
        for rollout in rollouts:
            check()
            if rollout is None:
                tallies.append(Tally(messages=None, reason="its rollout is missing"))
            else:
                tallies.append(tally_rollout(rollout, self._find_base, check))
        return tallies

    def _find_base(self, rollout: Rollout, meta: Meta, base: Base) -> Rollout | None:
        # A base lies beside the file that goes on from it, or where its own thread's newest file lies: whose it is the
        # meta says for a fork of a reverted thread, the base's id for every other.
        folders = [rollout.path.parent]
        for owner in (base.thread_id, meta.forked_from_id):
            told = self._rollout_of(owner) if owner else None
            if told is not None and (newest := find_rollout(self._home, told)) is not None:
                folders.append(newest.path.parent)
        return find_segment([*folders, archive_of(self._home)], base.thread_id)


class _Telling:
    """Tells a page's threads, as far as they changed, and counts what it told."""

    def __init__(self, emit: Emit, known_stamps: KnownStamps, counts: _Counts) -> None:
        self._emit = emit
        self._known_stamps = known_stamps
        self.counts = counts

    async def changed(self, threads: Sequence[KnownThread]) -> tuple[KnownThread, ...]:
        """Return those that are to be told."""
        stamps = await self._known_stamps([thread.thread_id for thread in threads])
        changed = tuple(thread for thread in threads if stamps.get(thread.thread_id) != thread.stamp)
        self.counts.unchanged += len(threads) - len(changed)
        return changed

    async def tell(self, files: _Files, changed: tuple[KnownThread, ...], rollouts: Mapping[ThreadId, Rollout]) -> None:
        """Count their messages and tell them."""
        if not changed:
            return
        wanted = [rollouts.get(thread.thread_id) for thread in changed]
        tallies = await _in_thread(partial(files.tally, wanted))
        await self._emit(tuple(_counted(*pair) for pair in zip(changed, tallies, strict=True)))
        self.counts.tell(changed, tallies)


async def _tell_all(home: Path, database: StateDb, telling: _Telling, size: int) -> None:
    files, skipped = _Files(home, database.rollout_of), telling.counts.skipped
    without_id = await _in_thread(database.rows_without_id)
    if without_id:
        skipped.add("its id is not text", "", without_id)
    after: bytes | None = None
    while True:
        page, threads, rollouts = await _in_thread(partial(_page, database, files, after, size))
        for bad in page.bad:
            skipped.add(bad.reason, bad.id)
        await telling.tell(files, await telling.changed(threads), rollouts)
        if page.after is None:
            return
        after = page.after


def _page(
    database: StateDb, files: _Files, after: bytes | None, size: int
) -> tuple[Page, tuple[KnownThread, ...], dict[ThreadId, Rollout]]:
    page = database.page(after, size)
    return (page, *files.placed(page.threads))


def _counted(thread: KnownThread, tally: Tally) -> KnownThread:
    """The thread with its count, and with what the rollout tells where the row does not."""
    preview = thread.preview or tally.preview
    parent = thread.parent_thread_id
    if parent is None and tally.parent is not None and read_source(thread.source).subagent:
        parent = ThreadId(tally.parent)
    return msgspec.structs.replace(
        thread,
        message_count=tally.messages,
        preview=preview,
        title=title_of(thread.title or "") or title_of(preview),
        parent_thread_id=parent,
    )


async def _in_thread(work: Callable[[], T]) -> T:
    """Run blocking work in a worker thread. A cancelled scan waits for it: a page takes milliseconds and is bounded by
    SQLite's busy timeout, a tally asks every few MiB whether to go on."""
    return await trio.to_thread.run_sync(work)
