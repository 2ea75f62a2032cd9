"""What the crash loops have found, each as the shortest story that shows it.

The loops meet an order of events by chance; here it is said, so that it is met at every run.
"""

import pytest
from support.story import Story

from state.records import RuntimeId
from termald.core import effects as fx


@pytest.fixture
def story() -> Story:
    """A session bound to T whose turn t1 runs."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.turn_started("t1")
    story.user_item("t1", "p1")
    return story


def test_a_stop_that_was_committed_before_the_crash_ends_the_turn_after_it(story: Story) -> None:
    story.stop()
    story.reboot(alive="R1")
    again = story.stop()  # its client heard nothing and asks once more
    story.up(connection=2, adopted=True)
    interrupts = story.count(fx.Interrupt)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.count(fx.Interrupt) == interrupts + 1
    story.completed("t1", "interrupted")
    story.done(story.last(fx.EndTools))
    assert isinstance(story.answers[again], fx.SessionAnswer)
    assert (story.session().status, story.session().ending) == ("detached", None)


def test_a_stop_while_the_session_is_attached_anew_still_interrupts_its_turn(story: Story) -> None:
    story.reboot(alive="R1")
    story.up(connection=2, adopted=True)
    ticket = story.stop()
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    story.completed("t1", "interrupted")
    story.done(story.last(fx.EndTools))
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    assert story.count(fx.Interrupt) == 1


def test_a_stop_from_before_the_crash_has_its_deadline_after_it(story: Story) -> None:
    story.stop()
    story.reboot(alive=RuntimeId("R1"))
    story.up(connection=2, adopted=True)
    story.fire("ending", "s")  # Codex answers the resume too late
    assert (story.session().status, story.session().ending) == ("detached", None)
    assert [event["state"] for event in story.events("turn/done")] == ["cancelled"]
