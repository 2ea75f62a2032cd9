"""Delivery, modes, endings: each prompt runs once, each turn ends once."""

import itertools

import pytest
from support.story import Story

from state.records import ThreadId, Tokens, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins

LOST = ins.TurnFailure(message="stream lost", variant="responseStreamDisconnected", http_status=500)


@pytest.fixture
def story() -> Story:
    """A session bound to T whose first prompt's `turn/start` is written."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    return story


@pytest.mark.parametrize("order", ["reply first", "notice first", "reply only", "notice only"])
def test_turn_01_one_turn_ends_once_in_every_order(story: Story, order: str) -> None:
    if order in ("reply first", "reply only"):
        story.accepted("t1")
    if order != "reply only":
        story.turn_started("t1")
    if order == "notice first":
        story.accepted("t1")
    if order == "notice only":
        story.user_item("t1", "p1")
    story.item("t1", "a")
    story.completed("t1")
    assert [event["state"] for event in story.events("turn/done")] == ["normal"]
    assert [event["turnId"] for event in story.events("turn/started")] == ["t1"]
    assert story.stored("p1").delivery == "done"


def test_turn_01_a_reply_after_the_turns_end_ends_its_prompt(story: Story) -> None:
    story.turn_started("t1")
    story.item("t1", "a")
    story.completed("t1")
    assert story.stored("p1").delivery == "sent"
    story.accepted("t1")
    assert story.stored("p1").delivery == "done"
    assert len(story.events("turn/done")) == 1
    story.prompt("p2")
    assert story.count(fx.StartTurn) == 2


def test_turn_02_items_before_reply_and_before_started_are_kept_in_order(story: Story) -> None:
    story.item_started("t1", "i1")
    story.delta("t1", "i1", "a")
    story.turn_started("t1")
    story.delta("t1", "i1", "b")
    story.accepted("t1")
    story.item_completed("t1", "i1")
    story.completed("t1")
    assert [event["delta"] for event in story.events("item/delta")] == ["a", "b"]
    assert story.stored("p1").delivery == "done"


def test_turn_03_a_recorded_prompt_is_not_failed_by_its_deadline(story: Story) -> None:
    start = story.last(fx.StartTurn)
    story.turn_started("t1")
    story.user_item("t1", "p1")
    assert story.stored("p1").delivery == "recorded"
    story.unanswered(start)
    assert story.count(fx.ReadTurns) == 0
    story.item("t1", "a")
    story.completed("t1")
    assert story.deliveries() == {"p1": "done"}
    assert len(story.events("turn/done")) == 1


def test_turn_04_an_unanswered_prompt_that_is_on_record_is_followed_and_not_sent_again(story: Story) -> None:
    story.unanswered(story.last(fx.StartTurn))
    story.fire("prompt", "s")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.stored("p1").delivery == "recorded"
    story.item("t1", "a")
    story.completed_and_read("t1", "p1")
    assert story.deliveries() == {"p1": "done"}
    assert story.count(fx.StartTurn) == 1


def test_turn_05_absent_from_a_living_process_waits_absent_after_its_exit_is_sent_again_once(story: Story) -> None:
    story.unanswered(story.last(fx.StartTurn))
    for _ in range(3):
        story.fire("prompt", "s")
        story.turns_read()
    assert story.count(fx.StartTurn) == 1
    story.exited()
    story.up("R2")
    story.opened(story.last(fx.OpenKnown))
    story.turns_read()
    assert story.count(fx.StartTurn) == 2
    story.run_turn("t2", "p1")
    assert story.deliveries() == {"p1": "done"}


def test_turn_05_held_by_policy() -> None:
    story = Story()
    story.up()
    story.create(on_recovery="hold")
    story.prompt("p1")
    story.opened()
    story.exited()
    story.up("R2")
    story.opened(story.last(fx.OpenKnown))
    story.turns_read()
    assert story.count(fx.StartTurn) == 1
    error = story.session().last_error
    assert error is not None
    assert error.slug == "held"
    story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=story.session().id))
    assert story.count(fx.StartTurn) == 2


def test_turn_06_a_late_answer_is_taken_and_nothing_is_sent_twice(story: Story) -> None:
    story.prompt("p2")
    start = story.last(fx.StartTurn)
    story.unanswered(start)
    story.fire("prompt", "s")
    story.turns_read()
    story.accepted("t1", start)
    assert story.stored("p1").delivery == "acked"
    story.item("t1", "a")
    story.completed("t1")
    assert story.deliveries() == {"p1": "done", "p2": "sent"}
    assert story.count(fx.StartTurn) == 2


@pytest.mark.parametrize(("refusal", "slug"), [("other", "turn-refused"), ("input_too_large", "input-too-large")])
def test_turn_07_a_refused_prompt_fails_and_the_next_goes_out_by_itself(story: Story, refusal: str, slug: str) -> None:
    story.prompt("p2")
    story.refuse(story.last(fx.StartTurn), refusal)
    assert story.stored("p1").delivery == "failed"
    assert story.why("p1").slug == slug
    assert story.stored("p2").delivery == "sent"


def test_turn_08_an_unloaded_thread_is_resumed_once_and_the_prompt_sent_once_more(story: Story) -> None:
    story.refuse(story.last(fx.StartTurn), "thread_not_found")
    assert story.count(fx.OpenKnown) == 1
    story.opened(story.last(fx.OpenKnown))
    assert story.count(fx.StartTurn) == 2
    story.run_turn("t1", "p1")
    assert story.deliveries() == {"p1": "done"}


def test_turn_08_a_thread_that_is_never_found_does_not_loop(story: Story) -> None:
    for _ in range(10):
        if story.stored("p1").delivery == "failed":
            break
        story.refuse(story.last(fx.StartTurn), "thread_not_found")
        if story.live().setup is not None:
            story.opened(story.last(fx.OpenKnown))
    assert story.why("p1").slug == "turn-refused"


def test_turn_09_an_overloaded_turn_keeps_its_place_and_is_sent_again(story: Story) -> None:
    story.prompt("p2")
    start = story.last(fx.StartTurn)
    story.refuse(start, "overloaded")
    assert story.count(fx.StartTurn) == 1
    story.fire("retry", str(start.call))
    assert story.last(fx.StartTurn) == start
    story.run_turn("t1", "p1")
    assert story.stored("p2").delivery == "sent"


def test_turn_09_overload_until_the_deadline_holds_the_prompt_it_did_not_run(story: Story) -> None:
    start = story.last(fx.StartTurn)
    story.refuse(start, "overloaded")
    story.unanswered(start)
    assert story.stored("p1").delivery == "queued"
    error = story.session().last_error
    assert error is not None
    assert error.slug == "codex-overloaded"


def test_turn_10_queue_waits_for_the_end_reject_leaves_nothing_behind(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.prompt("p2")
    refused = story.prompt("p3", mode="reject")
    assert story.refusal(refused) == "session-busy"
    assert "p3" not in story.store.prompts
    assert story.count(fx.StartTurn) == 1
    story.item("t1", "a")
    story.completed("t1")
    assert story.count(fx.StartTurn) == 2


def test_turn_10_control_reject_runs_on_an_idle_session(story: Story) -> None:
    story.run_turn("t1", "p1")
    story.prompt("p2", mode="reject")
    assert story.stored("p2").delivery == "sent"


def test_turn_16_an_answer_that_names_anothers_turn_joins_it(story: Story) -> None:
    story.turn_started("f")
    story.accepted("f")
    story.item("f", "a")
    story.completed("f")
    assert [event["turnId"] for event in story.events("turn/done")] == ["f"]
    assert story.stored("p1").delivery == "done"
    assert story.stored("p1").turn_id == "f"


def test_turn_17_somebody_elses_turn_is_a_turn_and_ours_waits(story: Story) -> None:
    story.run_turn("t1", "p1")
    story.turn_started("f")
    story.prompt("p2")
    assert story.count(fx.StartTurn) == 1
    assert story.session().status == "running"
    story.item("f", "a2")
    story.completed("f")
    assert story.count(fx.StartTurn) == 2
    assert [event["ours"] for event in story.events("turn/started")] == [True, False]


def test_turn_18_anothers_end_does_not_end_our_prompt(story: Story) -> None:
    story.turn_started("c")
    story.item("c", "compaction", "contextCompaction")
    story.completed("c")
    assert story.stored("p1").delivery == "sent"
    story.accepted("t1")
    story.turn_started("t1")
    story.item("t1", "a")
    story.completed("t1")
    assert story.stored("p1").delivery == "done"
    assert [event["turnId"] for event in story.events("turn/done")] == ["c", "t1"]


def test_turn_20_a_second_end_is_late_and_the_first_cause_stays(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.do(_errored(story, "t1", LOST, will_retry=False))
    story.completed("t1", "failed", failure=ins.TurnFailure(message="other"))
    story.completed("t1", "completed")
    (done,) = story.events("turn/done")
    assert (done["state"], done["message"]) == ("error", "stream lost")
    assert len(story.events("late")) == 1


@pytest.mark.parametrize(
    ("status", "state", "delivery"),
    [("interrupted", "cancelled", "cancelled"), ("failed", "error", "failed"), ("completed", "error", "failed")],
)
def test_turn_21_an_end_is_said_as_it_is(story: Story, status: str, state: str, delivery: str) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.user_item("t1", "p1")
    story.completed("t1", status)
    (done,) = story.events("turn/done")
    assert done["state"] == state
    assert story.stored("p1").delivery == delivery
    if status == "completed":
        assert done["providerError"] == {"type": "empty_response"}


def test_turn_22_a_turn_whose_end_was_never_told_is_read_and_ended_once(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.user_item("t1", "p1")
    story.do(ins.ThreadStatusChanged(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), status="idle"))
    assert story.events("turn/done") == []
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "completed", "p1"))
    (done,) = story.events("turn/done")
    assert done["reconciled"] is True
    story.completed("t1")
    assert len(story.events("turn/done")) == 1


def test_turn_24_settings_changed_while_a_turn_runs_go_with_the_next(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.prompt("p2")
    story.ask(lambda t, at: ins.PatchSession(ticket=t, at_ms=at, session=story.session().id, changes={"model": "m2"}))
    story.item("t1", "a")
    story.completed("t1")
    op = story.last(fx.StartTurn).op
    assert isinstance(op, fx.StartTurn)
    assert op.session.model == "m2"


def test_turn_25_taking_back_and_sending_never_both_happen(story: Story) -> None:
    story.prompt("p2")
    session = story.session().id

    def take_back(prompt: str) -> ins.Ticket:
        found = story.stored(prompt).id
        return story.ask(lambda t, at: ins.TakeBackPrompt(ticket=t, at_ms=at, session=session, prompt=found))

    assert story.refusal(take_back("p1")) == "prompt-sent"
    take_back("p2")
    assert story.stored("p2").delivery == "cancelled"
    story.run_turn("t1", "p1")
    assert story.count(fx.StartTurn) == 1


def test_event_03_04_05_what_another_turn_says_is_late_and_changes_nothing(story: Story) -> None:
    story.run_turn("t0", "p1")
    story.prompt("p2")
    story.accepted("t1")
    story.turn_started("t1")
    before = story.live()
    story.delta("t0", "x", "late")
    story.completed("t0")
    story.turn_started("t0")
    story.do(_errored(story, "t0", LOST, will_retry=True))
    assert story.live() == before
    assert len(story.events("late")) == 4
    story.delta("t1", "x", "live")  # control
    assert [event["delta"] for event in story.events("item/delta")] == ["live"]


def test_event_09_each_attempt_that_failed_has_the_next_number(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    for _ in range(3):
        story.do(_errored(story, "t1", LOST, will_retry=True))
    assert [event["attempt"] for event in story.events("retrying")] == [2, 3, 4]


def test_event_06_a_late_item_is_stored_with_its_own_turn(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.item("t1", "a")
    story.item_started("t1", "bg", "commandExecution")
    story.completed("t1")
    story.item_completed("t1", "bg", "commandExecution")
    late = story.events("item/completed")[-1]
    assert (late["turnId"], late["late"]) == ("t1", True)
    assert story.session().active_turn_id is None


def test_event_07_what_is_open_closes_with_the_turn_and_before_its_done(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.item_started("t1", "text")
    story.request("7")
    story.completed("t1", "interrupted")
    closing = [kind for kind in story.kinds() if kind in ("block/reset", "request/expired", "turn/done")]
    assert closing == ["block/reset", "request/expired", "turn/done"]
    assert story.events("block/reset")[0]["items"] == ["text"]


def test_event_08_the_final_text_wins_and_nothing_is_doubled(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.item_started("t1", "i")
    story.item_started("t1", "i")
    story.delta("t1", "i", "a")
    story.item_completed("t1", "i")
    story.item_completed("t1", "i")
    story.delta("t1", "i", "b")
    assert len(story.events("item/started")) == 1
    assert len(story.events("item/completed")) == 1
    assert [event["delta"] for event in story.events("item/delta")] == ["a"]
    assert story.session().message_count == 1


def test_event_09_a_retry_takes_back_what_it_named_and_keeps_the_turn(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.item("t1", "done before")
    story.item_started("t1", "i1")
    story.do(_errored(story, "t1", LOST, will_retry=True))
    story.item("t1", "i2")
    story.completed("t1")
    assert [event["items"] for event in story.events("block/reset")] == [["i1"]]
    assert [event["attempt"] for event in story.events("retrying")] == [2]
    assert [event["state"] for event in story.events("turn/done")] == ["normal"]


def test_event_10_a_status_ends_nothing_and_begins_nothing(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    for status in ("idle", "systemError"):
        story.do(
            ins.ThreadStatusChanged(
                at_ms=story.tick(),
                link=story.link,
                thread=ThreadId("T"),
                status=status,
            )
        )
    assert story.session().status == "running"
    assert story.events("turn/done") == []


def test_event_13_a_closed_thread_is_resumed_for_the_next_prompt(story: Story) -> None:
    story.run_turn("t1", "p1")
    thread = story.session().thread_id
    assert thread is not None
    story.do(ins.ThreadGone(at_ms=story.tick(), link=story.link, thread=thread, how="closed"))
    assert story.session().attachment is None
    story.prompt("p2")
    assert story.count(fx.OpenKnown) == 1
    story.opened(story.last(fx.OpenKnown))
    assert story.stored("p2").delivery == "sent"


def test_event_14_a_turn_whose_thread_goes_ends_once_with_the_cause(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    story.request("1")
    thread = story.session().thread_id
    assert thread is not None
    story.do(ins.ThreadGone(at_ms=story.tick(), link=story.link, thread=thread, how="deleted"))
    (done,) = story.events("turn/done")
    assert (done["state"], done["message"]) == ("cancelled", "Codex deleted the thread")
    assert len(story.events("request/expired")) == 1
    assert story.session().status == "detached"


def told_usage(story: Story, last: Tokens, total: Tokens) -> None:
    at, thread = story.tick(), ThreadId("T")
    story.do(ins.TurnUsage(at_ms=at, link=story.link, thread=thread, turn=TurnId("t1"), last=last, total=total))


def times(count: int) -> Tokens:
    """The sum of so many equal calls."""
    return Tokens(input=10 * count, output=2 * count, cache_read=4 * count, total=12 * count)


def test_usage_is_counted_once_per_model_call_and_summed_for_the_turn(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    for count in (1, 2, 2):  # the last repeats one that was counted: the thread's sum stays as it is
        told_usage(story, times(1), times(count))
    assert len(story.events("usage")) == 2
    story.item("t1", "a")
    story.completed("t1")
    (done,) = story.events("turn/done")
    assert done["usage"] == {"input": 20, "output": 4, "cacheRead": 8, "cacheWrite": 0, "totalTokens": 24}
    assert done["tokens"] == {"input": 20, "output": 4}


def test_what_an_answer_cost_that_was_cut_short_is_what_the_sum_has_grown_by(story: Story) -> None:
    story.accepted("t1")
    story.turn_started("t1")
    told_usage(story, Tokens(), times(3))
    (event,) = story.events("usage")
    assert event["usage"]["totalTokens"] == times(3).total
    told_usage(story, times(1), times(2))  # a sum that shrank says nothing of the call
    assert [one["usage"]["totalTokens"] for one in story.events("usage")] == [36, 12]


@pytest.mark.parametrize("order", list(itertools.permutations(["reply", "started", "item"])))
def test_turn_02_every_order_of_first_signs_gives_the_same_end(story: Story, order: tuple[str, ...]) -> None:
    signs = {
        "reply": lambda: story.accepted("t1"),
        "started": lambda: story.turn_started("t1"),
        "item": lambda: story.user_item("t1", "p1"),
    }
    for sign in order:
        signs[sign]()
    story.item("t1", "a")
    story.completed("t1")
    assert story.deliveries() == {"p1": "done"}
    assert len(story.events("turn/done")) == len(story.events("turn/started")) == 1


def _errored(story: Story, turn: str, failure: ins.TurnFailure, *, will_retry: bool) -> ins.TurnErrored:

    return ins.TurnErrored(
        at_ms=story.tick(),
        link=story.link,
        thread=ThreadId("T"),
        turn=TurnId(turn),
        failure=failure,
        will_retry=will_retry,
    )
