"""Nobody waits for an answer that no one takes any more, or for a place that no one passes on (I7)."""

import pytest
from support.story import Story

from state.records import SessionId, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.limits import Limits


@pytest.fixture
def story() -> Story:
    """A session whose prompt was written when its link went; the process lives, and has the thread without a turn."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.lost()
    story.up(connection=2, adopted=True)
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    return story


def retry(story: Story) -> None:
    """Ask for another try."""
    story.ask(lambda ticket, at: ins.RetrySession(ticket=ticket, at_ms=at, session=SessionId("s")))


def test_a_look_at_a_thread_that_cannot_be_resumed_is_followed_by_the_next(story: Story) -> None:
    """Found by the simulation: the read's own attachment was let go, the timer for the next look bore its stamp, and
    the session waited for it for ever."""
    story.fire("prompt", "s")
    story.refuse(story.last(fx.ReadTurns), "no_rollout")
    due = story.timers["prompt", "s"]
    assert isinstance(due, ins.SettlePrompt)
    assert due.attachment == story.attachment()


def test_a_read_under_an_attachment_that_was_given_up_holds_nobody_back(story: Story) -> None:
    """Found by the simulation: stopped while it was read, the session took no prompt any more, and could not be stopped
    again either."""
    story.fire("prompt", "s")
    read = story.last(fx.ReadTurns)
    story.stop()
    story.fire("ending", "s")
    assert story.session().attachment is None
    retry(story)
    reopened = story.last(fx.OpenKnown)
    story.turns_read(story.seen("t1", "completed", "p1"), sent=read)  # too late: under another attachment
    assert story.stored("p1").delivery == "sent"
    story.opened(reopened)
    story.turns_read(story.seen("t1", "completed", "p1"))
    assert story.deliveries() == {"p1": "done"}


def test_a_prompt_whose_thread_was_deleted_and_given_up_runs_in_the_new_one() -> None:
    """Found by the simulation: that there is no thread to look in settled that the prompt is not in Codex, and then
    nobody went on."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.run_turn("t1", "p1")
    story.prompt("p2")
    story.stop()
    story.fire("ending", "s")
    story.do(ins.ThreadGone(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), how="deleted"))
    assert (story.session().resume_lost, story.stored("p2").delivery) == (True, "sent")
    story.ask(lambda ticket, at: ins.RetrySession(ticket=ticket, at_ms=at, session=SessionId("s"), fresh=True))
    story.opened(story.last(fx.OpenFresh), thread="T2")
    start = story.last(fx.StartTurn).op
    assert isinstance(start, fx.StartTurn)
    assert (start.thread, story.stored("p2").attempts) == ("T2", 2)


def test_a_thread_that_is_unloaded_under_an_unanswered_steer_keeps_its_attachment_until_the_answer() -> None:
    """Found by the simulation: the answer bore the stamp of the attachment that was given up, and the prompt stood
    still as sent."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.turn_started("t1")
    story.prompt("p2", mode="steer")
    steer = story.last(fx.SteerTurn)
    story.item("t1", "a")
    story.completed("t1")
    story.do(ins.ThreadGone(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), how="closed"))
    story.refuse(steer, "no_active_turn")
    assert story.stored("p2").attempts == 2, "it gets a turn of its own"
    story.run_turn("t2", "p2")
    assert story.deliveries() == {"p1": "done", "p2": "done"}


def test_setup_29_a_place_is_passed_on_by_one_who_no_longer_wants_it() -> None:
    """Found by the simulation: the first in line had been stopped, and those behind it waited for ever."""
    story = Story(Limits(setups_max=1))
    story.up()
    for name in "abcd":
        story.create(name)
        story.prompt(f"p{name}", name)
    assert story.count(fx.OpenFresh) == 1
    story.stop("b")
    story.kill("c")
    story.opened(story.sent[0], "TA")
    assert story.last(fx.OpenFresh).op.session.id == "d"  # type: ignore[attr-defined]  # an OpenFresh names its session
    assert story.count(fx.OpenFresh) == 2


@pytest.mark.parametrize("ending", ["stop", "close"])
def test_an_ending_waits_for_the_answer_to_a_steer_whose_turn_has_ended(ending: str) -> None:
    """Found by the simulation: the session was detached first, and the prompt stood still as sent, also in a closed
    one."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.turn_started("t1")
    story.prompt("p2", mode="steer")
    steer = story.last(fx.SteerTurn)
    asked = story.stop() if ending == "stop" else story.close()
    story.item("t1", "a")
    story.completed("t1")
    assert (asked in story.answers, story.count(fx.EndTools)) == (False, 0)
    story.refuse(steer, "no_active_turn")
    story.done(story.last(fx.EndTools))
    assert asked in story.answers
    assert story.stored("p2").delivery == ("queued" if ending == "stop" else "cancelled")


