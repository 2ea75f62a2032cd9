"""RUNTIME, BOOT and WIRE, where the pure core is their level and it is one order more than its room's tests tell."""

import pytest
from support.story import Story

from state.records import KnownThread, LinkId, SessionId, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.limits import Limits

EDGES = ("queued", "sent unwritten", "written", "acked", "recorded", "done")


@pytest.fixture
def story() -> Story:
    story = Story()
    story.up()
    story.create()
    return story


def bring_to(story: Story, edge: str) -> None:
    """Bring p1 to an edge; what is written from `written` on, Codex has."""
    if edge == "queued":
        story.lost()
    story.prompt("p1")
    if edge == "queued":
        return
    story.opened()
    if edge in ("acked", "recorded", "done"):
        story.accepted("t1")
    if edge in ("recorded", "done"):
        story.user_item("t1", "p1")
    if edge == "done":
        story.item("t1", "a")
        story.completed("t1")


@pytest.mark.parametrize("recovery", ["resend", "hold"])
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("edge", EDGES)
def test_boot_05_a_crash_at_each_edge_of_a_prompt_sends_it_once_or_holds_it(
    edge: str, recovery: str, *, stored: bool
) -> None:
    """The process is dead, and its record of the thread is all there is: found there, it is never sent again."""
    story = Story()
    story.up()
    story.create(on_recovery=recovery)
    bring_to(story, edge)
    written = story.count(fx.StartTurn)
    story.reboot()
    story.up("R2")
    found = stored and edge in ("written", "acked", "recorded", "done")
    if edge in ("sent unwritten", "written", "acked"):
        story.opened(story.last(fx.OpenKnown))
        story.turns_read(*([story.seen("t1", "interrupted", "p1")] if found else []))
    elif edge == "queued":
        story.opened(story.last(fx.OpenFresh))
    again = story.count(fx.StartTurn) - written
    uncertain = edge in ("sent unwritten", "written", "acked") and not found
    assert again == (edge == "queued" or (uncertain and recovery == "resend"))
    if uncertain and recovery == "hold":
        error = story.session().last_error
        assert error is not None
        assert error.slug == "held"
    if edge == "done":
        assert story.deliveries() == {"p1": "done"}


@pytest.mark.parametrize("interrupt", [True, False])
def test_boot_16_a_planned_stop_starts_nothing_more_and_interrupts_only_where_codex_ends_too(
    story: Story, *, interrupt: bool
) -> None:
    for name in "abc":
        story.create(name)
        story.prompt(f"p{name}", name)
        story.opened(story.last(fx.OpenFresh), f"T{name}")
        story.accepted(f"t{name}")
        story.turn_started(f"t{name}", f"T{name}")
        story.prompt(f"q{name}", name)
    story.do(ins.ShuttingDown(at_ms=story.tick(), interrupt=interrupt))
    assert story.count(fx.Interrupt) == (3 if interrupt else 0)
    for name in "abc":
        story.item(f"t{name}", f"a{name}", thread=f"T{name}")
        story.completed(f"t{name}", "interrupted" if interrupt else "completed", f"T{name}")
    assert story.count(fx.StartTurn) == 3
    assert {story.stored(f"q{name}").delivery for name in "abc"} == {"queued"}
    assert len(story.events("turn/done")) == 3
    story.reboot(alive=None if interrupt else "R1")
    story.up("R2" if interrupt else "R1", connection=2)
    resumed = [sent for sent in story.sent if isinstance(sent.op, fx.OpenKnown)]
    for sent in resumed:
        assert isinstance(sent.op, fx.OpenKnown)
        story.opened(sent, sent.op.thread)
    assert story.count(fx.StartTurn) == 6


def test_runtime_04_an_answer_over_an_ended_link_is_nobodys(story: Story) -> None:
    """Calls are numbered through all links of a daemon, and a frame may come over the wrong one all the same."""
    story.prompt("p1")
    old = story.link
    story.exited()
    story.up("R2")
    story.opened(story.last(fx.OpenFresh))
    before = story.live()
    pending = story.last(fx.StartTurn)
    story.do(ins.TurnAccepted(at_ms=story.tick(), link=old, call=pending.call, turn=TurnId("t9")))
    assert story.live() == before
    story.accepted("t1", pending)  # control
    assert story.session().active_turn_id == "t1"


def test_runtime_04_a_thread_that_an_ended_connection_tells_of_is_judged_by_nobody(story: Story) -> None:
    """What it said of a thread is of then, and would be taken for what discovery sees now. (Found by the model.)"""
    ticket = story.ask(
        lambda t, at: ins.CreateSession(
            ticket=t,
            at_ms=at,
            session=SessionId("taken"),
            settings=ins.SessionSettings(cwd="/work"),
            thread=ThreadId("T9"),
        )
    )
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    old = story.link
    story.lost()

    def tell(link: LinkId) -> None:
        seen = KnownThread(thread_id=ThreadId("T9"), home="/home", cls="discovered", reason="seen", cwd="/work")
        story.do(
            ins.ThreadStarted(
                at_ms=story.tick(), link=link, thread=seen.thread_id, tag=None, ephemeral=False, parent=None, known=seen
            )
        )

    before = story.store.sessions[SessionId("taken")], story.store.threads.get(ThreadId("T9")), len(story.store.events)
    tell(old)
    assert (
        story.store.sessions[SessionId("taken")],
        story.store.threads.get(ThreadId("T9")),
        len(story.store.events),
    ) == before
    story.up("R1", connection=2)
    tell(story.link)  # control
    assert story.store.threads[ThreadId("T9")].cls == "owned"


