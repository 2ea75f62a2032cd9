"""What counts as an answer to which kind of request (REQ-06): each form, and each way to get it wrong.

Who would have been hurt: whoever sends an answer that Codex does not take, and never hears that nothing was decided.
"""

import msgspec
import pytest

from state.records import (
    CodexAttachment,
    RequestId,
    RequestKind,
    RequestPolicy,
    RequestRecord,
    RuntimeId,
    SessionId,
    ThreadId,
)
from termald.core import answers
from termald.core import inputs as ins

QUESTIONS = '{"questions":[{"id":"q1"},{"id":"q2"},"no question"]}'


def asked(kind: RequestKind, params_json: str = "{}", decisions: tuple[str, ...] = ()) -> RequestRecord:
    return RequestRecord(
        id=RequestId("req"),
        session_id=SessionId("s"),
        attachment=CodexAttachment(runtime_id=RuntimeId("R"), generation=1),
        rpc_id_json="0",
        method=f"some/{kind}",
        kind=kind,
        thread_id=ThreadId("T"),
        turn_id=None,
        item_id=None,
        params_json=params_json,
        decisions=decisions,
    )


def given(
    *, decision_json: str | None = None, answers_json: str | None = None, result_json: str | None = None
) -> ins.AnswerRequest:
    return ins.AnswerRequest(
        ticket=ins.Ticket(1),
        at_ms=1,
        session=SessionId("s"),
        request=RequestId("req"),
        decision_json=decision_json,
        answers_json=answers_json,
        result_json=result_json,
    )


def q(**texts: object) -> str:
    return msgspec.json.encode({name: {"answers": text} for name, text in texts.items()}).decode()


@pytest.mark.parametrize(
    "answer",
    [q(q1=["a"], q2=["b", "c"]), q(q1=[], q2=[])],
)
def test_req_06_answers_to_every_question_are_taken_as_they_are(answer: str) -> None:
    checked = answers.check(asked("userInput", QUESTIONS), given(answers_json=answer))
    assert checked == answers.Checked(form="answers", answer_json=answer)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("[]", "answers must be an object from question id to answers"),
        (q(q1=["a"], q2=["b"], q3=["c"]), "question 'q3' was not asked; asked are ['q1', 'q2']"),
        (q(q1=["a"], q2="b"), """the answer to 'q2' must be {"answers": [text, ...]}"""),
        (q(q1=["a"], q2=["b", 1]), """the answer to 'q2' must be {"answers": [text, ...]}"""),
        ('{"q1":["a"],"q2":["b"]}', """the answer to 'q1' must be {"answers": [text, ...]}"""),
        (q(q2=["b"]), "questions ['q1'] are not answered"),
        ("{}", "questions ['q1', 'q2'] are not answered"),
    ],
)
def test_req_06_answers_that_codex_would_not_take_say_what_is_wrong(answer: str, why: str) -> None:
    assert answers.check(asked("userInput", QUESTIONS), given(answers_json=answer)) == why


def test_req_06_a_request_without_questions_is_answered_with_nothing() -> None:
    assert answers.check(asked("userInput"), given(answers_json="{}")) == answers.Checked(
        form="answers", answer_json="{}"
    )


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("elicitation", '{"action":"accept","content":{}}'),
        ("elicitation", '{"action":"decline"}'),
        ("elicitation", '{"action":"cancel"}'),
        ("permissions", '{"permissions":{}}'),
        ("permissions", '{"permissions":{"network":{"enabled":true}},"scope":"turn"}'),
        ("permissions", '{"permissions":{},"scope":"session"}'),
    ],
)
def test_req_06_a_result_of_the_kind_that_was_asked_for_is_taken(kind: RequestKind, result: str) -> None:
    checked = answers.check(asked(kind), given(result_json=result))
    assert checked == answers.Checked(form="result", answer_json=result)


@pytest.mark.parametrize(
    ("kind", "result", "why"),
    [
        ("elicitation", "[]", "result must be an object"),
        ("permissions", '"all"', "result must be an object"),
        ("elicitation", "{}", "action None is not one of accept, decline, cancel"),
        ("elicitation", '{"action":"maybe"}', "action 'maybe' is not one of accept, decline, cancel"),
        ("permissions", "{}", "result.permissions must be an object; an empty one grants nothing"),
        ("permissions", '{"permissions":[]}', "result.permissions must be an object; an empty one grants nothing"),
        ("permissions", '{"permissions":{},"scope":"ever"}', "scope 'ever' is not one of turn, session"),
    ],
)
def test_req_06_a_result_that_grants_nothing_clear_is_refused(kind: RequestKind, result: str, why: str) -> None:
    assert answers.check(asked(kind), given(result_json=result)) == why


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (given(), "[]"),
        (given(result_json="{}"), "['result']"),
        (given(decision_json='"accept"', result_json="{}"), "['decision', 'result']"),
    ],
)
def test_req_06_one_form_and_the_right_one(answer: ins.AnswerRequest, said: str) -> None:
    why = f"a command request is answered with 'decision', not with {said}"
    assert answers.check(asked("command", decisions=('"accept"',)), answer) == why


def test_req_06_a_decision_is_compared_as_a_value_and_told_in_codex_words() -> None:
    amendment = '{"acceptWithAmendment":{"a":1,"b":2}}'
    card = asked("command", decisions=('"accept"', amendment))
    other_order = '{"acceptWithAmendment":{"b":2,"a":1}}'
    assert answers.check(card, given(decision_json=other_order)) == answers.Checked(
        form="decision", answer_json=other_order
    )
    why = answers.check(card, given(decision_json='"yes"'))
    assert why == f'decision "yes" is not offered; offered are "accept", {amendment}'


def test_a_policy_grants_no_permissions_that_are_not_named() -> None:
    checked = answers.by_policy(asked("permissions", '{"permissions":"all"}'), RequestPolicy(permissions="accept"))
    assert checked == answers.Checked(form="result", answer_json='{"permissions":{},"scope":"turn"}')
