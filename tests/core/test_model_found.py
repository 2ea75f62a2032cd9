"""What the model found, each as the shortest story that shows it.

The name says the promise that was broken. The rules that led there are in the history; here it is told by hand, so that
it stays when the rules change.
"""

import pytest
from support.story import Story

from state.records import IgnoredThread, KnownThread, SessionId, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.disposal import INTERRUPTS_MAX
from termald.core.recovery import LOOKS_MAX


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


def let_go(story: Story) -> list[str]:
    return [sent.op.what for sent in story.sent if isinstance(sent.op, fx.DisposeThread)]


def look(story: Story, *turns: ins.SeenTurn, times: int = 2) -> None:
    """Answer a read, and those that follow it after a pause."""
    for number in range(times):
        if number:
            story.fire("prompt", "s")
        story.turns_read(*turns)


# --- threads that are let go ---


def test_a_thread_that_is_claimed_again_is_not_left_for_the_session_that_is_gone(story: Story) -> None:
    """Else the new session hears nothing: the unsubscribing of the killed one comes after its resume."""
    running(story)
    killed = story.kill()
    assert let_go(story) == ["interrupt"]
    story.create("heir", thread="T")
    assert killed in story.answers
    assert isinstance(story.answers[killed], fx.KillAnswer)
    story.done(story.last(fx.DisposeThread))
    story.prompt("p2", "heir")
    assert story.count(fx.OpenKnown) == 1
    assert let_go(story) == ["interrupt"]


def test_an_unsubscribing_that_was_refused_by_overload_is_not_repeated_after_the_session_came_back(
    story: Story,
) -> None:
    running(story)
    story.completed("t1", "interrupted")
    story.stop()
    story.done(story.last(fx.EndTools))
    leaving = story.last(fx.Unsubscribe)
    story.refuse(leaving, "overloaded")
    story.prompt("p2")
    story.opened(story.last(fx.OpenKnown))
    story.fire("retry", str(leaving.call))
    assert story.count(fx.Unsubscribe) == 1
    assert leaving.call not in story.state.calls


def test_control_an_unsubscribing_is_repeated_while_nobody_came_back(story: Story) -> None:
    running(story)
    story.completed("t1", "interrupted")
    story.stop()
    story.done(story.last(fx.EndTools))
    leaving = story.last(fx.Unsubscribe)
    story.refuse(leaving, "overloaded")
    story.fire("retry", str(leaving.call))
    assert story.count(fx.Unsubscribe) == 2


def test_stop_15_a_turn_that_becomes_known_while_the_tools_are_ended_is_interrupted(story: Story) -> None:
    """The answer to one step must not count as the answer to another that was put before it."""
    start = story.last(fx.StartTurn)
    story.kill()
    story.unanswered(start)
    assert let_go(story) == ["end_tools"]
    story.turn_started("t1")
    story.done(story.last(fx.DisposeThread))
    assert let_go(story) == ["end_tools", "interrupt"]
    interrupt = story.last(fx.DisposeThread).op
    assert isinstance(interrupt, fx.DisposeThread)
    assert interrupt.turn == TurnId("t1")
    story.done(story.last(fx.DisposeThread))
    assert let_go(story) == ["end_tools", "interrupt", "unsubscribe"]


def test_stop_13_a_killed_sessions_turn_that_is_not_active_yet_is_asked_to_end_again(story: Story) -> None:
    """An accepted turn refuses an interrupt for some milliseconds, and runs on: it would run on unseen."""
    story.accepted("t1")
    story.kill()
    first = story.last(fx.DisposeThread)
    story.refuse(first, "no_active_turn")
    assert let_go(story) == ["interrupt"]
    story.fire("retry", str(first.call))
    assert let_go(story) == ["interrupt", "interrupt"]
    story.done(story.last(fx.DisposeThread))
    assert let_go(story) == ["interrupt", "interrupt", "end_tools"]


