"""The reading side: committed rows, on connections of their own, so that no read waits for the writer nor it for a read."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import apsw
import trio

from state.records import Seq
from state.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")


class Reads:
    """What can be read. Each call is one snapshot, sees the last commit, and may be cut. Errors: `StoreError`."""

    def __init__(self, readers: list[Worker]) -> None:
        self._idle = list(readers)
        self._free = trio.Semaphore(len(readers))

    async def event_bounds(self) -> tuple[Seq, Seq]:
        """Return the oldest and the newest event's number; (1, 0) before the first."""
        return await self._read(read_event_bounds)

    async def _read(
        self, call: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        async with self._free:
            reader = self._idle.pop()
            try:
                return await reader.run(call, *args, **kwargs)
            finally:
                self._idle.append(reader)


def read_event_bounds(db: apsw.Connection) -> tuple[Seq, Seq]:
    """Two lookups at the ends of the primary key."""
    ((oldest, newest),) = db.execute(
        "SELECT coalesce((SELECT min(seq) FROM events), 1), coalesce((SELECT max(seq) FROM events), 0)"
    )
    return oldest, newest
