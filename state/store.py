"""The store: one connection that writes whole batches, a few that read, and the lock that keeps a second daemon out.

`commit` is the only way in. It may not be cut (a cancelled call may already be a committed row), but it is watched: a
write that does not return in time leaves the store stuck, with an unknown outcome, and the process has to end. Reads
may be cut, see the last commit, and wait for no writer.
"""

import math
import os
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

import apsw
import trio

from state.apply import apply, apply_runtime, try_write
from state.errors import StateForeign, StoreError, StoreIOError, StoreRefused, StoreStuck
from state.load import read_boot, read_host, read_wanted
from state.lock import StateLock, hold_state
from state.reads import Reads
from state.records import BootImage, Changes, Host, Loaded, RuntimeRecord, Wanted
from state.schema import migrate, released_steps, transaction, tune_reader, tune_writer, use_wal, version_of_ours
from state.upkeep import Folded, cut, fold
from state.worker import Worker, open_worker

P = ParamSpec("P")
T = TypeVar("T")

DATABASE_NAME: Final = "termald.sqlite"
READERS: Final = 3  # one may be busy with a whole snapshot and one with a replay; pages still find a third
WRITE_STUCK_S: Final = 60.0  # a batch takes milliseconds, one on a crowded disk seconds; past a minute a disk hangs
_UNKNOWN: Final = "the outcome of an earlier write is unknown"
LOOK_S: Final = 1.0  # what a write within the last second came to is still so; whoever asks more often costs nothing


class Store(Reads):
    """An open store. Made by `open_store`."""

    def __init__(self, writer: Worker, readers: list[Worker], lock: StateLock, host: Host, stuck_s: float) -> None:
        super().__init__(readers)
        self._writer = writer
        self._lock = lock
        self._stuck_s = stuck_s
        self._stuck = False
        self._trouble: StoreError | None = None
        self._looked_at = -math.inf
        self.host: Final = host
        """Who we are, since this start."""

    def announce(self, url: str) -> None:
        """Tell a second `serve` on the same state where this daemon listens."""
        self._lock.announce(url)

    @property
    def stuck(self) -> bool:
        """Whether the outcome of a write is unknown; see `StoreStuck`."""
        return self._stuck

    async def boot(self) -> BootImage:
        """Return all that is unfinished: what the daemon goes on with after its start."""
        return await self._writer.run(read_boot)

    async def load(self, wanted: Wanted) -> Loaded:
        """Return what there is of the sessions, threads, tags and keys that are named."""
        return await self._writer.run(read_wanted, wanted)

    async def commit(self, changes: Changes, *, sync: bool) -> None:
        """Write the whole batch, or nothing of it.

        Durability: with `sync` it is on the disk on return, with all that was committed before; without, a power cut
        may take the newest batches (whole ones, newest first), but a killed process takes none. May not be cut: a
        cancelled caller finds the batch committed. Errors: `StoreError`; after any but `StoreStuck` nothing of the
        batch is there.
        """
        if changes:
            await self._write(apply, changes, sync)

    async def put_runtime(self, record: RuntimeRecord) -> None:
        """Write the process's record, synced, before the process is used. As `commit`."""
        await self._write(apply_runtime, record)

    async def fold(self, before_ms: int) -> Folded:
        """Take out of the log deltas of items that were complete before then and say the same; one small step, not
        synced. As `commit`."""
        return await self._write(fold, before_ms)

    async def cut(self, events: int) -> int:
        """Cut off so many of the oldest events, never the newest, and return how many; one step. As `commit`."""
        return await self._write(cut, events)

    async def check_writes(self) -> None:
        """Return if the disk takes what is committed now. It is asked with a write that changes nothing, where the last
        write was longer ago than `LOOK_S`. May be cut. Errors: `StoreError`, as a commit would raise it."""
        if self._stuck:
            raise StoreStuck(_UNKNOWN)
        if trio.current_time() - self._looked_at >= LOOK_S:
            await self._look()
        if self._trouble is not None:
            raise type(self._trouble)(*self._trouble.args)

    async def _look(self) -> None:
        before, self._looked_at = self._looked_at, trio.current_time()  # who asks meanwhile is told what is known
        told = False
        try:
            await self._writer.run(try_write)
            self._note(None)
            told = True
        except StoreError as error:
            self._note(error)
            told = True
        finally:
            if not told:
                self._looked_at = before

    def _note(self, trouble: StoreError | None) -> None:
        """Keep what a write came to. One that was refused for what it says tells nothing of the disk."""
        if not isinstance(trouble, StoreRefused):
            self._trouble, self._looked_at = trouble, trio.current_time()

    async def _write(
        self, call: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._stuck:
            raise StoreStuck(_UNKNOWN)
        with trio.move_on_after(self._stuck_s, shield=True):
            try:
                done = await self._writer.run(call, *args, **kwargs)
            except StoreStuck:
                self._stuck = True
                raise
            except StoreError as error:
                self._note(error)
                raise
            self._note(None)
            return done
        self._stuck = True
        raise StoreStuck(f"a write did not return within {self._stuck_s:g} s; its outcome is unknown")


@asynccontextmanager
async def open_store(folder: Path, *, vfs: str | None = None, stuck_s: float = WRITE_STUCK_S) -> AsyncIterator[Store]:
    """Open the state in `folder`, which is made if need be, and hold it until the block ends.

    On entry the lock is held, the schema is the newest, and the epoch has grown by one, synced. On a clean exit the
    log is written back into the database. `stuck_s`: see `StoreStuck`; `math.inf` where trio's clock is not the real
    one, for threads take real time. Errors: `StateLocked`, `StateTooNew`, `StateForeign`, `StoreError`.
    """
    path = folder / DATABASE_NAME
    _make_folder(folder)
    async with AsyncExitStack() as stack:
        lock = stack.enter_context(hold_state(folder))
        _make_file(path)
        writer = await stack.enter_async_context(open_worker(path, read_only=False, vfs=vfs, doing=f"writing {path}"))
        host = await writer.run(_prepare, path)
        readers = []
        for _ in range(READERS):
            reader = await stack.enter_async_context(
                open_worker(path, read_only=True, vfs=vfs, doing=f"reading {path}")
            )
            await reader.run(tune_reader)
            readers.append(reader)
        yield Store(writer, readers, lock, host, stuck_s)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreIOError(f"the state folder {folder} cannot be made: {error}") from error


def _make_file(path: Path) -> None:
    """Make an empty file that only its owner reads. A database that is gone while its log is there was lost, and is not
    begun anew."""
    log = path.with_name(path.name + "-wal")
    try:
        if not (path.exists() and path.stat().st_size) and log.exists() and log.stat().st_size:
            raise StateForeign(f"{path} is gone, {log.name} is not: restore a copy, or move the log away to begin anew")
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreIOError(f"{path} cannot be made: {error}") from error


def _prepare(db: apsw.Connection, path: Path) -> Host:
    tune_writer(db)
    steps = released_steps()
    version = version_of_ours(db, path, steps)
    path.chmod(0o600)  # before the log is made, which gets the same mode
    use_wal(db, path)
    migrate(db, steps[version:])
    with transaction(db, "IMMEDIATE"):
        db.execute(
            "INSERT INTO host (one, id, epoch) VALUES (1, ?, 1) ON CONFLICT (one) DO UPDATE SET epoch = epoch + 1",
            (str(uuid.uuid4()),),
        )
        return read_host(db)
