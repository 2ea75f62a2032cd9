"""Every way a turn of the real Codex fails, with what Codex says meanwhile.

The daemon's account of failures rests on these facts.

Measured on 0.163.0 and 0.171.0 with two stream retries and no request retries.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from support.codex_process import Turn
from support.scripted_lab import Lab, open_lab

from termald.scripted_model.model import ScriptedModel

pytestmark = pytest.mark.real

RETRIES = 2  # `write_codex_home`'s default for `stream_max_retries`

LEFT_OUT = (
    "turn/started",
    "warning",
    "thread/tokenUsage/updated",
    "thread/readState/changed",
    "account/rateLimits/updated",
)


def name_of(info: Any) -> str:
    """Write `codexErrorInfo` as one word: `httpConnectionFailed{401}`, `internalServerError`."""
    if isinstance(info, str):
        return info
    ((kind, detail),) = info.items()
    return f"{kind}{{{detail['httpStatusCode']}}}"


def story(turn: Turn) -> list[str]:
    """What was said in this turn, a line each, without ids, usage and the user's own message."""
    return list(_lines(turn))


def _lines(turn: Turn) -> Iterator[str]:
    for message in turn.messages:
        method, params = message["method"], message["params"]
        if method in LEFT_OUT or params.get("item", {}).get("type") == "userMessage":
            continue
        match method:
            case "error":
                again = "again" if params["willRetry"] else "final"
                yield f"error {again} {name_of(params['error']['codexErrorInfo'])}"
            case "thread/status/changed":
                yield f"status {params['status']['type']}"
            case "item/started" | "item/completed":
                yield f"{method} {params['item']['type']}"
            case "item/agentMessage/delta":
                yield f"delta {params['delta']}"
            case "turn/completed":
                yield f"turn {turn.status}"
            case _:
                yield method


def refused_once(info: str) -> list[str]:
    return ["status systemError", f"error final {info}", "turn failed"]


def refused_again_and_again(each: str, last: str) -> list[str]:
    return [f"error again {each}"] * RETRIES + refused_once(last)


DISCONNECTED = "responseStreamDisconnected{None}"

HALF = ["item/started agentMessage", "delta half"]
CUT_IN_THE_MIDDLE = [*[*HALF, f"error again {DISCONNECTED}"] * RETRIES, *HALF, *refused_once("other")]

# Script: what is said, and how many requests the model sees.
FAILURES = {
    "@fail 500": (refused_again_and_again(DISCONNECTED, "internalServerError"), 3),
    "@fail 502": (refused_again_and_again("responseStreamDisconnected{502}", "httpConnectionFailed{502}"), 3),
    "@fail 503": (refused_again_and_again("responseStreamDisconnected{503}", "httpConnectionFailed{503}"), 3),
    "@fail 401": (refused_again_and_again("responseStreamDisconnected{401}", "httpConnectionFailed{401}"), 3),
    "@fail 403": (refused_again_and_again("responseStreamDisconnected{403}", "httpConnectionFailed{403}"), 3),
    "@fail 404": (refused_again_and_again("responseStreamDisconnected{404}", "httpConnectionFailed{404}"), 3),
    "@fail 400": (refused_once("other"), 1),
    "@fail 429": (refused_once("responseTooManyFailedAttempts{429}"), 1),
    "@fail 429 retry-after=0": (
        refused_again_and_again("responseStreamDisconnected{429}", "responseTooManyFailedAttempts{429}"),
        3,
    ),
    "@fail 429 type=usage_limit_reached resets-in=60": (refused_once("usageLimitExceeded"), 1),
    "@fail 429 type=usage_not_included": (refused_once("usageLimitExceeded"), 1),
    "@fail context_length_exceeded": (refused_once("contextWindowExceeded"), 1),
    "@fail insufficient_quota": (refused_once("usageLimitExceeded"), 1),
    "@fail usage_not_included": (refused_once("usageLimitExceeded"), 1),
    "@fail server_is_overloaded": (refused_once("serverOverloaded"), 1),
    "@fail invalid_prompt": (refused_once("other"), 1),
    "@fail cyber_policy": (refused_once("cyberPolicy"), 1),
    "@fail rate_limit_exceeded": (refused_again_and_again(DISCONNECTED, "rateLimitExceeded"), 3),
    "@fail server_error": (refused_again_and_again(DISCONNECTED, "other"), 3),
    "@say half\n@fail server_error": (CUT_IN_THE_MIDDLE, 3),
    "@say half\n@cut": (CUT_IN_THE_MIDDLE, 3),
    "@say half\n@cut clean": (CUT_IN_THE_MIDDLE, 3),
    "@cut": (refused_again_and_again(DISCONNECTED, "other"), 3),
    "@say half\n@incomplete max_output_tokens": ([*HALF, "item/completed agentMessage", *refused_once("other")], 1),
    "@incomplete content_filter": (refused_again_and_again(DISCONNECTED, "other"), 3),
    "@deltas many": (refused_once("other"), 1),
}


