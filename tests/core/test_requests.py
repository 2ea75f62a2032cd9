"""Codex asks, and is answered once."""

import shlex
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from support.story import Story, running_story

from state.records import RequestId, RequestKind, RequestPolicy, SessionId, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    """A session whose turn t1 runs."""
    return running_story()


def cards(story: Story) -> list[RequestId]:
    return list(story.store.requests)


def decide(story: Story, request: RequestId, decision: str = '"accept"', session: str = "s") -> ins.Ticket:
    name = SessionId(session)
    return story.ask(
        lambda t, at: ins.AnswerRequest(ticket=t, at_ms=at, session=name, request=request, decision_json=decision)
    )


def resolved(story: Story, rpc_id: str) -> None:
    thread = story.session().thread_id
    assert thread is not None
    story.do(ins.RequestResolved(at_ms=story.tick(), link=story.link, thread=thread, rpc_id_json=rpc_id))


def test_req_01_ids_of_each_kind_are_told_apart_and_answered_as_they_came(story: Story) -> None:
    for rpc_id in ("0", "1", '"1"', '""'):
        story.request(rpc_id)
    assert len(cards(story)) == 4
    for card in cards(story):
        decide(story, card)
    sent = [answer.rpc_id_json for answer in story.answered_requests]
    assert sent == ["0", "1", '"1"', '""']


def arrives(story: Story, rpc_id: str, thread: str | None) -> None:
    story.do(
        ins.RequestArrived(
            at_ms=story.tick(),
            link=story.link,
            rpc_id_json=rpc_id,
            method="item/commandExecution/requestApproval",
            kind="command",
            thread=None if thread is None else ThreadId(thread),
            turn=TurnId("t1"),  # the live turn's id does not make it ours
            item=None,
            params_json="{}",
            decisions=('"accept"', '"decline"'),
            decline_json='{"decision":"decline"}',
        )
    )


def test_req_02_a_request_without_a_thread_is_answered_at_once(story: Story) -> None:
    before = story.live()
    arrives(story, "9", None)
    assert cards(story) == []
    assert story.live() == before
    (answer,) = story.answered_requests
    assert isinstance(answer, fx.SendRefusal)
    story.request("10")  # control
    assert len(cards(story)) == 1


def test_req_03_a_request_of_a_thread_that_nobody_here_holds_is_left_to_whoever_it_belongs_to(story: Story) -> None:
    """Sub-agents ask every connection: an answer of ours would take another front-end's decision from it."""
    before = story.live()
    arrives(story, "9", "unknown")
    assert cards(story) == []
    assert story.answered_requests == []
    assert story.live() == before
    other = ThreadId("unknown")
    story.do(ins.RequestResolved(at_ms=story.tick(), link=story.link, thread=other, rpc_id_json="9"))
    assert len(story.state.unclaimed) == 0
    story.request("10")  # control
    assert len(cards(story)) == 1


def test_event_12_a_childs_request_is_asked_once_its_parent_is_known(story: Story) -> None:
    arrives(story, "9", "C")
    assert cards(story) == []
    call = story.item_input("t1", "call", "collabAgentToolCall")
    story.do(replace(call, children=(ThreadId("C"),)))
    (card,) = cards(story)
    assert story.store.requests[card].thread_id == "C"
    decide(story, card)
    assert [answer.rpc_id_json for answer in story.answered_requests] == ["9"]


def test_req_04_the_session_waits_until_all_are_answered(story: Story) -> None:
    story.request("1")
    story.request("2")
    first, second = cards(story)
    decide(story, first)
    assert story.session().waiting_on == "approval"
    decide(story, second)
    assert story.session().waiting_on is None
    assert story.session().status == "running"


