"""The writing side: whole batches, what they name, and what a start wakes up with."""

from pathlib import Path

import trio
from store.builders import (
    ATTACHMENT,
    EVERYTHING,
    batch_of,
    changed,
    event,
    item,
    prompt,
    request,
    runtime,
    session,
    store_with,
    turn,
    wanted,
)

from state.load import ENDED_TURNS_MAX
from state.records import (
    Changes,
    DisposalRecord,
    IntentRecord,
    Loaded,
    SessionId,
    ThreadId,
    TurnId,
    Wanted,
)
from state.store import open_store


async def test_everything_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    async with store_with(tmp_path, EVERYTHING):
        pass
    async with open_store(tmp_path) as store:
        image = await store.boot()
        found = await store.load(
            Wanted(
                sessions=frozenset({SessionId("s1")}),
                threads=frozenset({ThreadId("T1"), ThreadId("T2")}),
                tags=frozenset({"tag1"}),
                keys=frozenset({"k1"}),
            )
        )
    (bundle,) = found.bundles
    assert bundle.session == EVERYTHING.sessions[0]
    assert bundle.prompts == EVERYTHING.prompts
    assert bundle.next_position == 8
    assert bundle.turn == EVERYTHING.turns[0]
    assert bundle.open_items == EVERYTHING.items
    assert bundle.requests == EVERYTHING.requests
    assert bundle.intents == EVERYTHING.intents
    assert found.ignored == EVERYTHING.ignored
    assert found.intents == EVERYTHING.intents
    assert found.threads == EVERYTHING.threads
    assert found.disposals == EVERYTHING.disposals
    assert found.idempotency == EVERYTHING.idempotency
    assert image.loaded.bundles == found.bundles
    assert image.loaded.intents == EVERYTHING.intents
    assert image.loaded.disposals == EVERYTHING.disposals
    assert image.runtime == EVERYTHING.runtime
    assert image.next_seq == 3


async def test_who_we_are_stays_and_the_epoch_grows(tmp_path: Path) -> None:
    async with open_store(tmp_path) as first:
        host = first.host
        assert (await first.boot()).host == host
    async with open_store(tmp_path) as second:
        assert second.host == changed(host, epoch=host.epoch + 1)


async def test_only_what_is_unfinished_wakes_up(tmp_path: Path) -> None:
    """One session for each thing that can be unfinished; beside them, what differs only in being finished."""
    finished = Changes(
        sessions=(
            session("idle"),
            session("failed", status="error"),
            session("shut", status="closed"),
            session("gone", status="running", attachment=ATTACHMENT, killed_at_ms=5),
        ),
        prompts=(
            prompt("f1", "idle", 0, delivery="done"),
            prompt("f2", "idle", 1, delivery="failed"),
            prompt("f3", "idle", 2, delivery="cancelled"),
            prompt("f4", "idle", 3, delivery="not_delivered"),
        ),
        turns=(turn("t1", "idle", 1, ended_at_ms=2, state="normal"),),
        items=(
            item("i1", "idle", 1),
            item("i2", "idle", 2, state="incomplete"),
            item("i3", "idle", 3, state="taken_back"),
        ),
        requests=(request("q1", "idle", 1, status="resolved"), request("q2", "idle", 2, status="expired")),
        intents=tuple(
            IntentRecord(tag=state, session_id=SessionId("idle"), generation=1, kind="start", cwd="/w", state=state)
            for state in ("claimed", "ignored", "discarded", "orphan")
        ),
        disposals=(DisposalRecord(thread_id=ThreadId("T1"), session_id=None, wanted="ignore", done=True),),
        runtime=runtime("r1", ended_at_ms=9),
    )
    live = (
        session("connecting", status="connecting"),
        session("ready", status="ready"),
        session("running", status="running"),
        session("attached", attachment=ATTACHMENT, status="error"),
        session("ending", ending="close"),
    )
    holding = tuple(map(session, ("prompts", "turn", "item", "asked", "answered", "intent")))
    unfinished = Changes(
        sessions=live + holding,
        prompts=tuple(
            prompt(f"u{at}", "prompts", at, delivery=delivery)
            for at, delivery in enumerate(("queued", "sent", "acked", "recorded"))
        ),
        turns=(turn("t2", "turn", 1),),
        items=(item("i4", "item", 4, state="open"),),
        requests=(request("q3", "asked", 3), request("q4", "answered", 4, status="answered")),
        intents=(IntentRecord(tag="open", session_id=SessionId("intent"), generation=1, kind="fork", cwd="/w"),),
        disposals=(DisposalRecord(thread_id=ThreadId("T2"), session_id=None, wanted="ignore"),),
    )
    async with store_with(tmp_path, finished) as store:
        image = await store.boot()
        assert image.loaded == Loaded()
        assert image.runtime is None
        await store.commit(unfinished, sync=False)
        await store.put_runtime(runtime("r2", started_at_ms=3))
        await store.put_runtime(runtime("r3", started_at_ms=4))
        image = await store.boot()
    assert {bundle.session.id for bundle in image.loaded.bundles} == {one.id for one in live + holding}
    assert {len(bundle.prompts) for bundle in image.loaded.bundles} == {0, 4}
    assert image.loaded.intents == unfinished.intents
    assert image.loaded.disposals == unfinished.disposals
    assert image.runtime == runtime("r3", started_at_ms=4)


