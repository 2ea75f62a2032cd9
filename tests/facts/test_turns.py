"""When a turn begins, how it is cut short, and what it leaves running."""

from typing import Any

import pytest
import trio
from facts.lab import (
    FREE,
    UNKNOWN,
    SocketLab,
    heard,
    is_running,
    items_told,
    mark,
    meaning,
    newest_turns,
    prompts,
    refusal,
    written_pid,
)
from support.codex_process import CodexConnection, CodexRefusal
from support.waiting import until

pytestmark = pytest.mark.real

LIST = "thread/backgroundTerminals/list"
CLEAN = "thread/backgroundTerminals/clean"
# A shell and its child: both are to end.
ENDLESS = "sleep 600 & echo $! > child; echo $$ > shell; wait"


async def test_turn_start_in_a_turn_steers_it_and_says_nothing(lab: SocketLab) -> None:
    """`core.turns.tie` (TURN-16): the reply's turn id is the one sign that no turn of its own began."""
    codex, other = await lab.codex.connect(), await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turn = await codex.start_turn(thread, "@say one\n@hold gate", clientUserMessageId="p1")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    assert await other.start_turn(thread, "@say steered", clientUserMessageId="p2") == turn
    ended = await codex.finish_turn(thread, turn)
    assert (ended.status, ended.text) == ("completed", "steered")
    assert [item["clientId"] for item in ended.items("userMessage")] == ["p1", "p2"]
    (listed,) = await newest_turns(codex, thread)
    assert prompts(listed) == ["p1", "p2"]


async def test_a_steer_joins_the_turn_that_it_names_with_an_id_of_its_own(lab: SocketLab) -> None:
    """`core.steering`: taken, it is on record in that turn under its own id; refused, it is nowhere."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    steer = {"threadId": thread, "input": [{"type": "text", "text": "@say steered"}], "clientUserMessageId": "p2"}
    refused = await refusal(codex, "turn/steer", **steer, expectedTurnId=UNKNOWN)
    assert (refused.message, meaning(refused).refusal) == ("no active turn to steer", "other")
    turn = await codex.start_turn(thread, "@say one\n@hold gate", clientUserMessageId="p1")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    refused = await refusal(codex, "turn/steer", **steer, expectedTurnId=UNKNOWN)
    assert refused.message == f"expected active turn id `{UNKNOWN}` but found `{turn}`"
    assert (meaning(refused).refusal, meaning(refused).active_turn) == ("turn_mismatch", turn)
    assert await codex.request("turn/steer", {**steer, "expectedTurnId": turn}) == {"turnId": turn}
    ended = await codex.finish_turn(thread, turn)
    assert (ended.text, [item["clientId"] for item in ended.items("userMessage")]) == ("steered", ["p1", "p2"])
    (listed,) = await newest_turns(codex, thread)
    assert prompts(listed) == ["p1", "p2"]


async def test_a_steer_that_waits_when_its_turn_is_interrupted_is_dropped_for_good(lab: SocketLab) -> None:
    """`core.turns.finish` (TURN-19): acknowledged, and not in the turn when that ends: it can be sent again."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, **FREE)
    turn = await codex.start_turn(thread, f"@shell {ENDLESS}", clientUserMessageId="p1")
    await _tool(codex, lab)
    steer = {"threadId": thread, "input": [{"type": "text", "text": "@say steered"}], "clientUserMessageId": "p2"}
    assert await codex.request("turn/steer", {**steer, "expectedTurnId": turn}) == {"turnId": turn}
    await codex.request("turn/interrupt", {"threadId": thread, "turnId": turn})
    ended = await codex.finish_turn(thread, turn)
    assert (ended.status, [item["clientId"] for item in ended.items("userMessage")]) == ("interrupted", ["p1"])
    await codex.run_turn(thread, "the next", clientUserMessageId="p3")
    assert [prompts(seen) for seen in await newest_turns(codex, thread)] == [["p3"], ["p1"]]
    assert lab.model.calls[-1].user_texts[1:] == ("the next",)
    await codex.request(CLEAN, {"threadId": thread})


