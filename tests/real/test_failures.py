"""Turns that fail on the real Codex: each ends once, in words that a client can act on, and the queue goes on."""

import time

import pytest
from support.daemon import Daemon

pytestmark = pytest.mark.real

FAILURES = {
    "@fail 500": ("error", "internal_server_error"),
    "@fail 429": ("error", "rate_limit"),
    "@say half\n@cut": ("error", "unclassified"),
    "@empty": ("error", "empty_response"),
    "@say half\n@incomplete max_output_tokens": ("length", None),
}


async def test_each_failure_ends_its_turn_once_and_the_next_prompt_runs(daemon: Daemon) -> None:
    await daemon.create("s")
    for script in FAILURES:
        await daemon.prompt("s", script)
    await daemon.prompt("s", "still here")
    ends = await daemon.wait_done("s", len(FAILURES) + 1)
    told = [(end["state"], (end.get("providerError") or {}).get("type")) for end in ends]
    assert told == [*FAILURES.values(), ("normal", None)]
    prompts = (await daemon.get("/api/sessions/s/prompts"))["data"]
    assert [prompt["state"] for prompt in prompts] == ["failed"] * 4 + ["done", "done"]


async def test_a_retry_takes_back_what_it_had_said_and_the_turn_succeeds(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@say half\n@cut times=1\n@say whole"})
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "normal"
    events = await daemon.events(session="s")
    (retrying,) = [event for event in events if event["kind"] == "retrying"]
    assert retrying["attempt"] == 2
    (reset,) = [event for event in events if event["kind"] == "block/reset"]
    completed = {event["itemId"] for event in events if event["kind"] == "item/completed"}
    assert not completed & set(reset["items"])
    items = (await daemon.get("/api/sessions/s/items"))["data"]
    assert len([item for item in items if item["type"] == "agentMessage" and item["state"] == "completed"]) == 1


STANDSTILL = {
    "@fail 401": ("auth-required", "authentication"),
    "@fail insufficient_quota": ("quota-exhausted", "out_of_tokens"),
}


@pytest.mark.parametrize("script", STANDSTILL)
async def test_what_every_prompt_would_meet_holds_the_queue_until_somebody_asks(daemon: Daemon, script: str) -> None:
    slug, provider = STANDSTILL[script]
    await daemon.create("s", prompt={"input": f"@hold gate\n{script}"})
    await daemon.model.wait_held("gate")
    waits = await daemon.prompt("s", "still here")
    for _ in range(3):  # Codex asks again where it takes a refusal for a passing one
        daemon.model.release("gate")
    (done,) = await daemon.wait_done("s")
    assert done["providerError"]["type"] == provider
    await daemon.wait_event(lambda event: event["kind"] == "session/error", what="the standstill")
    session = await daemon.session("s")
    assert (session["status"], session["paused"], session["lastError"]["slug"]) == ("error", True, slug)
    assert (await daemon.get(f"/api/sessions/s/prompts/{waits}"))["state"] == "queued"
    await daemon.post("/api/sessions/s/retry")
    assert (await daemon.wait_done("s", 2))[-1]["state"] == "normal"


async def test_a_quota_that_ends_lets_the_queue_go_on_by_itself(daemon: Daemon) -> None:
    until = int(time.time()) + 2
    limits = {"used-percent": 100, "window-minutes": 300, "reset-at": until}
    script = "".join(f"@header x-codex-primary-{name} {value}\n" for name, value in limits.items())
    await daemon.create("s", prompt={"input": f"@hold gate\n{script}@fail 429 type=usage_limit_reached"})
    await daemon.model.wait_held("gate")
    await daemon.prompt("s", "after it")
    daemon.model.release("gate")
    first, second = await daemon.wait_done("s", 2)
    reset = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(until))
    assert first["providerError"]["resetAt"] == reset
    assert second["state"] == "normal"
    assert second["at"] > reset
