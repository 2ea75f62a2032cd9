"""The real tables behind a simulation: SQLite in memory, asked in the same task, so that no thread comes between.

Whatever is committed goes into the rows and into the tables; what the API reads, it reads with the real queries. A
daemon that boots is given the same by both, or the test fails: the rows are what everything else is judged by.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw
import msgspec
import trio
from support.sim_store import Rows, SimStore, Troubles

from state.apply import apply
from state.errors import translated
from state.load import read_boot
from state.reads import Reads
from state.records import BootImage, Changes, Host
from state.schema import migrate, released_steps, tune_writer
from state.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")


class _Inline(Worker):
    """A worker without a thread: the caller gives way, then everything happens in its own task."""

    def __init__(self, db: apsw.Connection, dawdle: Callable[[], Awaitable[None]]) -> None:
        self._connection = db
        self._dawdle = dawdle

    async def run(self, call: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        await trio.lowlevel.checkpoint()
        await self._dawdle()
        with translated("simulating"):
            return call(self._connection, *args, **kwargs)


class Tables:
    """The database of a world, as long as the world."""

    def __init__(self, host: Host) -> None:
        self.db = apsw.Connection(":memory:")
        tune_writer(self.db)
        migrate(self.db, released_steps())
        self.db.execute("INSERT INTO host (one, id, epoch) VALUES (1, ?, ?)", (host.id, host.epoch))

    def write(self, changes: Changes) -> None:
        """Write what was written into the rows."""
        apply(self.db, changes, True)

    def boot(self, image: BootImage) -> None:
        """Begin another life, and hold that it begins with `image`."""
        self.db.execute("UPDATE host SET epoch = ?", (image.host.epoch,))
        mine, theirs = _in_order(read_boot(self.db)), _in_order(image)
        for name in mine:
            assert mine[name] == theirs[name], f"the tables boot with other {name} than the rows"


def _in_order(image: BootImage) -> dict[str, Any]:
    """Return what a daemon starts with, by its names, in an order that does not matter to it."""
    loaded = {
        name: sorted(msgspec.json.encode(each) for each in getattr(image.loaded, name))
        for name in image.loaded.__struct_fields__
    }
    return {**loaded, "host": image.host, "next_seq": image.next_seq, "runtime": image.runtime}


class SimTablesStore(Reads, SimStore):
    """As `SimStore`, with everything that the API reads. What both can tell, the tables tell."""

    stuck = False

    def __init__(
        self, rows: Rows, troubles: Troubles, dawdle: Callable[[str], Awaitable[None]], tables: Tables
    ) -> None:
        SimStore.__init__(self, rows, troubles, dawdle)
        Reads.__init__(self, [_Inline(tables.db, partial(dawdle, "read"))])
