"""Taking turns back: the slot is held while Codex's record is read and cut, and what is gone is gone here as well."""

from typing import Any

import pytest
from msgspec.structs import replace
from support.story import Story

from state.records import ItemId, SessionId, ThreadId, Tokens, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    """A session that has run three turns on T and is idle."""
    story = Story()
    story.up()
    story.create()
    for number in (1, 2, 3):
        story.prompt(f"p{number}")
        if number == 1:
            story.opened()
        story.run_turn(f"t{number}", f"p{number}")
    return story


def revert(story: Story, session: str = "s", **where: Any) -> ins.Ticket:
    name = SessionId(session)
    return story.ask(lambda t, at: ins.RevertSession(ticket=t, at_ms=at, session=name, **where))


def recorded(turn: str) -> ins.SeenTurn:
    """A turn of two messages and a command, as Codex's record tells it."""
    types = ("userMessage", "commandExecution", "agentMessage")
    items = tuple(ins.SeenItem(item=ItemId(f"{turn}-{type_}"), type=type_, item_json="{}") for type_ in types)
    return ins.SeenTurn(turn=TurnId(turn), status="completed", items=items, user_items=1)


def page(story: Story, *turns: str, older: str | None = None) -> None:
    """Answer the newest read with these turns, newest first."""
    call = story.last(fx.ReadTurns)
    found = tuple(recorded(turn) for turn in turns)
    story.do(ins.TurnsRead(at_ms=story.tick(), link=call.link, call=call.call, turns=found, older=older))


def cut(story: Story) -> fx.RevertThread:
    op = story.last(fx.RevertThread).op
    assert isinstance(op, fx.RevertThread)
    return op


def turns(story: Story) -> set[str]:
    return {str(turn) for _, turn in story.store.turns}


def test_so_many_turns_are_found_in_codexs_record_and_cut_off(story: Story) -> None:
    ticket = revert(story, turns=2)
    page(story, "t3", "t2", "t1")
    assert (cut(story).before_turn, cut(story).removed) == ("t2", ("t3", "t2"))
    assert ticket not in story.answers
    story.done(story.last(fx.RevertThread))
    answer = story.answers[ticket]
    assert isinstance(answer, fx.SessionAnswer)
    assert story.session().message_count == 2
    assert turns(story) == {"t1"}
    assert {str(turn) for _, turn, _ in story.store.items} == {"t1"}
    (event,) = [one for one in story.events("session/updated") if one["changed"] == ["history"]]
    assert (event["beforeTurnId"], event["revertedTurns"]) == ("t2", ["t3", "t2"])


def test_a_turn_that_is_named_goes_with_all_after_it_however_far_back_it_lies(story: Story) -> None:
    revert(story, before_turn=TurnId("t1"))
    page(story, "t3", "t2", older="c")
    assert story.count(fx.RevertThread) == 0
    read = story.last(fx.ReadTurns).op
    assert isinstance(read, fx.ReadTurns)
    assert read.older == "c"
    page(story, "t1")
    assert cut(story).removed == ("t3", "t2", "t1")
    story.done(story.last(fx.RevertThread))
    assert (turns(story), story.session().message_count) == (set(), 0)


@pytest.mark.parametrize("where", [{"turns": 4}, {"before_turn": TurnId("nowhere")}])
def test_what_the_thread_does_not_have_is_refused_and_nothing_is_cut(story: Story, where: dict[str, Any]) -> None:
    ticket = revert(story, **where)
    page(story, "t3", "t2", "t1")
    assert story.refusal(ticket) == "unknown-turn"
    assert story.count(fx.RevertThread) == 0
    revert(story, turns=3)  # control, and the slot is free again
    page(story, "t3", "t2", "t1")
    assert story.count(fx.RevertThread) == 1


