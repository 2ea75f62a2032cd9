"""REQ, where it is one order more than its room's tests tell."""

import pytest
from msgspec.structs import replace
from support.story import Story, running_story

from state.records import ItemId, RequestId, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    """A session bound to T whose turn t1 runs."""
    return running_story()


def answer(story: Story, request: RequestId, decision: str = '"accept"') -> ins.Ticket:
    session = story.session().id
    return story.ask(
        lambda t, at: ins.AnswerRequest(ticket=t, at_ms=at, session=session, request=request, decision_json=decision)
    )


def frames(story: Story) -> list[tuple[str, str]]:
    return [(sent.rpc_id_json, sent.answer_json) for sent in story.answered_requests if isinstance(sent, fx.SendAnswer)]


def test_req_01_one_and_the_text_one_are_open_together_and_answered_each_with_its_own_id(story: Story) -> None:
    story.request("1")
    story.request('"1"')
    first, second = story.store.requests
    answer(story, second, '"decline"')
    answer(story, first, '"accept"')
    assert frames(story) == [('"1"', '"decline"'), ("1", '"accept"')]


@pytest.mark.parametrize("equal", [True, False])
def test_req_05_two_answers_in_one_batch_make_one_frame(story: Story, *, equal: bool) -> None:
    story.request("0")
    (request,) = story.store.requests
    session = story.session().id
    decisions = ('"accept"', '"accept"' if equal else '"decline"')
    story.do(
        *(
            ins.AnswerRequest(
                ticket=ins.Ticket(90 + number),
                at_ms=story.tick(),
                session=session,
                request=request,
                decision_json=decision,
            )
            for number, decision in enumerate(decisions)
        )
    )
    assert frames(story) == [("0", '"accept"')]
    assert isinstance(story.answers[ins.Ticket(90)], fx.RequestAnswer)
    assert story.refusal(ins.Ticket(91)) == "request-closed"


def test_req_07_a_card_is_answered_only_under_the_attachment_that_shows_it(story: Story) -> None:
    """After a lost link it is Codex's to ask again; until then the decision would go nowhere, or to a newer card."""
    story.request("0")
    (request,) = story.store.requests
    story.lost()
    story.up(connection=2)
    story.opened(story.last(fx.OpenKnown), status="active")
    assert story.refusal(answer(story, request)) == "request-closed"
    assert frames(story) == []
    story.request("0")  # asked again: the same card, stamped anew
    assert isinstance(story.answers[answer(story, request)], fx.RequestAnswer)
    assert frames(story) == [("0", '"accept"')]


def test_req_09_resolved_while_our_answer_is_on_its_way_is_one_frame_and_one_end(story: Story) -> None:
    story.request("0")
    (request,) = story.store.requests
    answer(story, request)
    story.do(
        ins.RequestResolved(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), rpc_id_json="0"),
        ins.RequestResolved(at_ms=story.tick(), link=story.link, thread=ThreadId("T"), rpc_id_json="0"),
    )
    assert len(frames(story)) == 1
    assert story.store.requests[request].status == "resolved"
    assert len(story.events("request/resolved")) == 1


def test_req_11_a_killed_sessions_thread_is_declined_once_and_makes_no_card(story: Story) -> None:
    story.kill()
    cards = dict(story.store.requests)
    story.request("7")
    assert story.store.requests == cards
    (sent,) = [one for one in story.answered_requests if one.rpc_id_json == "7"]
    assert isinstance(sent, fx.SendAnswer)
    assert "decline" in sent.answer_json
    assert [event["method"] for event in story.events("codex/raw")] == ["item/commandExecution/requestApproval"]


def test_req_11_a_killed_parents_child_is_declined_too(story: Story) -> None:
    story.do(
        ins.ItemStarted(
            at_ms=story.tick(),
            link=story.link,
            thread=ThreadId("T"),
            turn=TurnId("t1"),
            item=ItemId("spawn"),
            type="collabAgentToolCall",
            item_json='{"id":"spawn","type":"collabAgentToolCall"}',
            children=(ThreadId("C"),),
        )
    )
    story.kill()
    story.request("8", thread="C")
    (sent,) = [one for one in story.answered_requests if one.rpc_id_json == "8"]
    assert isinstance(sent, fx.SendAnswer)
    assert "decline" in sent.answer_json


def test_i6_what_is_accepted_was_recorded_first(story: Story) -> None:
    """The frame follows the commit, and the commit is synced: a crash between them sends the same decision again."""
    story.request("0")
    (request,) = story.store.requests
    answer(story, request)
    changes, synced = story.store.commits[-1]
    assert synced
    assert [(one.id, one.status) for one in changes.requests] == [(request, "answered")]
    assert replace(changes.requests[0], status="open").answer_json == '"accept"'


def test_boot_04_a_decision_that_was_recorded_goes_out_when_codex_asks_again(story: Story) -> None:
    story.request("0")
    (request,) = story.store.requests
    answer(story, request)
    story.lost()
    story.up(connection=2)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.request("0")
    assert frames(story) == [("0", '"accept"')] * 2
    assert len(story.store.requests) == 1
    assert len(story.events("request/opened")) == 1
