"""A turn that was acknowledged and never begins: dropped by Codex, which will not say so (I7)."""

import pytest
from support.story import Story

from state.records import ThreadId
from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    """Two prompts; the first has its answer, and nothing else."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.prompt("p2")
    return story


def test_a_turn_that_was_dropped_before_it_began_ends_and_the_queue_goes_on(story: Story) -> None:
    """Found by the simulation: the session was running for ever, with nothing behind it."""
    for _ in range(20):
        if story.session().status != "running" or story.count(fx.StartTurn) > 1:
            break
        story.fire("turn", "s")
        story.turns_read()
    (done,) = story.events("turn/done")
    assert (done["turnId"], done["state"], done["message"]) == ("t1", "error", "Codex has no record of the turn")
    assert story.deliveries() == {"p1": "failed", "p2": "sent"}


def test_a_turn_that_is_slow_to_begin_is_found_running_and_goes_on(story: Story) -> None:
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    story.item("t1", "a")
    story.completed("t1")
    assert story.deliveries() == {"p1": "done", "p2": "sent"}


def test_turn_23_a_turn_that_said_that_it_is_active_may_be_silent_for_ever(story: Story) -> None:
    story.turn_started("t1")
    assert ("turn", "s") not in story.timers
    assert story.count(fx.ReadTurns) == 0


@pytest.mark.parametrize("told", ["notLoaded", "closed"])
def test_a_thread_that_is_unloaded_under_such_a_turn_does_not_take_the_attachment_with_it(
    story: Story, told: str
) -> None:
    """Found by the simulation: the session was detached with its turn, which nobody could end any more, nor stop."""
    status = ins.ThreadStatusChanged(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), status="notLoaded")
    story.do(status)
    if told == "closed":
        story.do(ins.ThreadGone(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), how="closed"))
    else:
        while story.session().status == "running" and story.count(fx.StartTurn) == 1:
            story.fire("turn", "s")
            story.refuse(story.last(fx.ReadTurns), "thread_not_found")
    assert len(story.events("turn/done")) == 1
    assert story.deliveries()["p1"] in ("cancelled", "failed")
    assert story.count(fx.OpenKnown) + story.count(fx.StartTurn) == 2, "the next prompt goes on"
