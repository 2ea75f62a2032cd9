"""The directive language: a prompt in, a `Plan` out.

A prompt without directives is answered with `plain_answer`. A line that begins with `@` and a letter is a directive;
once there is one, only the directives count and the other lines are for the human reader. `@@` at the start of a line
stands for an ordinary `@`.

Order is everything: directives happen from top to bottom, and a tool call ends its model call, so that what stands
below it answers the tool's output. The one exception is `@and`, which lets the next tool call share the model call of
the one above.

Nothing is guessed: an unknown directive, a bad value or a line that could never be reached is a `ScriptError` that
names the line.
"""

import re
from collections.abc import Callable
from typing import Final

from termald.scripted_model import directives
from termald.scripted_model.draft import Draft, ScriptError
from termald.scripted_model.plan import ModelCall, Plan, Say

__all__ = ["DIRECTIVES", "ScriptError", "parse_script", "plain_answer"]

PLAIN_ANSWER_CHARACTERS_MAX = 400  # an echo of a prompt of a megabyte would be a benchmark nobody asked for

_DIRECTIVE = re.compile(r"@([A-Za-z][A-Za-z_-]*)(?:[ \t]+(.*))?")

DIRECTIVES: Final[dict[str, Callable[[Draft, str], None]]] = {
    "say": directives.say,
    "deltas": directives.deltas,
    "message": directives.message,
    "reasoning": directives.reasoning,
    "pace": directives.pace,
    "wait": directives.wait,
    "hold": directives.hold,
    "open": directives.open_answer,
    "header": directives.header,
    "shell": directives.shell,
    "patch": directives.patch,
    "ask": directives.ask,
    "spawn": directives.spawn,
    "tool": directives.tool,
    "plan": directives.plan,
    "and": directives.join,
    "fail": directives.fail,
    "cut": directives.cut,
    "incomplete": directives.incomplete,
    "empty": directives.empty,
    "raw": directives.raw,
    "usage": directives.usage,
}


def _unknown(draft: Draft, argument: str) -> None:
    raise ScriptError(f"no such directive; there are {', '.join('@' + name for name in DIRECTIVES)}")


def plain_answer(prompt: str) -> str:
    """Return the answer to a prompt without directives: its own words, shortened to `PLAIN_ANSWER_CHARACTERS_MAX`."""
    text = re.sub(r"(?m)^(\s*)@@", r"\1@", prompt).strip()
    if len(text) > PLAIN_ANSWER_CHARACTERS_MAX:
        text = text[:PLAIN_ANSWER_CHARACTERS_MAX] + "…"
    return f"You said: {text}"


def parse_script(prompt: str) -> Plan:
    """Return what the prompt asks of the model.

    Errors: `ScriptError` with the number of the line (from 1), the directive and what is wrong with it.
    """
    draft = Draft()
    for number, line in enumerate(prompt.split("\n"), start=1):
        found = _DIRECTIVE.fullmatch(line.strip())
        if found is None:
            continue
        name, argument = found[1].lower(), (found[2] or "").strip()
        try:
            DIRECTIVES.get(name, _unknown)(draft, argument)
        except ScriptError as error:
            raise ScriptError(f"line {number}: @{name}: {error}") from error
    if draft.is_blank:
        return Plan((ModelCall((Say(directives.words(plain_answer(prompt))),)),))
    return draft.finish()