def test_req_05_the_first_committed_answer_wins_and_one_frame_goes_out(story: Story) -> None:
    story.request("1")
    (card,) = cards(story)
    session = SessionId("s")
    one, two = story.ticket(), story.ticket()
    story.do(
        ins.AnswerRequest(ticket=one, at_ms=1, session=session, request=card, decision_json='"accept"'),
        ins.AnswerRequest(ticket=two, at_ms=1, session=session, request=card, decision_json='"decline"'),
    )
    assert isinstance(story.answers[one], fx.RequestAnswer)
    assert story.refusal(two) == "request-closed"
    assert len(story.answered_requests) == 1
    changes, synced = story.store.commits[-1]
    assert synced
    assert changes.requests[0].answer_json == '"accept"'


@pytest.mark.parametrize("decision", ['"maybe"', '{"accept":1}', "null", "[]"])
def test_req_06_what_was_not_offered_is_refused_and_leaves_it_open(story: Story, decision: str) -> None:
    story.request("1")
    (card,) = cards(story)
    assert story.refusal(decide(story, card, decision)) == "decision-not-offered"
    assert story.store.requests[card].status == "open"
    decide(story, card)  # control
    assert len(story.answered_requests) == 1


def test_req_06_an_answer_in_another_form_is_refused(story: Story) -> None:
    story.request("1")
    (card,) = cards(story)
    session = SessionId("s")
    ticket = story.ask(
        lambda t, at: ins.AnswerRequest(ticket=t, at_ms=at, session=session, request=card, answers_json="{}")
    )
    assert story.refusal(ticket) == "decision-not-offered"


@pytest.mark.parametrize("end", ["stop", "exited"])
def test_req_07_after_stop_or_exit_an_answer_comes_too_late(story: Story, end: str) -> None:
    story.request("1")
    (card,) = cards(story)
    if end == "stop":
        story.stop()
        story.completed("t1", "interrupted")
    else:
        story.exited()
    assert story.store.requests[card].status == "expired"
    assert story.refusal(decide(story, card)) == "request-closed"
    assert story.answered_requests == []


def test_req_08_closed_once_at_the_turns_end_and_a_late_resolution_changes_nothing(story: Story) -> None:
    story.request("1")
    story.item("t1", "a")
    story.completed("t1", "interrupted")
    before = len(story.events())
    resolved(story, "1")
    assert len(story.events()) == before
    assert len(story.events("request/expired")) == 1
    assert story.events("request/resolved") == []


def test_req_09_resolved_elsewhere_closes_the_card_without_an_answer_of_ours(story: Story) -> None:
    story.request("1")
    (card,) = cards(story)
    resolved(story, "1")
    assert story.store.requests[card].status == "resolved"
    assert [event["by"] for event in story.events("request/resolved")] == ["elsewhere"]
    assert story.refusal(decide(story, card)) == "request-closed"
    assert story.answered_requests == []


def test_req_09_resolved_by_our_answer(story: Story) -> None:
    story.request("1")
    decide(story, cards(story)[0])
    resolved(story, "1")
    assert [event["by"] for event in story.events("request/resolved")] == ["us"]


def test_req_10_the_same_id_of_the_next_process_is_another_request(story: Story) -> None:
    story.request("7")
    (old,) = cards(story)
    story.exited()
    story.up("R2")
    story.prompt("p2")
    story.opened(story.last(fx.OpenKnown))
    story.accepted("t2")
    story.turn_started("t2")
    story.request("7", turn="t2")
    assert story.refusal(decide(story, old)) == "request-closed"
    (new,) = [card for card in cards(story) if card != old]
    assert story.store.requests[new].status == "open"
    decide(story, new)
    assert len(story.answered_requests) == 1


def test_req_13_a_request_waits_for_hours_and_is_declined_at_its_deadline_and_never_accepted(story: Story) -> None:
    story.request("1")
    (card,) = cards(story)
    opened = story.now
    assert story.armed["request", card].after_ms == story.limits.request_ms
    assert story.store.requests[card].status == "open"
    story.fire("request", card)
    assert story.now - opened >= 23 * 3_600_000
    (answer,) = story.answered_requests
    assert isinstance(answer, fx.SendAnswer)
    assert (answer.form, answer.answer_json) == ("decision", '"decline"')
    record = story.store.requests[card]
    assert (record.status, record.answer_json, record.decided_by) == ("answered", '"decline"', "deadline")
    assert story.session().waiting_on is None
    (event,) = story.events("request/answered")
    assert event["by"] == "deadline"
    assert story.refusal(decide(story, card)) == "request-closed"


