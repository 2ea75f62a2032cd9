"""The process and the connection, crash and boot: settle once, lose nothing, pretend nothing."""

import json

import pytest
from msgspec.structs import replace
from support.story import Story

from state.records import ItemId, LinkId, RuntimeId, SessionId, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.limits import Limits


@pytest.fixture
def story() -> Story:
    story = Story()
    story.up()
    story.create()
    return story


def running(story: Story, prompt: str = "p1", turn: str = "t1") -> None:
    story.prompt(prompt)
    story.opened()
    story.accepted(turn)
    story.turn_started(turn)
    story.user_item(turn, prompt)


def test_runtime_01_an_exit_settles_each_attached_session_once_and_no_other(story: Story) -> None:
    story.create("idle")
    story.create("setup")
    running(story)
    story.prompt("q", "setup")
    story.request("3")
    story.prompt("p2")
    idle = story.session("idle")
    story.exited()
    story.exited()
    assert [event["state"] for event in story.events("turn/done")] == ["error"]
    assert story.session().status == story.session("setup").status == "detached"
    assert story.session().waiting_on is None
    assert story.deliveries() == {"p1": "failed", "p2": "queued", "q": "queued"}
    assert len(story.events("request/expired")) == 1
    assert story.session("idle") == idle
    assert len([event for event in story.events("session/detached") if event["sessionId"] == "s"]) == 1


def test_runtime_01_after_an_exit_nothing_leads_to_the_thread_and_nobody_attaches_unasked(story: Story) -> None:
    """Attaching is lazy: a hundred sessions that only stood there would otherwise all be opened at once."""
    running(story)
    story.item("t1", "a")
    story.completed("t1")
    story.exited()
    assert list(story.state.routes) == []
    written = len(story.sent)
    story.up("R2")
    assert len(story.sent) == written
    assert story.session().status == "detached"
    story.prompt("p2")  # control
    assert story.count(fx.OpenKnown) == 1


def test_runtime_04_what_an_old_link_still_says_touches_nothing(story: Story) -> None:
    running(story)
    old = story.link
    story.exited()
    story.up("R2")
    story.prompt("p2")
    story.opened(story.last(fx.OpenKnown))
    story.accepted("t2")
    before = story.live()
    thread = ThreadId("T")
    story.do(ins.TurnCompleted(at_ms=story.tick(), link=old, thread=thread, turn=TurnId("t2"), status="completed"))
    story.do(ins.TurnAccepted(at_ms=story.tick(), link=old, call=story.sent[-1].call, turn=TurnId("t3")))
    story.exited("R1")
    story.do(ins.LinkLost(at_ms=story.tick(), link=old, reason="late"))
    story.request("9", link=old)
    assert story.live() == before
    story.turn_started("t2")  # control
    story.item("t2", "a")
    story.completed("t2")
    assert story.stored("p2").delivery == "done"


def test_runtime_05_frames_for_a_dead_process_are_never_written_to_the_next(story: Story) -> None:
    story.prompt("p1")
    start = story.last(fx.OpenFresh)
    story.exited()
    story.up("R2")
    assert start.link.runtime_id == "R1"
    assert story.last(fx.OpenFresh).link == LinkId(runtime_id=RuntimeId("R2"), connection=1)


@pytest.mark.parametrize("moment", ["setup", "bound", "sent", "acked", "active", "interrupting", "stopping", "asking"])
def test_runtime_06_an_exit_at_each_step_leaves_nobody_pretending(story: Story, moment: str) -> None:
    story.prompt("p1")
    if moment != "setup":
        story.opened()
    if moment in ("acked", "active", "interrupting", "stopping", "asking"):
        story.accepted("t1")
    if moment in ("active", "interrupting", "stopping", "asking"):
        story.turn_started("t1")
        story.user_item("t1", "p1")
    if moment == "interrupting":
        story.interrupt()
    ticket = story.stop() if moment == "stopping" else None
    if moment == "asking":
        story.request("1")
    story.exited()
    assert story.session().status == "detached"
    assert story.session().attachment is None
    assert len(story.events("turn/done")) == len(story.events("turn/started"))
    assert ticket is None or isinstance(story.answers[ticket], fx.SessionAnswer)
    story.up("R2")
    setups = story.count(fx.OpenFresh) + story.count(fx.OpenKnown)
    story.prompt("p2")
    reads = [sent for sent in story.sent if isinstance(sent.op, fx.ReadTurns)]
    if reads:
        story.turns_read()
    assert story.count(fx.OpenFresh) + story.count(fx.OpenKnown) - setups <= 1
    opened = story.last(fx.OpenKnown if story.session().thread_id else fx.OpenFresh)
    assert opened.link.runtime_id == "R2"


