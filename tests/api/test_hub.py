"""The hub: what a reader is given is exactly the log after its cursor, whatever the order of commits, publications,
reads and pauses; or it is told that this cannot be."""

import json
from collections.abc import Sequence

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from state.records import EventRecord, Seq, SessionId
from state.views import EventPage
from termald.hub import BATCH_EVENTS, Frame, Hub, Subscription, parse_cursor

DOCS, CODE = SessionId("docs"), SessionId("code")
SCANNED_MAX = 7
"""How many events one read looks at; the store looks at more."""


def event(seq: int, kind: str = "item/delta", session: SessionId = DOCS) -> EventRecord:
    return EventRecord(
        seq=Seq(seq),
        at_ms=0,
        kind=kind,
        session_id=session,
        turn_id=None,
        item_id=None,
        data_json=json.dumps({"seq": seq, "kind": kind, "sessionId": session}).encode(),
    )


class MemoryLog:
    """The committed log. `before` and `after`: how many times a read lets others run on each side of its snapshot."""

    def __init__(self, events: Sequence[EventRecord] = (), *, before: int = 0, after: int = 0) -> None:
        self.rows = list(events)
        self.cut = 0
        self.reads = 0
        self._before, self._after = before, after

    async def events(
        self, after: Seq, limit: int, *, session: SessionId | None = None, kinds: frozenset[str] | None = None
    ) -> EventPage:
        self.reads += 1
        await pause(self._before)
        rows = [
            row
            for row in self.rows
            if row.seq > max(after, self.cut) and (session is None or row.session_id == session)
        ][:SCANNED_MAX]
        found: list[EventRecord] = []
        through = after
        for row in rows:
            through = row.seq
            if kinds is None or row.kind in kinds:
                found.append(row)
                if len(found) == limit:
                    break
        await pause(self._after)
        return EventPage(events=tuple(found), through=through)

    async def event_bounds(self) -> tuple[Seq, Seq]:
        await pause(self._before)
        return Seq(self.cut + 1), Seq(self.rows[-1].seq if self.rows else 0)


async def pause(turns: int) -> None:
    for _ in range(turns):
        await trio.lowlevel.checkpoint()


async def read_until(subscription: Subscription, last: int, *, pace: int = 0) -> list[Frame]:
    """Everything up to and with number `last`."""
    frames: list[Frame] = []
    with trio.fail_after(30):
        while not frames or frames[-1].id < last or "synced" not in [frame.event for frame in frames]:
            frames += await subscription.next_batch()
            await pause(pace)
    return frames


def numbers(frames: Sequence[Frame]) -> list[int]:
    return [frame.id for frame in frames if frame.event not in ("synced", "reset")]


def events_named(frames: Sequence[Frame], name: str) -> list[Frame]:
    return [frame for frame in frames if frame.event == name]