async def test_a_turn_is_told_between_two_changes_of_its_threads_status(lab: SocketLab) -> None:
    """`core.routing._status`: `idle` comes before the turn's end, so that it ends nothing; it only makes us look."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turn = await codex.run_turn(thread, "hello")
    told = [
        message["params"]["status"]["type"] if message["method"] == "thread/status/changed" else message["method"]
        for message in codex.messages
        if message["method"] in ("thread/status/changed", "turn/started", "turn/completed")
    ]
    assert told == ["active", "turn/started", "idle", "turn/completed"]
    assert turn.methods[-2:] == ("thread/status/changed", "turn/completed")


async def test_an_interrupt_lands_once_the_turn_is_told_and_may_miss_it_before(lab: SocketLab) -> None:
    """`core.turns.interrupt` (STOP-02): kept until `turn/started`. Sent earlier it is refused in one of two ways, or
    lands; refused, it has stopped nothing."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    refused = await refusal(codex, "turn/interrupt", threadId=thread, turnId=UNKNOWN)
    assert (refused.message, meaning(refused).refusal) == ("no active turn to interrupt", "no_active_turn")
    last = None
    for _ in range(5):
        since = len(codex.messages)
        turn = await codex.start_turn(thread, "@hold gate")
        try:
            await codex.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        except CodexRefusal as early:
            mismatch = f"expected active turn id {turn} but found {last}"
            assert early.message in ("no active turn to interrupt", mismatch)
            await codex.wait_for("turn/started", since=since)
            await codex.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        end = await codex.wait_for("turn/completed", since=since)
        assert (end["params"]["turn"]["id"], end["params"]["turn"]["status"]) == (turn, "interrupted")
        last = turn


async def test_the_interrupt_of_another_turn_names_the_one_that_runs(lab: SocketLab) -> None:
    """`codex.translate.replies.refusal`: the id is read out of the text."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turn = await codex.start_turn(thread, "@hold gate\n@say still here")
    await codex.wait_for("turn/started")
    refused = await refusal(codex, "turn/interrupt", threadId=thread, turnId=UNKNOWN)
    assert refused.message == f"expected active turn id {UNKNOWN} but found {turn}"
    assert (meaning(refused).refusal, meaning(refused).active_turn) == ("turn_mismatch", turn)
    lab.model.release("gate")
    assert (await codex.finish_turn(thread, turn)).text == "still here"


async def test_a_second_interrupt_is_refused_or_answered_with_the_next_turns_end(lab: SocketLab) -> None:
    """`core.limits.ack_ms`: 0.163 owes the answer until another turn has ended, so that an interrupt needs a deadline;
    0.171 refuses it. Neither touches that other turn."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turn = await codex.start_turn(thread, "@hold gate")
    await codex.wait_for("turn/started")
    await codex.request("turn/interrupt", {"threadId": thread, "turnId": turn})
    assert (await codex.finish_turn(thread, turn)).status == "interrupted"
    number = await codex.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
    assert (await codex.run_turn(thread, "hello")).status == "completed"
    try:
        assert await codex.reply_to(number, "the second interrupt") == {}
    except CodexRefusal as refused:
        assert refused.message == "no active turn to interrupt"


async def test_an_interrupt_leaves_the_tool_running_and_clean_ends_it(lab: SocketLab) -> None:
    """`core.ending.proceed`, `core.items.completed`: tools are ended after the turn; their items end late, in it."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, **FREE)
    turn = await codex.start_turn(thread, f"@shell {ENDLESS}")
    pids = await _tool(codex, lab)
    await codex.request("turn/interrupt", {"threadId": thread, "turnId": turn})
    ended = await codex.finish_turn(thread, turn)
    assert (ended.status, ended.items("commandExecution")) == ("interrupted", [])
    (listed,) = (await codex.request(LIST, {"threadId": thread}))["data"]
    assert ENDLESS in listed["command"]
    assert all(is_running(pid) for pid in pids)
    assert await codex.request(CLEAN, {"threadId": thread}) == {}
    late = await codex.wait_for("item/completed", lambda params: params["item"]["type"] == "commandExecution")
    assert (late["params"]["turnId"], late["params"]["item"]["status"]) == (turn, "failed")
    assert late["params"]["item"]["id"] == listed["itemId"]
    await until(lambda: not any(is_running(pid) for pid in pids))
    assert (await codex.request(LIST, {"threadId": thread}))["data"] == []


async def test_a_turn_completes_while_its_command_runs_and_clean_ends_that_too(lab: SocketLab) -> None:
    """`core.items` (EVENT-06): the item is open past its turn's end, on record only once it has ended."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, **FREE)
    turn = await codex.run_turn(thread, f"@shell wait=250ms {ENDLESS}\n@say done")
    pids = await _tool(codex, lab)
    assert (turn.status, turn.text, turn.items("commandExecution")) == ("completed", "done", [])
    (recorded,) = await newest_turns(codex, thread)
    assert [item["type"] for item in recorded["items"]] == ["userMessage", "agentMessage"]
    await codex.request(CLEAN, {"threadId": thread})
    await codex.wait_for("item/completed", lambda params: params["item"]["type"] == "commandExecution")
    await until(lambda: not any(is_running(pid) for pid in pids))
    (recorded,) = await newest_turns(codex, thread)
    assert [item["type"] for item in recorded["items"]] == ["userMessage", "agentMessage", "commandExecution"]