def test_stop_13_one_that_has_no_turn_any_more_is_not_asked_for_ever(story: Story) -> None:
    running(story)
    story.kill()
    for _ in range(INTERRUPTS_MAX):
        sent = story.last(fx.DisposeThread)
        story.refuse(sent, "no_active_turn")
        story.fire("retry", str(sent.call))
    story.refuse(story.last(fx.DisposeThread), "no_active_turn")
    assert let_go(story)[INTERRUPTS_MAX:] == ["interrupt", "end_tools"]


# --- a setup that fails while something is uncertain ---


@pytest.mark.parametrize("refusal", ["active_writer", "archived", "other"])
def test_i12_a_turn_is_followed_to_its_end_where_its_thread_cannot_be_resumed(story: Story, refusal: str) -> None:
    """Its end is on record whether we may resume or not; else its caller waits for ever."""
    running(story)
    story.item("t1", "a")
    story.lost()
    story.up(connection=2)
    story.refuse(story.last(fx.OpenKnown), refusal)
    assert story.session().status == "error"
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "completed", "p1"))
    assert [event["state"] for event in story.events("turn/done")] == ["normal"]
    assert story.deliveries() == {"p1": "done"}


def test_a_turn_that_runs_on_a_thread_that_cannot_be_resumed_is_looked_at_less_and_less_often(story: Story) -> None:
    """It was every two seconds, for as long as it ran, with a new attachment and three events each time."""
    running(story)
    story.lost()
    story.up(connection=2)
    pauses = []
    for _ in range(5):
        story.refuse(story.last(fx.OpenKnown), "other")
        pauses.append(story.armed["turn", "s"].after_ms)
        story.fire("turn", "s")
        story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert pauses == sorted(set(pauses))


def test_i5_a_resume_that_cannot_be_written_ends_no_prompt_that_may_have_run(story: Story) -> None:
    story.lost()
    story.up(connection=2)
    resume = story.last(fx.OpenKnown)
    story.do(ins.CallUnwritten(at_ms=story.tick(), call=resume.call, slug="cwd-missing", message="/work is gone"))
    assert story.stored("p1").delivery == "sent"
    story.fire("prompt", "s")
    story.turns_read(story.seen("t1", "completed", "p1"))
    assert story.stored("p1").delivery == "done"


def test_a_resume_that_cannot_be_written_is_not_written_again_by_itself(story: Story) -> None:
    """It was, as fast as it failed."""
    story.run_turn("t1", "p1")
    story.lost()
    story.up(connection=2)
    resume = story.last(fx.OpenKnown)
    story.do(ins.CallUnwritten(at_ms=story.tick(), call=resume.call, slug="cwd-missing", message="/work is gone"))
    assert story.count(fx.OpenKnown) == 1
    story.prompt("p2")  # control: somebody's prompt tries anew
    assert story.count(fx.OpenKnown) == 2


def test_stop_12_a_stop_whose_thread_cannot_be_resumed_is_over_and_answered(story: Story) -> None:
    running(story)
    ticket = story.stop()
    story.lost()
    story.up(connection=2)
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert ticket not in story.answers  # its turn may still say how it ended
    story.fire("ending", "s")
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    assert story.session().status == "detached"


def test_a_queue_that_a_failed_resume_held_goes_on_when_the_thread_is_there_again(story: Story) -> None:
    running(story)
    story.prompt("p2")
    story.lost()
    story.up(connection=2)
    story.refuse(story.last(fx.OpenKnown), "active_writer")
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t1", "completed", "p1"))
    assert story.stored("p2").delivery == "sent"


# --- looking for a prompt ---


def test_turn_05_that_its_thread_was_idle_before_it_was_sent_proves_nothing(story: Story) -> None:
    """What was written to a lost connection may still be read; one look at once was taken for proof."""
    story.lost()
    story.up(connection=2)
    story.opened(story.last(fx.OpenKnown))
    story.turns_read()
    assert story.count(fx.StartTurn) == 1
    story.fire("prompt", "s")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.stored("p1").delivery == "recorded"
    assert story.count(fx.StartTurn) == 1


