"""Sessions over HTTP, as somebody outside meets them; every refusal with what its sender needs to go on."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from support.api_daemon import Served
from support.problems import problem_of

from termald.core.effects import KillAnswer, Send, StartTurn
from termald.core.inputs import CreateSession, KillSession, PatchSession

SUMMARY = {
    "id",
    "title",
    "status",
    "waitingOn",
    "origin",
    "cwd",
    "model",
    "modelProvider",
    "effort",
    "runtimeMode",
    "threadId",
    "home",
    "archived",
    "resumeCursor",
    "attachment",
    "activeTurnId",
    "queuedPrompts",
    "pendingRequests",
    "messageCount",
    "preview",
    "parentId",
    "createdAt",
    "updatedAt",
    "lastError",
}


async def create(client: httpx.AsyncClient, folder: Path, **fields: Any) -> dict[str, Any]:
    response = await client.post("/api/sessions", json={"cwd": str(folder), **fields})
    assert response.status_code == 201, response.text
    session: dict[str, Any] = response.json()
    return session


async def run_turn(api: Served, thread: str = "th-1", turn: str = "tu-1") -> None:
    """Let the first prompt's thread be opened and its turn begin."""
    await api.daemon.link_up()
    await api.daemon.open_thread(thread)
    await api.daemon.start_turn(thread, turn)


# --- create ---


async def test_a_session_is_made_with_an_id_of_its_own_and_found_at_its_address(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    response = await client.post("/api/sessions", json={"cwd": str(tmp_path), "title": "docs"})
    session = response.json()
    assert (response.status_code, response.headers["location"]) == (201, f"/api/sessions/{session['id']}")
    assert session.keys() >= SUMMARY
    assert (session["title"], session["status"], session["origin"]) == ("docs", "detached", "created")
    assert (session["runtimeMode"], session["prompt"]) == ("approval-required", None)
    assert session["createdAt"].endswith("Z") and len(session["createdAt"]) == len("2026-11-30T21:00:00.000Z")
    found = (await client.get(response.headers["location"])).json()
    assert {key: found[key] for key in SUMMARY} == {key: session[key] for key in SUMMARY}


async def test_all_that_can_be_chosen_is_kept(client: httpx.AsyncClient, tmp_path: Path) -> None:
    chosen = {
        "title": "t",
        "model": "m",
        "modelProvider": "p",
        "effort": "high",
        "serviceTier": "flex",
        "runtimeMode": "full-access",
        "approvalPolicy": {"granular": {"rules": True}},
        "sandbox": "workspace-write",
        "developerInstructions": "be brief",
        "config": {"a": {"b": [1, 2.5, None]}},
        "onResumeLost": "fresh",
        "onRecovery": "hold",
        "requestPolicy": {
            "command": "accept",
            "fileChange": "decline",
            "permissions": "ask",
            "userInput": "decline",
            "elicitation": "ask",
            "allowCommands": [["git", "status"], ["ls"]],
            "deadlineMs": 5_000,
        },
    }
    session = await create(client, tmp_path, id="s1", **chosen)
    found = (await client.get("/api/sessions/s1")).json()
    assert {key: found[key] for key in chosen} == chosen
    assert session["id"] == "s1"


@pytest.mark.parametrize("prompt", ["hello", [{"type": "text", "text": "hello"}], {"input": "hello", "effort": "low"}])
async def test_the_first_prompt_comes_with_its_session(client: httpx.AsyncClient, tmp_path: Path, prompt: Any) -> None:
    session = await create(client, tmp_path, prompt=prompt)
    assert session["prompt"]["state"] == "queued"
    assert session["prompt"]["input"] == [{"type": "text", "text": "hello"}]
    assert session["queuedPrompts"] == 1
    listed = (await client.get(f"/api/sessions/{session['id']}/prompts")).json()["data"]
    assert [prompt["id"] for prompt in listed] == [session["prompt"]["id"]]


async def test_a_prompt_that_is_refused_leaves_no_session_behind(client: httpx.AsyncClient, tmp_path: Path) -> None:
    response = await client.post("/api/sessions", json={"cwd": str(tmp_path), "prompt": "  "})
    assert problem_of(response, "invalid-request")["errors"][0]["pointer"] == "#/prompt/input"
    assert (await client.get("/api/sessions")).json() == {"data": [], "nextCursor": None}


async def test_a_folder_that_is_none_is_refused(client: httpx.AsyncClient) -> None:
    """Codex would take it, and the session would be of no use to anybody."""
    for cwd in ["relative", ".", "/nowhere/at/all", "/etc/passwd", "/a\0b", "/" + "x" * 300]:
        response = await client.post("/api/sessions", json={"cwd": cwd})
        assert problem_of(response, "cwd-missing")["errors"][0]["pointer"] == "#/cwd"


async def test_every_field_that_is_wrong_is_named_at_once(client: httpx.AsyncClient) -> None:
    body = {"title": 3, "runtimeMode": "yolo", "cwdd": "/", "resumeCursor": {"thread": "x"}, "id": "a/b"}
    response = await client.post("/api/sessions", json=body)
    errors = problem_of(response, "invalid-request")["errors"]
    assert {error["pointer"] for error in errors} == {
        "#/cwd",
        "#/title",
        "#/runtimeMode",
        "#/cwdd",
        "#/resumeCursor",
        "#/id",
    }
    assert "is missing" in next(error["detail"] for error in errors if error["pointer"] == "#/cwd")


async def test_an_id_that_could_not_stand_in_an_address_is_refused(client: httpx.AsyncClient, tmp_path: Path) -> None:
    for name in ["", ".", "-a", "a b", "a/b", "ä", "a\n", "x" * 129]:
        response = await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": name})
        assert problem_of(response, "invalid-request")["errors"][0]["pointer"] == "#/id"


async def test_an_id_is_taken_once_and_for_ever(client: httpx.AsyncClient, tmp_path: Path) -> None:
    await create(client, tmp_path, id="once")
    assert (await client.post("/api/sessions/once/kill")).status_code == 200
    response = await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "once"})
    problem_of(response, "session-exists")


