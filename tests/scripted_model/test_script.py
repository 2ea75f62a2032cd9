"""The directive language: what a prompt turns into, and what it is refused for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from termald.scripted_model.plan import (
    Ask,
    CallTool,
    Cut,
    Fail,
    Header,
    Hold,
    ModelCall,
    NewMessage,
    NoSuchCallError,
    Open,
    Patch,
    Plan,
    Raw,
    Reason,
    Say,
    Shell,
    Spawn,
    ToolStep,
    Usage,
    Wait,
)
from termald.scripted_model.script import ScriptError, parse_script, plain_answer


def steps(prompt: str) -> tuple[object, ...]:
    """The steps of a script that has one model call."""
    plan = parse_script(prompt)
    assert len(plan.calls) == 1, plan
    return plan.calls[0].steps


def text_of(call: ModelCall) -> str:
    return "".join(piece for step in call.steps if isinstance(step, Say) for piece in step.pieces)


def test_a_prompt_without_directives_is_answered_with_its_own_words() -> None:
    assert parse_script("hello there") == Plan((ModelCall((Say(("You", " said:", " hello", " there")),)),))


def test_a_doubled_at_sign_is_an_ordinary_one() -> None:
    """A prompt that mentions a file as `@src/main.py` at the start of a line must be able to stay a plain prompt."""
    assert text_of(parse_script("@@say hello").calls[0]) == "You said: @say hello"


def test_lines_without_a_directive_are_for_the_human_reader_once_there_is_one() -> None:
    assert steps("Please run the tests.\n@say They pass.\nThanks!") == (Say(("They", " pass.")),)


def test_an_at_sign_before_anything_but_a_letter_is_plain_text() -> None:
    assert plain_answer("@ 5 o'clock") == text_of(parse_script("@ 5 o'clock").calls[0])


def test_text_that_follows_text_begins_a_new_line_of_the_same_message() -> None:
    assert steps("@say one\n@hold gate\n@say two") == (Say(("one",)), Hold("gate"), Say(("\ntwo",)))


def test_a_new_message_begins_without_a_line_break() -> None:
    assert steps("@say one\n@message\n@say two") == (Say(("one",)), NewMessage(), Say(("two",)))


def test_deltas_are_as_many_and_as_long_as_asked() -> None:
    (said,) = steps("@deltas 1000 size=7")
    assert isinstance(said, Say)
    assert [len(piece) for piece in said.pieces] == [7] * 1000


def test_the_pace_holds_for_the_text_below_it() -> None:
    assert steps("@say a\n@pace 20ms\n@say b\n@pace 0ms\n@reasoning c") == (
        Say(("a",)),
        Say(("\nb",), 20.0),
        Reason(("c",), 0.0),
    )


def test_a_tool_call_ends_its_model_call_and_the_rest_answers_its_output() -> None:
    assert parse_script("@say first\n@shell echo hi\n@say after").calls == (
        ModelCall((Say(("first",)), Shell("echo hi"))),
        ModelCall((Say(("after",)),)),
    )


def test_and_puts_two_tool_calls_into_one_model_call() -> None:
    plan = parse_script("@shell a\n@and\n@shell b\n@shell c")
    assert [call.steps for call in plan.calls] == [(Shell("a"), Shell("b")), (Shell("c"),), (Say(("Done.",)),)]


@pytest.mark.parametrize("prompt", ["@usage input=5", "@hold gate", "@fail 500 times=2", "@cut times=1", "@shell true"])
def test_a_last_call_that_says_nothing_says_done(prompt: str) -> None:
    """Codex takes an empty answer as a completed turn without items, which nobody means by `@hold`."""
    assert text_of(parse_script(prompt).calls[-1]) == "Done."


def test_an_empty_answer_has_to_be_asked_for() -> None:
    assert steps("@empty") == ()
    assert parse_script("@shell true\n@empty").calls[-1] == ModelCall()


def test_nothing_is_said_after_an_attempt_that_always_fails() -> None:
    assert [type(step) for step in steps("@say half\n@cut")] == [Say, Cut]


def test_the_usage_belongs_to_the_model_call_it_stands_in() -> None:
    plan = parse_script("@usage input=9 cached=4 output=2 reasoning=1\n@shell true\n@usage input=20")
    assert [call.usage for call in plan.calls] == [Usage(9, 4, 2, 1), Usage(20)]


def test_shell_options_stand_before_the_command_and_other_assignments_belong_to_it() -> None:
    assert steps_of_first("@shell escalate=true wait=1.5s workdir=/srv LANG=C ls") == (
        Shell("LANG=C ls", escalate=True, workdir="/srv", wait_ms=1500),
    )


def steps_of_first(prompt: str) -> tuple[object, ...]:
    return parse_script(prompt).calls[0].steps


def test_a_failure_says_how_and_how_often() -> None:
    line = '@fail 429 times=2 type=usage_limit_reached code=x message="come back later" retry-after=3 resets-in=60'
    assert steps_of_first(line)[0] == Fail(429, "x", "usage_limit_reached", "come back later", 2, 3, 60)
    assert steps_of_first("@fail context_length_exceeded") == (
        Fail(None, "context_length_exceeded", None, "scripted failure: context_length_exceeded"),
    )


@pytest.mark.parametrize(
    ("prompt", "step"),
    [
        ("@wait 1.5s", Wait(1500.0)),
        ("@open", Open()),
        ("@cut clean times=3", Cut(3, clean=True)),
        ('@raw response.strange {"x": 1}', Raw("response.strange", '{"x": 1}')),
        ("@ask Which one? | red | blue", Ask("Which one?", ("red", "blue"))),
        ("@spawn @shell ls", Spawn("@shell ls")),
        ("@header X-Request-Id  abc", Header("x-request-id", "abc")),
        ("@tool create_goal", CallTool("create_goal", "{}")),
        ('@tool agents.spawn {"n": 1}', CallTool("spawn", '{"n": 1}', "agents")),
        ("@patch delete a.txt", Patch("*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n")),
        ("@patch add a.txt b c", Patch("*** Begin Patch\n*** Add File: a.txt\n+b c\n*** End Patch\n")),
        (
            "@patch replace a.txt b => c",
            Patch("*** Begin Patch\n*** Update File: a.txt\n@@\n-b\n+c\n*** End Patch\n"),
        ),
    ],
)
def test_each_directive_becomes_its_step(prompt: str, step: object) -> None:
    assert steps_of_first(prompt)[0] == step


def test_a_plan_is_text_in_the_marks_that_codex_looks_for() -> None:
    assert text_of(parse_script("@plan one | two").calls[0]) == "<proposed_plan>\n- one\n- two\n</proposed_plan>"


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("@unknown", "line 1: @unknown: no such directive; there are @say, "),
        ("hi\n\n@deltas many", "line 3: @deltas: 'many' is not a whole number"),
        ("@deltas", "a value is missing"),
        ("@deltas 5 width=3", "'width=3' is not understood; expected size="),
        ("@deltas 1000001", "is not a whole number from 1 to 1000000"),
        ("@deltas ٣", "is not a whole number"),
        ("@pace fast", "is not a duration such as 20ms"),
        ("@wait 601s", "of at most 600s"),
        ("@hold", "is not a name"),
        ("@hold a/b", "is not a name"),
        ("@shell", "expected a command"),
        ("@shell escalate=perhaps ls", "neither true nor false"),
        ("@patch add", "expected `add PATH LINE`"),
        ("@patch replace a b", "cannot read `replace a b`"),
        ("@patch delete a b", "cannot read `delete a b`"),
        ("@ask Really? | yes", "with two choices or more"),
        ("@tool", "is not the name of a tool"),
        ("@plan", "expected the steps"),
        ("@and", "no tool call just above"),
        ("@shell a\n@and", "must be followed by a tool call"),
        ("@shell a\n@and\n@say b", "must be followed by a tool call"),
        ("@fail 50O", "neither a status from 400 to 599 nor an error code"),
        ("@fail 200", "is not a whole number from 400 to 599"),
        ("@fail 500 times=0", "is not a whole number from 1 to"),
        ("@fail 500 times=1 times=2", "each at most once"),
        ('@fail 500 message="open', "cannot read"),
        ("@fail server_error retry-after=1", "belong to an HTTP status"),
        ("@say a\n@fail 500", "cannot follow output of the same model call"),
        ("@open\n@fail 500", "cannot follow output of the same model call"),
        ("@fail 500\n@say a", "nothing can follow an attempt that always fails"),
        ("@cut\n@say a", "nothing can follow an attempt that always fails"),
        ("@empty\n@say a", "nothing can follow @empty"),
        ("@say a\n@empty", "has output already"),
        ("@incomplete\n@say a", "nothing can follow @incomplete"),
        ("@incomplete bored", "'bored' is no reason"),
        ("@usage input=1\n@usage input=2", "has a usage already"),
        ("@usage input=1 cached=2", "neither can be more"),
        ("@spawn", "expected the prompt"),
        ("@header x", "expected the name of a header"),
        ("@header", "expected the name of a header"),
        ("@header x: y", "expected the name of a header"),
        ("@header x ü", "in printable ASCII"),
        ("@say a\n@header x y", "are sent already"),
        ("@message now", "takes no argument"),
        ("@reasoning", "expected the text of the summary"),
        ("@raw", "expected the name of an event"),
    ],
)
def test_a_script_that_cannot_be_carried_out_is_refused_with_the_reason(prompt: str, reason: str) -> None:
    with pytest.raises(ScriptError) as refused:
        parse_script(prompt)
    assert reason in str(refused.value)


ordinary = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=60).filter(
    lambda text: not text.lstrip().startswith("@")
)


@given(ordinary)
def test_the_pieces_of_a_text_add_up_to_it(text: str) -> None:
    """Whatever is lost between pieces would be lost in every test that compares what was said with what arrived."""
    assert text_of(parse_script(f"@say {text}").calls[0]) == text.strip()


@given(st.lists(ordinary, min_size=1, max_size=5))
def test_the_lines_of_a_message_add_up_to_it(lines: list[str]) -> None:
    said = [line.strip() for line in lines if line.strip()]
    script = "\n".join(f"@say {line}" for line in said)
    if said:
        assert text_of(parse_script(script).calls[0]) == "\n".join(said)


@given(st.text(max_size=200))
def test_any_prompt_is_a_plan_or_is_refused(prompt: str) -> None:
    try:
        plan = parse_script(prompt)
    except ScriptError:
        return
    assert all(call.tool_calls for call in plan.calls[:-1])
    assert plan.calls[-1].tool_calls == 0


directive_lines = st.sampled_from(
    [
        "@say a b",
        "@message",
        "@reasoning why",
        "@shell true",
        "@and",
        "@fail 500 times=1",
        "@fail server_error times=2",
        "@cut times=1",
        "@cut",
        "@hold g",
        "@open",
        "@usage input=3",
        "@empty",
        "@incomplete",
        "@tool x",
        "plain words",
    ]
)


@given(st.lists(directive_lines, min_size=1, max_size=8))
def test_each_tool_output_leads_to_exactly_one_model_call(lines: list[str]) -> None:
    """The endpoint finds its place by counting tool calls: two calls at one count would make it answer out of order."""
    try:
        plan = parse_script("\n".join(lines))
    except ScriptError:
        return
    called = 0
    for index, call in enumerate(plan.calls):
        assert plan.call_after(called) == (index, call)
        assert called == sum(isinstance(step, ToolStep) for before in plan.calls[:index] for step in before.steps)
        called += call.tool_calls
    with pytest.raises(NoSuchCallError, match="no model call that follows"):
        plan.call_after(called + 1)
