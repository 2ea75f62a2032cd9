"""What a request is read as, and which call a tool step becomes for the tools that it offers."""

import json
from typing import Any

import pytest

from termald.scripted_model.plan import Ask, CallTool, Patch, Shell, Spawn, ToolStep
from termald.scripted_model.request import BadRequestError, ModelRequest, read_request
from termald.scripted_model.tools import ToolNotOfferedError, Tools, tool_item


def request(**fields: Any) -> ModelRequest:
    return read_request(json.dumps({"model": "scripted", "input": [], "stream": True, **fields}).encode())


def user(text: str, *more: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}, *more]}


CALL = {"type": "function_call", "call_id": "c", "name": "exec_command", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "hi"}


def test_a_plain_text_input_is_the_prompt() -> None:
    """So it is with curl, and with the simplest use of any client library."""
    assert request(input="hello").user_texts == ("hello",)


def test_the_prompt_is_the_last_thing_the_user_said() -> None:
    asked = request(input=[user("one"), {"role": "assistant", "content": "said"}, user("two")])
    assert (asked.user_texts, asked.prompt) == (("one", "two"), "two")


@pytest.mark.parametrize(
    "context",
    [
        "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
        "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
        '<subagent_notification>\n{"status": "done"}\n</subagent_notification>',
        "<user_instructions>Be kind.</user_instructions>",
        "# AGENTS.md instructions for /x\n\nBe kind.",
    ],
)
def test_what_codex_says_in_the_users_name_is_not_the_prompt(context: str) -> None:
    assert request(input=[user("@say x"), user(context)]).user_texts == ("@say x",)


def test_a_user_may_speak_in_tags() -> None:
    assert request(input=[user("<b>bold</b>")]).prompt == "<b>bold</b>"
    assert request(input=[user("<skill>a</skill> and more")]).prompt == "<skill>a</skill> and more"


def test_tool_calls_are_counted_from_the_prompt_on() -> None:
    custom = {"type": "custom_tool_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "patched"}]}
    asked = request(
        input=[user("one"), CALL, OUTPUT, user("two"), CALL, OUTPUT, {"type": "custom_tool_call", "input": ""}, custom]
    )
    assert (asked.tool_calls, asked.tool_outputs) == (2, ("hi", "patched"))


def test_images_of_the_prompt_are_counted() -> None:
    image = {"type": "input_image", "image_url": "data:"}
    assert request(input=[user("old", image), user("new", image, image)]).images == 2


def test_codex_identifies_thread_and_turn_and_others_may_not() -> None:
    metadata = {
        "thread_id": "t",
        "turn_id": "u",
        "x-codex-turn-metadata": '{"request_kind": "compaction", "more": 1}',
    }
    asked = request(client_metadata=metadata)
    assert (asked.thread_id, asked.turn_id, asked.kind) == ("t", "u", "compaction")
    bare = request(prompt_cache_key="k", client_metadata={"x-codex-turn-metadata": "no json", "thread_id": 7})
    assert (bare.thread_id, bare.turn_id, bare.kind) == ("k", None, None)


def test_what_the_client_chose_is_kept() -> None:
    asked = request(
        instructions="Obey.",
        input=[{"role": "developer", "content": "Gently."}],
        reasoning={"effort": "high"},
        service_tier="fast",
        text={"format": {"type": "json_schema", "schema": {"type": "object"}}},
    )
    assert asked.developer_texts == ("Obey.", "Gently.")
    assert (asked.effort, asked.service_tier, asked.output_schema) == ("high", "fast", {"type": "object"})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"nonsense", "not a Responses request"),
        (b'{"model": "x"}', "missing required field `input`"),
        (b'{"model": 5, "input": []}', "Expected `str`, got `int`"),
        (b'{"model": "x", "input": [1]}', "Expected `object`, got `int`"),
        (b'{"model": "x", "input": "hi"}', "answers as a stream and in no other way"),
        (b"\xff", "not a Responses request"),
    ],
)
def test_what_is_no_request_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadRequestError, match=reason):
        read_request(body)


