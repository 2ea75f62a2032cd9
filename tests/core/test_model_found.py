"""What the model found, each as the shortest story that shows it.

The name says the promise that was broken. The rules that led there are in the history; here it is told by hand, so that
it stays when the rules change.
"""

import pytest
from support.story import Story

from state.records import TurnId
from termald.core import effects as fx
from termald.core.disposal import INTERRUPTS_MAX


@pytest.fixture
def story() -> Story:
    """A session bound to T whose first prompt's `turn/start` is written."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    return story


def running(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.user_item("t1", "p1")


def let_go(story: Story) -> list[str]:
    return [sent.op.what for sent in story.sent if isinstance(sent.op, fx.DisposeThread)]


# --- threads that are let go ---


def test_a_thread_that_is_claimed_again_is_not_left_for_the_session_that_is_gone(story: Story) -> None:
    """Else the new session hears nothing: the unsubscribing of the killed one comes after its resume."""
    running(story)
    killed = story.kill()
    assert let_go(story) == ["interrupt"]
    story.create("heir", thread="T")
    assert isinstance(story.answers[killed], fx.KillAnswer)
    story.done(story.last(fx.DisposeThread))
    story.prompt("p2", "heir")
    assert story.count(fx.OpenKnown) == 1
    assert let_go(story) == ["interrupt"]


def test_an_unsubscribing_that_was_refused_by_overload_is_not_repeated_after_the_session_came_back(
    story: Story,
) -> None:
    running(story)
    story.completed("t1", "interrupted")
    story.stop()
    story.done(story.last(fx.EndTools))
    leaving = story.last(fx.Unsubscribe)
    story.refuse(leaving, "overloaded")
    story.prompt("p2")
    story.opened(story.last(fx.OpenKnown))
    story.fire("retry", str(leaving.call))
    assert story.count(fx.Unsubscribe) == 1
    assert leaving.call not in story.state.calls


def test_control_an_unsubscribing_is_repeated_while_nobody_came_back(story: Story) -> None:
    running(story)
    story.completed("t1", "interrupted")
    story.stop()
    story.done(story.last(fx.EndTools))
    leaving = story.last(fx.Unsubscribe)
    story.refuse(leaving, "overloaded")
    story.fire("retry", str(leaving.call))
    assert story.count(fx.Unsubscribe) == 2


def test_stop_15_a_turn_that_becomes_known_while_the_tools_are_ended_is_interrupted(story: Story) -> None:
    """The answer to one step must not count as the answer to another that was put before it."""
    start = story.last(fx.StartTurn)
    story.kill()
    story.unanswered(start)
    assert let_go(story) == ["end_tools"]
    story.turn_started("t1")
    story.done(story.last(fx.DisposeThread))
    assert let_go(story) == ["end_tools", "interrupt"]
    interrupt = story.last(fx.DisposeThread).op
    assert isinstance(interrupt, fx.DisposeThread)
    assert interrupt.turn == TurnId("t1")
    story.done(story.last(fx.DisposeThread))
    assert let_go(story) == ["end_tools", "interrupt", "unsubscribe"]


def test_stop_13_a_killed_sessions_turn_that_is_not_active_yet_is_asked_to_end_again(story: Story) -> None:
    """An accepted turn refuses an interrupt for some milliseconds, and runs on: it would run on unseen."""
    story.accepted("t1")
    story.kill()
    first = story.last(fx.DisposeThread)
    story.refuse(first, "no_active_turn")
    assert let_go(story) == ["interrupt"]
    story.fire("retry", str(first.call))
    assert let_go(story) == ["interrupt", "interrupt"]
    story.done(story.last(fx.DisposeThread))
    assert let_go(story) == ["interrupt", "interrupt", "end_tools"]


def test_stop_13_one_that_has_no_turn_any_more_is_not_asked_for_ever(story: Story) -> None:
    running(story)
    story.kill()
    for _ in range(INTERRUPTS_MAX):
        sent = story.last(fx.DisposeThread)
        story.refuse(sent, "no_active_turn")
        story.fire("retry", str(sent.call))
    story.refuse(story.last(fx.DisposeThread), "no_active_turn")
    assert let_go(story)[INTERRUPTS_MAX:] == ["interrupt", "end_tools"]
