"""The reading side: what was committed, in pages that miss nothing, and the log exactly as it was written."""

from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import apsw
import pytest
import trio
from store.builders import (
    changed,
    event,
    ignored,
    item,
    prompt,
    request,
    runtime,
    session,
    store_with,
    thread,
    turn,
)

from state import queries
from state.apply import apply
from state.records import Changes, PromptId, RequestId, SessionId, ThreadClass, ThreadId, TurnId
from state.store import DATABASE_NAME, Store, open_store
from state.views import Cursor, Page, SessionFilter, SessionView

T = TypeVar("T")
EVERY = SessionFilter()
S1 = SessionId("s1")


class Turner(Protocol[T]):
    def __call__(self, *, after: Any, limit: int) -> Awaitable[Page[T, Any]]: ...


async def all_pages(turn_page: Turner[T], limit: int) -> list[T]:
    """Return every row, having checked that each page but the last is full, that the last says so, and that none of
    them was promised and is empty."""
    rows: list[T] = []
    after: Cursor | None = None
    while True:
        page = await turn_page(after=after, limit=limit)
        assert page.rows or after is None
        rows.extend(page.rows)
        if page.next is None:
            return rows
        assert len(page.rows) == limit
        after = page.next


# --- sessions ---


async def test_sessions_run_newest_first_and_say_what_waits(tmp_path: Path) -> None:
    batch = Changes(
        sessions=(session("old", created_at_ms=1), session("b", created_at_ms=2), session("a", created_at_ms=2)),
        prompts=(
            prompt("p1", "a", 0, delivery="done"),
            prompt("p2", "a", 1, delivery="sent"),
            prompt("p3", "a", 2),
            prompt("p4", "a", 3),
        ),
        requests=(
            request("q1", "b", 1, status="answered"),
            request("q2", "b", 2),
            request("q3", "b", 3, status="expired"),
        ),
    )
    views = [
        SessionView(record=batch.sessions[1], queued_prompts=0, pending_requests=1),
        SessionView(record=batch.sessions[2], queued_prompts=2, pending_requests=0),
        SessionView(record=batch.sessions[0], queued_prompts=0, pending_requests=0),
    ]
    async with store_with(tmp_path, batch) as store:
        assert list((await store.list_sessions(EVERY, limit=10)).rows) == views
        assert await store.session(SessionId("b")) == views[0]
        assert (await store.snapshot()).sessions == tuple(views)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
async def test_pages_hold_every_session_once(tmp_path: Path, limit: int) -> None:
    """Equal times included: a cursor by time alone would skip or repeat them."""
    sessions = [session(name, created_at_ms=at) for name, at in zip("abcdefg", (1, 2, 2, 2, 3, 3, 4), strict=True)]
    async with store_with(tmp_path, Changes(sessions=tuple(sessions))) as store:
        rows = await all_pages(lambda **page: store.list_sessions(EVERY, **page), limit)
    assert [row.record.id for row in rows] == list("gfedcba")


async def test_a_pager_misses_none_that_was_there_whatever_happens_meanwhile(tmp_path: Path) -> None:
    """Sessions come, go (the one that the cursor names as well) and are busy while somebody turns the pages."""
    sessions = [session(f"s{at}", created_at_ms=at) for at in range(10, 20)]
    async with store_with(tmp_path, Changes(sessions=tuple(sessions))) as store:
        first = await store.list_sessions(EVERY, limit=4)
        assert [row.record.id for row in first.rows] == ["s19", "s18", "s17", "s16"]
        meanwhile = (
            session("s99", created_at_ms=99),
            session("s12b", created_at_ms=12),
            changed(sessions[6], killed_at_ms=1),  # s16, the cursor's own
            changed(sessions[5], updated_at_ms=1_000, status="running"),
            changed(sessions[9], updated_at_ms=1_001),
        )
        await store.commit(Changes(sessions=meanwhile), sync=False)
        rest = await store.list_sessions(EVERY, after=first.next, limit=100)
    assert [row.record.id for row in rest.rows] == ["s15", "s14", "s13", "s12b", "s12", "s11", "s10"]
    assert rest.next is None


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (SessionFilter(status="error"), ["c", "a"]),
        (SessionFilter(origin="forked"), ["c", "b"]),
        (SessionFilter(cwd="/w"), ["b", "a"]),
        (SessionFilter(cwd="/w/"), []),
        (SessionFilter(status="error", origin="forked", cwd="/v"), ["c"]),
    ],
    ids=["status", "origin", "cwd", "no prefix", "all"],
)
async def test_sessions_are_filtered(tmp_path: Path, wanted: SessionFilter, names: list[str]) -> None:
    batch = (
        session("a", created_at_ms=1, status="error", cwd="/w"),
        session("b", created_at_ms=2, origin="forked", cwd="/w"),
        session("c", created_at_ms=3, status="error", origin="forked", cwd="/v"),
        session("d", created_at_ms=4, status="error", origin="forked", cwd="/w", killed_at_ms=1),
    )
    async with store_with(tmp_path, Changes(sessions=batch)) as store:
        rows = await all_pages(lambda **page: store.list_sessions(wanted, **page), 1)
    assert [row.record.id for row in rows] == names


