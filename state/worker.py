"""A connection and the thread it lives on: one call, one hop.

A function that is run gets the connection and uses it synchronously; nothing else touches it. Calls queue in the
order they were made. A cancelled call stops at the next of SQLite's progress checks (a tenth of a second or so) and is
rolled back there, unless it has already committed; one that has not begun is dropped.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar, cast

import apsw
import apsw.aio
import trio

from state.errors import translated

if TYPE_CHECKING:
    from apsw import AsyncConnection

P = ParamSpec("P")
T = TypeVar("T")

# Named, not found out: apsw's own choice would take anyio where it is in the call stack. (Its stub wants an instance.)
_CONTROLLER: Final = cast(Any, apsw.aio.Trio)
CLOSE_S: Final = 10.0  # a close writes back the log, some MB at most; past this its thread hangs in the kernel
STATEMENTS_CACHED: Final = 1_024
"""apsw's cache is a ring that moves on with each run of a statement, not with each statement: one batch must not go all
the way round, or every statement is prepared anew for the next (measured at 100: twice the time for 100 events)."""


class Worker:
    """One open connection. Made by `open_worker`, closed with it."""

    def __init__(self, db: "AsyncConnection", doing: str) -> None:
        self._db = db
        self._doing = doing

    async def run(self, call: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `call(connection, ...)` returned. May be cut. Errors: `StoreError` for what SQLite raised."""
        with translated(self._doing):
            return cast(T, await self._db.async_run(call, self._db, *args, **kwargs))


@asynccontextmanager
async def open_worker(path: Path, *, read_only: bool, vfs: str | None, doing: str) -> AsyncIterator[Worker]:
    """Open a connection to the existing file. Errors: `StoreError`."""
    mode = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    # May not be cut: a connection that nobody got would keep its thread, and the thread the process. The file is local.
    with translated(doing), trio.CancelScope(shield=True), _using(apsw.async_controller, _CONTROLLER):
        db = await apsw.Connection.as_async(str(path), flags=mode, vfs=vfs, statementcachesize=STATEMENTS_CACHED)
    try:
        yield Worker(db, doing)
    finally:
        with translated(doing), trio.move_on_after(CLOSE_S, shield=True):
            await db.aclose()


@contextmanager
def _using(var: ContextVar[T], value: T) -> Iterator[None]:
    token = var.set(value)
    try:
        yield
    finally:
        var.reset(token)
