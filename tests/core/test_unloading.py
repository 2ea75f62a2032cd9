"""Idle sessions are let go, and nobody notices but the memory."""

import pytest
from support.story import Story

from termald.core import effects as fx
from termald.core.limits import Limits


@pytest.fixture
def story() -> Story:
    """A session that has run a turn and is idle."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.run_turn("t1", "p1")
    return story


def test_an_idle_session_is_detached_and_the_next_prompt_attaches_it_anew(story: Story) -> None:
    first = story.attachment()
    story.fire("idle", "s")
    assert story.session().status == "detached"
    assert story.count(fx.Unsubscribe) == 1
    story.prompt("p2")
    story.opened(story.last(fx.OpenKnown))
    assert story.attachment().generation > first.generation
    story.run_turn("t2", "p2")
    assert story.deliveries() == {"p1": "done", "p2": "done"}


def test_stop_18_a_prompt_in_the_same_instant_wins(story: Story) -> None:
    timer = story.timers["idle", "s"]
    story.prompt("p2")
    story.do(timer)
    assert story.count(fx.Unsubscribe) == 0
    story.run_turn("t2", "p2")
    assert story.stored("p2").delivery == "done"


def test_stop_18_a_timer_of_an_older_attachment_touches_nothing(story: Story) -> None:
    timer = story.timers["idle", "s"]
    story.stop()
    story.done(story.last(fx.EndTools))
    story.prompt("p2")
    story.opened(story.last(fx.OpenKnown))
    story.run_turn("t2", "p2")
    before, unsubscribed = story.live(), story.count(fx.Unsubscribe)
    story.do(timer)
    assert story.live() == before
    assert story.count(fx.Unsubscribe) == unsubscribed
    story.fire("idle", "s")  # control: the live one's own timer still counts
    assert story.session().status == "detached"


def test_past_the_cap_the_longest_idle_one_goes() -> None:
    story = Story(Limits(attached_max=2))
    story.up()
    for number, name in enumerate("abc"):
        story.create(name)
        story.prompt(f"p{name}", name)
        story.opened(story.last(fx.OpenFresh), f"T{name}")
        story.accepted(f"t{number}")
        story.turn_started(f"t{number}", f"T{name}")
        story.item(f"t{number}", "a", thread=f"T{name}")
        story.completed(f"t{number}", thread=f"T{name}")
    assert [story.session(name).status for name in "abc"] == ["detached", "ready", "ready"]


def test_a_session_that_asks_or_runs_is_never_unloaded(story: Story) -> None:
    timer = story.timers["idle", "s"]
    story.prompt("p2")
    story.accepted("t2")
    story.turn_started("t2")
    story.request("1", turn="t2")
    story.do(timer)
    assert story.session().status == "running"
    assert story.count(fx.Unsubscribe) == 0
