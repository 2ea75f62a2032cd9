"""TURN, where it is one order more than its room's tests tell."""

import pytest
from support.story import Story

from state.records import ThreadId, Tokens, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core import prompts
from termald.core.refusals import problem
from termald.core.work import Work

THREAD = ThreadId("T")


@pytest.fixture
def story() -> Story:
    """A session bound to T whose first prompt's `turn/start` is written."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    return story


def test_i5_a_prompt_that_has_ended_ends_no_second_time(story: Story) -> None:
    """Whoever comes second finds it as the first has left it."""
    story.run_turn("t1", "p1")
    ended = story.stored("p1")
    work = Work(story.state, story.tick())
    story.load("s")
    story.state.prompts.load(ended.id, ended)
    prompts.end(work, story.live(), ended.id, "failed", problem("killed", "too late"))
    assert work.prompt(ended.id) == ended
    assert work.effects == []


def test_turn_01_a_second_notice_of_the_beginning_alters_nothing(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    before = story.live()
    events = len(story.events())
    story.turn_started("t1")
    assert story.live() == before
    assert len(story.events()) == events


def test_turn_03_nobody_looks_for_a_prompt_that_is_recorded(story: Story) -> None:
    start = story.last(fx.StartTurn)
    story.turn_started("t1")
    story.user_item("t1", "p1")
    before = story.live()
    story.unanswered(start)
    assert story.live() == before
    assert ("prompt", "s") not in story.timers


def test_turn_05_a_later_prompt_does_not_send_an_uncertain_one(story: Story) -> None:
    """One look has not found it; until the next, whatever else moves the queue must not take it for waiting."""
    story.lost()
    story.up(connection=2)
    story.opened(story.last(fx.OpenKnown))
    story.turns_read()
    story.prompt("p2")
    assert story.count(fx.StartTurn) == 1
    story.fire("prompt", "s")
    story.turns_read(story.seen("t1", "completed", "p1"))
    assert story.deliveries() == {"p1": "done", "p2": "sent"}


def test_turn_04_an_unanswered_prompt_is_on_record_in_a_turn_that_has_ended(story: Story) -> None:
    story.prompt("p2")
    story.unanswered(story.last(fx.StartTurn))
    story.fire("prompt", "s")
    story.turns_read(story.seen("t1", "completed", "p1"))
    assert story.deliveries() == {"p1": "done", "p2": "sent"}
    assert [event["reconciled"] for event in story.events("turn/done")] == [True]


def test_turn_06_a_late_answer_after_a_look_changes_no_order(story: Story) -> None:
    story.prompt("p2")
    start = story.last(fx.StartTurn)
    story.unanswered(start)
    story.accepted("t1", start)
    assert story.count(fx.StartTurn) == 1
    story.turn_started("t1")
    story.user_item("t1", "p1")
    story.item("t1", "a")
    story.completed("t1")
    assert story.deliveries() == {"p1": "done", "p2": "sent"}


def test_turn_08_where_the_resume_fails_too_the_prompt_is_held_as_for_any_resume(story: Story) -> None:
    story.user_item("f", "another's")
    story.completed("f", "interrupted")
    story.refuse(story.last(fx.StartTurn), "thread_not_found")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert story.session().resume_lost
    assert story.stored("p1").delivery == "queued"
    assert story.count(fx.OpenFresh) == 1


def test_turn_09_overload_again_and_again_pauses_longer_each_time(story: Story) -> None:
    story.prompt("p2")
    start = story.last(fx.StartTurn)
    pauses = []
    for _ in range(4):
        story.refuse(story.last(fx.StartTurn), "overloaded")
        pauses.append(story.armed["retry", str(start.call)].after_ms)
        story.fire("retry", str(start.call))
    assert pauses == sorted(set(pauses))
    story.run_turn("t1", "p1")
    ran = [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]
    assert ran == ["p1"] * 5 + ["p2"]


def test_turn_20_a_final_error_then_a_failed_end_is_one_end_with_the_first_cause(story: Story) -> None:
    story.accepted("t1")
    first = ins.TurnFailure(message="the first cause", variant="usageLimitExceeded")
    story.do(
        ins.TurnErrored(
            at_ms=story.tick(),
            link=story.link,
            thread=THREAD,
            turn=TurnId("t1"),
            failure=first,
            will_retry=False,
        )
    )
    assert story.events("turn/done") == []
    story.completed("t1", "failed", failure=ins.TurnFailure(message="the second"))
    (done,) = story.events("turn/done")
    assert done["message"] == "the first cause"


def test_turn_22_an_end_that_is_told_after_the_read_that_ended_the_turn_is_late(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.do(ins.ThreadStatusChanged(at_ms=story.tick(), link=story.link, thread=THREAD, status="idle"))
    story.prompt("p2")
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "interrupted", "p1"))
    story.completed("t1", "interrupted")
    assert [event["turnId"] for event in story.events("turn/done")] == ["t1"]
    assert story.stored("p2").delivery == "sent"


def test_turn_23_a_turn_that_is_silent_for_hours_is_neither_ended_nor_sent_again(story: Story) -> None:
    """Its call is answered; a turn has no deadline, and every timer that there is may fire as often as it likes."""
    story.accepted("t1")
    story.turn_started("t1")
    story.user_item("t1", "p1")
    for _ in range(20):
        story.now += 3_600_000
        for key in list(story.timers):
            story.fire(*key)
    assert story.events("turn/done") == []
    assert story.count(fx.StartTurn) == 1
    story.do(
        ins.TurnUsage(
            at_ms=story.tick(),
            link=story.link,
            thread=THREAD,
            turn=TurnId("t1"),
            last=Tokens(input=1, total=1),
            total=Tokens(input=1, total=1),
        )
    )
    story.item("t1", "a")
    story.completed("t1")
    assert story.deliveries() == {"p1": "done"}


@pytest.mark.parametrize("taken_first", [True, False])
def test_turn_25_taking_back_and_sending_in_one_batch_is_one_or_the_other(story: Story, *, taken_first: bool) -> None:
    story.prompt("p2")
    story.accepted("t1")
    session = story.session().id
    prompt = story.stored("p2").id
    back = ins.TakeBackPrompt(ticket=ins.Ticket(90), at_ms=story.tick(), session=session, prompt=prompt)
    end = ins.TurnCompleted(at_ms=story.tick(), link=story.link, thread=THREAD, turn=TurnId("t1"), status="interrupted")
    story.do(*((back, end) if taken_first else (end, back)))
    sent = [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]
    if taken_first:
        assert (story.stored("p2").delivery, sent) == ("cancelled", ["p1"])
    else:
        assert (story.stored("p2").delivery, sent) == ("sent", ["p1", "p2"])
        assert story.refusal(ins.Ticket(90)) == "prompt-sent"
