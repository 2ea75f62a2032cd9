"""Turns that fail on the real Codex: each ends once, in words that a client can act on, and the queue goes on."""

import pytest
from support.daemon import Daemon

pytestmark = pytest.mark.real

FAILURES = {
    "@fail 500": ("error", "internal_server_error"),
    "@fail 401": ("error", "authentication"),
    "@fail 429": ("error", "rate_limit"),
    "@fail insufficient_quota": ("error", "out_of_tokens"),
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
    assert [prompt["state"] for prompt in prompts] == ["failed"] * 6 + ["done", "done"]


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
