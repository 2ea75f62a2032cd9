"""Prompt modes on the real Codex: joining a running turn, and replacing it."""

import base64
from typing import Any

import pytest
from support.daemon import Daemon

pytestmark = pytest.mark.real

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel."""


async def test_a_steer_joins_the_running_turn_and_begins_none(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@say begun\n@hold gate\n@say rest"})
    await daemon.model.wait_held("gate")
    steer = await daemon.prompt("s", "and this too", mode="steer")
    await daemon.wait_event(
        lambda event: event["kind"] == "prompt/acked" and event["promptId"] == steer, what="the ack"
    )
    daemon.model.release("gate")
    (done,) = await daemon.wait_done("s")
    prompt = await daemon.get(f"/api/sessions/s/prompts/{steer}")
    assert (prompt["state"], prompt["turnId"]) == ("done", done["turnId"])
    kinds = [event["kind"] for event in await daemon.events(session="s")]
    assert kinds.count("turn/started") == kinds.count("turn/done") == 1
    assert any("and this too" in str(call) for call in daemon.model.calls)


async def test_a_steer_that_finds_no_turn_runs_on_its_own(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "first"})
    await daemon.wait_done("s")
    steer = await daemon.prompt("s", "second", mode="steer")
    (_, second) = await daemon.wait_done("s", 2)
    assert second["state"] == "normal"
    assert (await daemon.get(f"/api/sessions/s/prompts/{steer}"))["turnId"] == second["turnId"]


async def test_replace_cancels_what_waits_ends_what_runs_and_goes_next(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@hold forever"})
    await daemon.model.wait_held("forever")
    waiting = await daemon.prompt("s", "never runs")
    newest = await daemon.prompt("s", "runs instead", mode="replace")
    (cut, whole) = await daemon.wait_done("s", 2)
    assert (cut["state"], whole["state"]) == ("cancelled", "normal")
    assert (await daemon.get(f"/api/sessions/s/prompts/{waiting}"))["state"] == "cancelled"
    assert (await daemon.get(f"/api/sessions/s/prompts/{newest}"))["turnId"] == whole["turnId"]
    assert not any("never runs" in str(call) for call in daemon.model.calls)


async def test_a_question_is_held_and_answered(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "hello"})
    await daemon.wait_done("s")
    await daemon.prompt("s", "@ask Which one? | left | right\n@say chosen", interactionMode="plan")
    opened = await daemon.wait_event(lambda event: event["kind"] == "request/opened", what="the question")
    assert opened["requestKind"] == "userInput"
    assert (await daemon.session("s"))["waitingOn"] == "userInput"
    (question,) = opened["params"]["questions"]
    path = f"/api/sessions/s/requests/{opened['requestId']}"
    assert (await daemon.call("POST", path, {"answers": {"other": {"answers": ["x"]}}})).status_code == 422
    answered = await daemon.call("POST", path, {"answers": {question["id"]: {"answers": ["left"]}}})
    assert answered.status_code == 200, answered.text
    assert (await daemon.wait_done("s", 2))[-1]["state"] == "normal"
    assert any("left" in str(call) for call in daemon.model.calls)


async def test_what_a_prompt_chooses_holds_for_it_alone(daemon: Daemon) -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    await daemon.create("s", prompt={"input": "as it is"})
    await daemon.wait_done("s")
    chosen = {"effort": "high", "serviceTier": "flex", "outputSchema": schema}
    choices: list[dict[str, Any]] = [chosen, {}, {"interactionMode": "plan"}, {}]
    for number, fields in enumerate(choices, 2):
        await daemon.prompt("s", f"number {number}", **fields)
        assert (await daemon.wait_done("s", number))[-1]["state"] == "normal"
    made = [(call.effort, call.service_tier, call.output_schema) for call in daemon.model.calls]
    plain = ("medium", None, None)
    assert made == [plain, ("high", "flex", schema), plain, plain, plain]
    modes = [[text for text in call.developer_texts if "<collaboration_mode>" in text] for call in daemon.model.calls]
    assert "Plan Mode" in modes[3][-1]
    assert "Plan Mode" not in modes[4][-1].partition("\n")[0]


async def test_prompts_that_wait_run_in_the_order_that_they_were_given(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@hold gate"})
    await daemon.model.wait_held("gate")
    second, third = [await daemon.prompt("s", text) for text in ("second", "third")]
    await daemon.post("/api/sessions/s/prompts/reorder", {"promptIds": [third, second]})
    daemon.model.release("gate")
    await daemon.wait_done("s", 3)
    assert [call.prompt for call in daemon.model.calls] == ["@hold gate", "third", "second"]


async def test_an_image_by_data_and_by_path_reach_the_model(daemon: Daemon) -> None:
    pixel = base64.b64decode(PIXEL)
    path = daemon.folder / "pixel.png"
    path.write_bytes(pixel)
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image", "url": f"data:image/png;base64,{PIXEL}"},
        {"type": "localImage", "path": str(path)},
    ]
    await daemon.create("s", prompt={"input": parts})
    assert (await daemon.wait_done("s"))[-1]["state"] == "normal"
    assert daemon.model.calls[-1].images == 2