# --- the boundary between replay and live ---


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule. `batches`: how many events, pauses before they are committed, pauses until they are published."""

    committed: int
    unpublished: int
    ring: int
    batches: list[tuple[int, int, int]]
    before: int
    after: int
    pace: int
    cursor: int | None
    session: SessionId | None
    kinds: frozenset[str] | None


def mixed(seq: int) -> EventRecord:
    """One event of two sessions and two kinds, by its number."""
    return event(seq, "turn/done" if seq % 3 == 0 else "item/delta", DOCS if seq % 2 else CODE)


runs = st.builds(
    Run,
    committed=st.integers(0, 12),
    unpublished=st.integers(0, 3),
    ring=st.integers(1, 6),
    batches=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=8),
    before=st.integers(0, 3),
    after=st.integers(0, 3),
    pace=st.integers(0, 6),
    cursor=st.none() | st.integers(0, 15),
    session=st.none() | st.just(DOCS),
    kinds=st.none() | st.just(frozenset({"turn/done"})),
)


@given(run=runs)
@settings(max_examples=300, deadline=None)
def test_a_reader_gets_the_log_after_its_cursor_without_gap_or_double(run: Run) -> None:
    """I11, EVENT-16. A gap would lose a piece of somebody's transcript, a double would show it twice."""
    committed, unpublished = run.committed, run.unpublished
    log = MemoryLog(
        [mixed(seq) for seq in range(1, committed + unpublished + 1)],
        before=run.before,
        after=run.after,
    )
    total = committed + unpublished + sum(size for size, _, _ in run.batches)
    cursor = None if run.cursor is None else Seq(min(run.cursor, committed + unpublished))

    async def publish(hub: Hub) -> None:
        hub.publish([row for row in log.rows if row.seq > committed])
        for size, between, commit_to_publish in run.batches:
            await pause(between)
            first = len(log.rows) + 1
            batch = [mixed(seq) for seq in range(first, first + size)]
            log.rows += batch
            await pause(commit_to_publish)
            hub.publish(batch)
        last = event(total + 1, "turn/done", DOCS)
        log.rows.append(last)
        hub.publish([last])

    async def main() -> None:
        hub = Hub(log, last=Seq(committed), ring_events=run.ring)
        with hub.subscribe(after=cursor, session=run.session, kinds=run.kinds) as subscription:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(publish, hub)
                frames = await read_until(subscription, total + 1, pace=run.pace)
        begin = committed if cursor is None else cursor
        expected = [
            row.seq
            for row in log.rows
            if row.seq > begin
            and (run.session is None or row.session_id == run.session)
            and (run.kinds is None or row.kind in run.kinds)
        ]
        assert numbers(frames) == expected
        assert len(events_named(frames, "synced")) == 1
        assert not events_named(frames, "reset")

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@given(
    cuts=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=8),
    before=st.integers(0, 3),
    after_read=st.integers(0, 3),
    pace=st.integers(0, 8),
    ring=st.integers(1, 3),
)
@settings(max_examples=300, deadline=None)
def test_a_reader_that_the_log_was_cut_under_is_told_so_and_never_given_a_gap(
    cuts: list[tuple[int, int, int]], before: int, after_read: int, pace: int, ring: int
) -> None:
    """A replay from a log that is being cut must not pass over the cut in silence."""
    log = MemoryLog(before=before, after=after_read)

    async def publish(hub: Hub) -> None:
        for size, keep, between in cuts:
            await pause(between)
            first = len(log.rows) + 1
            batch = [event(seq) for seq in range(first, first + size)]
            log.rows += batch
            hub.publish(batch)
            log.cut = max(log.cut, hub.last - keep)
        last = event(len(log.rows) + 1)
        log.rows.append(last)
        hub.publish([last])

    async def main() -> None:
        hub = Hub(log, last=Seq(0), ring_events=ring)
        with hub.subscribe(after=Seq(0)) as subscription:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(publish, hub)
                frames = await read_until(subscription, sum(size for size, _, _ in cuts) + 1, pace=pace)
        position = 0
        for frame in frames:
            if frame.event == "reset":
                assert frame.id >= position
                position = frame.id
            elif frame.event != "synced":
                assert frame.id == position + 1, [(each.event, each.id) for each in frames]
                position = frame.id

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


# --- cursors ---


@pytest.mark.parametrize(
    ("cursor", "reason"),
    [
        ("abc", "malformed"),
        ("-1", "malformed"),
        ("", "malformed"),
        ("9" * 30, "malformed"),
        ("8", "future"),
        ("2", "too-old"),
    ],
)
async def test_a_cursor_that_cannot_be_replayed_gets_one_reset_and_goes_live(cursor: str, reason: str) -> None:
    """EVENT-17. The client is told where to begin anew, and misses nothing from there on."""
    log = MemoryLog([event(seq) for seq in range(1, 8)])
    log.cut = 3
    hub = Hub(log, last=Seq(7), ring_events=2)
    with hub.subscribe(after=parse_cursor(cursor)) as subscription:
        first = await subscription.next_batch()
        assert [frame.event for frame in first] == ["reset", "synced"]
        assert json.loads(first[0].data) == {
            "seq": 7,
            "kind": "reset",
            "reason": reason,
            "snapshot": "/api/state",
            "lastEventId": 7,
        }
        hub.publish([event(8), event(9)])
        assert numbers(await subscription.next_batch()) == [8, 9]
    assert hub.statistics().resets == 1


