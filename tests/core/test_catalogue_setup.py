"""SETUP, where it is one order more than its room's tests tell: every disturbance at the arrow that it belongs to."""

import itertools

import pytest
from msgspec.structs import replace
from support.story import Story

from state.records import KnownThread, SessionId, ThreadId
from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    story = Story()
    story.up()
    story.create()
    return story


def ran(story: Story) -> list[str]:
    return [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]


def tag(story: Story) -> str:
    op = story.last(fx.OpenFresh).op
    assert isinstance(op, fx.OpenFresh)
    return op.tag


def hint(story: Story, thread: str, tag: str | None) -> ins.ThreadStarted:
    known = KnownThread(thread_id=ThreadId(thread), home="", cls="discovered", reason="told", tag=tag or "")
    return ins.ThreadStarted(
        at_ms=story.tick(),
        link=story.link,
        thread=ThreadId(thread),
        tag=tag,
        ephemeral=False,
        parent=None,
        known=known,
    )


def test_setup_01_an_intent_alone_is_promised() -> None:
    """Nothing else in this batch is promised: the sync is for the intent, without which a crash loses the thread."""
    story = Story()
    story.create()
    story.prompt("p")
    story.up()
    changes, synced = story.store.commits[-1]
    assert len(changes.intents) == 1
    assert synced


def test_setup_04_a_thread_that_only_a_hint_told_of_is_let_go_when_the_next_setup_is_claimed(story: Story) -> None:
    """The answer never comes, and the hint came first: the thread is empty, and must not stay somebody's riddle."""
    story.prompt("p1")
    start = story.last(fx.OpenFresh)
    story.do(hint(story, "T1", tag(story)))
    story.unanswered(start)
    story.prompt("p2")
    assert story.store.ignored.keys() == {"T1"}
    story.opened(story.last(fx.OpenFresh), "T2")
    assert story.session().thread_id == "T2"
    assert ran(story) == ["p1"]


def test_setup_04_also_where_the_hint_comes_after_the_claim(story: Story) -> None:
    story.prompt("p1")
    first = tag(story)
    story.unanswered(story.last(fx.OpenFresh))
    story.prompt("p2")
    story.do(hint(story, "T1", first))
    assert story.store.ignored.keys() == {"T1"}
    story.do(hint(story, "T2", tag(story)))  # control: the live setup's own hint lets nothing go
    assert story.store.ignored.keys() == {"T1"}
    story.opened(story.last(fx.OpenFresh), "T2")
    assert story.session().thread_id == "T2"


def test_setup_07_a_write_that_fails_with_its_link_frees_the_slot_and_keeps_the_prompt(story: Story) -> None:
    story.prompt("p1")
    first = story.last(fx.OpenFresh).op
    assert isinstance(first, fx.OpenFresh)
    story.lost()
    assert story.state.setups_open.value == 0
    assert story.stored("p1").delivery == "queued"
    assert story.store.intents[first.tag].state == "ignored"
    story.up(connection=2)
    second = story.last(fx.OpenFresh).op
    assert isinstance(second, fx.OpenFresh)
    assert second.attachment.generation > first.attachment.generation
    story.opened(story.last(fx.OpenFresh))
    assert ran(story) == ["p1"]


def test_setup_12_a_late_reply_never_takes_a_newer_setups_slot(story: Story) -> None:
    """Under the same attachment the older of two setups is still not the one that is open."""
    story.prompt("p1")
    old = story.last(fx.OpenFresh)
    story.unanswered(old)
    story.prompt("p2")
    new = story.last(fx.OpenFresh)
    # The older call under the stamp of the newer: only the call tells the two apart.
    story.state.calls.put(old.call, replace(story.state.calls[old.call], attachment=story.attachment()))
    story.opened(old, "T1")
    assert story.session().thread_id is None
    assert story.live().setup is not None
    story.opened(new, "T2")
    assert story.session().thread_id == "T2"


def test_setup_12_the_refusal_of_a_setup_that_timed_out_frees_no_newer_slot(story: Story) -> None:
    story.prompt("p1")
    old = story.last(fx.OpenFresh)
    story.unanswered(old)
    story.prompt("p2")
    story.state.calls.put(old.call, replace(story.state.calls[old.call], attachment=story.attachment()))
    story.refuse(old, "other")
    assert story.live().setup is not None
    assert set(story.deliveries().values()) == {"queued"}