def test_boot_06_a_prompt_that_an_idle_thread_still_lacks_after_a_pause_is_sent_again_once(story: Story) -> None:
    story.reboot(alive="R1")
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown))
    look(story, times=3)
    assert story.count(fx.StartTurn) == 2
    story.run_turn("t1", "p1")
    assert story.deliveries() == {"p1": "done"}


def test_boot_07_looks_go_on_where_the_thread_is_not_known_yet(story: Story) -> None:
    """The attachment that the reads are made under was given up after the first, and the prompt waited for ever."""
    story.reboot(alive="R1")
    story.up(connection=2, adopted=True)
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    story.fire("prompt", "s")
    story.refuse(story.last(fx.ReadTurns), "no_rollout")
    story.fire("prompt", "s")
    story.turns_read(story.seen("t1", "completed", "p1"))
    assert story.deliveries() == {"p1": "done"}
    assert story.count(fx.OpenFresh) == 1


def test_turn_05_a_prompt_that_is_neither_answered_nor_on_record_is_held_for_a_word(story: Story) -> None:
    """It was looked for once a minute for ever, and nobody saw why it waited."""
    story.unanswered(story.last(fx.StartTurn))
    for _ in range(LOOKS_MAX):
        story.fire("prompt", "s")
        story.turns_read()
    assert ("prompt", "s") not in story.timers
    assert story.count(fx.StartTurn) == 1
    error = story.session().last_error
    assert error is not None
    assert (story.session().status, error.slug) == ("error", "turn-unconfirmed")
    story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=story.session().id))
    look(story, times=3)
    assert story.count(fx.StartTurn) == 2


def test_a_prompt_that_follows_a_held_one_has_it_looked_for_again(story: Story) -> None:
    story.unanswered(story.last(fx.StartTurn))
    for _ in range(LOOKS_MAX):
        story.fire("prompt", "s")
        story.turns_read()
    assert ("prompt", "s") not in story.timers
    story.prompt("p2")
    story.turns_read(story.seen("t1", "completed", "p1"))
    assert story.deliveries() == {"p1": "done", "p2": "sent"}


def test_turn_16_a_prompt_that_may_have_joined_a_running_turn_is_looked_for_when_that_has_ended(story: Story) -> None:
    story.lost()
    story.up(connection=2)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("f", "inProgress"))
    story.item("f", "a")
    story.completed("f")
    assert story.count(fx.StartTurn) == 1
    story.turns_read(story.seen("f", "completed", "p1"))
    assert story.deliveries() == {"p1": "done"}


def test_turn_16_an_answer_that_names_a_turn_before_the_last_is_no_proof_that_it_had_the_prompt(story: Story) -> None:
    """It was said to be done, and had never run: the turn that it had joined was cut before it took it."""
    start = story.last(fx.StartTurn)
    for turn in ("f", "g"):
        story.turn_started(turn)
        story.completed(turn, "interrupted")
    story.accepted("f", start)
    assert story.stored("p1").delivery == "acked"
    look(story, story.seen("g", "interrupted"), story.seen("f", "interrupted"), times=3)
    assert story.count(fx.StartTurn) == 2


# --- what is history ---


def test_boot_08_an_acknowledged_turn_alone_is_no_history(story: Story) -> None:
    """Both died before the user item: nothing is lost, so no word of loss."""
    story.accepted("t1")
    story.turn_started("t1")
    story.exited()
    story.up("R2")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert story.count(fx.OpenFresh) == 2
    assert story.events("session/resumeLost") == []
    assert set(story.store.ignored) == {ThreadId("T")}


def test_boot_08_control_an_item_is_history(story: Story) -> None:
    running(story)
    story.exited()
    story.up("R2")
    story.prompt("p2")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert story.session().resume_lost
    assert story.count(fx.OpenFresh) == 1


# --- endings ---


