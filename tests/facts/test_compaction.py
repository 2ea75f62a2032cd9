"""The turn that a front-end begins to shorten a thread: it takes no prompt, and it counts what was counted before."""

import pytest
import trio
from facts.lab import USAGE, SocketLab, meaning, newest_turns, prompts, refusal

pytestmark = pytest.mark.real

HELD = {"compact_prompt": "@hold gate\n@usage input=70 output=3\n@say short"}


async def test_a_compaction_takes_no_prompt_until_it_is_over(lab: SocketLab) -> None:
    """`codex.translate.replies`, `core.turns._not_executed`: what crosses it was not executed, and is sent again."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, config=HELD)
    await codex.run_turn(thread, "hello")
    since = len(codex.messages)
    await codex.request("thread/compact/start", {"threadId": thread})
    started = await codex.wait_for("turn/started", since=since)
    turn = started["params"]["turn"]["id"]
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    prompt = {"threadId": thread, "input": [{"type": "text", "text": "again"}], "clientUserMessageId": "p1"}
    refused = await refusal(codex, "turn/start", **prompt)
    words = "failed to submit turn input: ActiveTurnNotSteerable { turn_kind: Compact }"
    assert (refused.code, refused.message, meaning(refused).refusal) == (-32603, words, "overloaded")
    refused = await refusal(codex, "turn/steer", **prompt, expectedTurnId=turn)
    assert (refused.code, refused.message) == (-32600, "cannot steer a compact turn")
    lab.model.release("gate")
    assert (await codex.finish_turn(thread, turn)).status == "completed"
    await codex.run_turn(thread, "the next")
    recorded = [prompts(seen) for seen in await newest_turns(codex, thread)]
    assert recorded == [[None], [], [None]]  # the compaction has no user's message, and p1 is nowhere


async def test_a_compaction_interrupts_the_turn_that_runs(lab: SocketLab) -> None:
    """`core.turns`: an interrupt that nobody here asked for, and then a turn that nobody here began."""
    codex, other = await lab.codex.connect(), await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turn = await codex.start_turn(thread, "@hold gate")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    await other.request("thread/compact/start", {"threadId": thread})
    assert (await codex.finish_turn(thread, turn)).status == "interrupted"
    end = await codex.wait_for("turn/completed", lambda params: params["turn"]["id"] != turn)
    assert end["params"]["turn"]["status"] == "completed"
    assert lab.model.calls[-1].kind == "compaction"


async def test_a_compaction_tells_the_usage_of_the_call_before_it_as_its_own(lab: SocketLab) -> None:
    """`core.turns.used`: `last` may be what was told already, under another turn's id; that `total` has not grown is
    the sign. What the thread has spent is `total`, not the sum of what was told."""
    codex = await lab.codex.connect()
    lab.model.release("gate")
    thread = await codex.start_thread(lab.cwd, config=HELD)
    await codex.run_turn(thread, "@usage input=50 output=7\n@say hello")
    since = len(codex.messages)
    await codex.request("thread/compact/start", {"threadId": thread})
    end = await codex.wait_for("turn/completed", since=since)
    told = [message["params"] for message in codex.messages[since:] if message["method"] == USAGE]
    assert {params["turnId"] for params in told} == {end["params"]["turn"]["id"]}
    counts = [
        tuple(
            (params["tokenUsage"][of]["inputTokens"], params["tokenUsage"][of]["outputTokens"])
            for of in ("last", "total")
        )
        for params in told
    ]
    assert counts == [((50, 7), (50, 7)), ((70, 3), (120, 10)), ((0, 0), (120, 10))]