@pytest.mark.parametrize("over", ["answered", "resolved", "turn"])
def test_a_request_that_is_over_has_no_deadline_any_more(story: Story, over: str) -> None:
    story.request("1")
    (card,) = cards(story)
    timer = story.timers["request", card]
    if over == "answered":
        decide(story, card)
    elif over == "resolved":
        resolved(story, "1")
    else:
        story.completed("t1")
    assert ("request", card) not in story.timers
    before, sent = story.store.requests[card], len(story.answered_requests)
    story.do(timer)  # it had fired already
    assert (story.store.requests[card], len(story.answered_requests)) == (before, sent)


def test_a_request_that_is_asked_again_keeps_the_deadline_that_it_had(story: Story) -> None:
    story.request("1")
    (card,) = cards(story)
    story.reboot("R1")
    assert ("request", card) not in story.timers
    story.now += 3_600_000
    story.up(connection=2, adopted=True)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.request("1")
    assert cards(story) == [card]
    left = story.armed["request", card].after_ms
    assert story.limits.request_ms - 3_700_000 < left <= story.limits.request_ms - 3_600_000


# --- policy ---


def arrives_of_kind(story: Story, kind: RequestKind, params_json: str = "{}") -> None:
    plain = ('"accept"', '"decline"') if kind in ("command", "fileChange") else ()
    story.do(
        ins.RequestArrived(
            at_ms=story.tick(),
            link=story.link,
            rpc_id_json="7",
            method=f"some/{kind}",
            kind=kind,
            thread=ThreadId("T"),
            turn=TurnId("t1"),
            item=None,
            params_json=params_json,
            decisions=plain,
            decline_json="{}",
        )
    )


def choose(story: Story, **policy: Any) -> None:
    changes: dict[str, Any] = {"request_policy": RequestPolicy(**policy)}
    story.ask(lambda t, at: ins.PatchSession(ticket=t, at_ms=at, session=SessionId("s"), changes=changes))


ASKED = '{"permissions":{"network":{"enabled":true}},"reason":"r"}'
GRANTED = '{"permissions":{"network":{"enabled":true}},"scope":"turn"}'


@pytest.mark.parametrize(
    ("script", "words", "allowed"),
    [
        ("git status", ["git", "status"], True),
        ("git status -s 'a b'", ["git", "status", "-s", "a b"], True),
        ("git status; rm x", ["git", "status"], False),
        ("git status && rm x", ["git", "status"], False),
        ("git status | tee x", ["git", "status"], False),
        ("git status\nrm x", ["git", "status"], False),
        ("git status > x", ["/bin/bash", "-c", "git status > x"], False),
        ("git stash", ["git", "stash"], False),
        ("git", ["git"], False),
        ("git status", None, False),
        ("git 'status", ["git", "status"], False),
    ],
)
@pytest.mark.parametrize("others", ["ask", "decline"])
def test_a_rule_accepts_one_plain_command_and_nothing_besides(
    story: Story, script: str, words: list[str] | None, *, allowed: bool, others: str
) -> None:
    """What Codex proposes are the words of the first command of several (measured)."""
    choose(story, command=others, allow_commands=(("git", "status"), ("ls",)))
    shown = f"/bin/bash -c {shlex.quote(script)}"
    params = {"command": shown, "proposedExecpolicyAmendment": words}
    arrives_of_kind(story, "command", msgspec.json.encode(params).decode())
    (card,) = cards(story)
    record = story.store.requests[card]
    expected = ("policy", '"accept"') if allowed else (None, None) if others == "ask" else ("policy", '"decline"')
    assert (record.decided_by, record.answer_json) == expected


