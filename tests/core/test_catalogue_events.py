"""EVENT: routing, lateness, the log, where it is one order more than its room's tests tell."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.story import Story, running_story

from state.errors import StoreFull
from state.records import ItemId, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.model import Route


@pytest.fixture
def story() -> Story:
    """A session bound to T whose turn t1 runs."""
    return running_story()


def begun(names: list[str]) -> Story:
    """Sessions of these names, each bound to a thread of its own with a turn of its own."""
    story = Story()
    story.up()
    for name in names:
        story.create(name)
        story.prompt(f"p-{name}", name)
        story.opened(story.last(fx.OpenFresh), f"T-{name}")
        story.accepted(f"t-{name}")
        story.turn_started(f"t-{name}", f"T-{name}")
    return story


def told(story: Story, name: str) -> list[dict[str, Any]]:
    """What a session's reader sees, without what counts all sessions."""
    hidden = ("seq", "at")
    return [
        {field: value for field, value in event.items() if field not in hidden}
        for event in story.events()
        if event["sessionId"] == name
    ]


def say(story: Story, name: str, number: int) -> None:
    """The next thing that a session's turn says: two items with a delta between, then its end."""
    turn, thread = f"t-{name}", f"T-{name}"
    match number:
        case 0:
            story.user_item(turn, f"p-{name}", thread)
        case 1:
            story.item_started(turn, f"a-{name}", thread=thread)
        case 2:
            story.delta(turn, f"a-{name}", f"text of {name}", thread)
        case 3:
            story.item_completed(turn, f"a-{name}", thread=thread)
        case _:
            story.completed(turn, thread=thread)


@given(st.permutations(["a"] * 5 + ["b"] * 5 + ["c"] * 5))
def test_event_01_each_transcript_is_the_one_that_the_session_has_to_itself(order: list[str]) -> None:
    names = ["a", "b", "c"]
    mixed = begun(names)
    said = dict.fromkeys(names, 0)
    for name in order:
        say(mixed, name, said[name])
        said[name] += 1
    for name in names:
        alone = begun(names)
        for number in range(5):
            say(alone, name, number)
        assert told(mixed, name) == told(alone, name)


def test_event_02_nothing_is_routed_by_its_turn(story: Story) -> None:
    """A whole turn with the id of ours on a thread that nobody knows, up to its error and its end."""
    before = story.live()
    events = len(story.events())
    story.turn_started("t1", "stranger")
    story.item("t1", "x", thread="stranger")
    story.delta("t1", "x", "text", "stranger")
    failure = ins.TurnFailure(message="broken")
    thread, turn = ThreadId("stranger"), TurnId("t1")
    story.do(
        ins.TurnErrored(
            at_ms=story.tick(), link=story.link, thread=thread, turn=turn, failure=failure, will_retry=False
        )
    )
    story.completed("t1", "failed", "stranger", failure)
    assert story.live() == before
    assert len(story.events()) == events
    story.item("t1", "a")  # control
    story.completed("t1")
    assert story.deliveries() == {"p1": "done"}


def test_event_02_what_has_no_thread_is_kept_raw_and_touches_nobody(story: Story) -> None:
    before = story.live()
    story.do(ins.RawNotice(at_ms=story.tick(), link=story.link, method="x/y", params_json="{}", turn=TurnId("t1")))
    (raw,) = story.events("codex/raw")
    assert raw["sessionId"] is None
    assert story.live() == before


def test_event_02_a_route_of_an_older_attachment_leads_nowhere(story: Story) -> None:
    old = story.attachment()
    story.completed("t1", "interrupted")
    story.stop()
    story.done(story.last(fx.EndTools))
    story.prompt("p2")
    story.opened(story.last(fx.OpenKnown))
    assert story.attachment() != old
    story.state.routes.put(ThreadId("T"), Route(session=story.session().id, attachment=old))
    story.state.keep()
    before = story.live()
    story.turn_started("t2")
    assert story.live() == before


def test_event_04_the_end_of_an_unknown_turn_does_not_end_the_running_one(story: Story) -> None:
    story.prompt("p2")
    before = story.live()
    story.completed("t0")
    assert story.live() == before
    assert story.events("turn/done") == []
    assert story.stored("p2").delivery == "queued"
    story.item("t1", "a")  # control
    story.completed("t1")
    assert [event["turnId"] for event in story.events("turn/done")] == ["t1"]


def test_event_05_a_turn_that_ended_is_not_begun_again_on_an_idle_session(story: Story) -> None:
    story.item("t1", "a")
    story.completed("t1")
    before = story.live()
    story.turn_started("t1")
    assert story.live() == before
    assert len(story.events("turn/started")) == 1
    story.turn_started("t2")  # control: a turn that has not ended is one
    assert story.session().active_turn_id == "t2"


def test_event_05_nor_after_a_new_attach(story: Story) -> None:
    story.item("t1", "a")
    story.completed("t1")
    story.lost()
    story.up(connection=2)
    story.opened(story.last(fx.OpenKnown))
    story.turn_started("t1")
    assert story.session().active_turn_id is None
    assert len(story.events("turn/started")) == 1


def test_event_06_an_item_of_the_last_turn_is_nothing_of_the_next(story: Story) -> None:
    story.item("t1", "a")
    story.item_started("t1", "cmd", "commandExecution")
    story.prompt("p2")
    story.completed("t1", "interrupted")
    story.accepted("t2")
    story.turn_started("t2")
    before = story.live().turn
    story.item_completed("t1", "cmd", "commandExecution")
    late = story.events("item/completed")[-1]
    assert (late["turnId"], late["late"]) == ("t1", True)
    assert story.live().turn == before


@pytest.mark.parametrize("status", ["idle", "systemError", "active", "notLoaded"])
def test_event_10_a_status_of_a_session_that_is_detached_does_not_call_it_running(story: Story, status: Any) -> None:
    story.completed("t1", "interrupted")
    story.stop()
    story.done(story.last(fx.EndTools))
    before = story.session()
    thread = ThreadId("T")
    story.do(ins.ThreadStatusChanged(at_ms=story.tick(), link=story.link, thread=thread, status=status))
    assert story.session() == before


def test_event_15_a_thread_that_was_deleted_elsewhere_stays_its_sessions_claim(story: Story) -> None:
    story.item("t1", "a")
    story.completed("t1")
    story.do(ins.ThreadGone(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), how="deleted"))
    story.prompt("p2")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert story.session().resume_lost
    assert story.session().thread_id == "T"
    assert story.store.ignored == {}
    assert story.count(fx.OpenFresh) == 1
    assert story.stored("p2").delivery == "queued"


def test_event_19_text_whose_commit_failed_is_published_once_and_no_number_is_skipped(story: Story) -> None:
    story.item_started("t1", "a")
    before = len(story.events())
    delta = ins.ItemDelta(
        at_ms=story.tick(),
        link=story.link,
        thread=ThreadId("T"),
        turn=TurnId("t1"),
        item=ItemId("a"),
        channel="text",
        delta="once",
    )
    story.store.fail_next = 1
    with pytest.raises(StoreFull):
        story.do(delta)
    assert len(story.events()) == before
    story.do(delta)
    assert [event["delta"] for event in story.events("item/delta")] == ["once"]
    assert [event["seq"] for event in story.events()] == list(range(1, before + 2))
