"""How much may be asked at once, and what becomes of what was too much."""

import contextlib

import msgspec
import pytest
from facts.lab import SocketLab, meaning
from support.codex_process import CodexConnection, CodexRefusal
from support.scripted_lab import Lab

from termald.limits import CodexLimits

pytestmark = pytest.mark.real

BURST = 400
BURSTS_MAX = 5  # on a machine that is busy otherwise the writer may be too slow for one to be too much


async def test_as_many_calls_as_termald_makes_at_once_are_all_answered(lab: SocketLab) -> None:
    """`limits.CodexLimits.calls_max`: written without a pause, none is refused and none forgotten."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "hello")
    for method in ("turn/start", "thread/turns/list"):
        params = {"threadId": thread, "input": [{"type": "text", "text": "@say x"}]}
        numbers = [await codex.ask(method, params) for _ in range(CodexLimits().calls_max)]
        for number in numbers:
            await codex.reply_to(number, method)


async def test_of_a_burst_exactly_those_run_that_were_acknowledged(piped: Lab) -> None:
    """`core.turns._not_executed`: what is refused as overload was not executed, and is sent again.

    Of a larger burst some are not answered at all, which is why every call has a deadline; those do not run either.
    """
    refused: list[CodexRefusal] = []
    for attempt in range(BURSTS_MAX):
        refused += await _burst(piped, attempt)
        if refused:
            break
    assert {(refusal.code, meaning(refusal).refusal) for refusal in refused} == {(-32001, "overloaded")}


async def _burst(piped: Lab, attempt: int) -> list[CodexRefusal]:
    """Ask for many turns in one write, hold the record to the acknowledgements, and return the refusals."""
    codex = piped.codex
    threads = [await piped.thread() for _ in range(4)]
    burst = [f"p{attempt}-{number}" for number in range(BURST)]
    await codex.write(b"\n".join(_turn_start(threads[n % 4], prompt) for n, prompt in enumerate(burst)))
    await _taken_in(codex)
    for thread in threads:  # what was taken before this is on record when it ends, and was answered
        await codex.run_turn(thread, "the last")
    recorded = {prompt for thread in threads for prompt in await _recorded(codex, thread)}
    acknowledged, refused = set(), []
    for prompt in filter(codex.has_reply, burst):
        try:
            await codex.reply_to(prompt, "turn/start")
            acknowledged.add(prompt)
        except CodexRefusal as refusal:
            refused.append(refusal)
    assert recorded == acknowledged
    return refused


async def _taken_in(codex: CodexConnection) -> None:
    """Wait until Codex answers again: it reads its requests in order."""
    while True:
        with contextlib.suppress(CodexRefusal, AssertionError):
            await codex.request("thread/loaded/list", deadline_s=1)
            return


def _turn_start(thread: str, prompt: str) -> bytes:
    params = {"threadId": thread, "input": [{"type": "text", "text": "@say x"}], "clientUserMessageId": prompt}
    return msgspec.json.encode({"id": prompt, "method": "turn/start", "params": params})


async def _recorded(codex: CodexConnection, thread: str) -> list[str]:
    """The ids of all prompts on record for a thread."""
    found, cursor = [], None
    while True:
        page = await codex.request("thread/items/list", {"threadId": thread, "limit": 100, "cursor": cursor})
        found += [entry["item"]["clientId"] for entry in page["data"] if entry["item"].get("clientId")]
        cursor = page["nextCursor"]
        if cursor is None:
            return found
