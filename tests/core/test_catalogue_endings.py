"""STOP, where it is one order more than its room's tests tell."""

import pytest
from msgspec.structs import replace
from support.story import Story, running_story

from state.records import ThreadId, Tokens, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    """A session bound to T whose turn t1 runs."""
    return running_story()


def order(story: Story) -> list[str]:
    """What was asked of Codex to end things, in order."""
    kinds = (fx.Interrupt, fx.EndTools, fx.Unsubscribe)
    return [type(sent.op).__name__ for sent in story.sent if isinstance(sent.op, kinds)]


@pytest.mark.parametrize("ack_first", [True, False])
def test_stop_01_the_answer_and_the_end_in_either_order(story: Story, *, ack_first: bool) -> None:
    story.prompt("p2")
    story.interrupt()
    interrupt = story.last(fx.Interrupt)
    if ack_first:
        story.done(interrupt)
    story.completed("t1", "interrupted")
    if not ack_first:
        story.done(interrupt)
    assert [event["state"] for event in story.events("turn/done")] == ["cancelled"]
    assert story.deliveries() == {"p1": "cancelled", "p2": "sent"}


def test_stop_06_crossed_by_an_end_that_is_told_late(story: Story) -> None:
    story.item("t1", "a")
    story.interrupt()
    story.refuse(story.last(fx.Interrupt), "no_active_turn")
    story.completed("t1")
    assert [event["state"] for event in story.events("turn/done")] == ["normal"]
    assert story.events("notice") == []
    assert story.session().last_error is None
    assert story.session().thread_id == "T"


def test_stop_07_the_intention_moves_to_the_turn_that_codex_names(story: Story) -> None:
    """Ours had ended unheard, and another front-end's runs: it is what the user sees running, and wants ended."""
    story.interrupt()
    story.refuse(story.last(fx.Interrupt), "turn_mismatch", active_turn="y")
    story.fire("turn", "s")
    story.turns_read(story.seen("y", "inProgress"), story.seen("t1", "completed", "p1"))
    assert [event["turnId"] for event in story.events("turn/done")] == ["t1"]
    op = story.last(fx.Interrupt).op
    assert isinstance(op, fx.Interrupt)
    assert op.turn == TurnId("y")
    assert story.count(fx.Interrupt) == 2


def test_stop_07_control_a_turn_that_began_after_a_crossed_interrupt_is_left_alone(story: Story) -> None:
    story.interrupt()
    story.refuse(story.last(fx.Interrupt), "no_active_turn")
    story.fire("turn", "s")
    story.turns_read(story.seen("y", "inProgress"), story.seen("t1", "completed", "p1"))
    assert story.session().active_turn_id == "y"
    assert story.count(fx.Interrupt) == 1


def test_stop_08_an_unconfirmed_interrupt_is_confirmed_by_a_late_end(story: Story) -> None:
    story.prompt("p2")
    story.interrupt()
    interrupt = story.last(fx.Interrupt)
    story.unanswered(interrupt)
    assert story.session().thread_id == "T"
    story.done(interrupt)  # late, and to nobody
    assert story.count(fx.StartTurn) == 1
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "interrupted", "p1"))
    assert len(story.events("turn/done")) == 1
    assert story.stored("p2").delivery == "sent"


def test_stop_08_what_still_runs_after_an_unconfirmed_interrupt_is_interrupted_again(story: Story) -> None:
    story.interrupt()
    story.unanswered(story.last(fx.Interrupt))
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.count(fx.Interrupt) == 2


def test_stop_08_control_an_interrupt_that_was_taken_is_waited_for_and_not_repeated(story: Story) -> None:
    story.interrupt()
    story.done(story.last(fx.Interrupt))
    for _ in range(2):
        story.fire("turn", "s")
        story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.count(fx.Interrupt) == 1
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "interrupted", "p1"))
    assert [event["state"] for event in story.events("turn/done")] == ["cancelled"]


def test_stop_07_the_answer_to_an_interrupt_of_a_turn_that_ended_leaves_the_next_one_alone(story: Story) -> None:
    """Taken for the next turn's, it would call an interrupt unconfirmed that nobody asked for, and stop its queue."""
    story.prompt("p2")
    story.interrupt()
    old = story.last(fx.Interrupt)
    story.completed("t1", "interrupted")
    story.accepted("t2")
    story.turn_started("t2")
    before = story.live()
    story.refuse(old, "other")
    assert story.live() == before
    assert story.events("notice") == []
    story.interrupt()
    story.refuse(story.last(fx.Interrupt), "other")  # control: its own
    assert story.live() != before
    assert len(story.events("notice")) == 1