@pytest.mark.parametrize("command", ["git status -s", "git status", "git status -s -b x"])
def test_a_rule_knows_a_command_that_no_shell_runs(story: Story, command: str) -> None:
    choose(story, allow_commands=(("git", "status"),))
    params = {"command": command, "proposedExecpolicyAmendment": command.split()}
    arrives_of_kind(story, "command", msgspec.json.encode(params).decode())
    (card,) = cards(story)
    assert story.store.requests[card].answer_json == '"accept"'


@pytest.mark.parametrize(
    ("kind", "choice", "form", "answer"),
    [
        ("command", "accept", "decision", '"accept"'),
        ("command", "decline", "decision", '"decline"'),
        ("fileChange", "accept", "decision", '"accept"'),
        ("fileChange", "decline", "decision", '"decline"'),
        ("permissions", "accept", "result", GRANTED),
        ("permissions", "decline", "result", '{"permissions":{}}'),
        ("userInput", "decline", "answers", "{}"),
        ("elicitation", "decline", "result", '{"action":"decline"}'),
    ],
)
def test_a_policy_decides_at_once_and_what_it_decided_is_on_record(
    story: Story, kind: RequestKind, choice: str, form: str, answer: str
) -> None:
    field = {"fileChange": "file_change", "userInput": "user_input"}.get(kind, kind)
    choose(story, **{field: choice})
    arrives_of_kind(story, kind, ASKED)
    (card,) = cards(story)
    record = story.store.requests[card]
    assert (record.status, record.decided_by, record.answer_json) == ("answered", "policy", answer)
    assert story.store.commits[-1][1], "it is on the disk before it is sent"
    (sent,) = story.answered_requests
    assert isinstance(sent, fx.SendAnswer)
    assert (sent.form, sent.answer_json) == (form, answer)
    assert story.session().waiting_on is None
    assert ("request", card) not in story.timers
    assert [event["kind"] for event in story.events("request/opened", "request/answered")] == [
        "request/opened",
        "request/answered",
    ]


@pytest.mark.parametrize("kind", ["command", "fileChange", "permissions", "userInput", "elicitation"])
def test_a_policy_for_one_kind_leaves_the_others_to_whoever_is_asked(story: Story, kind: RequestKind) -> None:
    others = {"command", "file_change", "permissions", "user_input", "elicitation"}
    others -= {{"fileChange": "file_change", "userInput": "user_input"}.get(kind, kind)}
    choose(story, **dict.fromkeys(others, "decline"))
    arrives_of_kind(story, kind)
    (card,) = cards(story)
    assert story.store.requests[card].status == "open"
    assert story.answered_requests == []


def test_a_policy_accepts_nothing_that_codex_does_not_take(story: Story) -> None:
    choose(story, command="accept")
    story.do(
        ins.RequestArrived(
            at_ms=story.tick(),
            link=story.link,
            rpc_id_json="7",
            method="some/command",
            kind="command",
            thread=ThreadId("T"),
            turn=TurnId("t1"),
            item=None,
            params_json="{}",
            decisions=('"decline"',),
        )
    )
    (card,) = cards(story)
    assert story.store.requests[card].status == "open"


def test_a_session_may_choose_its_own_deadline(story: Story) -> None:
    choose(story, deadline_ms=5_000)
    story.request("1")
    (card,) = cards(story)
    assert story.armed["request", card].after_ms == 5_000


def test_a_policy_is_copied_with_a_fork(story: Story) -> None:
    choose(story, command="decline")
    story.item("t1", "a")
    story.completed("t1")
    new, old = SessionId("f"), SessionId("s")
    story.ask(lambda t, at: ins.ForkSession(ticket=t, at_ms=at, session=old, new_session=new))
    story.opened(story.last(fx.ForkThread), "TF")
    assert story.session("f").request_policy == RequestPolicy(command="decline")
