"""What other front-ends do to a thread, and how all connections hear of it."""

from itertools import groupby

import pytest
import trio
from facts.lab import SocketLab, heard, mark, meaning, refusal, resume
from support.codex_process import CodexConnection

pytestmark = pytest.mark.real


async def test_a_new_name_is_told_to_every_connection(lab: SocketLab) -> None:
    """`core.routing._renamed`: whoever names it; a thread has no name until then."""
    codex, stranger = await lab.codex.connect(), await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "hello")
    assert (await resume(codex, thread))["name"] is None
    await codex.request("thread/name/set", {"threadId": thread, "name": "A name"})
    told = await stranger.wait_for("thread/name/updated")
    assert told["params"] == {"threadId": thread, "threadName": "A name"}
    assert (await resume(stranger, thread))["name"] == "A name"


@pytest.mark.parametrize(
    ("method", "told"), [("thread/archive", "thread/archived"), ("thread/delete", "thread/deleted")]
)
async def test_a_thread_that_is_put_away_is_unloaded_first_and_everybody_is_told(
    lab: SocketLab, method: str, told: str
) -> None:
    """`core.routing._gone`, `core.disposal`: it works without a subscription. A turn that runs ends as `interrupted`,
    and its subscribers hear so before the thread is gone."""
    codex, stranger = await lab.codex.connect(), await lab.codex.connect()
    quiet, busy = await codex.start_thread(lab.cwd), await codex.start_thread(lab.cwd)
    await codex.run_turn(quiet, "hello")
    turn = await codex.start_turn(busy, "@hold gate")
    await codex.wait_for("item/completed", lambda params: params["turnId"] == turn)
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    for thread, expected in (
        (quiet, ["notLoaded", told]),
        (busy, ["idle", "turn/completed", "notLoaded", told]),
    ):
        since, since_there = len(codex.messages), len(stranger.messages)
        await stranger.request(method, {"threadId": thread})
        await codex.wait_for(told, since=since)
        await stranger.wait_for(told, since=since_there)
        assert _told(codex, thread, since) == expected
        assert _told(stranger, thread, since_there) == [word for word in expected if word != "turn/completed"]
    assert (await codex.finish_turn(busy, turn)).status == "interrupted"
    assert (await codex.request("thread/loaded/list"))["data"] == []
    if method == "thread/delete":
        assert meaning(await refusal(codex, method, threadId=quiet)).refusal == "no_rollout"


def _told(codex: CodexConnection, thread: str, since: int) -> list[str]:
    """What was told of a thread, its statuses by their names; one that is told twice on end counts once."""
    about = [message for message in codex.messages[since:] if message["params"].get("threadId") == thread]
    words = [message["params"].get("status", {}).get("type", message["method"]) for message in about]
    return [word for word, _ in groupby(words)]


async def test_an_unsubscribed_thread_is_not_unloaded_at_once(lab: SocketLab) -> None:
    """`core.setup`: after a detach the thread is still there, and the next attach resumes it in the same process."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "hello")
    since = len(codex.messages)
    await codex.request("thread/unsubscribe", {"threadId": thread})
    await mark(codex, thread)
    assert "thread/closed" not in heard(codex, thread, since=since)
    assert (await codex.request("thread/loaded/list"))["data"] == [thread]
    await resume(codex, thread)
    assert (await codex.run_turn(thread, "again")).status == "completed"
