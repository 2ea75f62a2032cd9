"""When the homes are scanned: at boot, on demand, and when Codex's state DB changed. What a scan finds is decided by
the writer.

The first home is the one that Codex runs in; the others are foreign and only ever read. One home's trouble is in its
own report and touches no other. A scan never delays readiness, and a scan that is asked for while one runs follows it.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import structlog
import trio

from discovery.homes import Marks, marks_of
from discovery.listed import Listing
from discovery.lookup import Held, look_up
from discovery.scanner import Emit, KnownStamps, ScanReport, scan, scan_listed
from discovery.writers import writers_of
from state.errors import StoreError, StoreStuck
from state.records import KnownThread, SessionId, ThreadId
from state.store import Store
from termald.core.inputs import ScanNews, ThreadsSeen
from termald.core.state import State
from termald.core.wanted import wanted
from termald.engine import DiscoveryView
from termald.intake import decisions, is_settled
from termald.writer import Writer

PROGRESS_S: Final = 1.0
"""Between two words of progress: 100,000 threads take some 20 s, and so 20 events in a log that is kept."""
LOOKS_MAX: Final = 5
"""Looks at a state DB that does not come to rest, before it is scanned all the same: some Codex is always writing."""
SHARE: Final = 9
"""Pauses after a scan, in its own durations, before another that nobody asked for. A busy Codex changes its state DB
all the time; a home of 100,000 threads takes 6 s of a core to look through."""
LIST_THREADS_MAX: Final = 100
"""Threads of a page of Codex's list: it gives no more at once, whatever is asked for."""
LISTED_PAUSE_S: Final = 60.0
"""Between two lists of Codex's that nobody asked for. Without its state DB there is no cheap sign that something
changed."""

log = structlog.get_logger()


class AnsweringListing(Listing, Protocol):
    """Codex's own list of its threads, where there is a process to ask."""

    @property
    def answers(self) -> bool:
        """Whether there is one now."""


class Scan(Protocol):
    """One scan of one home: `discovery.scanner.scan`, or a test's."""

    async def __call__(
        self, home: Path, *, emit: Emit, known_stamps: KnownStamps, page_size: int, sqlite_home: Path | None = None
    ) -> ScanReport: ...


async def look_at_marks(home: Path, sqlite_home: Path | None) -> Marks:
    """Return what tells that a home's state DB was written. In a thread: it may lie on a network's file system."""
    return await trio.to_thread.run_sync(marks_of, home, sqlite_home)


def _is_trouble(report: ScanReport) -> bool:
    """Whether something is wrong. A home that Codex was never used in holds no threads, and that is no trouble."""
    return report.error is not None and report.trouble not in ("no-home", "no-database")


def report_fields(report: ScanReport) -> dict[str, Any]:
    """Return a scan's report as the API and the event tell it."""
    return {
        "home": report.home,
        "stateFile": report.state_file,
        "flaw": report.flaw,
        "listed": report.listed,
        "passedOver": [{"path": str(one.path), "reason": one.reason} for one in report.passed_over],
        "told": report.told,
        "unchanged": report.unchanged,
        "skipped": msgspec.to_builtins(report.skipped),
        "uncounted": msgspec.to_builtins(report.uncounted),
        "durationMs": report.duration_ms,
        "trouble": report.trouble,
        "error": report.error,
    }


