"""The log is kept bounded: complete items swallow their deltas, the oldest events go, and nothing else is touched."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store.builders import event, item, session, store_with

from state.records import Changes, EventRecord, ItemId, Seq, SessionId, TurnId
from state.store import Store, open_store
from state.upkeep import FOLDED_MAX, LOOKED_AT_MAX, Folded

AT_MS = 1_000
LATER_MS = 10_000


def told(seq: int, kind: str, name: str, at_ms: int = AT_MS, **data: Any) -> EventRecord:
    return EventRecord(
        seq=Seq(seq),
        at_ms=at_ms,
        kind=kind,
        session_id=SessionId("s"),
        turn_id=TurnId("t1"),
        item_id=ItemId(name),
        data_json=json.dumps({"seq": seq, **data}).encode(),
    )


def delta(seq: int, name: str, text: str, channel: str = "text", **fields: Any) -> EventRecord:
    return told(seq, "item/delta", name, channel=channel, delta=text, **fields)


def says(name: str, text: str, **fields: Any) -> Any:
    return item(name, "s", 1, item_json=json.dumps({"text": text}), **fields)


async def kept(store: Store) -> list[int]:
    return [one.seq for one in (await store.events(Seq(0), 100_000)).events]


async def fold_all(store: Store, before_ms: int = LATER_MS) -> int:
    events, more = 0, True
    while more:
        step = await store.fold(before_ms)
        events, more = events + step.events, step.more
    return events


async def test_a_complete_item_swallows_its_deltas_and_those_of_no_other(tmp_path: Path) -> None:
    log = (
        told(1, "item/started", "a"),
        told(2, "item/started", "b"),
        delta(3, "a", "Hello "),
        delta(4, "b", "Hello "),
        delta(5, "a", "there"),
        told(6, "item/completed", "a"),
        delta(7, "b", "there"),
    )
    rows = Changes(sessions=(session("s"),), items=(says("a", "Hello there"), says("b", "", state="open")), events=log)
    async with store_with(tmp_path, rows) as store:
        assert await fold_all(store) == 2
        assert await kept(store) == [1, 2, 4, 6, 7]
        assert await store.event_bounds() == (1, 7), "nothing is missing that a reader would need a reset for"
        await store.commit(Changes(events=(event(8, "notice"),)), sync=False)
        assert await kept(store) == [1, 2, 4, 6, 7, 8]


@pytest.mark.parametrize(
    ("found", "at_ms"),
    [
        (says("a", "Hel", state="incomplete"), AT_MS),
        (says("a", "Hello there", state="taken_back"), AT_MS),
        (says("a", "Goodbye"), AT_MS),
        (says("a", "Hello there"), LATER_MS),
    ],
    ids=["cut short", "taken back", "says something else", "complete for not long enough"],
)
async def test_what_only_the_deltas_say_stays(tmp_path: Path, found: Any, at_ms: int) -> None:
    log = (
        told(1, "item/started", "a"),
        delta(2, "a", "Hello "),
        delta(3, "a", "there"),
        told(4, "item/completed", "a", at_ms=at_ms),
    )
    async with store_with(tmp_path, Changes(sessions=(session("s"),), items=(found,), events=log)) as store:
        assert await fold_all(store) == 0
        assert await kept(store) == [1, 2, 3, 4]


async def test_a_log_that_begins_with_a_hole_is_whole(tmp_path: Path) -> None:
    """It was cut off within an item, and the rest of its deltas went afterwards."""
    log = (
        told(1, "item/started", "a"),
        delta(2, "a", "Hello "),
        delta(3, "a", "there"),
        told(4, "item/completed", "a"),
        told(5, "turn/done", ""),
    )
    rows = Changes(sessions=(session("s"),), items=(says("a", "Hello there"),), events=log)
    async with store_with(tmp_path, rows) as store:
        assert await store.cut(1) == 1
        assert await fold_all(store) == 2
        assert await kept(store) == [4, 5]
        assert await store.event_bounds() == (2, 5)


async def test_an_item_of_turns_that_were_taken_back_is_passed_over(tmp_path: Path) -> None:
    log = (delta(1, "a", "x"), told(2, "item/completed", "a"))
    async with store_with(tmp_path, Changes(events=log)) as store:
        assert await fold_all(store) == 0


async def test_long_items_and_long_logs_go_in_bounded_steps_over_any_number_of_starts(tmp_path: Path) -> None:
    """A daemon may end between any two of them; the next one goes on where it was."""
    deltas = LOOKED_AT_MAX + FOLDED_MAX // 2
    log = (
        told(1, "item/started", "a"),
        *(delta(seq, "a", f"{seq} ") for seq in range(2, deltas + 2)),
        told(deltas + 2, "item/completed", "a"),
    )
    text = "".join(f"{seq} " for seq in range(2, deltas + 2))
    async with store_with(tmp_path, Changes(sessions=(session("s"),), items=(says("a", text),), events=log)):
        pass
    folded = steps = 0
    more = True
    while more:
        async with open_store(tmp_path) as store:
            step: Folded = await store.fold(LATER_MS)
            assert step.events <= FOLDED_MAX
            folded, steps, more = folded + step.events, steps + 1, step.more
    assert folded == deltas
    assert steps > deltas // FOLDED_MAX
    async with open_store(tmp_path) as store:
        assert await kept(store) == [1, deltas + 2]
        assert await store.fold(LATER_MS) == Folded(events=0, more=False)


async def test_the_oldest_are_cut_off_and_the_newest_never(tmp_path: Path) -> None:
    log = tuple(event(seq, "notice") for seq in range(1, 11))
    async with store_with(tmp_path, Changes(events=log)) as store:
        assert await store.excess(10) == 0
        assert await store.excess(7) == 3
        assert await store.cut(3) == 3
        assert (await kept(store), await store.event_bounds()) == ([4, 5, 6, 7, 8, 9, 10], (4, 10))
        assert await store.excess(7) == 0
        assert await store.cut(7) == 0, "the newest is where the sequence goes on"
        assert await store.cut(6) == 6
        await store.commit(Changes(events=(event(11, "notice"),)), sync=False)
        assert await kept(store) == [10, 11]
    async with open_store(tmp_path) as store:
        assert await store.event_bounds() == (10, 11)


@settings(max_examples=30, deadline=None)  # each opens a store: a busy machine takes its time over that
@given(
    said=st.lists(st.tuples(st.sampled_from("abc"), st.text("xyz", min_size=1, max_size=3)), max_size=20),
    complete=st.frozensets(st.sampled_from("abc")),
)
async def test_nobody_reads_less_after_folding(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str]], complete: frozenset[str]
) -> None:
    """What a reader makes of the log from its beginning, deltas joined and completions put over them, is the same."""
    texts = {name: "".join(text for of, text in said if of == name) for name in "abc"}
    parts = [("item/started", name, "") for name in "abc"]
    parts += [("item/delta", name, text) for name, text in said]
    parts += [("item/completed", name, texts[name]) for name in sorted(complete)]
    log = tuple(
        told(seq, kind, name, channel="text", delta=text, item={"text": text})
        for seq, (kind, name, text) in enumerate(parts, start=1)
    )
    items = tuple(says(name, texts[name], state="completed" if name in complete else "open") for name in "abc")
    rows = Changes(sessions=(session("s"),), items=items, events=log)
    async with store_with(tmp_path_factory.mktemp("log"), rows) as store:
        before = await read(store)
        assert await fold_all(store) == sum(name in complete for name, _ in said)
        assert await read(store) == before == texts


async def read(store: Store) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in (await store.events(Seq(0), 1_000)).events:
        data, name = json.loads(one.data_json), str(one.item_id)
        if one.kind == "item/delta":
            found[name] = found.get(name, "") + data["delta"]
        elif one.kind == "item/completed":
            found[name] = data["item"]["text"]
        else:
            found.setdefault(name, "")
    return found
