"""Prompts over HTTP: accepted once they are on the disk, refused before anything is sent."""

import base64
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.api_daemon import Served
from support.problems import problem_of

from termald.api.bodies import INPUT_CHARS_MAX
from termald.api.images import IMAGE_BYTES_MAX
from termald.core.inputs import SubmitPrompt

PROMPTS = "/api/sessions/a/prompts"


@pytest.fixture
async def client(client: httpx.AsyncClient, tmp_path: Path) -> httpx.AsyncClient:
    """A client, and a session `a` to prompt."""
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "a"})
    return client


async def test_a_prompt_is_accepted_and_found(client: httpx.AsyncClient) -> None:
    response = await client.post(PROMPTS, json={"input": "hello"})
    assert response.status_code == 202
    prompt = response.json()["prompt"]
    assert prompt.keys() == {
        "id",
        "sessionId",
        "state",
        "mode",
        "input",
        "turnId",
        "createdAt",
        "endedAt",
        "error",
    }
    assert (prompt["sessionId"], prompt["state"], prompt["mode"]) == ("a", "queued", "queue")
    assert (await client.get(f"{PROMPTS}/{prompt['id']}")).json() == prompt


async def test_every_kind_of_input_is_taken_as_it_is(client: httpx.AsyncClient, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG")
    parts = [
        {"type": "text", "text": "look"},
        {"type": "text", "text": "", "text_elements": [{"byteRange": {"start": 0, "end": 0}}]},
        {"type": "image", "url": "data:image/png;base64,AA=="},
        {"type": "localImage", "path": str(picture), "detail": "high"},
        {"type": "skill", "name": "s", "path": "/s"},
        {"type": "mention", "name": "m", "path": "app://m"},
    ]
    prompt = (await client.post(PROMPTS, json={"input": parts})).json()["prompt"]
    assert prompt["input"] == parts


async def test_an_image_that_could_not_be_sent_is_refused_before_it_is_asked(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(IMAGE_BYTES_MAX + 1)
    exact = tmp_path / "exact.png"
    with exact.open("wb") as file:
        file.truncate(IMAGE_BYTES_MAX)
    for part, field in (
        ({"type": "localImage", "path": str(tmp_path / "none.png")}, "path"),
        ({"type": "localImage", "path": str(tmp_path)}, "path"),
        ({"type": "localImage", "path": str(large)}, "path"),
        ({"type": "localImage", "path": f"{exact}/below"}, "path"),
        ({"type": "image", "url": "data:image/png;base64,no base64"}, "url"),
        ({"type": "image", "url": "data:text/html;base64,AA=="}, "url"),
        ({"type": "image", "url": "file:///etc/passwd"}, "url"),
    ):
        body = {"input": [{"type": "text", "text": "look"}, part]}
        refused = problem_of(await client.post(PROMPTS, json=body), "invalid-request")
        assert [error["pointer"] for error in refused["errors"]] == [f"#/input/1/{field}"], part
        first = await client.post("/api/sessions", json={"cwd": str(tmp_path), "prompt": body})
        assert [error["pointer"] for error in problem_of(first, "invalid-request")["errors"]] == [
            f"#/prompt/input/1/{field}"
        ]
    assert not any(isinstance(command, SubmitPrompt) for command in api.daemon.asked)
    for part in ({"type": "localImage", "path": str(exact)}, {"type": "image", "url": "https://example.org/a.png"}):
        assert (await client.post(PROMPTS, json={"input": [part]})).status_code == 202


async def test_an_input_that_makes_too_long_a_message_is_refused(client: httpx.AsyncClient) -> None:
    picture = base64.b64encode(bytes(6_291_000)).decode()
    parts = [{"type": "image", "url": f"data:image/png;base64,{picture}"}]
    assert (await client.post(PROMPTS, json={"input": parts})).status_code == 202
    problem_of(await client.post(PROMPTS, json={"input": [*parts, *parts]}), "input-too-large")


async def test_what_is_no_prompt_is_refused_by_field(client: httpx.AsyncClient) -> None:
    refused: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {"#/input"}),
        ({"input": ""}, {"#/input"}),
        ({"input": " \n\t"}, {"#/input"}),
        ({"input": []}, {"#/input"}),
        ({"input": [{"type": "text", "text": " "}]}, {"#/input"}),
        ({"input": [{"type": "text"}]}, {"#/input/0"}),
        ({"input": [{"type": "song", "text": "x"}]}, {"#/input/0/type"}),
        ({"input": [{"type": "text", "text": "x", "txet": "y"}]}, {"#/input/0"}),
        ({"input": [{"type": "text", "text": "x"}, {"type": "localImage", "path": "a.png"}]}, {"#/input/1/path"}),
        ({"input": {"type": "text", "text": "x"}}, {"#/input"}),
        ({"input": "x", "mode": "later", "effort": ""}, {"#/mode", "#/effort"}),
        ({"input": "x", "outputSchema": []}, {"#/outputSchema"}),
    ]
    for body, pointers in refused:
        response = await client.post(PROMPTS, json=body)
        assert {error["pointer"] for error in problem_of(response, "invalid-request")["errors"]} == pointers
        assert (await client.get(PROMPTS)).json()["data"] == []


