"""A connection and its thread: what cutting a call means, and that no thread is left behind."""

import threading
from pathlib import Path

import apsw
import pytest
import trio
from store.builders import EVERYTHING, batch_of, session, store_with

from state.errors import StoreReadOnly
from state.store import DATABASE_NAME, open_store
from state.worker import open_worker

THREAD = "apsw"


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if THREAD in thread.name]


def count_for_ever(db: apsw.Connection) -> int:
    endless = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    ((count,),) = db.execute(endless)
    return int(count)


async def test_a_cut_call_stops_and_its_caller_gets_its_own_cancellation(tmp_path: Path) -> None:
    """apsw watches the deadline as well, and left to itself it would win: its error then passes the caller's scope."""
    async with store_with(tmp_path, EVERYTHING):
        path = tmp_path / DATABASE_NAME
        async with open_worker(path, read_only=True, vfs=None, doing="reading") as worker:
            for _ in range(5):
                with trio.move_on_after(0.03) as scope:
                    await worker.run(count_for_ever)
                assert scope.cancelled_caught
            with trio.fail_after(20):
                assert await worker.run(lambda db: db.execute("SELECT count(*) FROM sessions").get) == 1


async def test_a_reader_cannot_write(tmp_path: Path) -> None:
    """What answers the API has no way to change what it reads."""
    async with store_with(tmp_path, EVERYTHING) as store:
        with pytest.raises(StoreReadOnly):
            await store._read(lambda db: db.execute("DELETE FROM ignored_threads"))
        assert len((await store.ignored(limit=9)).rows) == 1


@pytest.mark.parametrize("opened", range(5))
async def test_no_thread_outlives_its_store(tmp_path: Path, opened: int) -> None:
    """Nor the process: the threads are not daemons. Cut at each step of opening, and while it is open."""
    assert threads() == []
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_at, opened, scope)
            async with open_store(tmp_path) as store:
                await store.commit(batch_of(session("s1")), sync=True)
                await trio.sleep_forever()
    assert scope.cancelled_caught
    with trio.fail_after(20):
        while threads():
            await trio.lowlevel.checkpoint()
    async with open_store(tmp_path) as store:
        assert len(threads()) == 4


async def cancel_at(opened: int, scope: trio.CancelScope) -> None:
    """Cancel once that many of the store's connections have their thread."""
    with trio.fail_after(20):
        while len(threads()) < opened:
            await trio.lowlevel.checkpoint()
    scope.cancel()