def test_i7_a_turn_that_begins_while_a_stop_ends_the_tools_ends_before_the_session_detaches(story: Story) -> None:
    story.run_turn("t1", "p1")
    ticket = story.stop()
    story.turn_started("f")
    story.done(story.last(fx.EndTools))
    assert ticket not in story.answers
    assert story.count(fx.Interrupt) == 1
    story.completed("f", "interrupted")
    story.done(story.last(fx.EndTools))
    assert story.session().status == "detached"
    assert isinstance(story.answers[ticket], fx.SessionAnswer)


def test_stop_10_a_turn_that_was_not_confirmed_in_time_is_still_asked_to_end(story: Story) -> None:
    """It was not active yet, so that no interrupt was written at all: it ran on, and nobody followed it."""
    story.accepted("t1")
    story.stop()
    story.fire("ending", "s")
    assert let_go(story) == ["interrupt"]
    story.refuse(story.last(fx.DisposeThread), "no_active_turn")
    story.fire("retry", str(story.last(fx.DisposeThread).call))
    assert let_go(story) == ["interrupt", "interrupt"]


def test_i1_a_stop_whose_time_is_over_gives_the_place_of_its_setup_back(story: Story) -> None:
    running(story)
    story.stop()
    story.lost()
    story.up(connection=2)
    assert story.live().setup is not None
    story.fire("ending", "s")
    assert story.session().status == "detached"
    assert story.state.setups_open.value == 0


# --- holds ---


def held(story: Story) -> None:
    """Let p1 be looked for until its session is held."""
    story.unanswered(story.last(fx.StartTurn))
    for _ in range(LOOKS_MAX):
        story.fire("prompt", "s")
        story.turns_read()
    assert story.session().paused


def test_runtime_11_a_hold_ends_when_the_prompt_that_it_was_for_is_there_after_all(story: Story) -> None:
    """The queue behind it stood still for ever, and its session said `ready`."""
    story.prompt("p2")
    held(story)
    story.turn_started("t1")
    story.user_item("t1", "p1")
    story.item("t1", "a")
    story.completed("t1")
    assert story.deliveries() == {"p1": "done", "p2": "sent"}


def test_turn_05_a_hold_ends_with_the_process_that_might_have_had_the_prompt(story: Story) -> None:
    held(story)
    story.exited()
    story.up("R2")
    story.opened(story.last(fx.OpenKnown))
    story.turns_read()
    assert story.count(fx.StartTurn) == 2


def test_a_turns_end_does_not_hide_why_the_queue_is_held(story: Story) -> None:
    running(story)
    story.prompt("p2")
    story.lost()
    story.up(connection=2)
    story.refuse(story.last(fx.OpenKnown), "active_writer")
    story.fire("turn", "s")
    story.turns_read(story.seen("t1", "interrupted", "p1"))
    error = story.session().last_error
    assert error is not None
    assert error.slug == "active-elsewhere"
    assert story.stored("p2").delivery == "queued"


def test_a_retry_under_a_running_turn_attaches_anew_and_keeps_it(story: Story) -> None:
    running(story)
    story.lost()
    story.up(connection=2)
    story.refuse(story.last(fx.OpenKnown), "other")
    story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=story.session().id))
    assert story.count(fx.OpenKnown) == 2
    assert story.live().turn is not None
    story.opened(story.last(fx.OpenKnown), status="active")
    assert story.session().status == "running"


def test_a_prompt_is_looked_for_anew_when_its_thread_was_unloaded_between_two_looks(story: Story) -> None:
    """The next look bore the stamp of the attachment that was given up, and was refused for it."""
    held(story)
    story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=story.session().id))
    story.turns_read()
    story.do(ins.ThreadGone(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), how="closed"))
    story.opened(story.last(fx.OpenKnown))
    look(story, times=3)
    assert story.count(fx.StartTurn) == 2


# --- operations ---


def test_an_operation_on_a_closed_session_is_refused(story: Story) -> None:
    """It was taken, and its caller waited for ever."""
    story.run_turn("t1", "p1")
    story.close()
    story.done(story.last(fx.EndTools))
    session = story.session().id
    ticket = story.ask(lambda t, at: ins.OperateSession(ticket=t, at_ms=at, session=session, kind="compact"))
    assert story.refusal(ticket) == "session-closed"


