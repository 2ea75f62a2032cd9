"""One thread and several connections: what a new link finds of a process that went on without it."""

import pytest
import trio
from facts.lab import (
    COMMAND,
    FREE,
    SocketLab,
    heard,
    idle,
    in_turn,
    items_told,
    mark,
    newest_turns,
    prompts,
    resume,
)
from support.waiting import until

pytestmark = pytest.mark.real


async def test_a_turn_outlives_its_connection_and_another_takes_it_up(lab: SocketLab) -> None:
    """`core.recovery.link_up`: after a lost link the thread is resumed over the next one, and nothing of its turn is
    lost but the text that was told in between."""
    first = await lab.codex.connect()
    thread = await first.start_thread(lab.cwd)
    turn = await first.start_turn(thread, "@say one\n@hold gate\n@say two three", clientUserMessageId="p1")
    await first.wait_for("item/agentMessage/delta")
    await first.vanish()
    second = await lab.codex.connect()
    assert (await resume(second, thread))["status"]["type"] == "active"
    (running,) = await newest_turns(second, thread)
    assert (running["id"], running["status"], prompts(running)) == (turn, "inProgress", ["p1"])
    lab.model.release("gate")
    ended = await second.finish_turn(thread, turn)
    assert [params["delta"] for params in ended.params("item/agentMessage/delta")] == ["\ntwo", " three"]
    assert (ended.status, ended.text) == ("completed", "one\ntwo three")


async def test_news_of_a_thread_goes_to_everybody_and_news_of_a_turn_to_its_subscribers(lab: SocketLab) -> None:
    """`core.routing`: what nobody here subscribed to is told all the same, and makes no session of itself."""
    owner, joined, stranger = [await lab.codex.connect() for _ in range(3)]
    thread = await owner.start_thread(lab.cwd)
    for codex in (joined, stranger):
        await codex.wait_for("thread/started", lambda params: params["thread"]["id"] == thread)
    turn = await owner.start_turn(thread, "@say one\n@hold gate\n@say two")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    await resume(joined, thread)
    lab.model.release("gate")
    assert (await owner.finish_turn(thread, turn)).text == (await joined.finish_turn(thread, turn)).text == "one\ntwo"
    await mark(owner, thread, stranger)
    told = heard(stranger, thread)
    assert not in_turn(told)
    assert "thread/tokenUsage/updated" not in told
    statuses = [m["params"]["status"]["type"] for m in stranger.messages if m["method"] == "thread/status/changed"]
    assert statuses == ["active", "idle"]


async def test_a_pending_request_is_asked_again_under_its_id_and_the_first_answer_wins(lab: SocketLab) -> None:
    """`core.requests`: the same id is the same card. Whoever answers second changes nothing, and was told before."""
    first, second, third = [await lab.codex.connect() for _ in range(3)]
    thread = await first.start_thread(lab.cwd, **FREE | {"approvalPolicy": "untrusted"})
    turn = await first.start_turn(thread, "@shell touch made\n@say I understand")
    asked = await first.wait_for(COMMAND)
    await first.vanish()
    again = []
    for codex in (second, third):
        await resume(codex, thread)
        again.append(await codex.wait_for(COMMAND))
    assert [(request["id"], request["params"]) for request in again] == [(asked["id"], asked["params"])] * 2
    await second.answer(again[0], {"decision": "decline"})
    for codex in (second, third):
        resolved = await codex.wait_for("serverRequest/resolved")
        assert resolved["params"] == {"threadId": thread, "requestId": asked["id"]}
    await third.answer(again[1], {"decision": "accept"})
    ended = await third.finish_turn(thread, turn)
    assert (ended.status, ended.text) == ("completed", "I understand")
    assert not (lab.cwd / "made").exists()
    # Declined over another connection than the one that heard it begin, a command is never told to have ended, nor is
    # it on record: such an item stays open (`core.turns.finish`).
    await mark(third, thread)
    assert items_told(third, "commandExecution") == []
    assert "commandExecution" not in [item["type"] for item in (await newest_turns(third, thread))[0]["items"]]