def test_i4_a_look_at_a_turn_that_has_ended_reads_nothing_of_the_next(story: Story) -> None:
    story.interrupt()
    story.done(story.last(fx.Interrupt))
    timer = story.timers["turn", "s"]
    story.prompt("p2")
    story.completed("t1", "interrupted")
    before = story.live()
    story.do(replace(timer, at_ms=story.tick()))
    assert story.count(fx.ReadTurns) == 0
    assert story.live() == before
    story.accepted("t2")
    story.do(replace(timer, at_ms=story.tick()))
    assert story.count(fx.ReadTurns) == 0
    story.turn_started("t2")
    story.interrupt()
    story.done(story.last(fx.Interrupt))
    story.fire("turn", "s")  # control: its own
    assert story.count(fx.ReadTurns) == 1


@pytest.mark.parametrize("crash", ["before it is sent", "after it was sent", "after its turn was written again"])
def test_boot_02_an_interrupt_outlives_the_daemon_until_its_turn_has_ended(crash: str) -> None:
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    if crash == "before it is sent":
        story.interrupt()
        assert story.count(fx.Interrupt) == 0
    else:
        story.turn_started("t1")
        story.user_item("t1", "p1")
        story.interrupt()
        if crash == "after its turn was written again":
            tokens = Tokens(input=3, output=1, cache_read=0, cache_write=0, total=4)
            thread, turn = ThreadId("T"), TurnId("t1")
            story.do(
                ins.TurnUsage(at_ms=story.tick(), link=story.link, thread=thread, turn=turn, last=tokens, total=tokens)
            )
    written = story.count(fx.Interrupt)
    story.reboot("R1")
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown), status="active", turns=(story.seen("t1", "inProgress", "p1"),))
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.count(fx.Interrupt) == written + 1
    op = story.last(fx.Interrupt).op
    assert isinstance(op, fx.Interrupt)
    assert (op.thread, op.turn, op.attachment) == (ThreadId("T"), TurnId("t1"), story.attachment())


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize("end", ["stop", "close", "kill"])
def test_i10_what_is_to_end_is_on_the_disk_before_codex_hears_of_it(story: Story, end: str, *, runs: bool) -> None:
    """A power cut after the frame would leave a session that nobody ends, in a turn that was cut short for nothing."""
    if not runs:
        story.item("t1", "a")
        story.completed("t1")
    told = len(story.sent)
    {"stop": story.stop, "close": story.close, "kill": story.kill}[end]()
    assert len(story.sent) > told
    changes, synced = story.store.commits[-1]
    assert synced
    assert changes.sessions or changes.turns


def test_i9_a_thread_that_is_let_go_is_on_the_disk_as_ignored(story: Story) -> None:
    """Lost in a power cut, it would be a stranger's to the next scan, and imported."""
    story.create("other")
    story.prompt("q1", "other")
    late = story.last(fx.OpenFresh)
    story.kill("other")
    story.opened(late, "T9")
    changes, synced = story.store.commits[-1]
    assert [entry.thread_id for entry in changes.ignored] == ["T9"]
    assert synced


def test_stop_12_interrupt_and_answer_on_a_dead_session_start_no_process(story: Story) -> None:
    story.request("1")
    (request,) = story.store.requests
    story.exited()
    written = len(story.sent)
    interrupt = story.interrupt()
    stop = story.stop()
    session = story.session().id
    answer = story.ask(
        lambda t, at: ins.AnswerRequest(ticket=t, at_ms=at, session=session, request=request, decision_json='"accept"')
    )
    assert story.answers[interrupt] == fx.InterruptAnswer(interrupted=False)
    assert isinstance(story.answers[stop], fx.SessionAnswer)
    assert story.refusal(answer) == "request-closed"
    assert len(story.sent) == written
    assert story.restarts == 0


def test_stop_12_a_close_that_comes_while_stopping_closes(story: Story) -> None:
    story.prompt("p2")
    first, second = story.stop(), story.close()
    story.completed("t1", "interrupted")
    story.done(story.last(fx.EndTools))
    assert story.session().status == "closed"
    assert story.stored("p2").delivery == "cancelled"
    assert all(isinstance(story.answers[ticket], fx.SessionAnswer) for ticket in (first, second))
    assert order(story) == ["Interrupt", "EndTools", "Unsubscribe"]


def test_stop_17_the_tools_are_ended_before_the_thread_is_left(story: Story) -> None:
    """Once unsubscribed, a tool's end is not told."""
    story.interrupt()
    story.completed("t1", "interrupted")
    story.kill()
    while story.state.disposals:
        story.done(story.last(fx.DisposeThread))
    left = [sent.op.what for sent in story.sent if isinstance(sent.op, fx.DisposeThread)]
    assert left == ["end_tools", "unsubscribe"]


def test_stop_17_a_bystanders_tools_are_not_touched(story: Story) -> None:
    story.create("x")
    story.prompt("px", "x")
    story.opened(story.last(fx.OpenFresh), "TX")
    story.kill()
    while story.state.disposals:
        story.done(story.last(fx.DisposeThread))
    assert {sent.op.thread for sent in story.sent if isinstance(sent.op, fx.DisposeThread)} == {"T"}