async def test_prompts_are_loaded_in_order_and_the_next_place_counts_the_finished(tmp_path: Path) -> None:
    batch = Changes(
        sessions=(session("s1"),),
        prompts=(
            prompt("c", "s1", 2),
            prompt("z", "s1", 1, delivery="sent"),
            prompt("b", "s1", 5, delivery="done"),
            prompt("a", "s1", 3),
        ),
    )
    async with store_with(tmp_path, batch) as store:
        (bundle,) = (await store.load(wanted("s1"))).bundles
    assert [one.id for one in bundle.prompts] == ["z", "c", "a"]
    assert bundle.next_position == 6


async def test_the_newest_ended_turns_are_known_oldest_first(tmp_path: Path) -> None:
    turns = tuple(turn(f"t{at}", "s1", at, ended_at_ms=at + 1, state="normal") for at in range(ENDED_TURNS_MAX + 3))
    async with store_with(tmp_path, Changes(sessions=(session("s1"),), turns=turns)) as store:
        (bundle,) = (await store.load(wanted("s1"))).bundles
    assert bundle.turn is None
    assert bundle.ended_turns == tuple(one.id for one in turns[3:])


async def test_an_owner_is_found_by_its_thread_and_a_killed_one_is_a_tombstone(tmp_path: Path) -> None:
    """After a kill the thread may be claimed anew; its old owner is remembered by name only."""
    killed = session("old", thread_id=ThreadId("T1"), killed_at_ms=5)
    owner = session("new", thread_id=ThreadId("T1"))
    batch = Changes(sessions=(killed, owner), prompts=(prompt("p1", "old", 0), prompt("p2", "new", 0)))
    async with store_with(tmp_path, batch) as store:
        by_thread = await store.load(wanted(threads=("T1", "T9")))
        by_name = await store.load(wanted("old", "nobody"))
    assert [bundle.session for bundle in by_thread.bundles] == [owner]
    assert [(bundle.session, bundle.prompts, bundle.next_position) for bundle in by_name.bundles] == [(killed, (), 0)]


async def test_a_thousand_names_are_loaded_at_once(tmp_path: Path) -> None:
    sessions = tuple(session(f"s{at}", thread_id=ThreadId(f"T{at}")) for at in range(1_000))
    async with store_with(tmp_path, Changes(sessions=sessions)) as store:
        found = await store.load(
            wanted(*(one.id for one in sessions[:600]), threads=tuple(f"T{at}" for at in range(1_000)))
        )
    assert {bundle.session for bundle in found.bundles} == set(sessions)


async def test_an_empty_batch_is_nothing(tmp_path: Path) -> None:
    async with store_with(tmp_path, Changes()) as store:
        before = (tmp_path / "termald.sqlite-wal").read_bytes()
        await store.commit(Changes(), sync=True)
        assert (tmp_path / "termald.sqlite-wal").read_bytes() == before


async def test_a_cancelled_commit_is_whole(tmp_path: Path) -> None:
    """Whoever gives up waiting must not leave half a promise, nor believe that nothing happened."""
    answered = False
    async with open_store(tmp_path) as store:
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.commit(EVERYTHING, sync=True)
            answered = True
            await trio.lowlevel.checkpoint()
        assert answered
        assert scope.cancelled_caught
        assert (await store.boot()).next_seq == 3
        await store.commit(Changes(events=(event(3),)), sync=True)


async def test_turns_that_were_taken_back_are_in_no_history_any_more(tmp_path: Path) -> None:
    sessions, turns = batch_of(session("s"), session("other")), []
    for of in ("s", "other"):
        turns += [turn("a", of, 1, state="normal"), turn("b", of, 2, state="normal")]
    items = tuple(item(f"i-{one.id}", one.session_id, number, turn_id=one.id) for number, one in enumerate(turns, 1))
    reverted = Changes(reverted=((SessionId("s"), TurnId("b")),))
    async with store_with(tmp_path, sessions, Changes(turns=tuple(turns), items=items), reverted) as store:
        left = {of: await store.turns(SessionId(of), order="oldest", limit=9) for of in ("s", "other")}
        kept = await store.items(SessionId("s"), order="oldest", limit=9)
    assert {of: [one.id for one in page.rows] for of, page in left.items()} == {"s": ["a"], "other": ["a", "b"]}
    assert [one.id for one in kept.rows] == ["i-a"]