async def test_after_unsubscribe_nothing_more_is_told_not_even_a_commands_end(lab: SocketLab) -> None:
    """`core.ending`, `core.disposal`: tools are ended first, and the turn, for afterwards nobody hears of them. The
    thread stays loaded, and a turn that runs goes on."""
    codex, other = await lab.codex.connect(), await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, **FREE)
    script = "@shell wait=250ms while [ ! -e stop ]; do sleep 0.02; done\n@say one\n@hold gate\n@say two"
    await codex.start_turn(thread, script)
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    assert await codex.request("thread/unsubscribe", {"threadId": thread}) == {"status": "unsubscribed"}
    assert await codex.request("thread/unsubscribe", {"threadId": thread}) == {"status": "notSubscribed"}
    since = len(codex.messages)
    await resume(other, thread)
    lab.model.release("gate")
    await other.wait_for("turn/completed")
    (lab.cwd / "stop").touch()
    await other.wait_for("item/completed", lambda params: params["item"]["type"] == "commandExecution")
    await mark(other, thread, codex)
    assert not in_turn(heard(codex, thread, since=since))
    await resume(codex, thread)
    assert in_turn(list((await codex.run_turn(thread, "hello")).methods))


async def test_a_sub_agents_thread_is_told_to_every_connection_its_requests_included(lab: SocketLab) -> None:
    """`core.requests`, `core.routing`: a child's request comes over our link though we never subscribed to it, whoever
    owns its parent, and no `thread/started` tells of the child. The parent's record and `thread/read` name the two."""
    owner, stranger = await lab.codex.connect(), await lab.codex.connect()
    thread = await owner.start_thread(lab.cwd, **FREE | {"approvalPolicy": "untrusted"})
    turn = await owner.start_turn(thread, "@spawn @shell touch made\n@hold parent\n@say from the parent")
    asked = [await codex.wait_for(COMMAND) for codex in (owner, stranger)]
    assert asked[0] == asked[1]
    child = asked[0]["params"]["threadId"]
    assert child != thread
    assert {"turn/started", "item/started", COMMAND} <= set(heard(stranger, child))
    assert not in_turn(heard(stranger, thread))
    started = [m["params"]["thread"]["id"] for m in owner.messages if m["method"] == "thread/started"]
    assert child not in started
    read = (await stranger.request("thread/read", {"threadId": child}))["thread"]
    assert (read["parentThreadId"], read["threadSource"]) == (thread, "subagent")
    await stranger.answer(asked[1], {"decision": "accept"})
    await until((lab.cwd / "made").exists)
    lab.model.release("parent")
    ended = await owner.finish_turn(thread, turn)
    assert [item["receiverThreadIds"] for item in ended.items("collabAgentToolCall")] == [[child]]


async def test_what_a_vanished_connection_asked_is_on_record_at_once_or_never_runs(lab: SocketLab) -> None:
    """`core.recovery._absent`: an idle thread that does not list the turn of a lost `turn/start` will not run it any
    more, so that it can be sent again. Many quick trials, for there is no moment in between to be caught."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "hello")
    absent = []
    for trial in range(24):
        sender, reader = await lab.codex.connect(), await lab.codex.connect()
        spoken = [{"type": "text", "text": "@say x"}]
        prompt = f"p{trial}"
        await sender.ask("turn/start", {"threadId": thread, "input": spoken, "clientUserMessageId": prompt})
        await sender.vanish()
        status = (await resume(reader, thread))["status"]["type"]
        newest, *_ = await newest_turns(reader, thread)
        if status == "idle" and newest["status"] != "inProgress" and prompt not in prompts(newest):
            absent.append(prompt)
        await idle(codex, thread)
        await reader.vanish()
    await codex.run_turn(thread, "the last")
    recorded = await codex.request("thread/items/list", {"threadId": thread, "limit": 200})
    ran = {entry["item"].get("clientId") for entry in recorded["data"]}
    assert ran & set(absent) == set()
    assert {f"p{trial}" for trial in range(24)} - set(absent) <= ran
