"""Prompt modes on the real Codex: joining a running turn, and replacing it."""

import pytest
from support.daemon import Daemon

pytestmark = pytest.mark.real


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