def test_runtime_05_a_frame_that_could_not_be_written_for_a_dead_process_touches_nothing_of_the_next(
    story: Story,
) -> None:
    story.prompt("p1")
    first = story.last(fx.OpenFresh)
    story.exited()
    story.up("R2")
    before = story.live()
    story.do(ins.CallUnwritten(at_ms=story.tick(), call=first.call, slug="cwd-missing", message="/work is gone"))
    assert story.live() == before
    story.opened(story.last(fx.OpenFresh))  # control
    assert story.stored("p1").delivery == "sent"


def test_runtime_11_late_answers_of_a_process_that_was_frozen_are_adopted_or_let_go(story: Story) -> None:
    story.prompt("p1")
    frozen = story.last(fx.OpenFresh)
    story.unanswered(frozen)
    story.prompt("p2")
    thawed = story.last(fx.OpenFresh)
    story.unanswered(thawed)
    story.opened(thawed, "T2")  # the newest claim's own: adopted
    story.opened(frozen, "T1")
    assert story.session().thread_id == "T2"
    assert story.store.ignored.keys() == {"T1"}
    start = story.last(fx.StartTurn)
    story.unanswered(start)
    story.accepted("t1", start)
    story.turn_started("t1", "T2")
    story.user_item("t1", "p1", "T2")
    story.item("t1", "a", thread="T2")
    story.completed("t1", thread="T2")
    assert story.deliveries() == {"p1": "done", "p2": "sent"}
    assert story.count(fx.StartTurn) == 2


def test_runtime_12_a_restart_asked_for_twice_settles_each_turn_once_and_the_queue_goes_on(story: Story) -> None:
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.user_item("t1", "p1")
    story.prompt("p2")
    for _ in range(2):
        story.ask(lambda t, at: ins.RestartRuntime(ticket=t, at_ms=at))
    assert story.restarts == 2  # the supervisor makes one of them
    story.exited()
    story.exited()
    assert len(story.events("turn/done")) == 1
    story.up("R2")
    story.opened(story.last(fx.OpenKnown))
    assert story.deliveries() == {"p1": "failed", "p2": "sent"}


def test_runtime_01_also_where_the_commit_of_the_exit_fails_once(story: Story) -> None:
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    gone = ins.RuntimeExited(at_ms=story.tick(), runtime=story.link.runtime_id, cause="signal 9")
    story.store.fail_next = 1
    with pytest.raises(Exception, match="no space"):
        story.do(gone)
    assert story.events("turn/done") == []
    assert story.session().status == "running"
    story.do(gone)
    assert len(story.events("turn/done")) == 1
    assert story.session().status == "detached"


def test_wire_09_an_unknown_refusal_is_kept_whole_and_never_a_reason_for_a_fresh_thread(story: Story) -> None:
    story.create("known", thread="T0")
    story.prompt("p", "known")
    sent = story.last(fx.OpenKnown)
    story.do(
        ins.CallRefused(
            at_ms=story.tick(), link=sent.link, call=sent.call, code=-31999, message="new words", refusal="other"
        )
    )
    error = story.session("known").last_error
    assert error is not None
    assert (error.codex_code, error.codex_message) == (-31999, "new words")
    assert story.count(fx.OpenFresh) == 0
    assert story.session("known").thread_id == "T0"


def test_wire_11_refusals_in_bursts_are_sent_again_and_what_was_not_answered_is_not(story: Story) -> None:
    for name in "abc":
        story.create(name)
        story.prompt(f"p{name}", name)
    first, second, third = (sent for sent in story.sent if isinstance(sent.op, fx.OpenFresh))
    story.refuse(first, "overloaded")
    story.refuse(second, "overloaded")
    story.fire("retry", str(first.call))
    story.fire("retry", str(second.call))
    story.unanswered(third)
    written = [sent.call for sent in story.sent]
    assert [written.count(sent.call) for sent in (first, second, third)] == [2, 2, 1]


def test_wire_11_one_that_is_sent_again_goes_behind_those_that_wait_for_a_place() -> None:
    """It would take their place in the window for ever: nothing but its own answer lets a call out of the queue."""
    story = Story(Limits(calls_max=1))
    story.up()
    for name in "abc":
        story.create(name)
        story.prompt(f"p{name}", name)
    first = story.last(fx.OpenFresh)
    story.refuse(first, "overloaded")
    second = story.last(fx.OpenFresh)
    story.fire("retry", str(first.call))
    story.unanswered(second)
    third = story.last(fx.OpenFresh)
    story.unanswered(third)
    assert len({first.call, second.call, third.call}) == 3
    assert [sent.call for sent in story.sent] == [first.call, second.call, third.call, first.call]


def test_wire_15_what_several_batches_decided_leaves_in_the_order_decided() -> None:
    """The window is full: what waits for a place keeps its turn, whoever asked for it."""
    story = Story(Limits(calls_max=1))
    story.up()
    for name in "abc":
        story.create(name)
        story.prompt(f"p{name}", name)
    for number in range(6):
        sent = story.sent[number]
        if isinstance(sent.op, fx.OpenFresh):
            story.opened(sent, f"T{number}")
        else:
            story.accepted(f"t{number}", sent)
    calls = [sent.call for sent in story.sent]
    assert calls == sorted(calls)
    assert len(calls) == 6
