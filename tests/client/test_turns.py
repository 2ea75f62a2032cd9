"""A turn put together: live, filtered and replayed it is the same, and it is what the daemon's records say."""

from collections.abc import AsyncIterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from termald.client.events import BlockReset, Done, Event, ItemCompleted, ItemDelta, ItemStarted, Notice
from termald.client.turns import TurnAccumulator, committed


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Event], dict[str, Any]]:
    """The events of a turn as the daemon may tell them, and the final items as its records have them."""
    own_stories: list[list[Event]] = []
    final: dict[str, Any] = {}
    for number in range(draw(st.integers(0, 5))):
        item = f"i{number}"
        pieces = draw(st.lists(st.text("ab ", min_size=1, max_size=4), max_size=4))
        fate = draw(st.sampled_from(["completed", "corrected", "taken back", "taken back, then late"]))
        own: list[Event] = [ItemStarted(turn_id="t", item_id=item, item={"type": "agentMessage", "text": ""})]
        own += [ItemDelta(turn_id="t", item_id=item, channel="text", delta=piece) for piece in pieces]
        text = "".join(pieces) if fate == "completed" else "said whole"
        if fate.startswith("taken back"):
            own.append(BlockReset(turn_id="t", items=(item,), reason="retry"))
        if fate != "taken back":
            final[item] = {"type": "agentMessage", "text": text}
            own.append(ItemCompleted(turn_id="t", item_id=item, item=final[item], late="late" in fate))
        own_stories.append(own)
    story: list[Event] = []
    while any(own_stories):  # items are told beside each other
        story.append(draw(st.sampled_from([own for own in own_stories if own])).pop(0))
    places = draw(st.lists(st.integers(0, len(story)), max_size=3))
    for place in sorted(places, reverse=True):
        story.insert(place, Notice(slug="x"))
    return [*story, Done(turn_id="t", state="normal")], final


def folded(story: list[Event]) -> list[Event]:
    """The same as a later reader may get it: no deltas of what is complete."""
    complete = {event.item_id for event in story if isinstance(event, ItemCompleted)}
    return [event for event in story if not (isinstance(event, ItemDelta) and event.item_id in complete)]


@given(stories())
def test_live_and_replayed_and_committed_agree_with_the_records(told: tuple[list[Event], dict[str, Any]]) -> None:
    story, final = told
    for heard in (story, folded(story), list(committed(story)), list(committed(folded(story)))):
        turn = TurnAccumulator(heard)
        assert {item.id: item.item for item in turn.items} == final
        assert turn.items == turn.committed_items
        assert turn.text == "\n\n".join(item.item["text"] for item in turn.items)
        assert turn.done is not None


@given(stories(), st.integers(0, 30))
def test_nothing_that_is_committed_is_ever_taken_back(told: tuple[list[Event], dict[str, Any]], cut: int) -> None:
    """Whoever prints only what is committed never has to unprint."""
    story, final = told
    early = TurnAccumulator(committed(story[:cut]))
    assert all(final[item.id] == item.item for item in early.items)


def test_text_that_is_not_complete_yet_is_there_and_is_not_committed() -> None:
    turn = TurnAccumulator(
        [
            ItemStarted(turn_id="t", item_id="i", item={"type": "agentMessage", "text": ""}),
            ItemDelta(turn_id="t", item_id="i", delta="half "),
            ItemDelta(turn_id="t", item_id="i", delta="said"),
        ]
    )
    assert turn.text == "half said"
    assert (turn.committed_items, turn.final_text) == ((), "")
    turn.feed(BlockReset(turn_id="t", items=("i",)))
    assert turn.text == ""


async def test_an_async_source_is_filtered_as_well() -> None:
    async def source() -> AsyncIterator[Event]:
        yield ItemDelta(turn_id="t", item_id="i", delta="x")
        yield Done(turn_id="t")

    assert [event async for event in committed(source())] == [Done(turn_id="t")]
