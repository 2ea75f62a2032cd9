"""What is open in a turn when it ends: closed once, in the right way, before it is done (EVENT-06, EVENT-07)."""

import pytest
from support.story import Story, running_story

from state.records import ItemId, SessionId, TurnId


@pytest.fixture
def story() -> Story:
    """A turn with text and a command, both open."""
    story = running_story()
    story.item_started("t1", "words")
    story.delta("t1", "words", "half a sen")
    story.item_started("t1", "command", "commandExecution")
    return story


def states(story: Story) -> dict[str, str]:
    """Return what became of each item of the model's."""
    items = story.store.items.values()
    return {str(item.id): item.state for item in items if item.type != "userMessage"}


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_a_turn_that_is_cut_short_takes_its_text_back_and_says_that_its_tools_are_incomplete(
    story: Story, status: str
) -> None:
    story.completed("t1", status)
    assert states(story) == {"words": "taken_back", "command": "incomplete"}
    (reset,) = story.events("block/reset")
    (closed,) = [event for event in story.events("item/completed") if event.get("incomplete")]
    (done,) = story.events("turn/done")
    assert (reset["items"], closed["itemId"]) == (["words"], "command")
    assert reset["seq"] < closed["seq"] < done["seq"]


def test_a_process_that_dies_leaves_no_item_open(story: Story) -> None:
    story.exited()
    assert states(story) == {"words": "taken_back", "command": "incomplete"}


def test_text_that_a_steer_cut_short_is_taken_back_though_the_turn_completes(story: Story) -> None:
    """Measured: what the model was saying when it was steered is never completed, and the turn is."""
    story.item("t1", "answer")
    story.completed("t1")
    assert states(story) == {"words": "taken_back", "command": "open", "answer": "completed"}
    (reset,) = story.events("block/reset")
    assert (reset["items"], reset["reason"]) == (["words"], "turnEnd")


@pytest.mark.parametrize("status", ["completed", "interrupted"])
def test_a_command_that_outlives_its_turn_completes_late_and_corrects_what_was_said(story: Story, status: str) -> None:
    story.completed("t1", status)
    before = len(story.events("turn/done"))
    story.item_completed("t1", "command", "commandExecution")
    key = (SessionId("s"), TurnId("t1"), ItemId("command"))
    assert (story.store.items[key].state, story.store.items[key].late) == ("completed", True)
    assert story.events("item/completed")[-1]["late"] is True
    assert len(story.events("turn/done")) == before