async def test_clean_in_a_turn_ends_its_tool_and_not_the_turn(lab: SocketLab) -> None:
    """`core.ending`: why the turn is interrupted first."""
    codex, other = await lab.codex.connect(), await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, **FREE)
    turn = await codex.start_turn(thread, f"@shell {ENDLESS}\n@say I go on")
    pids = await _tool(codex, lab)
    await other.request(CLEAN, {"threadId": thread})  # from a connection that never subscribed
    ended = await codex.finish_turn(thread, turn)
    assert (ended.status, ended.text) == ("completed", "I go on")
    assert [item["status"] for item in ended.items("commandExecution")] == ["failed"]
    await until(lambda: not any(is_running(pid) for pid in pids))


async def _tool(codex: CodexConnection, lab: SocketLab) -> list[int]:
    """The processes of the tool, once it is told: before that an interrupt takes it along."""
    await codex.wait_for("item/started", lambda params: params["item"]["type"] == "commandExecution")
    return [await written_pid(lab.cwd / name) for name in ("child", "shell")]


async def test_an_interrupt_of_a_turn_that_waits_for_an_answer_closes_the_question_after_the_turn(
    lab: SocketLab,
) -> None:
    """`core.turns.finish`: the turn's end closes its cards; `serverRequest/resolved` comes when they are closed. The
    item that was asked about is never told to have ended."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, **FREE | {"approvalPolicy": "untrusted"})
    for script, kind in (("@shell touch made", "commandExecution"), ("@patch add notes hello", "fileChange")):
        since = len(codex.messages)
        turn = await codex.start_turn(thread, script)
        asked = await codex.wait_for(f"item/{kind}/requestApproval", since=since)
        await codex.request("turn/interrupt", {"threadId": thread, "turnId": turn})
        assert (await codex.finish_turn(thread, turn)).status == "interrupted"
        resolved = await codex.wait_for("serverRequest/resolved", since=since)
        assert resolved["params"]["requestId"] == asked["id"]
        told = heard(codex, thread, since=since)
        assert told.index("turn/completed") < told.index("serverRequest/resolved")
        await mark(codex, thread)
        assert items_told(codex, kind, since=since) == [("started", "inProgress")]
    assert list(lab.cwd.iterdir()) == []


async def test_a_turn_keeps_what_the_one_before_it_chose_until_it_is_told_otherwise(lab: SocketLab) -> None:
    """`codex.translate.ops._start_turn`, `core.turns.start`: a prompt's choices are taken back by the next. A null
    takes back a tier and no effort; a collaboration mode takes back both effort and plan."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)

    async def run(**choices: Any) -> tuple[str | None, str | None, bool]:
        prompt = {"threadId": thread, "input": [{"type": "text", "text": "hello"}]}
        turn = (await codex.request("turn/start", prompt | choices))["turn"]["id"]
        await codex.finish_turn(thread, turn)
        call = lab.model.calls[-1]
        modes = [text for text in call.developer_texts if text.startswith("<collaboration_mode>")]
        return call.effort, call.service_tier, bool(modes) and "Plan Mode" in modes[-1].partition("\n")[0]

    def mode(name: str) -> dict[str, Any]:
        return {"collaborationMode": {"mode": name, "settings": {"model": "scripted", "reasoning_effort": None}}}

    assert await run() == ("medium", None, False)
    assert await run(effort="high", serviceTier="flex") == ("high", "flex", False)
    assert await run() == ("high", "flex", False)
    assert await run(effort=None, serviceTier=None) == ("high", None, False)
    assert await run(**mode("default")) == ("medium", None, False)
    assert await run(**mode("plan")) == ("medium", None, True)
    assert await run() == ("medium", None, True)
    assert await run(**mode("default")) == ("medium", None, False)