def test_runtime_07_uncertain_prompts_are_read_first_then_the_queue_goes_in_order(story: Story) -> None:
    story.prompt("p1")
    story.prompt("p2")
    story.opened()
    story.accepted("t1")
    story.exited()
    assert story.deliveries() == {"p1": "acked", "p2": "queued"}
    generation = story.session().generation
    story.up("R2")
    assert (story.attachment().runtime_id, story.attachment().generation) == ("R2", generation + 1)
    assert story.count(fx.ReadTurns) == 0  # of a thread that is not loaded a read may lack what a resume brings back
    story.opened(story.last(fx.OpenKnown))
    assert story.count(fx.StartTurn) == 1
    story.turns_read()
    story.run_turn("t2", "p1")
    story.run_turn("t3", "p2")
    assert story.deliveries() == {"p1": "done", "p2": "done"}


def test_runtime_07_a_prompt_that_was_recorded_is_never_sent_again(story: Story) -> None:
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.exited()
    story.up("R2")
    story.opened(story.last(fx.OpenKnown))
    story.turns_read(story.seen("t1", "interrupted", "p1"))
    assert story.stored("p1").delivery == "failed"
    assert story.why("p1").slug == "runtime-exited"
    assert story.count(fx.StartTurn) == 1
    assert len(story.events("turn/done")) == 1
    assert story.session().status == "ready"


def test_boot_08_a_first_turn_that_was_never_recorded_gets_a_fresh_thread(story: Story) -> None:
    story.prompt("p1")
    story.opened(thread="T0")
    story.exited()
    story.up("R2")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert set(story.store.ignored) == {"T0"}
    story.opened(story.last(fx.OpenFresh), "T1")
    assert story.session().thread_id == "T1"
    assert story.stored("p1").delivery == "sent"


def test_runtime_15_a_lost_connection_ends_nothing_and_attaches_anew(story: Story) -> None:
    running(story)
    old = story.attachment()
    story.lost()
    assert story.events("turn/done") == []
    assert story.session().status == "running"
    story.up(connection=2)
    resume = story.last(fx.OpenKnown)
    assert resume.link.connection == 2
    story.opened(resume, status="active")
    assert story.attachment().generation > old.generation
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    story.item("t1", "a")
    story.completed_and_read("t1", "p1")
    assert story.deliveries() == {"p1": "done"}
    assert len(story.events("turn/done")) == 1


def test_runtime_16_a_turn_that_ended_meanwhile_is_read_ended_once_and_told_whole(story: Story) -> None:
    running(story)
    story.lost()
    story.up(connection=2)
    story.opened(story.last(fx.OpenKnown))
    text = json.dumps({"id": "a", "type": "agentMessage", "text": "all"})
    item = ins.SeenItem(item=ItemId("a"), type="agentMessage", item_json=text)
    seen = ins.SeenTurn(turn=TurnId("t1"), status="completed", items=(item,), user_items=1)
    story.turns_read(seen)
    assert [event["itemId"] for event in story.events("item/completed")][-1] == "a"
    assert [event["state"] for event in story.events("turn/done")] == ["normal"]
    assert story.stored("p1").delivery == "done"


def test_runtime_15_an_interrupt_under_way_is_sent_again_after_the_reconnect(story: Story) -> None:
    running(story)
    story.interrupt()
    story.lost()
    story.up(connection=2)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.count(fx.Interrupt) == 2


def test_boot_01_a_boot_without_the_process_settles_once_and_a_second_adds_nothing(story: Story) -> None:
    running(story)
    story.prompt("p2")
    story.create("closed")
    story.close("closed")
    story.reboot()
    assert story.session().status == "detached"
    assert story.session().attachment is None
    assert len(story.events("turn/done")) == 1
    assert story.session("closed").status == "closed"
    count = len(story.events())
    story.reboot()
    assert len(story.events()) == count


def adopted(story: Story) -> None:
    """A turn whose text had begun goes on across the daemon's death; it is followed again."""
    running(story)
    story.item_started("t1", "a")
    story.reboot(alive="R1")
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t1", "inProgress", "p1"))


def whole_of(story: Story) -> ins.SeenTurn:
    item = ins.SeenItem(
        item=ItemId("a"), type="agentMessage", item_json='{"type":"agentMessage","id":"a","text":"all"}'
    )
    return replace(story.seen("t1", "completed", "p1"), items=(item,))


@pytest.mark.parametrize("order", ["after", "overtook", "still-running"])
def test_boot_02_text_whose_end_was_missed_is_told_before_the_turn_is_done(story: Story, order: str) -> None:
    """Its item ended while nobody listened, and the turn once somebody does: only a read still has the text."""
    if order == "overtook":
        running(story)
        story.item_started("t1", "a")
        story.reboot(alive="R1")
        story.up(connection=2, adopted=True)
        story.opened(story.last(fx.OpenKnown), status="active")
        story.completed("t1")  # the read that was asked before it has the turn as it was then
        story.turns_read(story.seen("t1", "inProgress", "p1"))
    else:
        adopted(story)
        story.completed("t1")
    assert story.events("turn/done") == []
    if order == "still-running":
        story.turns_read(story.seen("t1", "inProgress", "p1"))  # what was said goes before what was read
    else:
        story.turns_read(whole_of(story))
        assert [event["item"]["text"] for event in story.events("item/completed") if event["itemId"] == "a"] == ["all"]
        assert story.events("block/reset") == []
    assert [event["state"] for event in story.events("turn/done")] == ["normal"]
    assert story.deliveries() == {"p1": "done"}