def test_i9_a_fork_that_somebody_ignored_before_it_was_answered_is_its_sessions(story: Story) -> None:
    story.run_turn("t1", "p1")
    session = story.session().id
    new = SessionId("fork")
    story.ask(lambda t, at: ins.ForkSession(ticket=t, at_ms=at, session=session, new_session=new))
    entry = IgnoredThread(thread_id=ThreadId("T2"), reason="noise", at_ms=1)
    story.ask(lambda t, at: ins.IgnoreThread(ticket=t, at_ms=at, entry=entry))
    sent = story.last(fx.ForkThread)
    story.do(ins.ThreadOpened(at_ms=story.tick(), link=sent.link, call=sent.call, thread=ThreadId("T2"), status="idle"))
    assert story.session("fork").thread_id == "T2"
    assert story.store.ignored == {}


def test_stop_16_a_kill_without_a_link_ends_the_turn_over_the_next_one(story: Story) -> None:
    running(story)
    story.lost()
    story.kill()
    story.up(connection=2)
    assert let_go(story) == ["interrupt"]
    story.exited()
    assert not story.state.disposals  # with the process went what was left to do


def test_a_lost_thread_is_not_given_up_while_it_is_looked_for(story: Story) -> None:
    """It was, under an operation that was attaching: its place was never given back, nor its caller answered."""
    running(story)
    story.exited()
    story.up("R2")
    story.prompt("p2")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    session = story.session().id
    compact = story.ask(lambda t, at: ins.OperateSession(ticket=t, at_ms=at, session=session, kind="compact"))
    fresh = story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=session, fresh=True))
    assert story.refusal(fresh) == "session-busy"
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert isinstance(story.answers[compact], fx.Refused)
    story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=session, fresh=True))  # control
    assert story.count(fx.OpenFresh) == 2


def test_turn_05_a_prompt_is_followed_in_the_turn_that_runs_when_another_ended_unheard() -> None:
    """Codex runs one turn at a time. Ours was neither begun nor joined while the other was taken for running, and was
    held by nobody."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.turn_started("t2")  # of another front-end
    story.lost()
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t3", "inProgress", "p1"))
    turn = story.live().turn
    assert turn is not None
    assert (turn.id, turn.prompts) == ("t3", ("p1",))
    assert [(event["turnId"], event["state"]) for event in story.events("turn/done")] == [("t2", "error")]
    story.completed_and_read("t3", "p1")
    assert story.deliveries() == {"p1": "done"}


@pytest.mark.parametrize("claimed_first", [True, False])
def test_i9_a_thread_that_a_hint_named_is_not_let_go_when_somebody_else_has_claimed_it(*, claimed_first: bool) -> None:
    """The one who claimed it slept, so that nobody in memory owned it, and it was ignored with the killed session's
    setup."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    start = story.last(fx.OpenFresh).op
    assert isinstance(start, fx.OpenFresh)
    known = KnownThread(thread_id=ThreadId("T"), home="/home", cls="discovered", reason="seen", cwd="/work")
    hint = ins.ThreadStarted(
        at_ms=story.tick(),
        link=story.link,
        thread=ThreadId("T"),
        tag=start.tag,
        ephemeral=False,
        parent=None,
        known=known,
    )
    if claimed_first:
        story.create("s2", thread="T")
        story.do(hint)
    else:
        story.do(hint)
        story.create("s2", thread="T")
    assert SessionId("s2") not in story.state.sessions, "it sleeps"
    story.kill()
    assert story.store.ignored == {}
    assert story.session("s2").thread_id == "T"


