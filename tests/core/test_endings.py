"""Interrupt, stop, close, kill: nothing runs on unseen, nothing comes back."""

import pytest
from support.story import Story

from state.records import ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins


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


def test_stop_01_an_interrupted_turn_ends_cancelled_and_the_queue_goes_on(story: Story) -> None:
    running(story)
    story.prompt("p2")
    ticket = story.interrupt()
    assert story.answers[ticket] == fx.InterruptAnswer(interrupted=True)
    story.done(story.last(fx.Interrupt))
    story.completed("t1", "interrupted")
    assert [event["state"] for event in story.events("turn/done")] == ["cancelled"]
    assert story.deliveries() == {"p1": "cancelled", "p2": "sent"}


def test_stop_02_an_interrupt_before_the_answer_is_kept_and_sent_once_when_the_turn_is_active(story: Story) -> None:
    story.interrupt()
    assert story.count(fx.Interrupt) == 0
    story.accepted("t1")
    assert story.count(fx.Interrupt) == 0
    story.turn_started("t1")
    assert story.count(fx.Interrupt) == 1
    story.completed("t1", "interrupted")
    assert story.stored("p1").delivery == "cancelled"


def test_stop_02_also_where_the_turn_is_active_before_the_answer(story: Story) -> None:
    story.interrupt()
    story.turn_started("t1")
    story.accepted("t1")
    assert story.count(fx.Interrupt) == 1


def test_stop_03_no_active_turn_for_a_turn_not_yet_seen_active_is_not_done(story: Story) -> None:
    running(story)
    story.interrupt()
    sent = story.last(fx.Interrupt)
    assert story.live().turn is not None
    story.refuse(sent, "no_active_turn")
    assert story.events("turn/done") == []
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.count(fx.Interrupt) == 2  # the intention stays until the turn has ended


def test_stop_04_an_interrupt_during_the_setup_cancels_the_head_prompt() -> None:
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.interrupt()
    assert story.stored("p1").delivery == "cancelled"
    story.opened()
    assert story.session().status == "ready"
    assert story.count(fx.StartTurn) == 0


def test_stop_05_two_interrupts_are_one_intention(story: Story) -> None:
    running(story)
    tickets = [story.interrupt(), story.interrupt()]
    assert [story.answers[ticket] for ticket in tickets] == [fx.InterruptAnswer(interrupted=True)] * 2
    assert story.count(fx.Interrupt) == 1


def test_stop_06_an_interrupt_that_crosses_the_turns_own_end_is_settled_by_a_read(story: Story) -> None:
    running(story)
    story.item("t1", "a")
    story.interrupt()
    story.refuse(story.last(fx.Interrupt), "no_active_turn")
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "completed", "p1"))
    (done,) = story.events("turn/done")
    assert done["reconciled"] is True
    assert story.session().thread_id == "T"


def test_stop_08_an_unanswered_interrupt_is_unconfirmed_and_no_turn_starts_meanwhile(story: Story) -> None:
    running(story)
    story.interrupt()
    story.prompt("p2")
    story.unanswered(story.last(fx.Interrupt))
    assert story.live().turn is not None
    assert story.count(fx.StartTurn) == 1
    assert any("unconfirmed" in event["message"] for event in story.events("notice"))
    story.completed("t1", "interrupted")
    assert story.count(fx.StartTurn) == 2


def test_an_interrupt_of_an_idle_session_says_so(story: Story) -> None:
    story.run_turn("t1", "p1")
    ticket = story.interrupt()
    assert story.answers[ticket] == fx.InterruptAnswer(interrupted=False)


def test_stop_09_stop_keeps_the_queue_which_goes_first_at_the_next_attach(story: Story) -> None:
    running(story)
    story.prompt("p2")
    ticket = story.stop()
    assert ticket not in story.answers
    assert story.count(fx.Interrupt) == 1
    story.completed("t1", "interrupted")
    story.done(story.last(fx.EndTools))
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    assert story.session().status == "detached"
    assert story.count(fx.Unsubscribe) == 1
    assert story.stored("p2").delivery == "queued"
    story.prompt("p3")
    story.opened(story.last(fx.OpenKnown))
    op = story.last(fx.StartTurn).op
    assert isinstance(op, fx.StartTurn)
    assert op.prompt.id == "p2"


