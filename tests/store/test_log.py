"""The log: what is replayed is what was written, once, in order, whatever is asked for and however it is paged."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store.builders import event, store_with

from state.queries import EVENTS_BYTES_MAX, EVENTS_SCANNED_MAX
from state.records import Changes, Seq
from state.store import Store
from state.views import EventPage


async def replay(store: Store, after: int, limit: int, **asked: Any) -> list[int]:
    """Follow the log to its end as a reader does."""
    seqs: list[int] = []
    at = Seq(after)
    while (page := await store.events(at, limit, **asked)).through > at:
        assert len(page.events) <= limit
        seqs.extend(one.seq for one in page.events)
        at = page.through
    return seqs


KINDS = ("item/delta", "turn/done", "session/ready")
NAMES = (None, "s1", "s2")


@given(
    log=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES)), max_size=30),
    after=st.integers(0, 31),
    limit=st.integers(1, 31),
    asked=st.tuples(st.sampled_from(NAMES), st.none() | st.frozensets(st.sampled_from(KINDS))),
)
async def test_a_replay_is_exact(
    tmp_path_factory: pytest.TempPathFactory,
    log: list[tuple[str, str | None]],
    after: int,
    limit: int,
    asked: tuple[str | None, frozenset[str] | None],
) -> None:
    """I11: every event that was asked for, once, in order, whole, whatever the page."""
    of, kinds = asked
    events = tuple(event(seq, kind, name) for seq, (kind, name) in enumerate(log, start=1))
    async with store_with(tmp_path_factory.mktemp("log"), Changes(events=events)) as store:
        seqs = await replay(store, after, limit, session=of, kinds=kinds)
        whole: EventPage = await store.events(Seq(0), 100)
        bounds = await store.event_bounds()
    assert whole.events == events
    assert bounds == (1, len(events))
    assert seqs == [
        one.seq
        for one in events
        if one.seq > after and (of is None or one.session_id == of) and (kinds is None or one.kind in kinds)
    ]


async def test_a_rare_kind_in_a_long_log_is_found_in_bounded_steps(tmp_path: Path) -> None:
    """One read must not hold a connection for as long as the log is."""
    rare = EVENTS_SCANNED_MAX + 10
    events = tuple(event(seq, "turn/done" if seq == rare else "item/delta") for seq in range(1, rare + 1))
    async with store_with(tmp_path, Changes(events=events)) as store:
        page = await store.events(Seq(0), 10, kinds=frozenset({"turn/done"}))
        assert page == EventPage(events=(), through=Seq(EVENTS_SCANNED_MAX))
        assert await replay(store, 0, 10, kinds=frozenset({"turn/done"})) == [rare]


async def test_a_page_of_long_lines_is_bounded_in_bytes_and_the_replay_exact(tmp_path: Path) -> None:
    """A page lies in memory whole, once for each reader that is behind."""
    line = b'"' + b"x" * (EVENTS_BYTES_MAX // 3) + b'"'
    events = tuple(msgspec.structs.replace(event(seq), data_json=line) for seq in range(1, 9))
    async with store_with(tmp_path, Changes(events=events)) as store:
        page = await store.events(Seq(0), 100)
        seqs = await replay(store, 0, 100)
    assert (len(page.events), page.through) == (3, 3)
    assert seqs == list(range(1, 9))
