"""Steer joins the running turn, replace ends it; neither loses a prompt, doubles one, or runs them out of order."""

import pytest
from support.story import Story, running_story

from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    """A session whose turn t1 of prompt p1 runs."""
    return running_story()


def steered(story: Story, turn: str) -> None:
    sent = story.last(fx.SteerTurn)
    story.accepted(turn, sent)


def ran(story: Story) -> list[str]:
    return [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]


def test_turn_11_a_steer_is_recorded_in_the_running_turn_and_begins_none(story: Story) -> None:
    story.prompt("p2", mode="steer")
    op = story.last(fx.SteerTurn).op
    assert isinstance(op, fx.SteerTurn)
    assert (op.turn, op.prompt.id) == ("t1", "p2")
    steered(story, "t1")
    story.user_item("t1", "p2")
    story.item("t1", "a")
    story.completed("t1")
    assert story.deliveries() == {"p1": "done", "p2": "done"}
    assert story.stored("p2").turn_id == "t1"
    assert ran(story) == ["p1"]
    assert len(story.events("turn/done")) == 1


def test_turn_11_the_item_may_come_before_the_answer(story: Story) -> None:
    story.prompt("p2", mode="steer")
    sent = story.last(fx.SteerTurn)
    story.user_item("t1", "p2")
    story.item("t1", "a")
    story.completed("t1")
    story.accepted("t1", sent)
    assert story.deliveries() == {"p1": "done", "p2": "done"}
    assert ran(story) == ["p1"]


@pytest.mark.parametrize("refusal", ["no_active_turn", "turn_mismatch", "other"])
def test_turn_12_a_refused_steer_keeps_its_place(story: Story, refusal: str) -> None:
    story.prompt("p2")
    story.prompt("p3", mode="steer")
    story.prompt("p4")
    story.item("t1", "a")
    story.completed("t1")
    assert ran(story) == ["p1"]  # while the steer is unanswered the order is not known
    story.refuse(story.last(fx.SteerTurn), refusal)
    for number, prompt in enumerate(("p2", "p3", "p4"), start=2):
        story.run_turn(f"t{number}", prompt)
    assert ran(story) == ["p1", "p2", "p3", "p4"]
    assert set(story.deliveries().values()) == {"done"}


@pytest.mark.parametrize("found", [True, False])
def test_turn_13_a_lost_answer_is_settled_by_the_record(story: Story, *, found: bool) -> None:
    story.prompt("p2", mode="steer")
    story.unanswered(story.last(fx.SteerTurn))
    story.item("t1", "a")
    story.completed("t1")
    thread = story.session().thread_id
    assert thread is not None
    story.do(ins.ThreadStatusChanged(at_ms=story.tick(), link=story.link, thread=thread, status="idle"))
    assert ran(story) == ["p1"]
    story.turns_read(story.seen("t1", "completed", "p1", *(["p2"] if found else [])))
    if found:
        assert story.deliveries() == {"p1": "done", "p2": "done"}
        assert ran(story) == ["p1"]
    else:
        assert ran(story) == ["p1"]  # one look is no proof
        for _ in range(2):
            story.fire("prompt", "s")
            story.turns_read(story.seen("t1", "completed", "p1"))
        story.run_turn("t2", "p2")
        assert story.deliveries() == {"p1": "done", "p2": "done"}
        assert ran(story) == ["p1", "p2"]


def test_turn_19_a_steer_that_was_accepted_and_not_seen_is_read_when_the_turn_is_cut(story: Story) -> None:
    story.prompt("p2", mode="steer")
    steered(story, "t1")
    story.completed("t1", "interrupted")
    assert story.stored("p2").delivery == "acked"
    story.turns_read(story.seen("t1", "interrupted", "p1"))
    assert ran(story) == ["p1"] or story.stored("p2").delivery == "sent"


def test_a_steer_without_a_turn_is_a_prompt_like_any_other() -> None:
    story = Story()
    story.up()
    story.create()
    story.prompt("p1", mode="steer")
    story.opened()
    story.run_turn("t1", "p1")
    assert ran(story) == ["p1"]
    assert story.count(fx.SteerTurn) == 0


def test_a_steer_before_the_turn_is_active_joins_it_when_it_is() -> None:
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.prompt("p2", mode="steer")
    assert story.count(fx.SteerTurn) == 0
    story.accepted("t1")
    story.turn_started("t1")
    assert story.count(fx.SteerTurn) == 1


def test_turn_14_replace_cancels_what_waits_and_runs_after_the_turns_end(story: Story) -> None:
    story.prompt("p2")
    story.prompt("p3")
    story.prompt("p4", mode="replace")
    assert story.deliveries() == {"p1": "recorded", "p2": "cancelled", "p3": "cancelled", "p4": "queued"}
    assert {story.why(prompt).slug for prompt in ("p2", "p3")} == {"replaced"}
    changes, synced = story.store.commits[-1]
    assert synced
    assert {prompt.id for prompt in changes.prompts} >= {"p2", "p3", "p4"}
    assert story.count(fx.Interrupt) == 1
    story.completed("t1", "interrupted")
    story.run_turn("t2", "p4")
    assert story.deliveries()["p4"] == "done"


def test_turn_15_replace_that_crosses_the_turns_own_end(story: Story) -> None:
    story.prompt("p4", mode="replace")
    story.item("t1", "a")
    story.completed("t1")
    assert ran(story) == ["p1", "p4"]
    assert len(story.events("turn/done")) == 1


def test_turn_15_of_two_in_one_batch_the_second_runs_and_one_interrupt_goes_out(story: Story) -> None:
    session = story.session().id
    story.do(
        *(
            ins.SubmitPrompt(ticket=story.ticket(), at_ms=1, session=session, prompt=story.new_prompt(text, "replace"))
            for text in ("p4", "p5")
        )
    )
    assert story.count(fx.Interrupt) == 1
    story.completed("t1", "interrupted")
    story.run_turn("t2", "p5")
    assert story.deliveries() == {"p1": "cancelled", "p4": "cancelled", "p5": "done"}


@pytest.mark.parametrize("loss", ["lost", "exited"])
def test_a_steer_in_flight_when_the_link_goes_is_uncertain(story: Story, loss: str) -> None:
    story.prompt("p2", mode="steer")
    if loss == "lost":
        story.lost()
        story.up(connection=2)
        story.opened(story.last(fx.OpenKnown), status="active")
        story.turns_read(story.seen("t1", "inProgress", "p1", "p2"))
        story.item("t1", "a")
        story.completed_and_read("t1", "p1", "p2")
        assert story.deliveries() == {"p1": "done", "p2": "done"}
    else:
        story.exited()
        story.up("R2")
        story.opened(story.last(fx.OpenKnown))
        story.turns_read(story.seen("t1", "interrupted", "p1"))
        story.run_turn("t2", "p2")
        assert story.stored("p2").delivery == "done"
    assert ran(story).count("p2") <= 1


@pytest.mark.parametrize("end", ["kill", "stop", "close"])
def test_a_steer_in_flight_ends_or_waits_with_its_session(story: Story, end: str) -> None:
    story.prompt("p2", mode="steer")
    sent = story.last(fx.SteerTurn)
    getattr(story, end)()
    if end != "kill":
        story.fire("ending", "s")
    story.accepted("t1", sent)
    expected = {"kill": "cancelled", "stop": "sent", "close": "failed"}[end]
    assert story.stored("p2").delivery == expected