async def test_more_text_than_codex_takes_is_refused_before_it_is_asked(api: Served, client: httpx.AsyncClient) -> None:
    """Codex counts the characters of all parts; so do we, one short of its limit and one over."""
    halves = [
        {"type": "text", "text": "ä" * (INPUT_CHARS_MAX // 2)},
        {"type": "text", "text": "b" * (INPUT_CHARS_MAX // 2)},
    ]
    assert (await client.post(PROMPTS, json={"input": halves})).status_code == 202
    halves[1]["text"] += "b"
    asked = len(api.daemon.asked)
    problem = problem_of(await client.post(PROMPTS, json={"input": halves}), "input-too-large")
    assert str(INPUT_CHARS_MAX + 1) in problem["detail"]
    assert len(api.daemon.asked) == asked


async def test_replace_cancels_what_waits(client: httpx.AsyncClient) -> None:
    first = (await client.post(PROMPTS, json={"input": "x"})).json()["prompt"]["id"]
    assert (await client.post(PROMPTS, json={"input": "y", "mode": "replace"})).status_code == 202
    prompts = {prompt["id"]: prompt for prompt in (await client.get(PROMPTS)).json()["data"]}
    assert prompts[first]["state"] == "cancelled"
    assert prompts[first]["error"]["slug"] == "replaced"


async def test_a_steer_without_a_turn_waits_like_any_other(client: httpx.AsyncClient) -> None:
    response = await client.post(PROMPTS, json={"input": "x", "mode": "steer"})
    assert (response.status_code, response.json()["prompt"]["state"]) == (202, "queued")


async def test_a_mode_that_is_none_is_refused_and_not_queued(client: httpx.AsyncClient) -> None:
    response = await client.post(PROMPTS, json={"input": "x", "mode": "sometime"})
    assert response.status_code == 422
    assert (await client.get(PROMPTS)).json()["data"] == []


async def test_reject_refuses_while_the_session_is_busy(client: httpx.AsyncClient) -> None:
    assert (await client.post(PROMPTS, json={"input": "x", "mode": "reject"})).status_code == 202
    problem_of(await client.post(PROMPTS, json={"input": "y", "mode": "reject"}), "session-busy")


async def test_the_same_key_gives_the_same_prompt(client: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k"}
    first = await client.post(PROMPTS, json={"input": "x", "effort": "low"}, headers=key)
    again = await client.post(PROMPTS, content=b'{ "effort":"low", "input" : "x" }', headers=key | JSON)
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert len((await client.get(PROMPTS)).json()["data"]) == 1
    problem_of(await client.post(PROMPTS, json={"input": "y", "effort": "low"}, headers=key), "idempotency-mismatch")


JSON = {"Content-Type": "application/json"}


async def test_prompts_come_in_order_and_in_pages(client: httpx.AsyncClient) -> None:
    ids = [(await client.post(PROMPTS, json={"input": f"{number}"})).json()["prompt"]["id"] for number in range(5)]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await client.get(PROMPTS, params={"limit": 2, **cursor})).json()
        seen += [prompt["id"] for prompt in page["data"]]
        if page["nextCursor"] is None:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert seen == ids


async def test_a_queued_prompt_can_be_taken_back_once(client: httpx.AsyncClient) -> None:
    prompt = (await client.post(PROMPTS, json={"input": "x"})).json()["prompt"]
    taken = await client.delete(f"{PROMPTS}/{prompt['id']}")
    assert taken.status_code == 200
    assert (taken.json()["prompt"]["state"], taken.json()["prompt"]["error"]["slug"]) == ("cancelled", "taken-back")
    problem_of(await client.delete(f"{PROMPTS}/{prompt['id']}"), "prompt-sent")


async def test_a_prompt_that_was_sent_cannot_be_taken_back(api: Served, client: httpx.AsyncClient) -> None:
    prompt = (await client.post(PROMPTS, json={"input": "x"})).json()["prompt"]
    await api.daemon.link_up()
    await api.daemon.open_thread("t")
    problem_of(await client.delete(f"{PROMPTS}/{prompt['id']}"), "prompt-sent")
    assert (await client.get(f"{PROMPTS}/{prompt['id']}")).json()["state"] == "sent"


async def test_a_prompt_of_another_session_is_not_found_here(client: httpx.AsyncClient, tmp_path: Path) -> None:
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "b"})
    prompt = (await client.post("/api/sessions/b/prompts", json={"input": "x"})).json()["prompt"]
    for method in ("GET", "DELETE"):
        problem_of(await client.request(method, f"{PROMPTS}/{prompt['id']}"), "unknown-prompt")
    assert (await client.get(f"/api/sessions/b/prompts/{prompt['id']}")).json()["state"] == "queued"


async def test_what_was_chosen_for_a_prompt_reaches_the_core(api: Served, client: httpx.AsyncClient) -> None:
    body = {"input": "x", "model": "m", "effort": "low", "serviceTier": "flex", "interactionMode": "plan"}
    await client.post(PROMPTS, json=body)
    command = api.daemon.asked[-1]
    assert isinstance(command, SubmitPrompt)
    prompt = command.prompt
    assert (prompt.model, prompt.effort, prompt.service_tier) == ("m", "low", "flex")
    assert prompt.interaction_mode == "plan"


async def test_prompts_that_wait_are_put_into_another_order(client: httpx.AsyncClient) -> None:
    first, second, third = [(await client.post(PROMPTS, json={"input": text})).json()["prompt"] for text in "abc"]
    answer = await client.post(f"{PROMPTS}/reorder", json={"promptIds": [third["id"], first["id"]]})
    assert answer.status_code == 200, answer.text
    order = [third["id"], first["id"], second["id"]]
    assert [prompt["id"] for prompt in answer.json()["data"]] == order
    assert [prompt["id"] for prompt in (await client.get(PROMPTS)).json()["data"]] == order
    twice = await client.post(f"{PROMPTS}/reorder", json={"promptIds": [third["id"], third["id"]]})
    assert problem_of(twice, "invalid-request")["errors"][0]["pointer"] == "#/promptIds"
    problem_of(await client.post(f"{PROMPTS}/reorder", json={"promptIds": []}), "invalid-request")
    problem_of(await client.post(f"{PROMPTS}/reorder", json={"promptIds": ["none"]}), "prompt-sent")
    await client.delete(f"{PROMPTS}/{first['id']}")
    problem_of(await client.post(f"{PROMPTS}/reorder", json={"promptIds": [first["id"]]}), "prompt-sent")
