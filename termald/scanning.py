"""When the homes are scanned: at boot, on demand, and when Codex's state DB changed. What a scan finds is decided by
the writer.

One home's trouble is in its own report and touches no other. A scan never delays readiness, and a scan that is asked
for while one runs follows it.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import structlog
import trio

from discovery.scanner import Emit, KnownStamps, ScanReport, scan
from state.errors import StoreError, StoreStuck
from state.records import KnownThread, ThreadId, Wanted
from state.store import Store
from termald.core.inputs import ScanNews, ThreadsSeen
from termald.engine import DiscoveryView
from termald.writer import Writer

log = structlog.get_logger()


class Scan(Protocol):
    """One scan of one home: `discovery.scanner.scan`, or a test's."""

    async def __call__(self, home: Path, *, emit: Emit, known_stamps: KnownStamps, page_size: int) -> ScanReport: ...


def _is_trouble(report: ScanReport) -> bool:
    """Whether something is wrong. A home that Codex was never used in holds no threads, and that is no trouble."""
    return report.error is not None and report.trouble not in ("no-home", "no-database")


def report_fields(report: ScanReport) -> dict[str, Any]:
    """Return a scan's report as the API and the event tell it."""
    return {
        "home": report.home,
        "stateFile": report.state_file,
        "flaw": report.flaw,
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
    """Scans the homes, one after the other, whenever it is woken."""

    def __init__(
        self,
        homes: Sequence[Path],
        store: Store,
        writer: Writer,
        now_ms: Callable[[], int],
        *,
        page_threads: int,
        scan: Scan = scan,
    ) -> None:
        self._homes = tuple(homes)
        self._store = store
        self._writer = writer
        self._now_ms = now_ms
        self._page_threads = page_threads
        self._look = scan
        self._wanted = trio.Event()
        self._view = DiscoveryView(status="idle")

    @property
    def view(self) -> DiscoveryView:
        """The running scan, or the last one."""
        return self._view

    def scan_now(self) -> None:
        """Ask for a scan; returns at once."""
        self._wanted.set()

    async def run(self) -> None:
        """Scan when asked, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            try:
                await self._scan_all()
            except StoreStuck:
                raise
            except StoreError as error:
                # The next scan starts over; nothing was decided on what could not be compared.
                log.warning("the scan was given up", reason=str(error), slug=error.slug)
                started = self._view.started_at_ms
                self._view = DiscoveryView(
                    status="failed", started_at_ms=started, finished_at_ms=self._now_ms(), reason=str(error)
                )

    async def _scan_all(self) -> None:
        started = self._now_ms()
        self._view = DiscoveryView(status="scanning", started_at_ms=started)
        self._news("started", {"homes": [str(home) for home in self._homes]})
        reports = [await self._scan(home) for home in self._homes]
        # What was found is decided before the scan counts as finished: who waits for the end sees its sessions.
        await self._writer.settled()
        troubles = [f"{report.home}: {report.error}" for report in reports if _is_trouble(report)]
        fields = [report_fields(report) for report in reports]
        self._view = DiscoveryView(
            status="failed" if troubles else "idle",
            started_at_ms=started,
            finished_at_ms=self._now_ms(),
            report_json=msgspec.json.encode(fields).decode(),
            reason="; ".join(troubles) or None,
        )
        self._news("finished", {"homes": fields})

    async def _scan(self, home: Path) -> ScanReport:
        async def emit(threads: tuple[KnownThread, ...]) -> None:
            self._writer.put(ThreadsSeen(at_ms=self._now_ms(), home=str(home), threads=threads))
            await self._writer.settled()

        report = await self._look(home, emit=emit, known_stamps=self._known_stamps, page_size=self._page_threads)
        if _is_trouble(report):
            log.warning("a home could not be scanned", home=str(home), reason=report.error)
        return report

    async def _known_stamps(self, threads: Sequence[ThreadId]) -> Mapping[ThreadId, str]:
        loaded = await self._store.load(Wanted(threads=frozenset(threads)))
        return {thread.thread_id: thread.stamp for thread in loaded.threads if thread.stamp}

    def _news(self, kind: Any, fields: dict[str, Any]) -> None:
        self._writer.put(ScanNews(at_ms=self._now_ms(), kind=kind, fields_json=msgspec.json.encode(fields).decode()))