def test_setup_13_control_a_reply_without_an_id_for_a_slot_that_is_not_ours_changes_nothing(story: Story) -> None:
    story.prompt("p1")
    old = story.last(fx.OpenFresh)
    story.stop()
    story.prompt("p2")
    before = story.live()
    story.do(ins.ReplyMalformed(at_ms=story.tick(), link=old.link, call=old.call, reason="no thread"))
    assert story.live() == before
    story.opened(story.last(fx.OpenFresh))
    assert ran(story) == ["p1"]


@pytest.mark.parametrize("order", list(itertools.permutations(["reply", "prompt", "end"])))
@pytest.mark.parametrize("end", [ins.StopSession, ins.KillSession])
def test_setup_16_in_one_batch_the_order_decides_as_if_each_came_alone(
    order: tuple[str, ...], end: type[ins.StopSession] | type[ins.KillSession]
) -> None:
    """One batch and three batches of the same inputs leave the same frames, prompts and threads."""
    told = [_batch(order, end, together=together) for together in (True, False)]
    assert told[0] == told[1]


def _batch(order: tuple[str, ...], end: type[ins.StopSession] | type[ins.KillSession], *, together: bool) -> object:
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    session = story.session().id
    known: dict[str, ins.Input] = {
        "reply": story.opened_input(story.last(fx.OpenFresh)),
        "prompt": ins.SubmitPrompt(ticket=ins.Ticket(90), at_ms=1, session=session, prompt=story.new_prompt("p2")),
        "end": end(ticket=ins.Ticket(91), at_ms=1, session=session),
    }
    inputs = [known[name] for name in order]
    for batch in [inputs] if together else [[one] for one in inputs]:
        story.do(*batch)
    starts = [sent for sent in story.sent if isinstance(sent.op, fx.StartTurn)]
    assert len(starts) <= 1
    frames = [type(sent.op).__name__ for sent in story.sent]
    return frames, story.deliveries(), story.session().status, set(story.store.ignored), story.session().thread_id


def test_setup_18_a_prompt_that_was_delayed_parks_behind_the_setup_that_came_before_it(story: Story) -> None:
    session = story.session().id
    delayed = ins.SubmitPrompt(ticket=ins.Ticket(90), at_ms=1, session=session, prompt=story.new_prompt("late"))
    story.prompt("p1")
    story.stop()
    story.prompt("p2")
    before = (story.live().setup, story.attachment())
    story.do(delayed)
    assert (story.live().setup, story.attachment()) == before
    story.opened(story.last(fx.OpenFresh))
    for number, prompt in enumerate(("p1", "p2", "late")):
        story.run_turn(f"t{number}", prompt)
    assert ran(story) == ["p1", "p2", "late"]


def test_setup_18_a_stop_that_was_delayed_ends_what_is_there_when_it_is_taken(story: Story) -> None:
    """It names the session and not an attachment: its sender meant what runs, and is told when that is over."""
    story.prompt("p1")
    story.opened()
    ticket = story.stop()
    story.refuse(story.last(fx.StartTurn), "other")
    story.done(story.last(fx.EndTools))
    assert isinstance(story.answers[ticket], fx.SessionAnswer)


def test_setup_23_a_thread_that_was_started_here_and_is_loaded_takes_its_turn_at_once(story: Story) -> None:
    story.prompt("p1")
    story.interrupt()
    story.opened()
    assert story.session().status == "ready"
    story.prompt("p2")
    assert story.count(fx.OpenKnown) == 0
    assert ran(story) == ["p2"]


def test_i3_what_is_bound_is_on_the_disk_also_where_no_turn_follows(story: Story) -> None:
    """Lost in a power cut, the thread would be nobody's, and the session would mint a second one."""
    story.prompt("p1")
    story.interrupt()
    story.opened()
    changes, synced = story.store.commits[-1]
    assert [session.thread_id for session in changes.sessions] == ["T"]
    assert synced


def test_setup_25_a_key_is_compared_before_anything_is_done(story: Story) -> None:
    key = ins.Idempotency(key="k", fingerprint="f")
    settings = ins.SessionSettings(cwd="/work")
    tickets = [
        story.ask(
            lambda t, at: ins.CreateSession(
                ticket=t, at_ms=at, session=SessionId("twice"), settings=settings, idempotency=key
            )
        )
        for _ in range(2)
    ]
    assert story.answers[tickets[0]] == story.answers[tickets[1]]