async def test_each_failure_is_told_in_its_order(lab: Lab) -> None:
    """All at once in one process, so that it also shows that they do not touch each other."""
    told: dict[str, tuple[list[str], int]] = {}

    async def fail(script: str) -> None:
        thread = await lab.thread()
        turn = await lab.codex.run_turn(thread, script)
        assert turn.error is not None
        told[script] = story(turn), sum(call.thread_id == thread for call in lab.model.calls)

    async with trio.open_nursery() as nursery:
        for script in FAILURES:
            nursery.start_soon(fail, script)
    for script, expected in FAILURES.items():
        assert (script, told[script]) == (script, expected)


# 0.163 takes a 400 for what it is and does not look for a code in it.
CONTEXT_IN_400 = {"0.163.0": "other", "0.171.0": "contextWindowExceeded"}


async def test_a_full_context_in_a_400_depends_on_the_version(lab: Lab) -> None:
    turn = await lab.codex.run_turn(await lab.thread(), "@fail 400 code=context_length_exceeded")
    assert turn.error is not None
    known = CONTEXT_IN_400.get(lab.codex.version)
    assert turn.error["codexErrorInfo"] in ([known] if known else CONTEXT_IN_400.values())


async def test_an_empty_answer_is_a_completed_turn_without_items(lab: Lab) -> None:
    """Nothing in it says that the model said nothing: whoever wants to tell `empty_response` has to count the items."""
    turn = await lab.codex.run_turn(await lab.thread(), "@empty")
    assert story(turn) == ["status idle", "turn completed"]


async def test_what_fails_for_a_while_succeeds_within_the_same_turn(lab: Lab) -> None:
    turn = await lab.codex.run_turn(await lab.thread(), "@fail 503 times=1\n@say half\n@cut times=1\n@say whole")
    assert story(turn) == [
        "error again responseStreamDisconnected{503}",
        *HALF,
        f"error again {DISCONNECTED}",
        *HALF,
        "delta \nwhole",
        "item/completed agentMessage",
        "status idle",
        "turn completed",
    ]
    assert [(call.attempt, call.outcome) for call in lab.model.calls] == [(1, "refused"), (2, "cut"), (3, "completed")]


async def test_a_failed_thread_takes_the_next_turn(lab: Lab) -> None:
    """`systemError` is the status of a thread whose last turn failed, and no more than that."""
    thread = await lab.thread()
    assert (await lab.codex.run_turn(thread, "@fail 400")).status == "failed"
    assert (await lab.codex.run_turn(thread, "@say fine")).text == "fine"


async def test_a_request_retry_is_not_told(
    codex_binary: Path, model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    """A 5xx is tried again by the request layer first: (1 + request retries) requests for each that is told."""
    settings = {"request_max_retries": 2, "stream_max_retries": 1}
    async with open_lab(codex_binary, model, base_url, tmp_path, **settings) as lab:
        turn = await lab.codex.run_turn(await lab.thread(), "@fail 500")
    assert story(turn) == [f"error again {DISCONNECTED}", *refused_once("internalServerError")]
    assert len(model.calls) == (1 + 2) * (1 + 1)


async def test_silence_is_cut_by_codex_and_tried_again(
    codex_binary: Path, model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    async with open_lab(codex_binary, model, base_url, tmp_path, stream_idle_timeout_ms=300) as lab:
        turn = await lab.codex.run_turn(await lab.thread(), "@say half\n@hold for-ever")
    assert story(turn) == CUT_IN_THE_MIDDLE
    assert [call.outcome for call in model.calls] == ["left"] * 3
