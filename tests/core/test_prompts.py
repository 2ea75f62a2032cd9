"""Prompts that wait change places, and what one of them chose ends with it."""

from typing import Any

import pytest
from msgspec.structs import replace
from support.story import Story, running_story

from state.records import PromptId, SessionId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    """A session whose turn t1 runs, with three prompts behind it."""
    story = running_story()
    for name in ("p2", "p3", "p4"):
        story.prompt(name)
    return story


def reorder(story: Story, *names: str, session: str = "s") -> ins.Ticket:
    order, name = tuple(map(PromptId, names)), SessionId(session)
    return story.ask(lambda t, at: ins.ReorderPrompts(ticket=t, at_ms=at, session=name, prompts=order))


def starts(story: Story) -> list[fx.StartTurn]:
    return [sent.op for sent in story.sent if isinstance(sent.op, fx.StartTurn)]


def ran(story: Story) -> list[str]:
    return [op.prompt.id for op in starts(story)]


def end_turn(story: Story, turn: str) -> None:
    story.item(turn, f"a-{turn}")
    story.completed(turn)


@pytest.mark.parametrize(
    ("first", "order"),
    [(["p4"], ["p4", "p2", "p3"]), (["p3", "p2"], ["p3", "p2", "p4"]), (["p4", "p3", "p2"], ["p4", "p3", "p2"])],
)
def test_those_that_are_named_run_first_and_the_others_keep_their_order(
    story: Story, first: list[str], order: list[str]
) -> None:
    ticket = reorder(story, *first)
    answer = story.answers[ticket]
    assert isinstance(answer, fx.QueueAnswer)
    assert [prompt.id for prompt in answer.prompts] == order
    assert story.store.commits[-1][1], "it is on the disk before it is answered"
    (event,) = [one for one in story.events("session/updated") if one["changed"] == ["queue"]]
    assert event["queue"] == order
    end_turn(story, "t1")
    for number, name in enumerate(order, 2):
        story.run_turn(f"t{number}", name)
    assert ran(story) == ["p1", *order]


def test_the_order_outlives_the_daemon_and_later_prompts_come_last(story: Story) -> None:
    reorder(story, "p4")
    story.reboot()
    story.prompt("p5")
    assert [str(prompt) for prompt in story.live().queue] == ["p4", "p2", "p3", "p5"]


@pytest.mark.parametrize("name", ["p1", "nobody"])
def test_one_that_was_sent_keeps_its_place_and_nothing_is_changed(story: Story, name: str) -> None:
    before = story.live().queue
    assert story.refusal(reorder(story, "p4", name)) == "prompt-sent"
    assert story.live().queue == before
    assert not isinstance(story.answers[reorder(story, "p4")], fx.Refused)  # control


def test_one_that_may_have_been_sent_keeps_its_place(story: Story) -> None:
    end_turn(story, "t1")
    assert ran(story) == ["p1", "p2"]
    story.lost()
    assert [str(prompt) for prompt in story.live().queue] == ["p2", "p3", "p4"]
    assert story.refusal(reorder(story, "p2", "p3")) == "prompt-sent"
    reorder(story, "p4")
    assert [str(prompt) for prompt in story.live().queue] == ["p2", "p4", "p3"]


# --- what a prompt chooses ---


def choose(story: Story, name: str, **choices: Any) -> None:
    new = replace(story.new_prompt(name), **choices)
    story.ask(lambda t, at: ins.SubmitPrompt(ticket=t, at_ms=at, session=SessionId("s"), prompt=new))


@pytest.fixture
def idle() -> Story:
    """A session that has run a turn and is idle."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.run_turn("t1", "p1")
    return story


@pytest.mark.parametrize("choices", [{"effort": "high"}, {"interaction_mode": "plan"}])
def test_what_a_prompt_chose_is_taken_back_by_the_next(idle: Story, choices: dict[str, Any]) -> None:
    choose(idle, "p2", **choices)
    idle.run_turn("t2", "p2")
    idle.prompt("p3")
    idle.run_turn("t3", "p3")
    idle.prompt("p4")
    assert [op.pin for op in starts(idle)] == [False, False, True, False]


def test_what_anybody_else_may_have_chosen_is_taken_back(idle: Story) -> None:
    idle.turn_started("other")
    idle.item("other", "x")
    idle.completed("other")
    idle.prompt("p2")
    assert starts(idle)[-1].pin
    idle.run_turn("t2", "p2")
    idle.lost()
    idle.up(connection=2, adopted=True)
    idle.prompt("p3")
    idle.opened(idle.last(fx.OpenKnown))
    assert starts(idle)[-1].pin


def test_our_own_turn_is_nobody_elses_though_it_begins_before_the_answer(idle: Story) -> None:
    idle.prompt("p2")
    idle.turn_started("t2")
    idle.user_item("t2", "p2")
    idle.accepted("t2")
    idle.item("t2", "a")
    idle.completed("t2")
    idle.prompt("p3")
    assert not starts(idle)[-1].pin


def test_a_changed_setting_holds_from_the_next_turn_on(idle: Story) -> None:
    name = SessionId("s")
    idle.ask(lambda t, at: ins.PatchSession(ticket=t, at_ms=at, session=name, changes={"effort": None}))
    idle.prompt("p2")
    assert starts(idle)[-1].pin
    assert idle.live().outgoing is not None
    assert TurnId("t1") in idle.live().ended