def test_stop_09_close_cancels_the_queue_and_refuses_more(story: Story) -> None:
    running(story)
    story.prompt("p2")
    story.close()
    assert story.stored("p2").delivery == "cancelled"
    story.completed("t1", "interrupted")
    story.done(story.last(fx.EndTools))
    assert story.session().status == "closed"
    assert story.refusal(story.prompt("p3")) == "session-closed"


def test_stop_10_a_stop_right_after_the_send_drains_until_the_turn_is_interrupted(story: Story) -> None:
    ticket = story.stop()
    story.accepted("t1")
    story.turn_started("t1")
    assert story.count(fx.Interrupt) == 1
    story.completed("t1", "interrupted")
    story.done(story.last(fx.EndTools))
    assert ticket in story.answers
    assert story.session().attachment is None


def test_stop_10_a_stop_that_is_not_confirmed_in_time_goes_all_the_same(story: Story) -> None:
    running(story)
    ticket = story.stop()
    story.fire("ending", "s")
    assert ticket in story.answers
    assert story.session().status == "detached"
    assert [event["state"] for event in story.events("turn/done")] == ["cancelled"]


def test_stop_10_an_answer_after_the_stop_went_interrupts_its_turn(story: Story) -> None:
    start = story.last(fx.StartTurn)
    story.stop()
    story.fire("ending", "s")
    story.accepted("t1", start)
    stray = story.last(fx.DisposeThread).op
    assert isinstance(stray, fx.DisposeThread)
    assert (stray.what, stray.turn) == ("interrupt", "t1")


def test_stop_11_a_prompt_right_after_stop_runs_after_the_turns_end_under_a_new_generation(story: Story) -> None:
    running(story)
    old = story.attachment()
    story.stop()
    story.prompt("p2")
    assert story.count(fx.StartTurn) == 1
    story.completed("t1", "interrupted")
    story.done(story.last(fx.EndTools))
    story.opened(story.last(fx.OpenKnown))
    assert story.attachment().generation > old.generation
    assert story.stored("p2").delivery == "sent"


def test_stop_12_stopping_twice_and_when_nothing_is_live_succeeds(story: Story) -> None:
    running(story)
    first, second = story.stop(), story.stop()
    story.completed("t1", "interrupted")
    story.done(story.last(fx.EndTools))
    third = story.stop()
    assert all(isinstance(story.answers[ticket], fx.SessionAnswer) for ticket in (first, second, third))
    assert (story.count(fx.Interrupt), story.count(fx.EndTools), story.count(fx.Unsubscribe)) == (1, 1, 1)


@pytest.mark.parametrize("moment", ["setup", "sent", "running", "asking", "ended"])
def test_stop_13_a_killed_session_is_gone_and_nothing_brings_it_back(moment: str) -> None:
    story = Story()
    story.up()
    story.create("x")
    story.create()
    story.prompt("p1")
    if moment != "setup":
        story.opened()
    if moment in ("running", "asking", "ended"):
        story.accepted("t1")
        story.turn_started("t1")
    if moment == "asking":
        story.request("5")
    if moment == "ended":
        story.item("t1", "a")
        story.completed("t1")
    start = story.sent[0]
    story.kill()
    record = story.session()
    assert record.killed_at_ms is not None
    assert "session/killed" in story.kinds()
    before = len(story.events())
    if moment == "setup":
        story.opened(start)
    story.turn_started("t9")
    story.completed("t1")
    story.request("6")
    assert story.session() == record
    assert story.store.ignored[ThreadId("T")].reason in ("killed", "minted by a dead attachment")
    assert [event for event in story.events()[before:] if event["kind"].startswith("request/")] == []
    story.prompt("q", "x")  # control: the innocent one goes on
    assert story.stored("q").delivery == "queued"