async def test_a_thread_belongs_to_one_session_and_the_other_is_told_which(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    cursor = {"threadId": "0199-thread"}
    session = await create(client, tmp_path, id="owner", resumeCursor=cursor)
    assert (session["threadId"], session["resumeCursor"], session["origin"]) == ("0199-thread", cursor, "external")
    response = await client.post("/api/sessions", json={"cwd": str(tmp_path), "resumeCursor": cursor})
    assert "'owner'" in problem_of(response, "thread-owned")["detail"]


# --- once ---


async def test_the_same_key_and_body_give_the_first_answer_again(client: httpx.AsyncClient, tmp_path: Path) -> None:
    """A client that did not hear the answer asks again, and must not end up with two sessions (SETUP-25)."""
    key = {"Idempotency-Key": "k1"}
    body = {"cwd": str(tmp_path), "title": "a", "prompt": "hello"}
    first = await client.post("/api/sessions", json=body, headers=key)
    again = await client.post("/api/sessions", json=dict(reversed(body.items())), headers=key)
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert first.headers["location"] == again.headers["location"]
    assert len((await client.get("/api/sessions")).json()["data"]) == 1
    other = await client.post("/api/sessions", json={**body, "title": "b"}, headers=key)
    assert "'k1'" in problem_of(other, "idempotency-mismatch")["detail"]
    await client.post("/api/sessions", json=body, headers={"Idempotency-Key": "k2"})
    assert len((await client.get("/api/sessions")).json()["data"]) == 2


async def test_the_first_answer_is_given_again_when_the_folder_has_gone_since(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    folder = trio.Path(tmp_path / "work")
    await folder.mkdir()
    body, key = {"cwd": str(folder)}, {"Idempotency-Key": "k1"}
    first = await client.post("/api/sessions", json=body, headers=key)
    await folder.rmdir()
    again = await client.post("/api/sessions", json=body, headers=key)
    assert (first.status_code, first.content) == (again.status_code, again.content)
    other = await client.post("/api/sessions", json={**body, "title": "b"}, headers=key)
    problem_of(other, "idempotency-mismatch")
    problem_of(await client.post("/api/sessions", json=body, headers={"Idempotency-Key": "k2"}), "cwd-missing")


async def test_a_key_is_bound_to_its_address(client: httpx.AsyncClient, tmp_path: Path) -> None:
    await create(client, tmp_path, id="a")
    await create(client, tmp_path, id="b")
    key = {"Idempotency-Key": "k1"}
    assert (await client.post("/api/sessions/a/prompts", json={"input": "x"}, headers=key)).status_code == 202
    response = await client.post("/api/sessions/b/prompts", json={"input": "x"}, headers=key)
    problem_of(response, "idempotency-mismatch")


@pytest.mark.parametrize("key", ["", "x" * 256, "a\tb"])
async def test_what_is_no_key_is_refused(client: httpx.AsyncClient, tmp_path: Path, key: str) -> None:
    response = await client.post("/api/sessions", json={"cwd": str(tmp_path)}, headers={"Idempotency-Key": key})
    assert problem_of(response, "invalid-request")["errors"][0]["parameter"] == "Idempotency-Key"


# --- read ---


async def test_sessions_come_in_pages_newest_first_and_each_once(client: httpx.AsyncClient, tmp_path: Path) -> None:
    names = [(await create(client, tmp_path, id=f"s{number}"))["id"] for number in range(7)]
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    while True:
        page = (await client.get("/api/sessions", params=query)).json()
        seen += [session["id"] for session in page["data"]]
        assert all(session.keys() == SUMMARY for session in page["data"])
        if page["nextCursor"] is None:
            break
        query["cursor"] = page["nextCursor"]
        await create(client, tmp_path)  # what is made meanwhile shifts nothing
    assert sorted(seen) == names


async def test_sessions_are_found_by_status_origin_and_folder(client: httpx.AsyncClient, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    await create(client, tmp_path, id="a")
    await create(client, tmp_path / "other", id="b")
    await create(client, tmp_path, id="c", resumeCursor={"threadId": "t"})
    await client.post("/api/sessions/a/close")

    async def found(**query: str) -> set[str]:
        return {session["id"] for session in (await client.get("/api/sessions", params=query)).json()["data"]}

    assert await found(status="closed") == {"a"}
    assert await found(origin="external") == {"c"}
    assert await found(cwd=str(tmp_path / "other")) == {"b"}
    assert await found(cwd=str(tmp_path), status="detached") == {"c"}


async def test_a_query_that_makes_no_sense_is_refused_by_name(client: httpx.AsyncClient) -> None:
    for query, parameter in [
        ({"limit": "0"}, "limit"),
        ({"limit": "501"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"status": "asleep"}, "status"),
        ({"origin": "mars"}, "origin"),
        ({"cursor": "!"}, "cursor"),
        ({"cursor": "e30"}, "cursor"),
        ({"cursor": "ä"}, "cursor"),
    ]:
        response = await client.get("/api/sessions", params=query)
        assert [error["parameter"] for error in problem_of(response, "invalid-request")["errors"]] == [parameter]


async def test_a_cursor_is_only_good_for_its_own_list(client: httpx.AsyncClient, tmp_path: Path) -> None:
    """Under other filters it would pass over rows in silence."""
    for name in ("a", "b"):
        await create(client, tmp_path, id=name)
    cursor = (await client.get("/api/sessions", params={"limit": 1})).json()["nextCursor"]
    response = await client.get("/api/sessions", params={"cursor": cursor, "status": "detached"})
    assert "another list" in problem_of(response, "invalid-request")["detail"]
    assert (
        "another list"
        in problem_of(await client.get("/api/threads", params={"cursor": cursor}), "invalid-request")["detail"]
    )


async def test_a_session_that_has_not_changed_is_not_sent_again(client: httpx.AsyncClient, tmp_path: Path) -> None:
    await create(client, tmp_path, id="a")
    first = await client.get("/api/sessions/a")
    tag = first.headers["etag"]
    for known in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = await client.get("/api/sessions/a", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    await client.patch("/api/sessions/a", json={"title": "new"})
    changed = await client.get("/api/sessions/a", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["title"]) == (200, "new")
    assert changed.headers["etag"] != tag


async def test_a_prompt_that_waits_changes_the_etag(client: httpx.AsyncClient, tmp_path: Path) -> None:
    """The counts are part of what is shown."""
    await create(client, tmp_path, id="a")
    tag = (await client.get("/api/sessions/a")).headers["etag"]
    await client.post("/api/sessions/a/prompts", json={"input": "x"})
    assert (await client.get("/api/sessions/a", headers={"If-None-Match": tag})).json()["queuedPrompts"] == 1


# --- change ---


async def test_settings_are_changed_and_taken_back(client: httpx.AsyncClient, tmp_path: Path) -> None:
    await create(client, tmp_path, id="a", title="t", model="m")
    changed = await client.patch(
        "/api/sessions/a",
        json={"title": None, "effort": "low", "runtimeMode": "full-access", "approvalPolicy": "never"},
    )
    assert changed.status_code == 200
    session = changed.json()
    assert (session["title"], session["model"], session["effort"]) == (None, "m", "low")
    assert (session["runtimeMode"], session["approvalPolicy"]) == ("full-access", "never")


async def test_a_policy_is_chosen_whole_and_taken_back(client: httpx.AsyncClient, tmp_path: Path) -> None:
    made = await create(client, tmp_path, id="a", requestPolicy={"command": "decline", "userInput": None})
    kinds = ("command", "fileChange", "permissions", "userInput", "elicitation")
    asks: dict[str, Any] = {**dict.fromkeys(kinds, "ask"), "allowCommands": []}
    assert made["requestPolicy"] == {**asks, "command": "decline", "deadlineMs": None}
    changed = await client.patch("/api/sessions/a", json={"requestPolicy": {"deadlineMs": 1_000}})
    assert changed.json()["requestPolicy"] == {**asks, "deadlineMs": 1_000}
    back = await client.patch("/api/sessions/a", json={"requestPolicy": None})
    assert back.json()["requestPolicy"] == {**asks, "deadlineMs": None}


@pytest.mark.parametrize(
    "policy",
    [
        {"userInput": "accept"},
        {"command": "maybe"},
        {"commands": "ask"},
        {"deadlineMs": 999},
        {"allowCommands": [[]]},
        "accept",
    ],
)
async def test_a_policy_that_makes_no_sense_is_refused(client: httpx.AsyncClient, tmp_path: Path, policy: Any) -> None:
    await create(client, tmp_path, id="a")
    response = await client.patch("/api/sessions/a", json={"requestPolicy": policy})
    assert problem_of(response, "invalid-request")["errors"][0]["pointer"].startswith("#/requestPolicy")


async def test_a_change_of_nothing_asks_nothing(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> None:
    await create(client, tmp_path, id="a")
    assert (await client.patch("/api/sessions/a", json={})).json()["id"] == "a"
    assert not any(isinstance(command, PatchSession) for command in api.daemon.asked)


@pytest.mark.parametrize("body", [{"cwd": "/"}, {"runtimeMode": None}, {"status": "closed"}, {"sandbox": "none"}])
async def test_what_cannot_be_changed_is_refused(
    client: httpx.AsyncClient, tmp_path: Path, body: dict[str, Any]
) -> None:
    await create(client, tmp_path, id="a")
    response = await client.patch("/api/sessions/a", json=body)
    assert problem_of(response, "invalid-request")["errors"][0]["pointer"] == f"#/{next(iter(body))}"


# --- end ---


async def test_interrupting_what_is_idle_is_a_success_that_says_so(client: httpx.AsyncClient, tmp_path: Path) -> None:
    await create(client, tmp_path, id="a")
    response = await client.post("/api/sessions/a/interrupt")
    assert (response.status_code, response.json()) == (200, {"interrupted": False})


async def test_interrupting_a_turn_is_accepted(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> None:
    await create(client, tmp_path, id="a", prompt="hello")
    await run_turn(api)
    running = (await client.get("/api/sessions/a")).json()
    assert (running["status"], running["activeTurnId"]) == ("running", "tu-1")
    assert running["attachment"] == {"runtimeId": "r1", "generation": 1}
    response = await client.post("/api/sessions/a/interrupt")
    assert (response.status_code, response.json()) == (202, {"interrupted": True})


async def test_stopping_leaves_the_queue_and_closing_ends_it(client: httpx.AsyncClient, tmp_path: Path) -> None:
    session = await create(client, tmp_path, id="a", prompt="hello")
    prompt = f"/api/sessions/a/prompts/{session['prompt']['id']}"
    stopped = await client.post("/api/sessions/a/stop", json={})
    assert (stopped.status_code, stopped.json()["status"], stopped.json()["queuedPrompts"]) == (200, "detached", 1)
    assert (await client.get(prompt)).json()["state"] == "queued"
    closed = await client.post("/api/sessions/a/close")
    assert (closed.status_code, closed.json()["status"]) == (200, "closed")
    ended = (await client.get(prompt)).json()
    assert (ended["state"], ended["error"]["slug"], ended["endedAt"] is None) == ("cancelled", "closed", False)
    problem_of(await client.post("/api/sessions/a/prompts", json={"input": "x"}), "session-closed")
    assert (await client.post("/api/sessions/a/close")).status_code == 200


async def test_a_stop_cannot_be_rehearsed_and_says_so(client: httpx.AsyncClient, tmp_path: Path) -> None:
    """Whoever sends dryRun to what does not know it would otherwise have stopped the session."""
    await create(client, tmp_path, id="a", prompt="hello")
    for end in ("stop", "close", "interrupt"):
        response = await client.post(f"/api/sessions/a/{end}", json={"dryRun": True})
        assert problem_of(response, "invalid-request")["errors"][0]["pointer"] == "#/dryRun"
    assert (await client.get("/api/sessions/a")).json()["queuedPrompts"] == 1


async def test_a_kill_removes_the_session_ignores_its_thread_and_stays_a_success(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    await create(client, tmp_path, id="a", resumeCursor={"threadId": "t1"})
    told = {"sessionId": "a", "threadId": "t1", "upstream": None}
    rehearsed = await client.post("/api/sessions/a/kill", json={"dryRun": True})
    assert rehearsed.json() == {**told, "killed": False, "dryRun": True, "ignored": True}
    assert (await client.get("/api/sessions/a")).status_code == 200
    for _ in range(2):
        killed = await client.post("/api/sessions/a/kill")
        assert killed.status_code == 200
        assert killed.json() == {**told, "killed": True, "dryRun": False, "ignored": True}
    problem_of(await client.get("/api/sessions/a"), "unknown-session")
    assert [entry["threadId"] for entry in (await client.get("/api/ignored-threads")).json()["data"]] == ["t1"]


async def test_what_codex_said_to_a_kill_stands_beside_it(api: Served, client: httpx.AsyncClient) -> None:
    upstream = '{"unsubscribe":"ok","archive":"no rollout found"}'
    answer = KillAnswer(killed=True, session="a", thread="t", ignored=True, upstream_json=upstream)  # type: ignore[arg-type]
    api.daemon.dictate(answer)
    killed = (await client.post("/api/sessions/a/kill", json={"thread": "archive"})).json()
    assert killed["upstream"] == {"unsubscribe": "ok", "archive": "no rollout found"}
    command = api.daemon.asked[-1]
    assert isinstance(command, KillSession)
    assert command.wanted == "archive"


async def test_held_prompts_are_let_go_and_only_a_lost_thread_can_be_given_up(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    await create(client, tmp_path, id="a", prompt="hello")
    await client.post("/api/sessions/a/stop")
    assert (await client.get("/api/sessions/a")).json()["paused"] is True
    assert (await client.post("/api/sessions/a/retry")).json()["paused"] is False
    problem_of(await client.post("/api/sessions/a/retry", json={"fresh": True}), "not-lost")


async def test_a_session_that_is_not_there_is_not_found_anywhere(client: httpx.AsyncClient) -> None:
    for method, path in [
        ("GET", ""),
        ("PATCH", ""),
        ("POST", "/interrupt"),
        ("POST", "/stop"),
        ("POST", "/close"),
        ("POST", "/kill"),
        ("POST", "/retry"),
        ("POST", "/prompts"),
        ("GET", "/prompts"),
        ("GET", "/prompts/p"),
        ("DELETE", "/prompts/p"),
        ("GET", "/turns"),
        ("GET", "/items"),
        ("GET", "/requests"),
        ("POST", "/requests/r"),
        ("GET", "/events"),
    ]:
        bodies = {"PATCH": {"title": "x"}, "/prompts": {"input": "x"}, "/requests/r": {"decision": "accept"}}
        body = bodies.get(method) or (bodies.get(path) if method == "POST" else None)
        response = await client.request(method, f"/api/sessions/nobody{path}", json=body)
        assert "'nobody'" in problem_of(response, "unknown-session")["detail"]


async def test_what_was_asked_reaches_the_core_whole(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> None:
    prompt = {"input": "hi", "model": "m2", "interactionMode": "plan", "outputSchema": {"z": 1, "a": 2}}
    await create(client, tmp_path, id="a", prompt=prompt)
    command = api.daemon.asked[-1]
    assert isinstance(command, CreateSession)
    assert command.prompt is not None
    assert (command.prompt.model, command.prompt.interaction_mode) == ("m2", "plan")
    assert command.prompt.output_schema_json == '{"z":1,"a":2}'  # the order of its fields is the model's to follow
    await run_turn(api)
    assert any(isinstance(frame, Send) and isinstance(frame.op, StartTurn) for frame in api.daemon.frames)
