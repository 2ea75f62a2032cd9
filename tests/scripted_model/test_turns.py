"""Whole turns of the real Codex, each driven by a script: that a script does what the document says it does."""

from pathlib import Path
from typing import Any

import pytest
import trio
from support.codex_process import Turn
from support.scripted_lab import Lab

pytestmark = pytest.mark.real

PLAN_MODE = {
    "mode": "plan",
    "settings": {"model": "scripted", "reasoning_effort": None, "developer_instructions": None},
}


def deltas(turn: Turn) -> list[str]:
    return [params["delta"] for params in turn.params("item/agentMessage/delta")]


async def decide(lab: Lab, method: str, decision: Any) -> dict[str, Any]:
    """Wait for an approval request, answer it, and return its params."""
    request = await lab.codex.wait_for(method)
    await lab.codex.answer(request, {"decision": decision})
    params: dict[str, Any] = request["params"]
    return params


async def test_a_plain_prompt_is_answered_with_its_words(lab: Lab) -> None:
    turn = await lab.codex.run_turn(await lab.thread(), "hello there")
    assert (turn.status, turn.text) == ("completed", "You said: hello there")
    assert deltas(turn) == ["You", " said:", " hello", " there"]
    (call,) = lab.model.calls
    assert (call.turn_id, call.kind, call.outcome, call.user_texts) == (turn.id, "turn", "completed", ("hello there",))


async def test_deltas_arrive_one_by_one_at_the_pace(lab: Lab) -> None:
    turn = await lab.codex.run_turn(await lab.thread(), "@pace 40ms\n@deltas 5 size=3")
    assert deltas(turn) == ["1 1", "2 2", "3 3", "4 4", "5 5"]
    at = [m["emittedAtMs"] for m in turn.messages if m["method"] == "item/agentMessage/delta"]
    # Four pauses lie between the first and the last; were the deltas held back and sent together, none would.
    assert at[-1] - at[0] >= 100


async def test_ten_thousand_deltas_arrive_whole(lab: Lab) -> None:
    turn = await lab.codex.run_turn(await lab.thread(), "@deltas 10000 size=8")
    assert len(deltas(turn)) == 10_000
    assert "".join(deltas(turn)) == turn.text


async def test_a_held_answer_goes_on_when_it_is_released(lab: Lab) -> None:
    thread = await lab.thread()
    turn_id = await lab.codex.start_turn(thread, "@say before\n@hold gate\n@say after")
    with trio.fail_after(30):
        (held,) = await lab.model.wait_held("gate")
    await lab.codex.wait_for("item/agentMessage/delta")
    assert not any(message["method"] == "turn/completed" for message in lab.codex.messages)
    assert lab.model.release("gate") == 1
    turn = await lab.codex.finish_turn(thread, turn_id)
    assert turn.text == "before\nafter"
    assert lab.model.calls[held - 1].outcome == "completed"


async def test_a_command_is_asked_for_run_and_its_output_shown_to_the_model(lab: Lab) -> None:
    thread = await lab.thread(approvalPolicy="untrusted", sandbox="workspace-write")
    turn_id = await lab.codex.start_turn(thread, "@say I look.\n@shell echo hi > made; cat made\n@say I looked.")
    asked = await decide(lab, "item/commandExecution/requestApproval", "accept")
    turn = await lab.codex.finish_turn(thread, turn_id)
    assert "echo hi > made; cat made" in asked["command"]
    (ran,) = turn.items("commandExecution")
    assert (ran["id"], ran["status"], ran["exitCode"], ran["aggregatedOutput"]) == (
        asked["itemId"],
        "completed",
        0,
        "hi\n",
    )
    assert (lab.cwd / "made").read_text() == "hi\n"
    assert turn.text == "I look.\nI looked."
    assert [call.step for call in lab.model.calls] == [0, 1]
    assert lab.model.calls[1].tool_outputs[0].endswith("hi\n")


