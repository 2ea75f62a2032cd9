"""The main job on the real Codex: many sessions, one process, one thread each, nothing lost and nothing doubled."""

import os
import signal
import sqlite3
import sys

import pytest
import trio
from support.daemon import Daemon, Json

pytestmark = pytest.mark.real


def threads_in_codex(daemon: Daemon) -> dict[str, str | None]:
    """Return Codex's own threads and their tags."""
    (path,) = daemon.home.glob("state_*.sqlite")
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return dict(database.execute("select id, thread_source from threads").fetchall())


async def test_eight_sessions_at_once_share_one_process_and_make_eight_threads(daemon: Daemon) -> None:
    names = [f"s{number}" for number in range(8)]

    async def start(name: str) -> None:
        await daemon.create(name, prompt={"input": f"hello from {name}"})

    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(start, name)
    for name in names:
        (done,) = await daemon.wait_done(name)
        assert done["state"] == "normal"
    sessions = (await daemon.get("/api/sessions"))["data"]
    assert {session["status"] for session in sessions} == {"ready"}
    assert len({session["threadId"] for session in sessions}) == 8
    assert threads_in_codex(daemon).keys() == {session["threadId"] for session in sessions}
    assert len(daemon.app_servers()) == 1


async def test_fifty_prompts_during_one_setup_make_one_thread_and_fifty_turns_in_order(daemon: Daemon) -> None:
    await daemon.create("s")
    texts = [f"prompt number {number}" for number in range(50)]
    async with daemon.client() as client, trio.open_nursery() as nursery:
        accepted: list[tuple[int, str]] = []

        async def send(number: int, text: str) -> None:
            response = await client.post("/api/sessions/s/prompts", json={"input": text})
            assert response.status_code == 202
            accepted.append((number, response.json()["prompt"]["id"]))

        for number, text in enumerate(texts):
            nursery.start_soon(send, number, text)
    ends = await daemon.wait_done("s", 50)
    assert [end["state"] for end in ends] == ["normal"] * 50
    events = await daemon.events(session="s")
    assert sum(event["kind"] == "session/threadOpenRequested" for event in events) == 1
    order = [event["promptId"] for event in events if event["kind"] == "prompt/accepted"]
    assert [event["promptId"] for event in events if event["kind"] == "prompt/done"] == order
    assert len(order) == len(set(order)) == 50
    assert len({end["turnId"] for end in ends}) == 50
    assert len(threads_in_codex(daemon)) == 1
    assert len(daemon.model.calls) == 50


async def test_an_interrupt_in_the_same_instant_as_the_prompt_never_lets_the_turn_run_on(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "first"})
    await daemon.wait_done("s")
    async with daemon.client() as client, trio.open_nursery() as nursery:
        nursery.start_soon(lambda: client.post("/api/sessions/s/prompts", json={"input": "@hold forever\n@say no"}))
        await daemon.wait_event(lambda event: event["kind"] == "prompt/sent" and event["seq"] > 20, what="the send")
        response = await client.post("/api/sessions/s/interrupt")
    assert response.status_code == 202
    ends = await daemon.wait_done("s", 2)
    assert [end["state"] for end in ends] == ["normal", "cancelled"]
    session = await daemon.session("s")
    assert (session["status"], session["activeTurnId"]) == ("ready", None)
    await daemon.prompt("s", "goes on")  # control: the queue goes on
    assert (await daemon.wait_done("s", 3))[-1]["state"] == "normal"