@pytest.mark.parametrize("how", ["unanswered", "malformed"])
def test_stop_14_a_kill_does_not_wait_for_an_answer_that_is_over(how: str) -> None:
    """Found by the simulation: the killed thread was never left, nor its turn ended."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    start = story.last(fx.StartTurn)
    if how == "unanswered":
        story.unanswered(start)
    else:
        story.do(ins.ReplyMalformed(at_ms=story.tick(), link=start.link, call=start.call, reason="no turn"))
    story.kill()
    for _ in range(2):
        story.done(story.last(fx.DisposeThread))
    (disposal,) = story.store.disposals.values()
    assert disposal.done


def test_stop_15_a_kill_waits_for_an_answer_that_may_still_come() -> None:
    """The control: unsubscribed now, a turn that begins would run on unseen."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.kill()
    assert story.count(fx.DisposeThread) == 0
    story.turn_started("t1")
    op = story.last(fx.DisposeThread).op
    assert isinstance(op, fx.DisposeThread)
    assert (op.what, op.turn) == ("interrupt", "t1")


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize("status", ["completed", "interrupted"])
def test_stop_10_a_prompt_that_joins_a_turn_which_a_stop_gave_up_has_the_end_that_is_on_record(
    status: str, seen: bool
) -> None:
    """Found by the simulation: Codex stood still during a stop, and the prompt after it was written into the turn that
    was said to be over. It was told as cancelled before it ran, and the session was busy with nothing for ever."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.stop()
    story.fire("ending", "s")
    story.prompt("p2")
    story.opened(status="active" if seen else "idle")
    if seen:
        story.turns_read(story.seen("t1", "inProgress"))
    story.accepted("t1")
    assert story.session().status == "ready"
    for _ in range(2):
        story.turns_read(story.seen("t1", "inProgress", "p2"))
        assert story.stored("p2").delivery == "recorded"
        story.fire("prompt", "s")
    story.turns_read(story.seen("t1", status, "p2"))
    assert story.deliveries()["p2"] == ("done" if status == "completed" else "failed")
    assert story.count(fx.StartTurn) == 2
    assert story.session().status == "ready"
    assert story.kinds().count("turn/started") == 1


@pytest.mark.parametrize("failure", ["other", None])
def test_what_waited_for_a_read_goes_on_when_the_read_fails(failure: str | None) -> None:
    """Found by the model: a compaction waited for a read that was refused, and its caller for ever."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.run_turn("t1", "p1")
    story.turn_started("t2")  # of another front-end
    story.do(
        ins.SettleTurn(at_ms=story.tick(), session=SessionId("s"), attachment=story.attachment(), turn=TurnId("t2"))
    )
    read = story.last(fx.ReadTurns)
    story.completed("t2", status="interrupted")
    story.ask(lambda t, at: ins.OperateSession(ticket=t, at_ms=at, session=SessionId("s"), kind="compact"))
    assert story.count(fx.ManageThread) == 0
    if failure is None:
        story.unanswered(read)
    else:
        story.refuse(read, failure)
    assert story.count(fx.ManageThread) == 1