def test_i7_a_turn_whose_end_was_told_before_the_read_that_shows_it_running_is_looked_at_again(story: Story) -> None:
    """Its end was another turn's, as far as was known, and moved nothing; then the read's answer, older than that, made
    it the one that runs."""
    running(story)
    story.lost()
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown))
    read = story.last(fx.ReadTurns)
    story.completed("t2", status="interrupted")
    assert story.session().active_turn_id == "t1"
    story.turns_read(story.seen("t2", "inProgress"), sent=read)
    assert story.session().active_turn_id == "t2"
    story.fire("turn", "s")
    story.turns_read(story.seen("t2", "interrupted"))
    assert (story.session().status, story.session().active_turn_id) == ("ready", None)


def frozen(story: Story) -> None:
    """Codex takes nothing in, for so long that nobody waits for an answer any more."""
    story.unanswered(story.last(fx.StartTurn))
    for _ in range(LOOKS_MAX):
        story.fire("prompt", "s")
        story.unanswered(story.last(fx.ReadTurns))
    why = story.session().last_error
    assert why is not None
    assert why.slug == "turn-unconfirmed"
    story.do(ins.RetrySession(ticket=story.ticket(), at_ms=story.tick(), session=SessionId("s")))
    for _ in range(2):
        story.unanswered(story.last(fx.ReadTurns))
        story.fire("prompt", "s")


def test_i5_looks_that_nobody_answered_prove_nothing(story: Story) -> None:
    """It goes on, and reads what was written in between: the prompt first, then the looks, of which the last is
    answered before the prompt is on record. It was written again, and ran twice."""
    frozen(story)
    story.turns_read()
    assert story.stored("p1").attempts == 1
    story.fire("prompt", "s")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert (story.session().active_turn_id, story.stored("p1").attempts) == ("t1", 1)


def test_turn_03_an_answer_that_comes_after_all_ties_a_prompt_that_was_taken_back(story: Story) -> None:
    start = story.last(fx.StartTurn)
    frozen(story)
    story.accepted("t1", start)
    assert (story.session().active_turn_id, story.stored("p1").delivery) == ("t1", "acked")
    story.turns_read()  # asked before, and answered before the turn is on record
    story.turn_started("t1")
    story.user_item("t1", "p1")
    story.item("t1", "a")
    story.completed("t1")
    assert story.deliveries() == {"p1": "done"}
    assert story.stored("p1").attempts == 1


def test_stop_15_a_kill_whose_turn_is_known_before_its_answer_goes_on_with_the_answer(story: Story) -> None:
    """The disposal waited for the answer to know which turn to end; that it was known already ended no waiting."""
    start = story.last(fx.StartTurn)
    story.turn_started("t1")
    story.kill()
    assert story.count(fx.DisposeThread) == 0
    story.accepted("t1", start)
    asked = story.last(fx.DisposeThread).op
    assert isinstance(asked, fx.DisposeThread)
    assert (asked.what, asked.turn) == ("interrupt", "t1")


def test_i6_a_card_that_came_while_its_thread_was_being_resumed_closes_when_that_is_refused() -> None:
    """It bore an attachment that came to nothing: nobody could answer it, and nothing closed it."""
    story = Story()
    story.up()
    story.create(thread="T")
    story.prompt("p1")
    resume = story.last(fx.OpenKnown)
    story.request("7")
    assert [event["kind"] for event in story.events("request/opened")] == ["request/opened"]
    story.refuse(resume, "no_rollout")
    assert [record.status for record in story.store.requests.values()] == ["expired"]
    assert story.session().waiting_on is None


def test_i12_a_turn_that_is_followed_by_its_record_ends_with_its_thread(story: Story) -> None:
    """The resume after a reconnect was not answered, then the thread was deleted: nobody held the thread, and the turn
    never ended."""
    running(story)
    story.user_item("t1", "p1")
    story.lost()
    story.up(connection=2, adopted=True)
    story.unanswered(story.last(fx.OpenKnown))
    story.do(ins.ThreadGone(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), how="deleted"))
    assert [(event["turnId"], event["state"]) for event in story.events("turn/done")] == [("t1", "cancelled")]
    assert story.deliveries() == {"p1": "cancelled"}
    assert (story.session().resume_lost, story.session().active_turn_id) == (True, None)