def test_boot_02_a_told_end_stands_though_nothing_can_be_read(story: Story) -> None:
    adopted(story)
    story.completed("t1")
    story.refuse(story.last(fx.ReadTurns), "other")
    assert [event["state"] for event in story.events("turn/done")] == ["normal"]


def test_boot_02_a_told_end_stands_though_the_process_goes(story: Story) -> None:
    adopted(story)
    story.completed("t1")
    story.exited()
    assert [event["state"] for event in story.events("turn/done")] == ["normal"]


def test_boot_02_a_turn_goes_on_across_the_daemons_death(story: Story) -> None:
    running(story)
    old = story.attachment()
    story.reboot(alive="R1")
    assert story.session().status == "running"
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown), status="active")
    assert story.attachment().generation > old.generation
    assert story.session().status == "running"
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.session().status == "running"
    story.item("t1", "a")
    story.completed_and_read("t1", "p1")
    assert story.deliveries() == {"p1": "done"}
    assert [event["turnId"] for event in story.events("turn/done")] == ["t1"]


def test_boot_03_04_an_open_request_is_the_same_card_and_a_decision_is_sent_again(story: Story) -> None:
    running(story)
    story.request("0")
    story.request('"0"')
    first, second = story.store.requests
    session = SessionId("s")
    story.ask(
        lambda t, at: ins.AnswerRequest(ticket=t, at_ms=at, session=session, request=first, decision_json='"accept"')
    )
    story.answered_requests.clear()
    story.reboot(alive="R1")
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.request("0")
    story.request('"0"')
    assert len(story.store.requests) == 2
    assert len(story.events("request/opened")) == 2
    (again,) = story.answered_requests
    assert isinstance(again, fx.SendAnswer)
    assert (again.rpc_id_json, again.answer_json) == ("0", '"accept"')
    ticket = story.ask(
        lambda t, at: ins.AnswerRequest(ticket=t, at_ms=at, session=session, request=second, decision_json='"decline"')
    )
    assert isinstance(story.answers[ticket], fx.RequestAnswer)


def test_boot_06_an_acked_prompt_is_not_sent_again_while_the_process_may_hold_it(story: Story) -> None:
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.reboot(alive="R1")
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t1", "inProgress"))
    assert story.count(fx.StartTurn) == 1
    story.user_item("t1", "p1")
    story.item("t1", "a")
    story.completed_and_read("t1", "p1")
    assert story.deliveries() == {"p1": "done"}


def test_boot_07_no_rollout_right_after_the_first_turn_means_ask_again(story: Story) -> None:
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.reboot(alive="R1")
    story.up(connection=2, adopted=True)
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert story.count(fx.OpenFresh) == 1
    assert story.store.ignored == {}
    assert story.session().thread_id == "T"
    resumes = story.count(fx.OpenKnown)
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.count(fx.OpenKnown) == resumes + 1
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    story.item("t1", "a")
    story.completed_and_read("t1", "p1")
    assert story.deliveries() == {"p1": "done"}


def test_boot_09_an_intent_that_was_open_at_the_crash_ends_and_its_thread_is_never_imported(story: Story) -> None:
    story.prompt("p1")
    op = story.last(fx.OpenFresh).op
    assert isinstance(op, fx.OpenFresh)
    story.reboot()
    assert story.store.intents[op.tag].state == "ignored"
    story.up("R2")
    assert story.count(fx.OpenFresh) == 2
    story.opened(story.last(fx.OpenFresh))
    story.run_turn("t1", "p1")
    assert story.deliveries() == {"p1": "done"}


def test_boot_17_a_prompt_during_recovery_parks_behind_it(story: Story) -> None:
    running(story)
    story.reboot(alive="R1")
    story.prompt("p2")
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.prompt("p3")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    story.item("t1", "a")
    story.completed_and_read("t1", "p1")
    story.run_turn("t2", "p2")
    story.run_turn("t3", "p3")
    assert story.deliveries() == {"p1": "done", "p2": "done", "p3": "done"}


def test_wire_08_replies_to_unknown_calls_and_second_replies_are_counted_and_nothing_else(story: Story) -> None:
    story.prompt("p1")
    start = story.last(fx.OpenFresh)
    story.opened(start)
    before = story.live()
    story.opened(start, "T9")
    assert story.live() == before
    assert story.state.late_frames.value > 0
    assert story.store.ignored == {}


def test_wire_10_only_its_deadline_ends_a_lost_answer_and_frees_its_place() -> None:

    story = Story(Limits(calls_max=1))
    story.up()
    story.create("a")
    story.create("b")
    story.prompt("pa", "a")
    story.prompt("pb", "b")
    assert len(story.sent) == 1
    story.unanswered(story.sent[0])
    assert len(story.sent) == 2
    story.opened(story.sent[1], "TB")
    assert story.session("b").thread_id == "TB"


def _item(text: str) -> ItemId:
    return ItemId(text)
