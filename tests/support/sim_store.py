"""The store of a simulation: rows in memory that outlive the daemon, and what one daemon holds of them.

It is as slow, as full and as mortal as it is told to be. A daemon may die in the middle of a commit: before it (nothing
is there) or after it (all of it is, and nobody was told).
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
import trio
from msgspec.structs import replace
from support.memory_store import MemoryStore

from state.errors import StoreFull
from state.records import (
    BootImage,
    Changes,
    Host,
    KnownThread,
    Loaded,
    RuntimeId,
    RuntimeRecord,
    Seq,
    SessionId,
    SessionRecord,
    ThreadId,
    Wanted,
)
from state.views import EventPage, Standing


class DaemonDied(BaseException):
    """The daemon was killed. No `except Exception` of its own may stop it."""


class Rows(MemoryStore):
    """What is on the disk. Read in one order whatever the hashes of this process are, or no run could be repeated in
    another."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.runtimes: dict[RuntimeId, RuntimeRecord] = {}
        self.also: Callable[[Changes], None] = lambda changes: None
        """Given everything that was committed."""

    def load_now(self, wanted: Wanted) -> Loaded:
        loaded = super().load_now(wanted)
        return replace(
            loaded,
            bundles=tuple(sorted(loaded.bundles, key=lambda bundle: bundle.session.id)),
            ignored=tuple(sorted(loaded.ignored, key=lambda entry: entry.thread_id)),
            intents=tuple(sorted(loaded.intents, key=lambda intent: intent.tag)),
            threads=tuple(sorted(loaded.threads, key=lambda thread: thread.thread_id)),
            disposals=tuple(sorted(loaded.disposals, key=lambda record: record.thread_id)),
        )

    def commit_now(self, changes: Changes, *, sync: bool) -> None:
        super().commit_now(changes, sync=sync)
        self.commits.clear()  # nobody asks for them here, and a long run makes many
        if changes.runtime is not None:
            self.runtimes[changes.runtime.runtime_id] = changes.runtime
        self.also(changes)

    def boot(self) -> BootImage:
        image = super().boot()
        open_ones = [record for record in self.runtimes.values() if record.ended_at_ms is None]
        bundles = tuple(sorted(image.loaded.bundles, key=lambda bundle: bundle.session.id))
        newest = max(open_ones, key=lambda record: record.started_at_ms, default=None)
        return replace(image, loaded=replace(image.loaded, bundles=bundles), runtime=newest)


class Troubles(msgspec.Struct):
    """What may go wrong with a commit; each is asked at every one. `death`: `before` or `after` it, or not."""

    slow_s: Callable[[], float] = lambda: 0.0
    is_full: Callable[[], bool] = lambda: False
    death: Callable[[], str | None] = lambda: None


class SimStore:
    """What one daemon holds of the rows, from its start to its death."""

    def __init__(self, rows: Rows, troubles: Troubles, dawdle: Callable[[str], Awaitable[None]]) -> None:
        self.rows = rows
        self.host = rows.host
        self.is_dead = False
        """Whether the daemon that holds it was killed: what that one does on its way out happens to nobody."""
        self._troubles = troubles
        self._dawdle = dawdle

    def announce(self, url: str) -> None:
        """Nobody looks."""

    async def load(self, wanted: Wanted) -> Loaded:
        """Return what there is of what is named."""
        await trio.lowlevel.checkpoint()
        await self._dawdle("load")
        return self.rows.load_now(wanted)

    async def commit(self, changes: Changes, *, sync: bool) -> None:
        """Write the batch, or nothing of it."""
        if changes:
            await self._write(changes, sync=sync)

    async def put_runtime(self, record: RuntimeRecord) -> None:
        """Write the process's record."""
        await self._write(Changes(runtime=record), sync=True)

    async def standings(self, threads: Sequence[ThreadId]) -> tuple[Standing, ...]:
        """Return how those of the threads stand that are known."""
        await trio.lowlevel.checkpoint()
        owners = {record.thread_id: record for record in self.rows.live() if record.thread_id is not None}
        known = (self.rows.threads[thread] for thread in threads if thread in self.rows.threads)
        return tuple(self._standing(one, owners.get(one.thread_id)) for one in known)

    def _standing(self, known: KnownThread, owner: SessionRecord | None) -> Standing:
        entry = self.rows.ignored.get(known.thread_id)
        return Standing(
            thread_id=known.thread_id,
            stamp=known.stamp,
            cls=known.cls,
            owner=None if owner is None else owner.id,
            owner_home=None if owner is None else owner.home,
            ignored=entry is not None,
            last_seen_ms=None if entry is None else entry.last_seen_ms,
        )

    async def events(
        self, after: Seq, limit: int, *, session: SessionId | None = None, kinds: frozenset[str] | None = None
    ) -> EventPage:
        """Return events behind `after`."""
        await trio.lowlevel.checkpoint()
        seen = self.rows.events[after : after + limit]
        fitting = tuple(
            event
            for event in seen
            if (session is None or event.session_id == session) and (kinds is None or event.kind in kinds)
        )
        return EventPage(events=fitting, through=Seq(after + len(seen)))

    async def event_bounds(self) -> tuple[Seq, Seq]:
        """Return the oldest and the newest number."""
        await trio.lowlevel.checkpoint()
        return Seq(1), Seq(len(self.rows.events))

    async def _write(self, changes: Changes, *, sync: bool) -> None:
        await trio.lowlevel.checkpoint()
        await self._dawdle("commit")
        if self.is_dead:
            raise DaemonDied
        if slow_s := self._troubles.slow_s():
            await trio.sleep(slow_s)
        death = self._troubles.death()
        if death == "before":
            self._die()
        if self._troubles.is_full():
            raise StoreFull("no space left")
        self.rows.commit_now(changes, sync=sync)
        if death == "after":
            self._die()
        await trio.lowlevel.checkpoint()
        await self._dawdle("committed")

    def _die(self) -> None:
        self.is_dead = True
        raise DaemonDied
