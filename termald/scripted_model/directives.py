"""Each directive's argument, read and checked, and what it adds to the draft. The table of names is in `script`."""

import re
import shlex
from collections.abc import Mapping

from termald.scripted_model.draft import Draft, ScriptError
from termald.scripted_model.plan import (
    Ask,
    CallTool,
    Cut,
    Fail,
    Header,
    Hold,
    NewMessage,
    Open,
    Patch,
    Raw,
    Reason,
    Say,
    Shell,
    Spawn,
    Usage,
    Wait,
)

DELTAS_MAX = 1_000_000  # about 200 MB on the wire: beyond any benchmark, within memory
DELTA_CHARACTERS_MAX = 100_000
WAIT_MS_MAX = 600_000.0  # longer than Codex's own idle timeout of 300 s, so that this can be tested
TIMES_MAX = 1_000
TOKENS_MAX = 1_000_000_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_CODE = re.compile(r"[a-z][a-z0-9_]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
_SHELL_OPTION = re.compile(r"(escalate|workdir|wait)=(\S+)\s+(.*)", re.DOTALL)
_PATCH_FORMS = "`add PATH LINE`, `replace PATH LINE => LINE` or `delete PATH`"
_INCOMPLETE_REASONS = ("max_output_tokens", "content_filter")


def words(text: str) -> tuple[str, ...]:
    """Return the text in pieces of one word each; joined they are the text."""
    return tuple(re.findall(r"\s*\S+|\s+$", text))


def say(draft: Draft, argument: str) -> None:
    """`@say TEXT`: the text, word by word; on a new line where the message has text already."""
    text = f"\n{argument}" if draft.message_has_text else argument
    draft.add(Say(words(text), draft.pace_ms))


def deltas(draft: Draft, argument: str) -> None:
    """`@deltas N [size=S]`: exactly N pieces of S characters (12)."""
    (count,), options = _split(argument, 1, "size")
    pieces = _whole(count, 1, DELTAS_MAX)
    size = _whole(options.get("size", "12"), 1, DELTA_CHARACTERS_MAX)
    draft.add(Say(tuple((f"{n} " * size)[:size] for n in range(1, pieces + 1)), draft.pace_ms))


def message(draft: Draft, argument: str) -> None:
    """`@message`: the text that follows is a message of its own."""
    _nothing(argument)
    draft.add(NewMessage())


def reasoning(draft: Draft, argument: str) -> None:
    """`@reasoning TEXT`: a reasoning item whose summary is the text."""
    draft.add(Reason(words(_something(argument, "the text of the summary")), draft.pace_ms))


def pace(draft: Draft, argument: str) -> None:
    """`@pace 20ms`: the pause before each piece of the text below."""
    draft.set_pace(_duration_ms(argument))


def wait(draft: Draft, argument: str) -> None:
    """`@wait 1.5s`: a pause."""
    draft.add(Wait(_duration_ms(argument)))


def hold(draft: Draft, argument: str) -> None:
    """`@hold NAME`: a pause until the name is released."""
    if _NAME.fullmatch(argument) is None:
        raise ScriptError(f"{argument!r} is not a name; use up to 64 letters, digits, `_`, `.` and `-`")
    draft.add(Hold(argument))


def open_answer(draft: Draft, argument: str) -> None:
    """`@open`: the answer begins here, before there is output."""
    _nothing(argument)
    draft.add(Open())


def header(draft: Draft, argument: str) -> None:
    """`@header NAME VALUE`: a header of the answer that follows."""
    name, _, value = argument.partition(" ")
    if _HEADER_NAME.fullmatch(name) is None or not value.strip() or not value.isascii() or not value.isprintable():
        raise ScriptError("expected the name of a header and its value, in printable ASCII")
    draft.add(Header(name.lower(), value.strip()))


def shell(draft: Draft, argument: str) -> None:
    """`@shell [escalate=true] [workdir=DIR] [wait=1s] COMMAND`: a call of the offered shell tool."""
    options: dict[str, str] = {}
    while (option := _SHELL_OPTION.fullmatch(argument)) is not None:
        options[option[1]], argument = option[2], option[3]
    command = _something(argument, "a command")
    wait_ms = int(_duration_ms(options["wait"])) if "wait" in options else None
    draft.add(Shell(command, _truth(options.get("escalate", "false")), options.get("workdir"), wait_ms))


def patch(draft: Draft, argument: str) -> None:
    """`@patch add|replace|delete PATH ...`: a call of the patch tool for one file."""
    verb, _, rest = argument.partition(" ")
    path, _, text = rest.strip().partition(" ")
    if not path:
        raise ScriptError(f"expected {_PATCH_FORMS}")
    draft.add(Patch("\n".join(("*** Begin Patch", *_patch_lines(verb, path, text), "*** End Patch")) + "\n"))


def _patch_lines(verb: str, path: str, text: str) -> tuple[str, ...]:
    if verb == "add":
        return f"*** Add File: {path}", f"+{text}"
    if verb == "delete" and not text:
        return (f"*** Delete File: {path}",)
    if verb == "replace" and " => " in text:
        old, new = text.split(" => ", 1)
        return f"*** Update File: {path}", "@@", f"-{old}", f"+{new}"
    raise ScriptError(f"cannot read `{verb} {path} {text}`; expected {_PATCH_FORMS}")


def ask(draft: Draft, argument: str) -> None:
    """`@ask QUESTION | CHOICE | CHOICE`: a question to the user."""
    question, *options = (part.strip() for part in argument.split("|"))
    if not question or len(options) < 2 or not all(options):  # noqa: PLR2004 - Codex's own lower limit
        raise ScriptError("expected `QUESTION | CHOICE | CHOICE`, with two choices or more")
    draft.add(Ask(question, tuple(options)))


def spawn(draft: Draft, argument: str) -> None:
    """`@spawn PROMPT`: a sub-agent with this prompt of one line."""
    draft.add(Spawn(_something(argument, "the prompt of the sub-agent")))


def tool(draft: Draft, argument: str) -> None:
    """`@tool [NAMESPACE.]NAME ARGUMENTS`: a call of any tool; the arguments are passed as they stand."""
    name, _, arguments = argument.partition(" ")
    namespace, _, bare = name.rpartition(".")
    if _NAME.fullmatch(bare) is None:
        raise ScriptError(f"{name!r} is not the name of a tool")
    draft.add(CallTool(bare, arguments.strip() or "{}", namespace or None))


def plan(draft: Draft, argument: str) -> None:
    """`@plan STEP | STEP`: a proposed plan, in the marks that Codex turns into a plan item in plan mode."""
    steps = [part.strip() for part in _something(argument, "the steps, with `|` between them").split("|")]
    lines = ["<proposed_plan>", *(f"- {step}" for step in steps), "</proposed_plan>"]
    for line in lines:
        say(draft, line)


def join(draft: Draft, argument: str) -> None:
    """`@and`: the tool call below belongs to the same model call as the one above."""
    _nothing(argument)
    draft.join()


def fail(draft: Draft, argument: str) -> None:
    """`@fail STATUS|CODE [times=N] [message="..."] [code=..] [type=..] [retry-after=S] [resets-in=S]`."""
    (what,), options = _split(argument, 1, "times", "message", "code", "type", "retry-after", "resets-in")
    status = _whole(what, 400, 599) if what.isdigit() else None
    if status is None and _CODE.fullmatch(what) is None:
        raise ScriptError(f"{what!r} is neither a status from 400 to 599 nor an error code such as server_error")
    if status is None and options.keys() & {"code", "retry-after"}:
        raise ScriptError("`code` and `retry-after` belong to an HTTP status; an error code stands for itself")
    draft.add(
        Fail(
            status=status,
            code=options.get("code") if status is not None else what,
            kind=options.get("type"),
            message=options.get("message", f"scripted failure: {what}"),
            times=_times(options),
            retry_after_s=_seconds(options, "retry-after"),
            resets_in_s=_seconds(options, "resets-in"),
        )
    )


def cut(draft: Draft, argument: str) -> None:
    """`@cut [clean] [times=N]`: the answer ends here, unfinished."""
    is_clean = argument.partition(" ")[0] == "clean"
    _, options = _split(argument, int(is_clean), "times")
    draft.add(Cut(_times(options), is_clean))


def incomplete(draft: Draft, argument: str) -> None:
    """`@incomplete [max_output_tokens|content_filter]`: the answer ends here and says so."""
    reason = argument or _INCOMPLETE_REASONS[0]
    if reason not in _INCOMPLETE_REASONS:
        raise ScriptError(f"{reason!r} is no reason; there are {', '.join(_INCOMPLETE_REASONS)}")
    draft.end_incomplete(reason)


def empty(draft: Draft, argument: str) -> None:
    """`@empty`: a completed answer with nothing in it."""
    _nothing(argument)
    draft.end_empty()


def raw(draft: Draft, argument: str) -> None:
    """`@raw EVENT DATA`: one event as it stands."""
    event, _, data = _something(argument, "the name of an event and its data").partition(" ")
    draft.add(Raw(event, data.strip()))


def usage(draft: Draft, argument: str) -> None:
    """`@usage input=N [cached=N] [output=N] [reasoning=N]`: what this model call costs."""
    _, options = _split(argument, 0, "input", "cached", "output", "reasoning")
    counts = {name: _whole(value, 0, TOKENS_MAX) for name, value in options.items()}
    tokens = Usage(counts.get("input", 0), counts.get("cached", 0), counts.get("output", 0), counts.get("reasoning", 0))
    if tokens.cached > tokens.input or tokens.reasoning > tokens.output:
        raise ScriptError("`cached` is part of `input`, `reasoning` part of `output`: neither can be more")
    draft.set_usage(tokens)


def _split(argument: str, positional: int, *known: str) -> tuple[list[str], Mapping[str, str]]:
    """Split into words (quotes as in a shell) and `key=value` options, and refuse what was not expected."""
    try:
        parts = shlex.split(argument)
    except ValueError as error:
        raise ScriptError(f"cannot read {argument!r}: {error}") from error
    heads, tails = parts[:positional], parts[positional:]
    options: dict[str, str] = {}
    for part in tails:
        key, equals, value = part.partition("=")
        if not equals or key not in known or key in options:
            expected = ", ".join(f"{name}=" for name in known)
            raise ScriptError(f"{part!r} is not understood; expected {expected}, each at most once")
        options[key] = value
    if len(heads) < positional:
        raise ScriptError("a value is missing")
    return heads, options


def _whole(text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not least <= int(text[:12]) <= most:
        raise ScriptError(f"{text!r} is not a whole number from {least} to {most}")
    return int(text)


def _times(options: Mapping[str, str]) -> int | None:
    return _whole(options["times"], 1, TIMES_MAX) if "times" in options else None


def _seconds(options: Mapping[str, str], name: str) -> int | None:
    return _whole(options[name], 0, 86_400 * 31) if name in options else None


def _duration_ms(text: str) -> float:
    found = _DURATION.fullmatch(text)
    ms = float(found[1]) * (1 if found[2] == "ms" else 1000) if found else -1.0
    if not 0 <= ms <= WAIT_MS_MAX:
        raise ScriptError(f"{text!r} is not a duration such as 20ms or 1.5s, of at most {WAIT_MS_MAX / 1000:.0f}s")
    return ms


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ScriptError(f"{text!r} is neither true nor false")
    return text == "true"


def _something(argument: str, what: str) -> str:
    if not argument:
        raise ScriptError(f"expected {what}")
    return argument


def _nothing(argument: str) -> None:
    if argument:
        raise ScriptError(f"takes no argument, but got {argument!r}")
