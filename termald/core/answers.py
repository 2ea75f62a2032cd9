"""What counts as an answer to which kind of request. Pure checks: a refusal leaves the request open (REQ-06)."""

import shlex
from typing import Any, Final

import msgspec

from state.records import RequestPolicy, RequestRecord
from termald.core.effects import AnswerForm
from termald.core.inputs import AnswerRequest

FORMS: dict[str, AnswerForm] = {
    "command": "decision",
    "fileChange": "decision",
    "permissions": "result",
    "userInput": "answers",
    "elicitation": "result",
}

DECLINE: dict[str, tuple[AnswerForm, str]] = {
    "command": ("decision", '"decline"'),
    "fileChange": ("decision", '"decline"'),
    "permissions": ("result", '{"permissions":{}}'),
    "userInput": ("answers", "{}"),
    "elicitation": ("result", '{"action":"decline"}'),
}
"""What says no to each kind."""


_POLICIES: Final = {
    "command": "command",
    "fileChange": "file_change",
    "permissions": "permissions",
    "userInput": "user_input",
    "elicitation": "elicitation",
}


_SHELL_WORDS: Final = 3
_SHELL_FLAGS: Final = frozenset({"-c", "-lc"})
"""`/bin/bash -c SCRIPT`: how Codex shows a command that it runs."""


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that fits its request."""

    form: AnswerForm
    answer_json: str


def check(request: RequestRecord, answer: AnswerRequest) -> Checked | str:
    """Return the answer in its form, or why it does not fit. The message names what was given and what would be
    taken."""
    given = {
        form: text
        for form, text in (
            ("decision", answer.decision_json),
            ("answers", answer.answers_json),
            ("result", answer.result_json),
        )
        if text is not None
    }
    form = FORMS[request.kind]
    if set(given) != {form}:
        return f"a {request.kind} request is answered with {form!r}, not with {sorted(given)}"
    text = given[form]
    value = msgspec.json.decode(text)
    why = {
        "decision": _decision,
        "answers": _answers,
        "result": _result,
    }[form](request, value)
    return why if why is not None else Checked(form=form, answer_json=text)


def decline(request: RequestRecord) -> Checked:
    """Return what says no to it."""
    form, text = DECLINE[request.kind]
    return Checked(form=form, answer_json=text)


def by_policy(request: RequestRecord, policy: RequestPolicy | None) -> Checked | None:
    """Return what the session's policy answers, or None where somebody is to be asked. What it accepts is what was
    asked for and no more: one command, one change, these permissions for this turn."""
    choice = "ask" if policy is None else getattr(policy, _POLICIES[request.kind])
    if policy is not None and request.kind == "command" and _is_allowed(request, policy.allow_commands):
        choice = "accept"
    if choice == "ask":
        return None
    if choice == "decline":
        return decline(request)
    if request.kind == "permissions":
        asked = msgspec.json.decode(request.params_json).get("permissions")
        result = {"permissions": asked if isinstance(asked, dict) else {}, "scope": "turn"}
        return Checked(form="result", answer_json=msgspec.json.encode(result).decode())
    return Checked(form="decision", answer_json='"accept"') if '"accept"' in request.decisions else None


def _is_allowed(request: RequestRecord, allowed: tuple[tuple[str, ...], ...]) -> bool:
    """Whether it is one plain command that begins with one of these.

    Codex reads the words of a script that has nothing but plain commands in it, and names those of the *first* one
    (measured: `echo hi; rm x` is asked for with `echo hi`). So its reading has to be that of the whole script as well.
    """
    params = msgspec.json.decode(request.params_json)
    words, command = params.get("proposedExecpolicyAmendment"), params.get("command")
    if not allowed or not isinstance(words, list) or not isinstance(command, str):
        return False
    try:
        run = shlex.split(command)
        whole = shlex.split(run[-1]) if len(run) == _SHELL_WORDS and run[1] in _SHELL_FLAGS else run
    except (ValueError, IndexError):  # an open quote, or nothing at all: no plain command
        return False
    return whole == words and any(words[: len(start)] == list(start) for start in allowed)


def _decision(request: RequestRecord, value: Any) -> str | None:
    if any(msgspec.json.decode(offered) == value for offered in request.decisions):
        return None
    return f"decision {msgspec.json.encode(value).decode()} is not offered; offered are {', '.join(request.decisions)}"


def _answers(request: RequestRecord, value: Any) -> str | None:
    if not isinstance(value, dict):
        return "answers must be an object from question id to answers"
    params = msgspec.json.decode(request.params_json)
    known = {question.get("id") for question in params.get("questions", ()) if isinstance(question, dict)}
    for question, answer in value.items():
        if question not in known:
            return f"question {question!r} was not asked; asked are {sorted(map(str, known))}"
        texts = answer.get("answers") if isinstance(answer, dict) else None
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return f'the answer to {question!r} must be {{"answers": [text, ...]}}'
    missing = known - set(value)
    return f"questions {sorted(map(str, missing))} are not answered" if missing else None


def _result(request: RequestRecord, value: Any) -> str | None:
    if not isinstance(value, dict):
        return "result must be an object"
    if request.kind == "elicitation" and value.get("action") not in ("accept", "decline", "cancel"):
        return f"action {value.get('action')!r} is not one of accept, decline, cancel"
    if request.kind == "permissions" and not isinstance(value.get("permissions"), dict):
        return "result.permissions must be an object; an empty one grants nothing"
    if request.kind == "permissions" and value.get("scope", "turn") not in ("turn", "session"):
        return f"scope {value.get('scope')!r} is not one of turn, session"
    return None