class ScanService:
    """Scans the homes that it was asked to, one after the other, whenever it is woken."""

    def __init__(
        self,
        homes: Sequence[Path],
        store: Store,
        writer: Writer,
        now_ms: Callable[[], int],
        *,
        page_threads: int,
        watch_s: float,
        sqlite_home: Path | None = None,
        listing: AnsweringListing | None = None,
        scan: Scan = scan,
        look: Callable[[Path, Path | None], Awaitable[Marks]] = look_at_marks,
    ) -> None:
        """`sqlite_home`: where the environment tells the Codex of the first home to keep its state DB. `listing`: that
        Codex, to be asked where its state DB cannot be read."""
        self._homes = tuple(homes)
        self._store = store
        self._writer = writer
        self._now_ms = now_ms
        self._page_threads = page_threads
        self._watch_s = watch_s
        self._sqlite_home = sqlite_home
        self._listing = listing
        self._list_at: float | None = None
        self._scan_home = scan
        self._look = look
        self._wanted = trio.Event()
        self._asked: dict[Path, None] = {}
        self._reports: dict[Path, ScanReport] = {}
        self._covered: dict[Path, Marks | None] = {}
        self._rests_until = 0.0
        self._view = DiscoveryView(status="idle")

    @property
    def view(self) -> DiscoveryView:
        """The running scan, or the last one."""
        return self._view

    def scan_now(self) -> None:
        """Ask for a scan of every home; returns at once."""
        self._ask(self._homes)

    def _ask(self, homes: Sequence[Path]) -> None:
        self._asked |= dict.fromkeys(homes)
        self._wanted.set()

    # --- scans ---

    async def run(self) -> None:
        """Scan when asked, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            homes, self._asked = tuple(self._asked), {}
            began = trio.current_time()
            try:
                await self._scan_all(homes)
            except StoreStuck:
                raise
            except StoreError as error:
                # The next scan starts over; nothing was decided on what could not be compared.
                log.warning("the scan was given up", reason=str(error), slug=error.slug)
                self._covered |= dict.fromkeys(homes)
                started = self._view.started_at_ms
                self._view = DiscoveryView(
                    status="failed", started_at_ms=started, finished_at_ms=self._now_ms(), reason=str(error)
                )
            ended = trio.current_time()
            self._rests_until = ended + SHARE * (ended - began)

    async def _scan_all(self, homes: Sequence[Path]) -> None:
        started = self._now_ms()
        self._view = DiscoveryView(status="scanning", started_at_ms=started)
        self._news("started", {"homes": [str(home) for home in homes]})
        for home in homes:
            # Before it is read: what is written meanwhile is for the next scan.
            self._covered[home] = await self._marks(home)
            self._reports[home] = await self._scan(home)
        # What was found is decided before the scan counts as finished: who waits for the end sees its sessions.
        await self._writer.settled()
        reports = [self._reports[home] for home in self._homes if home in self._reports]
        troubles = [f"{report.home}: {report.error}" for report in reports if _is_trouble(report)]
        self._view = DiscoveryView(
            status="failed" if troubles else "idle",
            started_at_ms=started,
            finished_at_ms=self._now_ms(),
            report_json=msgspec.json.encode([report_fields(report) for report in reports]).decode(),
            reason="; ".join(troubles) or None,
        )
        self._news("finished", {"homes": [report_fields(self._reports[home]) for home in homes]})

    async def _scan(self, home: Path) -> ScanReport:
        before = self._reports.get(home)
        expected = before.told + before.unchanged if before is not None else 0
        progress = _Progress(home, self._tell_progress, expected or None)

        async def emit(threads: tuple[KnownThread, ...]) -> None:
            seen = ThreadsSeen(at_ms=self._now_ms(), home=str(home), threads=threads, foreign=self._is_foreign(home))
            self._writer.put(seen)
            await self._writer.settled()
            progress.told += len(threads)

        async def known_stamps(threads: Sequence[ThreadId]) -> Mapping[ThreadId, str]:
            progress.seen(len(threads))
            return await self._known_stamps(home, threads)

        report = await self._scan_one(home, emit, known_stamps)
        if _is_trouble(report):
            log.warning("a home could not be scanned", home=str(home), reason=report.error)
        return report

    async def _scan_one(self, home: Path, emit: Emit, known_stamps: KnownStamps) -> ScanReport:
        report = await self._scan_home(
            home,
            emit=emit,
            known_stamps=known_stamps,
            page_size=self._page_threads,
            sqlite_home=None if self._is_foreign(home) else self._sqlite_home,
        )
        return report if self._is_foreign(home) else await self._or_listed(home, report, emit, known_stamps)

    async def _or_listed(self, home: Path, report: ScanReport, emit: Emit, known_stamps: KnownStamps) -> ScanReport:
        """Have Codex list the threads of its home where that could not be read. Where there is no Codex yet, it is
        asked once it is there."""
        self._list_at = None
        if report.error is None or self._listing is None:
            return report
        if not self._listing.answers:
            self._list_at = trio.current_time()
            return report
        listed = await scan_listed(
            home,
            self._listing,
            report.error,
            emit=emit,
            known_stamps=known_stamps,
            page_size=min(self._page_threads, LIST_THREADS_MAX),
        )
        self._list_at = trio.current_time() + LISTED_PAUSE_S
        return msgspec.structs.replace(listed, state_file=report.state_file, passed_over=report.passed_over)

    def _is_list_due(self, home: Path) -> bool:
        due = self._list_at is not None and trio.current_time() >= max(self._list_at, self._rests_until)
        return due and not self._is_foreign(home) and self._listing is not None and self._listing.answers

    def _is_foreign(self, home: Path) -> bool:
        return home != self._homes[0]

    async def _known_stamps(self, home: Path, threads: Sequence[ThreadId]) -> Mapping[ThreadId, str]:
        foreign, at_ms = self._is_foreign(home), self._now_ms()
        known = await self._store.standings(threads)
        return {one.thread_id: one.stamp for one in known if is_settled(one, foreign=foreign, at_ms=at_ms)}

    def _tell_progress(self, fields: dict[str, Any]) -> None:
        self._view = msgspec.structs.replace(self._view, report_json=msgspec.json.encode([fields]).decode())
        self._news("progress", fields)

    def _news(self, kind: Any, fields: dict[str, Any]) -> None:
        self._writer.put(ScanNews(at_ms=self._now_ms(), kind=kind, fields_json=msgspec.json.encode(fields).decode()))

    # --- what a scan would do ---

    async def dry_run(self) -> str:
        """Return what a scan of every home would make of its threads now, as JSON. Nothing is decided or remembered."""
        reports = []
        for home in self._homes:
            outcomes: dict[str, int] = {}
            report = await self._scan_one(home, partial(self._judge, home, outcomes), partial(self._known_stamps, home))
            reports.append({**report_fields(report), "wouldBe": outcomes})
        return msgspec.json.encode(reports).decode()

    async def _judge(self, home: Path, outcomes: dict[str, int], threads: tuple[KnownThread, ...]) -> None:
        seen = ThreadsSeen(at_ms=self._now_ms(), home=str(home), threads=threads, foreign=self._is_foreign(home))
        live = self._writer.state
        # A state of its own, so that no verdict reaches the daemon's: what the database tells, and what only memory
        # knows, the setups that are open.
        state = State(live.host, live.next_seq.value, live.limits)
        names = wanted(state, [seen])
        loaded = await self._store.load(names)
        for session in live.sessions.values():
            if session.setup is not None:
                state.sessions.load(session.id, session)
        for intent in live.intents.values():
            state.intents.load(intent.tag, intent)
        state.load(loaded)
        verdicts = list(decisions(state, seen, lambda: SessionId("")))
        for verdict in verdicts:
            outcomes[verdict.outcome] = outcomes.get(verdict.outcome, 0) + 1
        if len(threads) > len(verdicts):
            outcomes["candidate"] = outcomes.get("candidate", 0) + len(threads) - len(verdicts)

    # --- evidence ---

    async def look_up(self, threads: Collection[ThreadId]) -> Mapping[ThreadId, Held]:
        """Return what the home that Codex runs in holds of these threads, read now. Errors: `HomeUnreadable`."""
        look = partial(look_up, self._homes[0], threads, self._sqlite_home, trio.from_thread.check_cancelled)
        return await trio.to_thread.run_sync(look)

    async def writers(self) -> Mapping[ThreadId, int]:
        """Return which process writes each thread of the home that Codex runs in now; our own Codex is among them."""
        return await trio.to_thread.run_sync(writers_of, self._homes[0])

    # --- watching ---

    async def watch(self) -> None:
        """Ask for a scan of each home whose state DB was written since its last one, for ever."""
        async with trio.open_nursery() as nursery:
            for home in self._homes:
                nursery.start_soon(self._watch_home, home)

    async def _watch_home(self, home: Path) -> None:
        last: Marks | None = None
        restless = 0
        while True:
            await trio.sleep(self._watch_s)
            now = await self._marks(home)
            restless = 0 if now == last else restless + 1
            last = now
            if self._view.status == "scanning" or home not in self._covered:
                continue
            if self._is_list_due(home):
                self._ask([home])
                continue
            if now == self._covered[home]:
                continue
            if (restless == 0 or restless >= LOOKS_MAX) and trio.current_time() >= self._rests_until:
                restless = 0
                self._ask([home])

    async def _marks(self, home: Path) -> Marks:
        sqlite_home = None if self._is_foreign(home) else self._sqlite_home
        return await self._look(home, sqlite_home)


class _Progress:
    """Counts what a scan has looked at, and tells it now and then."""

    def __init__(self, home: Path, tell: Callable[[dict[str, Any]], None], expected: int | None) -> None:
        """`expected`: how many threads the last scan of the home found, as far as there was one."""
        self.told = 0
        self._expected = expected
        self._home = home
        self._tell = tell
        self._seen = 0
        self._said_at = trio.current_time()

    def seen(self, count: int) -> None:
        self._seen += count
        if trio.current_time() - self._said_at >= PROGRESS_S:
            self._said_at = trio.current_time()
            self._tell({"home": str(self._home), "seen": self._seen, "told": self.told, "expected": self._expected})