async def test_a_declined_command_does_not_run_and_the_turn_goes_on(lab: Lab) -> None:
    thread = await lab.thread(approvalPolicy="untrusted", sandbox="workspace-write")
    turn_id = await lab.codex.start_turn(thread, "@shell touch made\n@say I understand.")
    await decide(lab, "item/commandExecution/requestApproval", "decline")
    turn = await lab.codex.finish_turn(thread, turn_id)
    assert [item["status"] for item in turn.items("commandExecution")] == ["declined"]
    assert not (lab.cwd / "made").exists()
    assert (turn.status, turn.text) == ("completed", "I understand.")


async def test_a_cancelled_command_interrupts_the_turn(lab: Lab) -> None:
    thread = await lab.thread(approvalPolicy="untrusted")
    turn_id = await lab.codex.start_turn(thread, "@shell touch made\n@say never said")
    await decide(lab, "item/commandExecution/requestApproval", "cancel")
    turn = await lab.codex.finish_turn(thread, turn_id)
    assert turn.status == "interrupted"
    assert len(lab.model.calls) == 1


async def test_on_request_only_the_escalated_command_is_asked_for(lab: Lab, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    thread = await lab.thread(approvalPolicy="on-request", sandbox="workspace-write")
    script = f"@shell echo free\n@shell escalate=true touch {outside}\n@say done"
    turn_id = await lab.codex.start_turn(thread, script)
    asked = await decide(lab, "item/commandExecution/requestApproval", "accept")
    turn = await lab.codex.finish_turn(thread, turn_id)
    assert asked["reason"] == f"May `touch {outside}` run outside the sandbox?"
    assert turn.methods.count("item/commandExecution/requestApproval") == 1
    assert [item["exitCode"] for item in turn.items("commandExecution")] == [0, 0]
    assert outside.exists()


async def test_two_commands_of_one_model_call_are_asked_for_each(lab: Lab) -> None:
    thread = await lab.thread(approvalPolicy="untrusted")
    turn_id = await lab.codex.start_turn(thread, "@shell echo one\n@and\n@shell echo two\n@say both")
    first = await decide(lab, "item/commandExecution/requestApproval", "accept")
    second = await lab.codex.wait_for(
        "item/commandExecution/requestApproval", lambda params: bool(params["itemId"] != first["itemId"])
    )
    await lab.codex.answer(second, {"decision": "accept"})
    turn = await lab.codex.finish_turn(thread, turn_id)
    assert sorted(item["aggregatedOutput"] for item in turn.items("commandExecution")) == ["one\n", "two\n"]
    assert [len(call.tool_outputs) for call in lab.model.calls] == [0, 2]


async def test_a_patch_is_asked_for_and_applied(lab: Lab) -> None:
    thread = await lab.thread(approvalPolicy="untrusted", sandbox="workspace-write")
    script = "@patch add notes.txt hello\n@patch replace notes.txt hello => goodbye\n@say patched"
    turn_id = await lab.codex.start_turn(thread, script)
    first = await decide(lab, "item/fileChange/requestApproval", "accept")
    second = await lab.codex.wait_for(
        "item/fileChange/requestApproval", lambda params: bool(params["itemId"] != first["itemId"])
    )
    await lab.codex.answer(second, {"decision": "accept"})
    turn = await lab.codex.finish_turn(thread, turn_id)
    assert (lab.cwd / "notes.txt").read_text() == "goodbye\n"
    kinds = [change["kind"]["type"] for item in turn.items("fileChange") for change in item["changes"]]
    assert kinds == ["add", "update"]
    assert "turn/diff/updated" in turn.methods


async def test_a_patch_goes_through_the_shell_where_no_patch_tool_is_offered(lab: Lab) -> None:
    """So it is with a model that Codex has no metadata of: whoever points Codex here by the provider alone."""
    thread = await lab.thread(model="unheard-of", approvalPolicy="never", sandbox="workspace-write")
    turn = await lab.codex.run_turn(thread, "@patch add notes.txt it's here\n@say patched")
    assert "apply_patch" not in lab.model.calls[0].tools
    assert (lab.cwd / "notes.txt").read_text() == "it's here\n"
    assert turn.text == "patched"


async def test_a_question_is_asked_in_plan_mode(lab: Lab) -> None:
    thread = await lab.thread()
    script = "@ask Which one? | red | blue\n@plan paint it | let it dry"
    turn_id = await lab.codex.start_turn(thread, script, collaborationMode=PLAN_MODE)
    request = await lab.codex.wait_for("item/tool/requestUserInput")
    (question,) = request["params"]["questions"]
    assert question["question"] == "Which one?"
    assert [option["label"] for option in question["options"]] == ["red", "blue"]
    await lab.codex.answer(request, {"answers": {question["id"]: {"answers": ["blue"]}}})
    turn = await lab.codex.finish_turn(thread, turn_id)
    assert lab.model.calls[1].tool_outputs == ('{"answers":{"q1":{"answers":["blue"]}}}',)
    assert [item["text"] for item in turn.items("plan")] == ["- paint it\n- let it dry\n"]


async def test_a_question_outside_plan_mode_is_turned_down_by_codex_itself(lab: Lab) -> None:
    turn = await lab.codex.run_turn(await lab.thread(), "@ask Which one? | red | blue\n@say well")
    assert "item/tool/requestUserInput" not in turn.methods
    assert "unavailable in Default mode" in lab.model.calls[1].tool_outputs[0]
    assert turn.text == "well"


async def test_reasoning_becomes_an_item_with_a_summary(lab: Lab) -> None:
    turn = await lab.codex.run_turn(await lab.thread(), "@reasoning because of this\n@say so")
    assert [item["summary"] for item in turn.items("reasoning")] == [["because of this"]]
    assert turn.methods.index("item/reasoning/summaryTextDelta") < turn.methods.index("item/agentMessage/delta")


async def test_two_messages_are_two_items(lab: Lab) -> None:
    turn = await lab.codex.run_turn(await lab.thread(), "@say one\n@message\n@say two")
    assert [item["text"] for item in turn.items("agentMessage")] == ["one", "two"]


async def test_events_that_codex_does_not_know_or_cannot_read_are_passed_over(lab: Lab) -> None:
    script = '@say a\n@raw response.strange {"x": 1}\n@raw response.broken nonsense\n@say b'
    turn = await lab.codex.run_turn(await lab.thread(), script)
    assert (turn.status, turn.text) == ("completed", "a\nb")


async def test_usage_is_told_per_call_and_summed_up(lab: Lab) -> None:
    thread = await lab.thread(approvalPolicy="never")
    script = "@usage input=50 cached=20 output=7 reasoning=2\n@shell true\n@usage input=80 cached=50 output=5\n@say x"
    told = [params["tokenUsage"] for params in (await lab.codex.run_turn(thread, script)).params(USAGE)]
    fields = ("inputTokens", "cachedInputTokens", "outputTokens", "reasoningOutputTokens", "totalTokens")
    assert [tuple(usage["last"][name] for name in fields) for usage in told] == [(50, 20, 7, 2, 57), (80, 50, 5, 0, 85)]
    assert tuple(told[-1]["total"][name] for name in fields) == (130, 70, 12, 2, 142)


USAGE = "thread/tokenUsage/updated"


async def test_headers_carry_rate_limits(lab: Lab) -> None:
    script = "@header x-codex-primary-used-percent 42\n@header x-codex-primary-window-minutes 300\n@say x"
    await lab.codex.run_turn(await lab.thread(), script)
    told = await lab.codex.wait_for("account/rateLimits/updated", lambda params: bool(params["rateLimits"]["primary"]))
    limits = told["params"]["rateLimits"]
    assert (limits["primary"]["usedPercent"], limits["primary"]["windowDurationMins"]) == (42, 300)


async def test_an_interrupt_ends_a_held_answer(lab: Lab) -> None:
    thread = await lab.thread()
    turn_id = await lab.codex.start_turn(thread, "@say one\n@hold gate\n@say two")
    with trio.fail_after(30):
        (held,) = await lab.model.wait_held("gate")
        await lab.codex.wait_for("turn/started")
        await lab.codex.request("turn/interrupt", {"threadId": thread, "turnId": turn_id})
        assert (await lab.codex.finish_turn(thread, turn_id)).status == "interrupted"
        assert (await lab.model.wait_settled(held)).outcome == "left"
    assert not lab.model.holds
    assert (await lab.codex.run_turn(thread, "@say three")).text == "three"


async def test_a_steer_gives_up_the_running_answer_and_is_a_script_of_its_own(lab: Lab) -> None:
    thread = await lab.thread()
    turn_id = await lab.codex.start_turn(thread, "@say one\n@hold gate\n@say two")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    steer = {"threadId": thread, "expectedTurnId": turn_id, "input": [{"type": "text", "text": "@say steered"}]}
    await lab.codex.request("turn/steer", steer)
    turn = await lab.codex.finish_turn(thread, turn_id)
    assert turn.text == "steered"
    first, second = lab.model.calls
    assert (first.outcome, second.outcome) == ("left", "completed")
    assert second.user_texts == ("@say one\n@hold gate\n@say two", "@say steered")
    assert (second.turn_id, second.attempt, second.step) == (turn_id, 1, 0)


async def test_a_sub_agent_runs_the_script_it_was_given(lab: Lab) -> None:
    thread = await lab.thread()
    turn_id = await lab.codex.start_turn(thread, "@spawn @say from the child\n@hold parent\n@say from the parent")
    child_end = await lab.codex.wait_for("turn/completed", lambda params: bool(params["threadId"] != thread))
    child = child_end["params"]["threadId"]
    lab.model.release("parent")
    turn = await lab.codex.finish_turn(thread, turn_id)
    (spawned,) = turn.items("collabAgentToolCall")
    assert spawned["receiverThreadIds"] == [child]
    assert [call.prompt for call in lab.model.calls if call.thread_id == child] == ["@say from the child"]
    # The end of the child is news for the model, so Codex asks once more in the same turn: beyond the script.
    assert [call.step for call in lab.model.calls if call.thread_id == thread] == [0, 1, 2]
    assert turn.text == "from the parent\nDone."


async def test_compaction_asks_the_model_and_the_next_script_runs_as_ever(lab: Lab) -> None:
    thread = await lab.thread(approvalPolicy="never")
    await lab.codex.run_turn(thread, "@shell true\n@say one")
    since = len(lab.codex.messages)
    await lab.codex.request("thread/compact/start", {"threadId": thread})
    await lab.codex.wait_for("turn/completed", since=since)
    assert lab.model.calls[-1].kind == "compaction"
    assert (await lab.codex.run_turn(thread, "@shell true\n@say two")).text == "two"
    assert lab.model.calls[-1].step == 1


async def test_compaction_is_scripted_by_codexs_own_setting(lab: Lab) -> None:
    thread = await lab.thread(config={"compact_prompt": "@fail 400"})
    await lab.codex.run_turn(thread, "hello")
    since = len(lab.codex.messages)
    await lab.codex.request("thread/compact/start", {"threadId": thread})
    end = await lab.codex.wait_for("turn/completed", since=since)
    assert end["params"]["turn"]["status"] == "failed"
    assert (await lab.codex.run_turn(thread, "@say still here")).text == "still here"


async def test_what_the_client_chose_reaches_the_model_and_the_record(lab: Lab) -> None:
    schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    thread = await lab.thread(model="scripted-mini", developerInstructions="Speak softly.")
    await lab.codex.run_turn(thread, "hello", effort="high", outputSchema=schema)
    (call,) = lab.model.calls
    assert (call.model, call.effort, call.output_schema) == ("scripted-mini", "high", schema)
    assert any("Speak softly." in text for text in call.developer_texts)


async def test_an_image_is_counted_and_the_text_beside_it_is_the_script(lab: Lab) -> None:
    thread = await lab.thread()
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    spoken = [{"type": "image", "url": f"data:image/png;base64,{dot}"}, {"type": "text", "text": "@say I see"}]
    result = await lab.codex.request("turn/start", {"threadId": thread, "input": spoken})
    turn = await lab.codex.finish_turn(thread, result["turn"]["id"])
    assert turn.text == "I see"
    assert lab.model.calls[0].images == 1
