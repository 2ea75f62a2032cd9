"""Taking turns back: what Codex cuts, what it tells of that, and who may ask."""

import pytest
import trio
from facts.lab import UNKNOWN, SocketLab, heard, in_turn, mark, newest_turns, refusal, resume

pytestmark = pytest.mark.real


async def turn_ids(lab: SocketLab, thread: str) -> list[str]:
    codex = await lab.codex.connect()
    return [turn["id"] for turn in await newest_turns(codex, thread)]


async def test_a_revert_cuts_before_a_turn_and_its_subscribers_hear_on(lab: SocketLab) -> None:
    """`core.reverting`, `core.routing._unloaded`: the thread is told `notLoaded` on the way, and is not."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    for text in ("one", "two", "three"):
        await codex.run_turn(thread, text)
    third, second, first = await turn_ids(lab, thread)
    since = len(codex.messages)
    await codex.request("thread/revert", {"threadId": thread, "beforeTurnId": second})
    await mark(codex, thread)
    told = [message for message in codex.messages[since:] if message["params"].get("threadId") == thread]
    statuses = [message["params"]["status"]["type"] for message in told if message["method"].endswith("status/changed")]
    assert statuses == ["notLoaded", "idle"]
    assert [message["method"] for message in told].count("thread/reverted") == 1
    assert await turn_ids(lab, thread) == [first]
    since = len(codex.messages)
    await codex.run_turn(thread, "four")
    assert "turn/started" in in_turn(heard(codex, thread, since=since))
    asked = " ".join(lab.model.calls[-1].user_texts)
    assert ("one" in asked, "two" in asked, "three" in asked) == (True, False, False)
    assert third not in await turn_ids(lab, thread)


async def test_a_revert_may_leave_nothing_and_the_thread_goes_on(lab: SocketLab) -> None:
    """`core.reverting`: the claim is kept whatever is left."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "one")
    (first,) = await turn_ids(lab, thread)
    await codex.request("thread/revert", {"threadId": thread, "beforeTurnId": first})
    assert await turn_ids(lab, thread) == []
    await codex.run_turn(thread, "anew")
    assert len(await turn_ids(lab, thread)) == 1
    await resume(await lab.codex.connect(), thread)


async def test_what_a_revert_is_refused_for(lab: SocketLab) -> None:
    """`core.reverting`: the thread must be loaded and keep its history in pages; and there is no other way."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "one")
    (turn,) = await turn_ids(lab, thread)
    refused = await refusal(codex, "thread/revert", threadId=thread, beforeTurnId=UNKNOWN)
    assert (refused.code, refused.message) == (-32600, f"turn not found: {UNKNOWN}")
    refused = await refusal(codex, "thread/rollback", threadId=thread, numTurns=1)
    assert refused.message.startswith("Invalid request: unknown variant `thread/rollback`")
    old = await codex.start_thread(lab.cwd, historyMode="legacy")
    await codex.run_turn(old, "one")
    (old_turn,) = await turn_ids(lab, old)
    refused = await refusal(codex, "thread/revert", threadId=old, beforeTurnId=old_turn)
    assert refused.message == "thread/revert only supports paginated threads"
    await lab.kill()
    async with lab.another() as server:
        other = await server.connect()
        refused = await refusal(other, "thread/revert", threadId=thread, beforeTurnId=turn)
        assert refused.message == f"thread not found: {thread}"


async def test_a_revert_interrupts_the_turn_that_runs(lab: SocketLab) -> None:
    """`core.operations.proceed`: so it is never sent while one does."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turn = await codex.start_turn(thread, "@hold gate")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    await codex.request("thread/revert", {"threadId": thread, "beforeTurnId": turn})
    assert (await codex.finish_turn(thread, turn)).status == "interrupted"