async def test_an_approval_is_held_listed_and_answered_once(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@shell touch made-by-the-model\n@say done"})
    opened = await daemon.wait_event(lambda event: event["kind"] == "request/opened", what="the approval")
    (card,) = (await daemon.get("/api/requests"))["data"]
    assert card["id"] == opened["requestId"]
    assert (await daemon.session("s"))["waitingOn"] == "approval"
    assert not (daemon.cwd / "made-by-the-model").exists()
    path = f"/api/sessions/s/requests/{card['id']}"
    refused = await daemon.call("POST", path, {"decision": "perhaps"})
    assert refused.status_code == 422
    answered = await daemon.call("POST", path, {"decision": "accept"})
    assert answered.status_code == 200, answered.text
    again = await daemon.call("POST", path, {"decision": "decline"})
    assert again.status_code == 409
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "normal"
    assert (daemon.cwd / "made-by-the-model").exists()
    assert (await daemon.session("s"))["waitingOn"] is None


async def test_a_killed_session_is_gone_for_good_and_its_thread_stays_in_codex(daemon: Daemon) -> None:
    await daemon.create("kept", prompt={"input": "stay"})
    await daemon.create("killed", prompt={"input": "@hold forever"})
    await daemon.wait_done("kept")
    await daemon.model.wait_held("forever")
    thread = (await daemon.session("killed"))["threadId"]
    answer = await daemon.post("/api/sessions/killed/kill", {})
    assert (answer["killed"], answer["threadId"], answer["ignored"]) == (True, thread, True)
    again = await daemon.post("/api/sessions/killed/kill", {})
    assert again["killed"] is True
    assert (await daemon.call("GET", "/api/sessions/killed")).status_code == 404
    before = await daemon.events()
    assert await daemon.end() == 0
    await daemon.start()
    await daemon.wait_event(
        lambda event: event["kind"] == "discovery/finished" and event["seq"] > before[-1]["seq"], what="the boot scan"
    )
    assert thread in threads_in_codex(daemon)
    assert [session["id"] for session in (await daemon.get("/api/sessions"))["data"]] == ["kept"]
    ignored = (await daemon.get("/api/ignored-threads"))["data"]
    assert [(entry["threadId"], entry["reason"]) for entry in ignored] == [(thread, "killed")]
    replayed = await daemon.events()
    assert replayed[: len(before)] == before
    await daemon.prompt("kept", "still here")
    assert (await daemon.wait_done("kept", 2))[-1]["state"] == "normal"


async def test_a_sigkilled_daemon_serves_its_sessions_and_replays_the_same_events(daemon: Daemon) -> None:
    await daemon.create("done", prompt={"input": "over"})
    await daemon.create("held", prompt={"input": "@say begun\n@hold release\n@say whole"})
    await daemon.wait_done("done")
    await daemon.model.wait_held("release")
    await daemon.wait_event(lambda event: event["kind"] == "item/delta" and event["delta"] == "begun", what="a delta")
    before = await daemon.events()
    first = (await daemon.session("held"))["attachment"]
    await daemon.end(signal.SIGKILL)
    await daemon.start()
    await daemon.wait_ready()
    assert (await daemon.events())[: len(before)] == before
    await daemon.until(lambda: _attached_anew(daemon, first), "a new attachment")
    assert (await daemon.get("/api/runtime"))["adopted"] is True
    assert (await daemon.session("held"))["status"] == "running"
    daemon.model.release("release")
    (end,) = await daemon.wait_done("held")
    assert end["state"] == "normal"
    items = (await daemon.get("/api/sessions/held/items"))["data"]
    texts = [item["item"]["text"] for item in items if item["type"] == "agentMessage"]
    assert texts == ["begun\nwhole"]
    assert len(daemon.app_servers()) == 1


async def _attached_anew(daemon: Daemon, first: Json) -> bool:
    attachment = (await daemon.session("held"))["attachment"]
    return attachment is not None and attachment["generation"] > first["generation"]


async def test_after_both_died_nothing_is_running_without_something_live_behind_it(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@hold forever"})
    await daemon.prompt("s", "then this")
    await daemon.model.wait_held("forever")
    await daemon.end(signal.SIGKILL)
    daemon.end_codex()
    await daemon.start()
    (cut, whole) = await daemon.wait_done("s", 2)
    assert (cut["state"], whole["state"]) == ("error", "normal")
    assert cut["errorKind"] == "internal_error"
    prompts = (await daemon.get("/api/sessions/s/prompts"))["data"]
    assert sorted(prompt["state"] for prompt in prompts) == ["done", "failed"]
    assert (await daemon.session("s"))["status"] == "ready"


async def test_codex_that_dies_is_restarted_and_the_queue_goes_on(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@hold forever"})
    await daemon.prompt("s", "then this")
    await daemon.model.wait_held("forever")
    first = await daemon.get("/api/runtime")
    os.killpg(first["pid"], signal.SIGKILL)
    (cut, whole) = await daemon.wait_done("s", 2)
    assert (cut["state"], whole["state"]) == ("error", "normal")
    second = await daemon.get("/api/runtime")
    assert second["id"] != first["id"]
    assert second["lastExit"]["signal"] == "SIGKILL"
    exits = [event for event in await daemon.events() if event["kind"] == "runtime/exited"]
    assert len(exits) == 1


async def test_a_second_serve_on_the_same_state_ends_and_names_the_first(daemon: Daemon) -> None:
    first = daemon.process
    assert first is not None
    result = await trio.run_process(
        [*_serve()], env=daemon.environment, check=False, capture_stdout=True, capture_stderr=True
    )
    assert result.returncode == 1
    assert str(first.pid) in (result.stdout + result.stderr).decode()
    assert (await daemon.get("/api/health"))["status"] == "ok"


def _serve() -> list[str]:
    return [sys.executable, "-m", "termald", "serve"]
