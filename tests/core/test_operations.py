"""Compact, review, archive, fork: each takes the session's slot, and nothing is steered or interrupted by accident."""

from typing import Any

import pytest
from support.story import Story

from state.records import SessionId, ThreadId
from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    """A session that has run a turn on T and is idle."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.run_turn("t1", "p1")
    return story


def operate(story: Story, kind: Any, session: str = "s") -> ins.Ticket:
    name = SessionId(session)
    return story.ask(lambda t, at: ins.OperateSession(ticket=t, at_ms=at, session=name, kind=kind))


def fork(story: Story, new: str = "f", key: str | None = None) -> ins.Ticket:
    idempotency = None if key is None else ins.Idempotency(key=key, fingerprint="x")
    old, name = SessionId("s"), SessionId(new)
    return story.ask(
        lambda t, at: ins.ForkSession(ticket=t, at_ms=at, session=old, new_session=name, idempotency=idempotency)
    )


def ran(story: Story) -> list[str]:
    return [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]


def test_setup_26_a_prompt_waits_for_the_compaction_and_its_turn(story: Story) -> None:
    ticket = operate(story, "compact")
    story.prompt("p2")
    assert ran(story) == ["p1"]
    story.done(story.last(fx.ManageThread))
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    assert ran(story) == ["p1"]  # taken, but its turn has not begun
    story.turn_started("c")
    story.item("c", "x", "contextCompaction")
    assert ran(story) == ["p1"]
    story.completed("c")
    story.run_turn("t2", "p2")
    assert story.deliveries() == {"p1": "done", "p2": "done"}


def test_a_compaction_whose_turn_never_begins_does_not_hold_the_queue_for_ever(story: Story) -> None:
    operate(story, "compact")
    story.prompt("p2")
    story.done(story.last(fx.ManageThread))
    story.fire("operation", "s")
    assert ran(story) == ["p1", "p2"]


def test_a_review_names_its_turn_and_the_queue_waits_for_it(story: Story) -> None:
    ticket = operate(story, "review")
    story.prompt("p2")
    sent = story.last(fx.ManageThread)
    story.accepted("r", sent)
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    assert story.session().active_turn_id == "r"
    story.item("r", "x")
    story.completed("r")
    assert ran(story) == ["p1", "p2"]


def test_it_is_refused_while_the_session_is_busy(story: Story) -> None:
    story.prompt("p2")
    assert story.refusal(operate(story, "compact")) == "session-busy"
    assert story.refusal(fork(story)) == "session-busy"
    assert story.count(fx.ManageThread) == 0


def test_a_held_queue_does_not_keep_what_would_let_it_go_on(story: Story) -> None:
    story.create("d", thread="TD")
    story.prompt("p", "d")
    story.refuse(story.last(fx.OpenKnown), "archived")
    ticket = operate(story, "unarchive", "d")
    story.done(story.last(fx.ManageThread))
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    assert story.stored("p").delivery == "queued"
    # The prompts waited for just that: they go on without another word.
    assert story.count(fx.OpenKnown) == 2
    before = story.count(fx.StartTurn)
    story.opened(story.last(fx.OpenKnown), "TD")
    assert story.count(fx.StartTurn) == before + 1


def test_unarchiving_lets_nothing_go_that_is_held_for_another_reason(story: Story) -> None:
    story.create("d", thread="TD")
    story.prompt("p", "d")
    story.refuse(story.last(fx.OpenKnown), "other")
    reason = story.session("d").last_error
    operate(story, "unarchive", "d")
    story.done(story.last(fx.ManageThread))
    assert story.session("d").last_error == reason
    assert story.count(fx.OpenKnown) == 1


def test_a_second_operation_is_refused_while_the_first_lasts(story: Story) -> None:
    operate(story, "compact")
    assert story.refusal(operate(story, "archive")) == "session-busy"


def test_a_session_without_a_thread_has_nothing_to_operate_on(story: Story) -> None:
    story.create("new")
    assert story.refusal(operate(story, "compact", "new")) == "no-thread"


def test_a_detached_session_is_attached_for_a_compaction_and_not_for_an_archive(story: Story) -> None:
    story.create("d", thread="TD")
    operate(story, "archive", "d")
    assert story.count(fx.OpenKnown) == 0
    story.done(story.last(fx.ManageThread))
    operate(story, "compact", "d")
    assert story.count(fx.OpenKnown) == 1
    story.opened(story.last(fx.OpenKnown), "TD")
    op = story.last(fx.ManageThread).op
    assert isinstance(op, fx.ManageThread)
    assert op.what == "compact"


def test_an_attach_that_fails_is_the_operations_answer(story: Story) -> None:
    story.create("d", thread="TD")
    ticket = operate(story, "compact", "d")
    story.refuse(story.last(fx.OpenKnown), "active_writer")
    assert story.refusal(ticket) == "active-elsewhere"
    story.prompt("p", "d")
    assert story.count(fx.OpenKnown) == 2  # the slot is free again


def test_an_archived_thread_is_unloaded_and_its_session_detached(story: Story) -> None:
    operate(story, "archive")
    story.done(story.last(fx.ManageThread))
    assert story.session().attachment is None
    assert story.session().thread_id == "T"


def test_setup_26_a_compaction_that_is_told_before_its_answer_frees_the_slot_with_its_end(story: Story) -> None:
    """Found by the model: the slot waited for a turn that had begun, and the prompts behind it for ever."""
    ticket = operate(story, "compact")
    story.prompt("p2")
    story.turn_started("tc")
    story.done(story.last(fx.ManageThread))
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    assert ran(story) == ["p1"]
    story.completed("tc")
    assert ran(story) == ["p1", "p2"]


def test_setup_27_a_fork_is_an_intent_first_and_a_session_of_its_own_then(story: Story) -> None:
    ticket = fork(story)
    changes, synced = story.store.commits[-1]
    assert synced
    assert changes.intents[0].kind == "fork"
    story.opened(story.last(fx.ForkThread), "TF")
    intent = story.store.intents[changes.intents[0].tag]
    assert (intent.state, intent.thread_id) == ("claimed", "TF")
    new = story.session("f")
    assert (new.origin, new.thread_id, new.parent_id, new.status) == ("forked", "TF", "s", "detached")
    answer = story.answers[ticket]
    assert isinstance(answer, fx.SessionAnswer)
    assert answer.session.id == "f"
    assert story.session("s").thread_id == "T"
    story.prompt("q", "f")
    resumed = story.last(fx.OpenKnown).op
    assert isinstance(resumed, fx.OpenKnown)
    assert resumed.thread == "TF"


def test_setup_27_a_forks_thread_that_somebody_claims_before_the_answer_is_theirs(story: Story) -> None:
    """Found by the model: the caller was never answered, and the session kept its slot for ever."""
    ticket = fork(story)
    story.create("other", thread="TF")
    story.opened(story.last(fx.ForkThread), thread="TF")
    assert story.refusal(ticket) == "thread-owned"
    assert story.session("other").thread_id == "TF"
    story.prompt("p2")
    story.run_turn("t2", "p2")  # the slot is free
    assert story.deliveries()["p2"] == "done"


def test_setup_27_what_was_asked_of_the_parent_meanwhile_runs_once_it_is_forked(story: Story) -> None:
    fork(story)
    story.prompt("p2")
    assert "p2" not in ran(story)
    story.opened(story.last(fx.ForkThread), "TF")
    assert ran(story)[-1] == "p2"


def test_setup_27_a_repeated_fork_is_the_same_fork(story: Story) -> None:
    first = fork(story, key="k")
    story.opened(story.last(fx.ForkThread), "TF")
    second = fork(story, key="k", new="other")
    assert story.answers[first] == story.answers[second]
    assert story.count(fx.ForkThread) == 1


@pytest.mark.parametrize("loss", ["deadline", "link", "kill"])
def test_setup_27_a_forks_thread_that_nobody_waits_for_has_one_fate(story: Story, loss: str) -> None:
    ticket = fork(story)
    sent = story.last(fx.ForkThread)
    if loss == "deadline":
        story.unanswered(sent)
        assert story.refusal(ticket) == "codex-unanswered"
    elif loss == "kill":
        story.kill()
        assert story.refusal(ticket) == "killed"
    else:
        story.lost()
        assert story.refusal(ticket) == "link-lost"
        return
    story.opened(sent, "TF")
    assert "f" not in story.store.sessions
    assert ThreadId("TF") in story.store.ignored


def test_an_operation_in_flight_when_the_process_dies_is_answered(story: Story) -> None:
    ticket = operate(story, "compact")
    story.exited()
    assert story.refusal(ticket) == "runtime-exited"
    assert not story.state.sessions or story.live().operation is None


def patch(story: Story, session: str = "s", **changes: Any) -> ins.Ticket:
    name = SessionId(session)
    return story.ask(lambda t, at: ins.PatchSession(ticket=t, at_ms=at, session=name, changes=changes))


def test_a_new_title_is_the_threads_name_too_also_while_a_turn_runs(story: Story) -> None:
    story.prompt("p2")
    ticket = patch(story, title="Another")
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    sent = story.last(fx.NameThread)
    assert sent.op == fx.NameThread(thread=ThreadId("T"), name="Another")
    story.done(sent)
    assert story.events("notice") == []
    patch(story, model="m")
    assert story.count(fx.NameThread) == 1


def test_a_name_that_codex_does_not_take_is_the_sessions_all_the_same(story: Story) -> None:
    patch(story, title="Another")
    story.refuse(story.last(fx.NameThread), "no_rollout")
    assert story.session().title == "Another"
    (notice,) = story.events("notice")
    assert notice["slug"] == "not-named"
    assert (story.session().status, story.session().thread_id) == ("ready", "T")


def test_where_there_is_nothing_to_name_nothing_is_asked(story: Story) -> None:
    story.create("new")
    patch(story, "new", title="x")
    patch(story, title=None)
    story.lost()
    patch(story, title="y")
    assert story.count(fx.NameThread) == 0
