"""Sub-agents belong to their parent: heard and asked there, and moving nothing of its turn."""

import pytest
from msgspec.structs import replace
from support.story import Story, running_story

from state.records import ItemId, SessionId, ThreadId, Tokens, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.limits import Limits

CHILD = "C"


@pytest.fixture
def story() -> Story:
    """A session whose turn t1 runs."""
    return running_story()


def spawn(story: Story, *children: str) -> None:
    """The parent's tool call completes and names what it spawned."""
    story.do(
        ins.ItemCompleted(
            at_ms=story.tick(),
            link=story.link,
            thread=ThreadId("T"),
            turn=TurnId("t1"),
            item=ItemId("call"),
            type="collabAgentToolCall",
            item_json='{"id":"call"}',
            children=tuple(ThreadId(child) for child in children),
        )
    )


def whole_turn_of_the_child(story: Story) -> None:
    story.turn_started("c1", CHILD)
    story.item_started("c1", "i", thread=CHILD)
    story.delta("c1", "i", "from the child", thread=CHILD)
    story.item_completed("c1", "i", thread=CHILD)
    sample = Tokens(input=5, output=1, total=6)
    story.do(
        ins.TurnUsage(
            at_ms=story.tick(), link=story.link, thread=ThreadId(CHILD), turn=TurnId("c1"), last=sample, total=sample
        )
    )
    failure = ins.TurnFailure(message="the child failed")
    story.completed("c1", "failed", thread=CHILD, failure=failure)


@pytest.mark.parametrize("named", ["before", "after"])
def test_event_11_12_a_childs_turn_is_heard_at_its_parent_and_moves_nothing_there(story: Story, named: str) -> None:
    if named == "before":
        spawn(story, CHILD)
    whole_turn_of_the_child(story)
    if named == "after":
        assert story.events("item/delta") == []  # nobody's yet, and given to nobody
        spawn(story, CHILD)
    assert [event["delta"] for event in story.events("item/delta")] == ["from the child"]
    assert all(event["threadId"] == CHILD for event in story.events("item/delta", "usage"))
    assert story.session().active_turn_id == "t1"
    assert story.session().last_error is None
    assert story.live().turn is not None
    story.interrupt()
    op = story.last(fx.Interrupt).op
    assert isinstance(op, fx.Interrupt)
    assert op.turn == "t1"
    story.completed("t1", "interrupted")
    (done,) = story.events("turn/done")
    assert (done["turnId"], done["usage"]["totalTokens"]) == ("t1", 0)


def test_event_11_what_a_child_says_stands_under_its_own_turn_and_item(story: Story) -> None:
    spawn(story, CHILD)
    whole_turn_of_the_child(story)
    told = [event for event in story.events("item/started", "item/delta", "item/completed") if event["turnId"] == "c1"]
    assert [(event["kind"], event["threadId"], event["itemId"]) for event in told] == [
        ("item/started", CHILD, "i"),
        ("item/delta", CHILD, "i"),
        ("item/completed", CHILD, "i"),
    ]
    assert [event["item"]["id"] for event in (told[0], told[2])] == ["i", "i"]
    assert told[1]["channel"] == "text"
    (usage,) = story.events("usage")
    assert (usage["turnId"], usage["threadId"]) == ("c1", CHILD)


def test_req_12_a_childs_request_is_a_card_at_the_parent_and_its_answer_has_its_id(story: Story) -> None:
    spawn(story, CHILD)
    story.request("7", turn="c1", thread=CHILD)
    (card,) = story.store.requests.values()
    assert (card.session_id, card.thread_id) == ("s", CHILD)
    assert story.session().waiting_on == "approval"
    session = SessionId("s")
    story.ask(
        lambda t, at: ins.AnswerRequest(ticket=t, at_ms=at, session=session, request=card.id, decision_json='"accept"')
    )
    (answer,) = story.answered_requests
    assert answer.rpc_id_json == "7"
    story.do(ins.RequestResolved(at_ms=story.tick(), link=story.link, thread=ThreadId(CHILD), rpc_id_json="7"))
    assert [event["by"] for event in story.events("request/resolved")] == ["us"]


def test_a_thread_that_a_session_owns_is_nobodys_child(story: Story) -> None:
    story.create("x", thread="TX")
    story.load("x")
    spawn(story, "TX", "T")
    assert ThreadId("TX") not in story.state.children
    assert ThreadId("T") not in story.state.children


def test_after_the_parent_went_its_children_touch_nothing(story: Story) -> None:
    spawn(story, CHILD)
    story.kill()
    before = len(story.events())
    whole_turn_of_the_child(story)
    story.request("8", turn="c1", thread=CHILD)
    assert story.store.requests == {}
    assert [event["kind"] for event in story.events()[before:]] == ["codex/raw"]
    (declined,) = story.answered_requests
    assert declined.rpc_id_json == "8"


def test_what_nobody_claims_is_bounded() -> None:

    story = Story(Limits(early_threads_max=3, early_notices_max=2))
    story.up()
    for number in range(10):
        for _ in range(5):
            story.turn_started("x", f"N{number}")
    assert len(story.state.early) == 3
    assert all(len(kept) == 2 for kept in story.state.early.values())


def test_a_child_of_a_child_is_the_same_parents(story: Story) -> None:
    spawn(story, CHILD)
    story.do(
        replace(
            ins.ItemCompleted(
                at_ms=story.tick(),
                link=story.link,
                thread=ThreadId(CHILD),
                turn=TurnId("c1"),
                item=ItemId("call2"),
                type="collabAgentToolCall",
                item_json='{"id":"call2"}',
            ),
            children=(ThreadId("CC"),),
        )
    )
    story.delta("cc1", "i", "from the grandchild", thread="CC")
    assert [event["delta"] for event in story.events("item/delta")] == ["from the grandchild"]