def test_prompts_wait_for_the_cut(story: Story) -> None:
    revert(story, turns=1)
    story.prompt("p4")
    page(story, "t3", "t2", "t1")
    assert story.count(fx.StartTurn) == 3
    story.done(story.last(fx.RevertThread))
    assert story.count(fx.StartTurn) == 4
    story.run_turn("t4", "p4")
    assert story.stored("p4").delivery == "done"


def test_it_is_refused_while_the_session_is_busy(story: Story) -> None:
    story.prompt("p4")
    assert story.refusal(revert(story, turns=1)) == "session-busy"
    story.run_turn("t4", "p4")
    assert revert(story, turns=1) not in story.answers  # control


def test_the_thread_is_unloaded_on_the_way_and_its_session_stays_attached(story: Story) -> None:
    revert(story, turns=1)
    page(story, "t3", "t2", "t1")
    before = story.attachment()
    for status in ("notLoaded", "idle"):
        told = ins.ThreadStatusChanged(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), status=status)
        story.do(told)
    assert story.attachment() == before
    story.done(story.last(fx.RevertThread))
    story.prompt("p4")
    assert story.count(fx.OpenKnown) == 0
    told = ins.ThreadStatusChanged(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), status="notLoaded")
    story.run_turn("t4", "p4")
    story.do(replace(told, at_ms=story.tick()))  # control: without a revert it is unloaded
    assert story.session().attachment is None


def test_a_detached_session_is_attached_first_and_a_turn_that_runs_there_is_not_interrupted(story: Story) -> None:
    story.create("d", thread="TD")
    ticket = revert(story, "d", turns=1)
    assert story.count(fx.OpenKnown) == 1
    story.opened(story.last(fx.OpenKnown), "TD", "active")
    story.turns_read(story.seen("other", "inProgress"))
    assert ticket in story.answers
    assert story.refusal(ticket) == "session-busy"
    assert story.count(fx.RevertThread) == 0
    story.completed("other", thread="TD")
    story.turns_read(story.seen("other", "completed"))
    revert(story, "d", turns=1)  # control
    page(story, "other")
    assert story.count(fx.RevertThread) == 1


@pytest.mark.parametrize("what", [fx.ReadTurns, fx.RevertThread])
def test_codexs_refusal_is_the_answer_and_the_slot_is_free(story: Story, what: type[fx.Op]) -> None:
    ticket = revert(story, turns=1)
    if what is fx.RevertThread:
        page(story, "t3", "t2", "t1")
    story.refuse(story.last(what), "other")
    assert story.refusal(ticket) == "codex-refused"
    assert turns(story) == {"t1", "t2", "t3"}
    story.prompt("p4")
    assert story.count(fx.StartTurn) == 4


def test_an_answer_that_nobody_waits_for_any_more_still_takes_the_turns_out(story: Story) -> None:
    ticket = revert(story, turns=1)
    page(story, "t3", "t2", "t1")
    sent = story.last(fx.RevertThread)
    story.unanswered(sent)
    assert story.refusal(ticket) == "codex-unanswered"
    assert turns(story) == {"t1", "t2", "t3"}
    story.done(sent)
    assert turns(story) == {"t1", "t2"}


def test_what_is_spent_after_it_is_counted_though_the_sum_is_what_it_was(story: Story) -> None:
    def used(turn: str) -> None:
        tokens = Tokens(input=5, output=2, total=7)
        at, thread = story.tick(), ThreadId("T")
        told = ins.TurnUsage(at_ms=at, link=story.link, thread=thread, turn=TurnId(turn), last=tokens, total=tokens)
        story.do(told)

    story.prompt("p4")
    story.accepted("t4")
    story.turn_started("t4")
    used("t4")
    story.user_item("t4", "p4")
    story.item("t4", "a4")
    story.completed("t4")
    revert(story, turns=1)
    page(story, "t4", "t3", "t2")
    story.done(story.last(fx.RevertThread))
    story.prompt("p5")
    story.accepted("t5")
    story.turn_started("t5")
    used("t5")
    assert [event["turnId"] for event in story.events("usage")] == ["t4", "t5"]
    assert story.live().turn is not None