async def test_of_a_killed_session_nothing_is_shown(tmp_path: Path) -> None:
    batch = Changes(
        sessions=(session("s1"),),
        prompts=(prompt("p1", "s1", 0),),
        turns=(turn("t1", "s1", 1),),
        items=(item("i1", "s1", 1),),
        requests=(request("q1", "s1", 1),),
    )
    async with store_with(tmp_path, batch) as store:

        async def shown() -> list[bool]:
            return [
                bool((await store.list_sessions(EVERY, limit=1)).rows),
                bool((await store.snapshot()).sessions),
                bool(await store.session(S1)),
                bool(await store.prompt(PromptId("p1"))),
                bool((await store.prompts(S1, limit=1)).rows),
                bool((await store.turns(S1, order="newest", limit=1)).rows),
                bool((await store.items(S1, order="newest", limit=1)).rows),
                bool(await store.request(RequestId("q1"))),
                bool((await store.requests(limit=1)).rows),
            ]

        assert all(await shown())
        await store.commit(Changes(sessions=(session("s1", killed_at_ms=1),)), sync=False)
        assert not any(await shown())


# --- what belongs to a session ---


async def test_prompts_turns_and_items_are_paged_in_their_order(tmp_path: Path) -> None:
    prompts = [prompt(f"p{at}", "s1", at // 2) for at in range(5)]
    turns = [turn(f"t{at}", "s1", at // 2) for at in range(5)]
    items = [item(f"i{at}", "s1", at // 2, turn_id=TurnId(f"t{at % 2}")) for at in range(6)]
    batch = Changes(
        sessions=(session("s1"), session("other")),
        prompts=(*prompts, prompt("px", "other", 0)),
        turns=(*turns, turn("t0", "other", 0)),
        items=(*items, item("i0", "other", 0, turn_id=TurnId("t0"))),
    )
    async with store_with(tmp_path, batch) as store:
        for limit in (1, 2, 3, 10):
            assert await all_pages(lambda **page: store.prompts(S1, **page), limit) == prompts
            assert await all_pages(lambda **page: store.turns(S1, order="oldest", **page), limit) == turns
            assert await all_pages(lambda **page: store.turns(S1, order="newest", **page), limit) == turns[::-1]
            assert await all_pages(lambda **page: store.items(S1, order="oldest", **page), limit) == items
            assert await all_pages(lambda **page: store.items(S1, order="newest", **page), limit) == items[::-1]
            of_t1 = await all_pages(lambda **page: store.items(S1, turn=TurnId("t1"), order="oldest", **page), limit)
            assert of_t1 == items[1::2]
        assert await store.prompt(PromptId("p3")) == prompts[3]
        assert await store.prompt(PromptId("none")) is None


async def test_requests_of_one_session_of_all_and_by_status(tmp_path: Path) -> None:
    requests = (
        request("q1", "s1", 3),
        request("q2", "s2", 2),
        request("q3", "s1", 1, status="answered"),
        request("q4", "s1", 1),
    )
    async with store_with(tmp_path, Changes(sessions=(session("s1"), session("s2")), requests=requests)) as store:

        async def names(**asked: Any) -> list[str]:
            return [row.id for row in await all_pages(lambda **page: store.requests(**asked, **page), 1)]

        assert await names() == ["q3", "q4", "q2", "q1"]
        assert await names(status="open") == ["q4", "q2", "q1"]
        assert await names(session=S1) == ["q3", "q4", "q1"]
        assert await names(session=S1, status="answered") == ["q3"]
        assert await store.request(RequestId("q2")) == requests[1]
        assert await store.request(RequestId("none")) is None


# --- threads ---


async def test_a_thread_has_the_class_of_now(tmp_path: Path) -> None:
    """What the scan saw is old by the time it is read: the owner may be gone, the entry new."""
    batch = Changes(
        sessions=(
            session("s1", thread_id=ThreadId("claimed")),
            session("s2", thread_id=ThreadId("killed"), killed_at_ms=1),
        ),
        ignored=(ignored("dropped", reason="killed by the user"), ignored("unknown to Codex")),
        threads=(
            thread("claimed", "discovered"),
            thread("killed", "owned", session_id=SessionId("s2")),
            thread("dropped", "discovered"),
            thread("back", "ignored"),
            thread("lost", "orphan"),
            thread("sub", "child", session_id=SessionId("s1")),
            thread("new", "discovered"),
        ),
    )
    classes: dict[ThreadClass, list[str]] = {
        "owned": ["claimed"],
        "ignored": ["dropped"],
        "orphan": ["lost"],
        "child": ["sub"],
        "discovered": ["back", "killed", "new"],
    }
    async with store_with(tmp_path, batch) as store:
        rows = {row.thread_id: row for row in await all_pages(store.threads, 2)}
        assert list(rows) == sorted(one.thread_id for one in batch.threads)
        for limit in (1, 2, 10):
            for cls, names in classes.items():
                of_class = await all_pages(lambda **page: store.threads(cls=cls, **page), limit)  # noqa: B023 - awaited here
                assert of_class == [rows[ThreadId(name)] for name in names]
                assert {row.cls for row in of_class} == {cls}
    assert rows[ThreadId("claimed")].session_id == "s1"
    assert rows[ThreadId("killed")].session_id is None
    assert rows[ThreadId("sub")] == batch.threads[5]
    assert rows[ThreadId("dropped")].reason == "killed by the user"


async def test_the_ignore_set_is_paged(tmp_path: Path) -> None:
    entries = tuple(ignored(f"T{at}", at_ms=9 - at) for at in range(5))
    async with store_with(tmp_path, Changes(ignored=entries)) as store:
        assert await all_pages(store.ignored, 2) == list(entries)
        first = await store.ignored(limit=2)
        await store.commit(Changes(unignored=(ThreadId("T0"), ThreadId("T1")), ignored=(ignored("T00"),)), sync=False)
        assert (await store.ignored(after=first.next, limit=10)).rows == entries[2:]


async def test_a_commit_in_the_middle_of_a_snapshot_is_not_in_it(tmp_path: Path) -> None:
    """Or a client would show a session as it is at 2 and then hear of 2 once more, or show it as at 1 and miss 2."""
    async with store_with(tmp_path, Changes(sessions=(session("s1", message_count=1),), events=(event(1),))):
        path = str(tmp_path / DATABASE_NAME)
        reader, writer = apsw.Connection(path), apsw.Connection(path)
        later = [Changes(sessions=(session("s1", message_count=2),), events=(event(2),))]

        def commit_before_the_last_part(_: apsw.Cursor, sql: str, __: Any) -> bool:
            if "max(seq)" in sql:
                apply(writer, later.pop(), True)
            return True

        reader.exec_trace = commit_before_the_last_part
        first = queries.read_snapshot(reader)
        reader.exec_trace = None
        second = queries.read_snapshot(reader)
        reader.close()
        writer.close()
    assert [(one.last_seq, one.sessions[0].record.message_count) for one in (first, second)] == [(1, 1), (2, 2)]


# --- beside the writer ---


async def test_the_snapshot_is_one_moment(tmp_path: Path) -> None:
    batch = Changes(
        sessions=(session("s1", thread_id=ThreadId("T1")),),
        ignored=(ignored("T2"),),
        events=(event(1), event(2)),
        runtime=runtime("r1"),
    )
    async with store_with(tmp_path, batch) as store:
        snapshot = await store.snapshot()
        assert snapshot.host == store.host
    assert [view.record for view in snapshot.sessions] == list(batch.sessions)
    assert (snapshot.ignored, snapshot.last_seq, snapshot.runtime) == (batch.ignored, 2, batch.runtime)


async def test_a_read_sees_the_last_commit(tmp_path: Path) -> None:
    """Read your writes: an answered caller asks at once. On every connection, however they are handed out."""
    async with open_store(tmp_path) as store:
        for seq in range(1, 50):
            await store.commit(Changes(events=(event(seq),), sessions=(session("s1", message_count=seq),)), sync=False)
            view = await store.session(S1)
            assert view is not None
            assert view.record.message_count == seq
            assert (await store.event_bounds())[1] == seq


async def test_readers_and_the_writer_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """More readers than connections, beside a writer: each snapshot is whole, and all come to an end."""
    seen: list[tuple[int, int]] = []
    waited = 0

    async def look(store: Store, times: int) -> None:
        for _ in range(times):
            snapshot = await store.snapshot()
            seen.append((snapshot.last_seq, sum(view.record.message_count for view in snapshot.sessions)))

    async with open_store(tmp_path) as store:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for _ in range(8):
                    nursery.start_soon(look, store, 10)
                for seq in range(1, 100):
                    names = (session("a", message_count=seq), session("b", message_count=-seq + 7))
                    await store.commit(Changes(events=(event(seq),), sessions=names), sync=False)
                    waited = max(waited, store.waiting())
        assert waited > 0
        assert store.waiting() == 0
    assert len(seen) == 80
    assert {count for _, count in seen} <= {0, 7}
    assert all((last == 0) == (count == 0) for last, count in seen)


async def test_a_read_may_be_cut_and_gives_its_connection_back(tmp_path: Path) -> None:
    """A caller that leaves must not take a connection with it, nor get another error than its own cancellation."""
    sessions = tuple(session(f"s{at}") for at in range(300))
    async with store_with(tmp_path, Changes(sessions=sessions)) as store:
        for _ in range(20):
            with trio.move_on_after(0):
                await store.snapshot()
            with trio.move_on_after(0.000_2):
                await store.snapshot()
        with trio.fail_after(20):
            assert len((await store.snapshot()).sessions) == 300
            async with trio.open_nursery() as nursery:
                for _ in range(6):
                    nursery.start_soon(store.snapshot)
