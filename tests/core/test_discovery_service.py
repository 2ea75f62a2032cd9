"""When homes are scanned: on a change once it rests, each home for itself, and never so often that scanning is all that
is done."""

import itertools
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from discovery.homes import Marks
from discovery.listed import ListedPage
from discovery.scanner import Emit, KnownStamps, ScanReport
from state.errors import StoreFull
from state.records import ThreadId
from state.store import Store
from state.views import Standing
from termald.core.inputs import Input, ScanNews
from termald.scanning import LISTED_PAUSE_S, LOOKS_MAX, SHARE, ScanService
from termald.writer import Writer

A, B = Path("/a"), Path("/b")


class Bench:
    """A scanner whose homes, writer and store are in the test's hand."""

    def __init__(self) -> None:
        self.marks: dict[Path, int] = {A: 0, B: 0}
        self.restless: set[Path] = set()
        self.scans: list[tuple[float, Path]] = []
        self.scan_s = 0.0
        self.news: list[ScanNews] = []
        self.errors: list[Exception] = []
        self.trouble: dict[Path, str] = {}
        self.pages = 1
        self.answers = True
        self.lists: list[tuple[float, Path, bool]] = []
        self.scanner = ScanService(
            [A, B],
            cast(Store, self),
            cast(Writer, self),
            lambda: 7,
            page_threads=10,
            watch_s=1.0,
            sqlite_home=Path("/sqlite"),
            listing=self,
            scan=self.scan,
            look=self.look,
        )

    # --- the writer and the store, as far as they are needed ---

    def put(self, happened: Input) -> None:
        assert isinstance(happened, ScanNews)
        self.news.append(happened)

    async def settled(self) -> None:
        await trio.lowlevel.checkpoint()

    async def standings(self, threads: Sequence[ThreadId]) -> tuple[Standing, ...]:
        await trio.lowlevel.checkpoint()
        if self.errors:
            raise self.errors.pop(0)
        return ()

    # --- the homes ---

    async def look(self, home: Path, sqlite_home: Path | None) -> Marks:
        await trio.lowlevel.checkpoint()
        assert sqlite_home == (Path("/sqlite") if home == A else None), "the variable is of the Codex that we run"
        if home in self.restless:
            self.marks[home] += 1
        return frozenset({(str(home), self.marks[home], 0)})

    async def scan(
        self, home: Path, *, emit: Emit, known_stamps: KnownStamps, page_size: int, sqlite_home: Path | None = None
    ) -> ScanReport:
        self.scans.append((trio.current_time(), home))
        for _ in range(self.pages):
            await trio.sleep(self.scan_s / self.pages)
            await known_stamps([ThreadId(str(number)) for number in range(page_size)])
        error = self.trouble.get(home)
        return ScanReport(home=str(home), error=error, trouble="read-failed" if error else None)

    # --- the Codex of the first home ---

    async def page(self, home: Path, cursor: str | None, size: int, *, archived: bool) -> ListedPage:
        await trio.lowlevel.checkpoint()
        self.lists.append((trio.current_time(), home, archived))
        return ListedPage(threads=(), following=None)

    async def tag_of(self, thread: ThreadId) -> str | None:
        raise AssertionError(f"no thread was listed, and {thread} is asked for")

    # --- what is seen ---

    def scanned(self) -> list[Path]:
        """Return the homes that were scanned since this was asked last."""
        homes = [home for _, home in self.scans]
        self.scans.clear()
        return homes


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A scanner that watches, after its scan at boot."""
    bench = Bench()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.scanner.run)
        nursery.start_soon(bench.scanner.watch)
        bench.scanner.scan_now()
        await trio.sleep(5)
        assert bench.scanned() == [A, B]
        yield bench
        nursery.cancel_scope.cancel()


async def test_nothing_is_scanned_while_nothing_changes(bench: Bench, autojump_clock: MockClock) -> None:
    await trio.sleep(1_000)
    assert bench.scanned() == []


async def test_a_change_is_scanned_once_and_only_its_home(bench: Bench, autojump_clock: MockClock) -> None:
    bench.marks[B] += 1
    await trio.sleep(1_000)
    assert bench.scanned() == [B]


async def test_a_change_is_scanned_when_it_rests(bench: Bench, autojump_clock: MockClock) -> None:
    bench.restless.add(A)
    await trio.sleep(2.5)
    assert bench.scanned() == []
    bench.restless.clear()
    await trio.sleep(3)
    assert bench.scanned() == [A]


async def test_what_never_rests_is_scanned_all_the_same(bench: Bench, autojump_clock: MockClock) -> None:
    bench.restless.add(A)
    await trio.sleep(LOOKS_MAX * 10 + 0.5)
    assert 8 <= len(bench.scanned()) <= 10


async def test_scans_that_nobody_asked_for_take_a_tenth_of_the_time(bench: Bench, autojump_clock: MockClock) -> None:
    bench.scan_s = 10.0
    bench.restless.add(A)
    await trio.sleep(1_000)
    begun = [at for at, _ in bench.scans]
    assert 8 <= len(begun) <= 10
    assert all(later - earlier >= 10.0 * (SHARE + 1) for earlier, later in itertools.pairwise(begun))
    bench.scanned()
    bench.restless.clear()
    bench.scanner.scan_now()  # but who asks does not wait
    await trio.sleep(1)
    assert bench.scanned() == [A]


async def test_what_changes_during_a_scan_is_scanned_after_it(bench: Bench, autojump_clock: MockClock) -> None:
    bench.scan_s = 10.0
    bench.scanner.scan_now()
    await trio.sleep(5)
    bench.marks[A] += 1
    bench.scanned()
    await trio.sleep(500)
    assert bench.scanned() == [B, A]


async def test_the_trouble_of_one_home_stays_in_sight_while_the_other_is_scanned(
    bench: Bench, autojump_clock: MockClock
) -> None:
    bench.trouble[B] = "locked"
    bench.marks[B] += 1
    await trio.sleep(20)
    bench.marks[A] += 1
    await trio.sleep(20)
    assert bench.scanned() == [B, A]
    view = bench.scanner.view
    assert (view.status, view.reason) == ("failed", "/b: locked")
    assert view.report_json is not None and '"/a"' in view.report_json
    del bench.trouble[B]
    bench.marks[B] += 1
    await trio.sleep(20)
    assert (bench.scanner.view.status, bench.scanner.view.reason) == ("idle", None)


async def test_a_scan_that_the_store_ended_is_begun_again_by_itself(bench: Bench, autojump_clock: MockClock) -> None:
    bench.errors.append(StoreFull("full"))
    bench.scanner.scan_now()
    await trio.sleep(0.1)
    assert (bench.scanner.view.status, bench.scanner.view.reason) == ("failed", "full")
    assert bench.scanned() == [A]
    await trio.sleep(10)
    assert sorted(bench.scanned()) == [A, B]
    assert bench.scanner.view.reason is None


async def test_a_long_scan_says_how_far_it_is_and_does_not_flood(bench: Bench, autojump_clock: MockClock) -> None:
    bench.news.clear()
    bench.pages, bench.scan_s = 1_000, 20.0
    bench.scanner.scan_now()
    await trio.sleep(10.05)
    view = bench.scanner.view
    assert view.status == "scanning" and view.report_json is not None and '"seen":' in view.report_json
    await trio.sleep(40)
    kinds: list[Any] = [news.kind for news in bench.news]
    assert (kinds[0], kinds[-1]) == ("started", "finished")
    assert 36 <= kinds.count("progress") <= 40  # two homes of 20 s
    bench.news.clear()
    bench.pages, bench.scan_s = 1_000, 0.5
    bench.scanner.scan_now()
    await trio.sleep(2)
    assert [news.kind for news in bench.news] == ["started", "finished"]


async def test_a_home_that_can_be_read_is_not_listed(bench: Bench, autojump_clock: MockClock) -> None:
    bench.marks[A] += 1
    await trio.sleep(100)
    assert (bench.scanned(), bench.lists) == ([A], [])


async def test_codex_lists_the_threads_of_a_home_that_cannot_be_read(bench: Bench, autojump_clock: MockClock) -> None:
    bench.trouble |= {A: "junk", B: "locked"}
    bench.scanner.scan_now()
    await trio.sleep(1)
    assert [(home, archived) for _, home, archived in bench.lists] == [(A, False), (A, True)], "no foreign home's"
    view = bench.scanner.view
    assert (view.status, view.reason) == ("failed", "/b: locked")
    assert view.report_json is not None and '"listed":true' in view.report_json
    # No state DB tells of changes: the list is asked for again, now and then, and not any more once there is one.
    bench.lists.clear()
    await trio.sleep(10 * LISTED_PAUSE_S)
    begun = [at for at, _, archived in bench.lists if not archived]
    assert 8 <= len(begun) <= 10
    assert all(later - earlier >= LISTED_PAUSE_S for earlier, later in itertools.pairwise(begun))
    bench.scan_s = LISTED_PAUSE_S  # a long one is followed by a longer rest
    bench.lists.clear()
    await trio.sleep(30 * LISTED_PAUSE_S)
    assert 2 <= len([at for at, _, archived in bench.lists if not archived]) <= 4
    bench.scan_s = 0.0
    bench.trouble.clear()
    bench.scanner.scan_now()
    await trio.sleep(2 * LISTED_PAUSE_S)
    bench.scanned()
    bench.lists.clear()
    await trio.sleep(10 * LISTED_PAUSE_S)
    assert (bench.scanned(), bench.lists) == ([], [])


async def test_a_codex_that_is_not_there_yet_is_asked_once_it_is(bench: Bench, autojump_clock: MockClock) -> None:
    bench.answers = False
    bench.trouble[A] = "junk"
    bench.scanner.scan_now()
    await trio.sleep(100)
    assert (bench.scanned(), bench.lists) == ([A, B], [])
    assert (bench.scanner.view.status, bench.scanner.view.reason) == ("failed", "/a: junk")
    bench.answers = True
    await trio.sleep(3)
    assert (bench.scanned(), len(bench.lists)) == ([A], 2)
    assert (bench.scanner.view.status, bench.scanner.view.reason) == ("idle", None)