def test_stop_13_an_open_request_is_declined_when_its_session_is_killed(story: Story) -> None:
    running(story)
    story.request("5")
    story.kill()
    (answer,) = story.answered_requests
    assert isinstance(answer, fx.SendAnswer)
    assert (answer.rpc_id_json, answer.answer_json) == ("5", '"decline"')
    (record,) = story.store.requests.values()
    assert (record.status, record.answer_json, record.decided_by) == ("expired", '"decline"', "kill")
    assert record.answer_form == "decision"


def test_stop_14_a_second_kill_a_ghost_and_a_discovered_session(story: Story) -> None:
    story.create("ghost")
    ghost = story.kill("ghost")
    assert story.answers[ghost] == fx.KillAnswer(
        killed=True, session=story.session("ghost").id, thread=None, ignored=False, upstream_json=None
    )
    story.create("d", thread="TD")
    first, second = story.kill("d"), story.kill("d")
    assert all(isinstance(story.answers[ticket], fx.KillAnswer) for ticket in (first, second))
    assert len([event for event in story.events("thread/ignored") if event["threadId"] == "TD"]) == 1
    assert story.count(fx.OpenKnown) == 0
    assert story.refusal(story.kill("never was")) == "unknown-session"


def test_stop_14_what_codex_says_stands_beside_the_kill_and_changes_nothing(story: Story) -> None:
    running(story)
    ticket = story.kill(wanted="archive")
    assert ThreadId("T") in story.store.ignored  # committed before Codex was asked
    said = []
    while ticket not in story.answers:
        sent = story.last(fx.DisposeThread)
        assert isinstance(sent.op, fx.DisposeThread)
        said.append(sent.op.what)
        story.refuse(sent, "other") if sent.op.what == "archive" else story.done(sent)
    assert said == ["interrupt", "end_tools", "unsubscribe", "archive"]
    answer = story.answers[ticket]
    assert isinstance(answer, fx.KillAnswer)
    assert answer.upstream_json is not None
    assert '"archive":"something new"' in answer.upstream_json


def test_stop_14_a_silent_codex_does_not_keep_the_caller(story: Story) -> None:
    running(story)
    ticket = story.kill()
    assert ticket not in story.answers
    story.fire("disposal", "T")
    assert isinstance(story.answers[ticket], fx.KillAnswer)


def test_stop_14_dry_run_changes_nothing(story: Story) -> None:
    before = len(story.events())
    ticket = story.ask(lambda t, at: ins.KillSession(ticket=t, at_ms=at, session=story.session().id, dry_run=True))
    answer = story.answers[ticket]
    assert isinstance(answer, fx.KillAnswer)
    assert (answer.killed, answer.thread) == (False, "T")
    assert len(story.events()) == before


def test_stop_15_a_turn_that_begins_after_the_kill_is_interrupted_then_left(story: Story) -> None:
    start = story.last(fx.StartTurn)
    story.kill()
    assert story.count(fx.DisposeThread) == 0  # it is known that a turn may begin: leaving now would lose it
    story.turn_started("t1")
    first = story.last(fx.DisposeThread)
    assert isinstance(first.op, fx.DisposeThread)
    assert (first.op.what, first.op.turn) == ("interrupt", TurnId("t1"))
    story.accepted("t1", start)
    story.done(first)
    story.done(story.last(fx.DisposeThread))
    assert [s.op.what for s in story.sent if isinstance(s.op, fx.DisposeThread)] == [
        "interrupt",
        "end_tools",
        "unsubscribe",
    ]


def test_stop_16_a_kill_that_crashed_before_any_frame_is_finished_over_the_next_link(story: Story) -> None:
    running(story)
    story.kill()
    story.sent.clear()
    story.reboot(alive="R1")
    story.up(connection=2, adopted=True)
    first = story.last(fx.DisposeThread)
    assert isinstance(first.op, fx.DisposeThread)
    assert (first.op.what, first.op.turn) == ("interrupt", TurnId("t1"))
    assert story.session().killed_at_ms is not None


def test_a_killed_sessions_id_is_never_used_again(story: Story) -> None:
    story.kill()
    assert story.refusal(story.create()) == "session-exists"
    assert story.refusal(story.prompt("p")) == "unknown-session"