async def test_a_cursor_at_the_cut_is_still_exact() -> None:
    """The control to the reset above: one more is not too old."""
    log = MemoryLog([event(seq) for seq in range(1, 8)])
    log.cut = 3
    hub = Hub(log, last=Seq(7), ring_events=2)
    with hub.subscribe(after=Seq(3)) as subscription:
        assert numbers(await subscription.next_batch()) == [4, 5, 6, 7]


async def test_a_snapshot_that_is_ahead_of_the_publication_is_not_from_the_future() -> None:
    """The commit comes before the publication; a client that took its snapshot in between must not be reset for it."""
    log = MemoryLog([event(1), event(2)])
    hub = Hub(log, last=Seq(1))
    with hub.subscribe(after=Seq(2)) as subscription:
        assert [(frame.event, frame.id) for frame in await subscription.next_batch()] == [("synced", 2)]
        hub.publish([event(2)])
        hub.publish([event(3)])
        assert numbers(await subscription.next_batch()) == [3]


async def test_without_a_cursor_a_reader_begins_with_what_comes_next() -> None:
    hub = Hub(MemoryLog([event(1)]), last=Seq(1))
    with hub.subscribe() as subscription:
        hub.publish([event(2)])
        assert [(frame.event, frame.id) for frame in await subscription.next_batch()] == [
            ("item/delta", 2),
            ("synced", 2),
        ]


async def test_zero_is_the_cursor_before_the_first_event() -> None:
    hub = Hub(MemoryLog([event(1), event(2)]), last=Seq(2))
    with hub.subscribe(after=Seq(0)) as subscription:
        assert numbers(await subscription.next_batch()) == [1, 2]


# --- filters ---


async def test_a_filter_holds_for_ring_and_store_alike() -> None:
    """A client that asked for one kind would choke on another, and should not be woken for it."""
    rows = [
        event(seq, "turn/done" if seq % 3 == 0 else "item/delta", DOCS if seq % 2 else CODE) for seq in range(1, 13)
    ]
    log = MemoryLog(rows[:6])
    hub = Hub(log, last=Seq(6), ring_events=8)
    with hub.subscribe(after=Seq(0), session=DOCS, kinds=frozenset({"turn/done"})) as subscription:
        assert [(frame.event, frame.id) for frame in await subscription.next_batch()] == [("turn/done", 3)]
        assert [(frame.event, frame.id) for frame in await subscription.next_batch()] == [("synced", 6)]
        log.rows = rows
        hub.publish(rows[6:])
        assert [(frame.event, frame.id) for frame in await subscription.next_batch()] == [("turn/done", 9)]
    assert log.reads == 2  # the second finds the end


async def test_the_mark_carries_a_number_that_saves_the_next_replay_what_the_filter_left_out() -> None:
    hub = Hub(MemoryLog([event(seq) for seq in range(1, 7)]), last=Seq(6))
    with hub.subscribe(after=Seq(0), kinds=frozenset({"turn/done"})) as subscription:
        [mark] = await subscription.next_batch()
        assert (mark.event, mark.id, json.loads(mark.data)) == ("synced", 6, {"seq": 6, "kind": "synced"})


# --- pace ---


