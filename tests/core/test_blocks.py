"""A block is one attempt of the model: it has a beginning and one end, and a reset names exactly what it takes back."""

import pytest
from support.story import Story, running_story

from state.records import ThreadId, Tokens, TurnId
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    """A session whose turn t1 runs."""
    return running_story()


def used(story: Story) -> None:
    count = Tokens(input=1, output=1, total=story.tick())
    story.do(
        ins.TurnUsage(
            at_ms=story.tick(), link=story.link, thread=ThreadId("T"), turn=TurnId("t1"), last=count, total=count
        )
    )


def failed(story: Story, *, will_retry: bool) -> None:
    story.do(
        ins.TurnErrored(
            at_ms=story.tick(),
            link=story.link,
            thread=ThreadId("T"),
            turn=TurnId("t1"),
            failure=ins.TurnFailure(message="m"),
            will_retry=will_retry,
        )
    )


def blocks(story: Story) -> list[tuple[str, int | None]]:
    events = story.events("block/start", "block/stop", "block/reset")
    return [(event["kind"].removeprefix("block/"), event.get("block")) for event in events]


def test_each_model_call_is_a_block(story: Story) -> None:
    for number in (1, 2):
        story.item("t1", f"a{number}")
        used(story)
    story.completed("t1")
    assert blocks(story) == [("start", 1), ("stop", 1), ("start", 2), ("stop", 2)]
    kinds = [kind for kind in story.kinds() if kind.startswith(("block/", "item/started", "turn/done"))]
    assert kinds[0] == "item/started"  # the user's message is in no block
    assert kinds[1:3] == ["block/start", "item/started"]
    assert kinds[-1] == "turn/done"


def test_a_retry_ends_the_block_by_the_reset_that_names_its_text(story: Story) -> None:
    story.item("t1", "whole")
    story.item_started("t1", "half")
    failed(story, will_retry=True)
    story.item("t1", "again")
    used(story)
    story.completed("t1")
    assert blocks(story) == [("start", 1), ("reset", None), ("start", 2), ("stop", 2)]
    assert story.events("block/reset")[0]["items"] == ["half"]


def test_a_retry_before_a_word_was_said_opens_nothing(story: Story) -> None:
    failed(story, will_retry=True)
    assert blocks(story) == []


@pytest.mark.parametrize("half", [True, False])
def test_an_interrupt_ends_the_block_with_the_turn(story: Story, *, half: bool) -> None:
    story.item_started("t1", "i")
    if not half:
        story.item_completed("t1", "i")
    story.completed("t1", "interrupted")
    assert blocks(story) == [("start", 1), ("reset", None) if half else ("stop", 1)]


def test_a_tools_output_after_the_count_opens_no_block(story: Story) -> None:
    story.item_started("t1", "run", "commandExecution")
    used(story)
    story.delta("t1", "run", "output")
    story.item_completed("t1", "run", "commandExecution")
    story.completed("t1")
    assert blocks(story) == [("start", 1), ("stop", 1)]
