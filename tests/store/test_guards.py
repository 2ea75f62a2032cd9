"""The guards on disk: the last line of defence against a mistake of the core's. Each is shown to refuse, and not to
refuse more.

The schema alone holds them (`state/migrations`); with one removed, its test here fails.
"""

from pathlib import Path
from typing import Any

import pytest
from store.builders import changed, event, ignored, memory_database, prompt, session, store_with, turn, wanted

from state import queries
from state.errors import StoreRefused, translated
from state.records import Changes, ThreadId
from state.rows import EVENTS
from state.store import Store


async def refused(store: Store, why: str, **changes: Any) -> None:
    """Assert that the batch is refused for `why`, and that neither it nor the event beside it is there."""
    before = await store.boot()
    with pytest.raises(StoreRefused, match=why):
        await store.commit(Changes(events=(event(before.next_seq),), **changes), sync=True)
    assert await store.boot() == before


async def test_a_thread_has_one_owner(tmp_path: Path) -> None:
    owner = session("s1", thread_id=ThreadId("T1"))
    async with store_with(tmp_path, Changes(sessions=(owner,))) as store:
        await refused(store, "UNIQUE", sessions=(session("s2", thread_id=ThreadId("T1")),))
        # The control: once the first has let go it may, whatever the order in the batch.
        passed = (session("s2", thread_id=ThreadId("T1")), changed(owner, thread_id=None))
        await store.commit(Changes(sessions=passed), sync=False)
        assert {bundle.session for bundle in (await store.load(wanted(threads=("T1",)))).bundles} == {passed[0]}


async def test_two_sessions_may_swap_their_threads(tmp_path: Path) -> None:
    first, second = session("s1", thread_id=ThreadId("T1")), session("s2", thread_id=ThreadId("T2"))
    swapped = (changed(first, thread_id=ThreadId("T2")), changed(second, thread_id=ThreadId("T1")))
    async with store_with(tmp_path, Changes(sessions=(first, second)), Changes(sessions=swapped)) as store:
        assert {bundle.session for bundle in (await store.load(wanted("s1", "s2"))).bundles} == set(swapped)


async def test_an_owned_thread_is_never_ignored(tmp_path: Path) -> None:
    """I9, from both sides, by a new session and by one that was there."""
    owner, other = session("s1", thread_id=ThreadId("T1")), session("s2")
    async with store_with(tmp_path, Changes(sessions=(owner, other), ignored=(ignored("T2"),))) as store:
        await refused(store, "I9", ignored=(ignored("T1"),))
        await refused(store, "I9", sessions=(changed(other, thread_id=ThreadId("T2")),))
        await refused(store, "I9", sessions=(session("s3", thread_id=ThreadId("T2")),))
        await refused(store, "I9", sessions=(session("s3", thread_id=ThreadId("T3")),), ignored=(ignored("T3"),))
        await refused(store, "I9", unignored=(ThreadId("T1"),), ignored=(ignored("T1"),))
        assert (await store.load(wanted(threads=("T1", "T2")))).ignored == (ignored("T2"),)


async def test_a_kill_ignores_and_a_claim_unignores_in_one_batch(tmp_path: Path) -> None:
    """The controls of the guard: what the core does in one decision is one commit."""
    owner = session("s1", thread_id=ThreadId("T1"))
    async with store_with(tmp_path, Changes(sessions=(owner,), ignored=(ignored("T2"),))) as store:
        await store.commit(Changes(sessions=(changed(owner, killed_at_ms=9),), ignored=(ignored("T1"),)), sync=True)
        await store.commit(
            Changes(sessions=(session("s2", thread_id=ThreadId("T2")),), unignored=(ThreadId("T2"),)), sync=True
        )
        # The killed one's thread is free for whoever comes, in the same batch as well.
        heir, owner = session("s4", thread_id=ThreadId("T3")), session("s3", thread_id=ThreadId("T3"))
        await store.commit(Changes(sessions=(owner,)), sync=False)
        await store.commit(Changes(sessions=(heir, changed(owner, killed_at_ms=9))), sync=True)
        assert [bundle.session for bundle in (await store.load(wanted(threads=["T3"]))).bundles] == [heir]
        # Let go and given up while empty; an entry that is there already is refreshed.
        await store.commit(
            Changes(sessions=(session("s2"),), ignored=(ignored("T2"), ignored("T1", last_seen_ms=4))), sync=True
        )
        found = await store.load(wanted(threads=("T1", "T2")))
    assert found.bundles == ()
    assert found.ignored == (ignored("T1", last_seen_ms=4), ignored("T2"))


async def test_a_killed_session_does_not_come_back(tmp_path: Path) -> None:
    """Nor does its id: a creator who chooses it again must not get the dead one's history."""
    async with store_with(tmp_path, Changes(sessions=(session("s1", killed_at_ms=5),))) as store:
        await refused(store, "come back", sessions=(session("s1"),))


async def test_a_generation_only_grows(tmp_path: Path) -> None:
    async with store_with(tmp_path, Changes(sessions=(session("s1", generation=3),))) as store:
        await refused(store, "I4", sessions=(session("s1", generation=2),))
        await store.commit(Changes(sessions=(session("s1", generation=3), session("s1", generation=4))), sync=False)


async def test_a_prompt_and_a_turn_end_once(tmp_path: Path) -> None:
    ended = turn("t1", "s1", 1, ended_at_ms=2, state="cancelled")
    batch = Changes(sessions=(session("s1"),), prompts=(prompt("p1", "s1", 0, delivery="done"),), turns=(ended,))
    async with store_with(tmp_path, batch) as store:
        await refused(store, "I5", prompts=(prompt("p1", "s1", 0, delivery="failed"),))
        await refused(store, "I5", prompts=(prompt("p1", "s1", 0),))
        await refused(store, "I12", turns=(changed(ended, state="normal"),))
        await refused(store, "I12", turns=(turn("t1", "s1", 1),))
        await store.commit(Changes(turns=(changed(ended, reconciled=True),)), sync=False)


@pytest.mark.parametrize("seqs", [(5,), (3,), (4, 6), (4, 4), (5, 4), (0,)])
async def test_the_sequence_has_no_gap_and_no_double(tmp_path: Path, seqs: tuple[int, ...]) -> None:
    """I11: a gap is an event that a replay would miss without knowing."""
    async with store_with(tmp_path, Changes(events=tuple(map(event, (1, 2, 3))))) as store:
        with pytest.raises(StoreRefused, match="I11"):
            await store.commit(Changes(sessions=(session("s1"),), events=tuple(map(event, seqs))), sync=True)
        assert (await store.boot()).next_seq == 4
        assert (await store.load(wanted("s1"))).bundles == ()
        await store.commit(Changes(events=(event(4), event(5))), sync=True)
        assert (await store.boot()).next_seq == 6


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("DELETE FROM events WHERE seq = 3", "the newest event is kept"),
        ("DELETE FROM events", "the newest event is kept"),
        ("UPDATE events SET seq = 9 WHERE seq = 3", "keeps its number"),
    ],
)
def test_no_number_of_the_log_is_used_twice(sql: str, why: str) -> None:
    """I11: whatever will once prune the log leaves its newest event, or the next one gets a number that was seen."""
    db = memory_database()
    EVENTS.append(db, [event(1), event(2), event(3)])
    with pytest.raises(StoreRefused, match=why), translated("pruning"):
        db.execute(sql)
    db.execute("DELETE FROM events WHERE seq < 3")
    assert queries.read_event_bounds(db) == (3, 3)
    db.close()