def function(name: str, *parameters: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"properties": {key: {} for key in parameters}}}


def called(step: ToolStep, *tools: dict[str, Any]) -> dict[str, Any]:
    item = tool_item(step, Tools.read(list(tools)), "call_1")
    assert item["call_id"] == "call_1"
    return item


def arguments(step: ToolStep, *tools: dict[str, Any]) -> Any:
    return json.loads(called(step, *tools)["arguments"])


ESCALATED = Shell("ls", escalate=True, workdir="/x", wait_ms=500)


def test_a_command_takes_the_shape_of_the_shell_tool_that_is_offered() -> None:
    modern = function("exec_command", "cmd", "login", "workdir", "yield_time_ms", "sandbox_permissions")
    assert arguments(ESCALATED, modern) == {
        "cmd": "ls",
        "login": False,
        "workdir": "/x",
        "yield_time_ms": 500,
        "sandbox_permissions": "require_escalated",
        "justification": "May `ls` run outside the sandbox?",
    }
    assert arguments(Shell("ls"), function("shell_command", "command", "timeout_ms")) == {"command": "ls"}
    older = function("shell", "command", "workdir", "timeout_ms", "with_escalated_permissions")
    assert arguments(ESCALATED, older) == {
        "command": ["bash", "-lc", "ls"],
        "workdir": "/x",
        "timeout_ms": 500,
        "with_escalated_permissions": True,
        "justification": "May `ls` run outside the sandbox?",
    }
    assert called(Shell("ls"), {"type": "local_shell"})["action"]["command"] == ["bash", "-lc", "ls"]


PATCH = Patch("*** Begin Patch\n*** Delete File: a\n*** End Patch\n")


def test_a_patch_takes_the_patch_tool_or_else_the_shell() -> None:
    custom = called(PATCH, {"type": "custom", "name": "apply_patch"}, function("exec_command"))
    assert (custom["type"], custom["input"]) == ("custom_tool_call", PATCH.text)
    assert arguments(PATCH, function("apply_patch")) == {"input": PATCH.text}
    assert arguments(PATCH, function("exec_command")) == {"cmd": f"apply_patch <<'PATCH'\n{PATCH.text}PATCH"}


def test_a_question_has_one_question_with_its_choices() -> None:
    asked = arguments(Ask("Which?", ("a", "b")), function("request_user_input"))
    assert [option["label"] for option in asked["questions"][0]["options"]] == ["a", "b"]


AGENTS = {"type": "namespace", "name": "agents_v7", "tools": [function("spawn_agent"), function("wait_agent")]}


def test_a_tool_of_a_namespace_is_called_by_both_names() -> None:
    item = called(CallTool("wait_agent", '{"n": 1}', "agents_v7"), AGENTS)
    assert (item["namespace"], item["name"], item["arguments"]) == ("agents_v7", "wait_agent", '{"n": 1}')
    spawned = called(Spawn("@say hi"), AGENTS)
    assert (spawned["namespace"], json.loads(spawned["arguments"])) == ("agents_v7", {"message": "@say hi"})


def test_a_named_custom_tool_gets_its_text_as_input() -> None:
    item = called(CallTool("shout", "hello"), {"type": "custom", "name": "shout"})
    assert (item["type"], item["input"]) == ("custom_tool_call", "hello")


@pytest.mark.parametrize("step", [Shell("ls"), PATCH, Ask("?", ("a", "b")), Spawn("x"), CallTool("exec", "{}")])
def test_a_tool_that_is_not_offered_is_refused_with_those_that_are(step: ToolStep) -> None:
    with pytest.raises(ToolNotOfferedError, match="it offers view_image, web_search"):
        called(step, function("view_image"), {"type": "web_search"})
