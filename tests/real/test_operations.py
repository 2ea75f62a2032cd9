"""Fork, compact, review, revert and archive on the real Codex."""

import pytest
from support.daemon import Daemon

pytestmark = pytest.mark.real


async def test_a_fork_goes_its_own_way(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "the story so far"})
    await daemon.wait_done("s")
    forked = await daemon.post("/api/sessions/s/fork", {"id": "f", "title": "another way"})
    assert (forked["origin"], forked["parentId"], forked["status"]) == ("forked", "s", "detached")
    assert forked["threadId"] != (await daemon.session("s"))["threadId"]
    assert forked["messageCount"] == 2
    await daemon.prompt("f", "and then this")
    (done,) = await daemon.wait_done("f")
    assert done["state"] == "normal"
    asked = str(daemon.model.calls[-1])
    assert "and then this" in asked
    await daemon.prompt("s", "and here that")
    assert (await daemon.wait_done("s", 2))[-1]["state"] == "normal"


async def test_a_compaction_is_a_turn_and_prompts_wait_for_it(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "much to remember"})
    await daemon.wait_done("s")
    answer = await daemon.call("POST", "/api/sessions/s/compact")
    assert answer.status_code == 202, answer.text
    await daemon.prompt("s", "after it")
    ends = await daemon.wait_done("s", 3)
    assert [end["state"] for end in ends] == ["normal"] * 3
    started = [event for event in await daemon.events(session="s") if event["kind"] == "turn/started"]
    assert [event["ours"] for event in started] == [True, False, True]


async def test_a_review_is_a_turn(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "hello"})
    await daemon.wait_done("s")
    body = {"target": {"type": "custom", "instructions": "look at nothing in particular"}}
    answer = await daemon.call("POST", "/api/sessions/s/review", body)
    assert answer.status_code == 202, answer.text
    assert len(await daemon.wait_done("s", 2)) == 2


async def test_turns_are_taken_back_and_the_session_goes_on_without_them(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@usage input=5 output=2\n@say first"})
    await daemon.wait_done("s")
    for number, text in enumerate(("second", "@usage input=9 output=1\n@say third", "fourth"), start=2):
        await daemon.prompt("s", text)
        await daemon.wait_done("s", number)
    turns = [turn["id"] for turn in (await daemon.get("/api/sessions/s/turns"))["data"]]
    reverted = await daemon.post("/api/sessions/s/revert", {"turns": 1})
    assert (reverted["status"], reverted["messageCount"]) == ("ready", 6)
    reverted = await daemon.post("/api/sessions/s/revert", {"beforeTurnId": turns[2]})
    assert reverted["messageCount"] == 2
    assert [turn["id"] for turn in (await daemon.get("/api/sessions/s/turns"))["data"]] == turns[3:]
    items = (await daemon.get("/api/sessions/s/items"))["data"]
    assert {item["turnId"] for item in items} == set(turns[3:])
    await daemon.prompt("s", "@usage input=9 output=1\n@say another way")
    done = (await daemon.wait_done("s", 5))[-1]
    assert (done["state"], done["tokens"]) == ("normal", {"input": 9, "output": 1})
    asked = " ".join(daemon.model.calls[-1].user_texts)
    assert ("first" in asked, "second" in asked, "third" in asked, "fourth" in asked) == (True, False, False, False)
    refused = await daemon.call("POST", "/api/sessions/s/revert", {"turns": 3})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:termald:problem:unknown-turn")


async def test_turns_are_taken_back_from_a_session_that_is_detached(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "one"})
    await daemon.wait_done("s")
    await daemon.post("/api/sessions/s/stop")
    reverted = await daemon.post("/api/sessions/s/revert", {"turns": 1})
    assert (reverted["status"], reverted["messageCount"]) == ("ready", 0)


async def test_an_archived_session_says_so_and_comes_back(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "hello"})
    await daemon.wait_done("s")
    await daemon.post("/api/sessions/s/archive")
    prompt = await daemon.prompt("s", "are you there")
    error = await daemon.wait_event(lambda event: event["kind"] == "session/error", what="the refusal")
    assert error["error"]["slug"] == "thread-archived"
    assert (await daemon.get(f"/api/sessions/s/prompts/{prompt}"))["state"] == "queued"
    await daemon.post("/api/sessions/s/unarchive")
    assert (await daemon.wait_done("s", 2))[-1]["state"] == "normal"


async def test_all_of_them_are_refused_while_a_turn_runs(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@hold gate"})
    await daemon.model.wait_held("gate")
    for what in ("fork", "compact", "review", "revert", "archive", "unarchive"):
        response = await daemon.call("POST", f"/api/sessions/s/{what}", {"turns": 1} if what == "revert" else None)
        assert response.status_code == 409, (what, response.text)
        assert response.json()["type"] == "urn:termald:problem:session-busy"
    daemon.model.release("gate")
    assert (await daemon.wait_done("s"))[0]["state"] == "normal"


async def test_a_new_title_is_codexs_name_for_the_thread(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "hello"})
    await daemon.wait_done("s")
    thread = (await daemon.session("s"))["threadId"]
    answer = await daemon.call("PATCH", "/api/sessions/s", {"title": "A better one"})
    assert answer.json()["title"] == "A better one"

    async def is_named() -> bool:
        threads = (await daemon.get("/api/threads"))["data"]
        return [one["title"] for one in threads if one["threadId"] == thread] == ["A better one"]

    await daemon.until(is_named, "the name in Codex's own list")