async def test_a_reader_that_stands_still_costs_neither_memory_nor_time_and_misses_nothing() -> None:
    """EVENT-18. The ring is all that is kept, and what it dropped comes from the store."""
    log = MemoryLog()
    hub = Hub(log, last=Seq(0), ring_events=16)
    with hub.subscribe() as slow, hub.subscribe() as quick:
        for seq in range(1, 1_001):
            log.rows.append(event(seq))
            hub.publish([log.rows[-1]])
            if seq % 8 == 0:
                await quick.next_batch()
        assert hub.statistics().ring_events == 16
        assert log.reads == 0
        assert numbers(await read_until(slow, 1_000)) == list(range(1, 1_001))
        assert log.reads > 0


async def test_a_batch_is_bounded() -> None:
    rows = [event(seq) for seq in range(1, 3 * BATCH_EVENTS)]
    hub = Hub(MemoryLog(), last=Seq(0))
    with hub.subscribe() as subscription:
        hub.publish(rows)
        assert len(await subscription.next_batch()) == BATCH_EVENTS


async def test_a_wait_that_is_cut_loses_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """The heartbeat cuts the wait every fifteen seconds."""
    hub = Hub(MemoryLog(), last=Seq(0))
    with hub.subscribe() as subscription:
        await subscription.next_batch()
        with trio.move_on_after(15) as scope:
            await subscription.next_batch()
        assert scope.cancelled_caught
        hub.publish([event(1)])
        assert numbers(await subscription.next_batch()) == [1]


async def test_a_hole_in_the_numbers_is_read_around() -> None:
    """Numbers are without holes; should one appear, the ring must not invent a frame for it."""
    log = MemoryLog([event(1)])
    hub = Hub(log, last=Seq(1), ring_events=8)
    with hub.subscribe(after=Seq(1)) as subscription:
        log.rows += [event(5), event(6)]
        hub.publish(log.rows[1:])
        assert numbers(await read_until(subscription, 6)) == [5, 6]


def test_a_number_that_does_not_grow_is_refused() -> None:
    hub = Hub(MemoryLog(), last=Seq(4))
    with pytest.raises(AssertionError, match="I11"):
        hub.publish([event(4)])


async def test_closing_ends_readers_after_what_was_published(autojump_clock: trio.testing.MockClock) -> None:
    hub = Hub(MemoryLog(), last=Seq(0))
    with hub.subscribe() as subscription:
        hub.publish([event(1)])
        hub.close()
        with trio.fail_after(1):
            assert numbers(await subscription.next_batch()) == [1]
            assert await subscription.next_batch() == []
    assert hub.statistics().readers == 0


async def test_closing_wakes_a_reader_that_waits(autojump_clock: trio.testing.MockClock) -> None:
    hub = Hub(MemoryLog(), last=Seq(0))

    async def wait(subscription: Subscription) -> None:
        assert await subscription.next_batch() == []

    with hub.subscribe() as subscription:
        await subscription.next_batch()
        with trio.fail_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait, subscription)
                await trio.testing.wait_all_tasks_blocked()
                hub.close()


# --- encodings ---


def test_a_frame_is_encoded_once_for_all_readers() -> None:
    frame = Frame(Seq(7), "turn/done", b'{"seq":7}')
    assert frame.sse == b'id: 7\nevent: turn/done\ndata: {"seq":7}\n\n'
    assert frame.sse is frame.sse
    assert json.loads(frame.text) == {"id": 7, "event": "turn/done", "data": {"seq": 7}}
    assert frame.text is frame.text


def test_line_breaks_that_codex_put_between_tokens_do_not_end_the_field() -> None:
    frame = Frame(Seq(7), "codex/raw", b'{"seq":7,"params":{\r\n  "a": "x\\ny"\r}}')
    data = frame.sse.removeprefix(b"id: 7\nevent: codex/raw\ndata: ").removesuffix(b"\n\n")
    assert b"\n" not in data and b"\r" not in data
    assert json.loads(data) == {"seq": 7, "params": {"a": "x\ny"}}
