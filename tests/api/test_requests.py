"""What Codex asks: shown as it was asked, decided once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.api_daemon import LINK, Served
from support.problems import problem_of

from termald.core.effects import SendAnswer
from termald.core.inputs import RuntimeExited


@pytest.fixture
async def asked(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> AsyncIterator[str]:
    """A session `a` whose turn waits for a decision on a command; the request's id."""
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "a", "prompt": "run ls"})
    await api.daemon.link_up()
    await api.daemon.open_thread("th")
    await api.daemon.start_turn("th", "tu")
    await api.daemon.open_request("th", "tu")
    [card] = (await client.get("/api/requests")).json()["data"]
    yield card["id"]


async def test_a_request_is_shown_as_codex_asked_it(client: httpx.AsyncClient, asked: str) -> None:
    [card] = (await client.get("/api/requests")).json()["data"]
    assert card == {
        "id": asked,
        "sessionId": "a",
        "kind": "command",
        "method": "item/commandExecution/requestApproval",
        "status": "open",
        "threadId": "th",
        "turnId": "tu",
        "itemId": None,
        "params": {"command": ["ls"], "note": "as sent"},
        "decisions": ["accept", "decline", {"acceptWith": {"rule": "ls"}}],
        "answer": None,
        "decidedBy": None,
        "attachment": {"runtimeId": "r1", "generation": 1},
        "openedAt": card["openedAt"],
        "closedAt": None,
    }
    assert (await client.get("/api/sessions/a/requests")).json()["data"] == [card]
    session = (await client.get("/api/sessions/a")).json()
    assert (session["waitingOn"], session["pendingRequests"]) == ("approval", 1)


@pytest.mark.parametrize("decision", ["accept", {"acceptWith": {"rule": "ls"}}])
async def test_a_decision_is_taken_once_and_sent_to_codex(
    api: Served, client: httpx.AsyncClient, asked: str, decision: Any
) -> None:
    address = f"/api/sessions/a/requests/{asked}"
    response = await client.post(address, json={"decision": decision})
    assert (response.status_code, response.json()["status"]) == (200, "answered")
    assert [frame for frame in api.daemon.frames if isinstance(frame, SendAnswer)] != []
    problem_of(await client.post(address, json={"decision": "decline"}), "request-closed")
    assert (await client.get("/api/requests")).json()["data"] == []
    [card] = (await client.get("/api/requests", params={"status": "answered"})).json()["data"]
    assert card["id"] == asked


@pytest.mark.parametrize("body", [{"decision": "maybe"}, {"decision": None}, {"answers": {}}, {"result": {}}])
async def test_an_answer_that_does_not_fit_leaves_the_request_open(
    client: httpx.AsyncClient, asked: str, body: dict[str, Any]
) -> None:
    problem_of(await client.post(f"/api/sessions/a/requests/{asked}", json=body), "decision-not-offered")
    assert (await client.get("/api/requests")).json()["data"][0]["status"] == "open"


@pytest.mark.parametrize("body", [{}, {"decision": "accept", "result": {}}, {"answers": []}, {"decide": "accept"}])
async def test_an_answer_has_exactly_one_form(client: httpx.AsyncClient, asked: str, body: dict[str, Any]) -> None:
    problem_of(await client.post(f"/api/sessions/a/requests/{asked}", json=body), "invalid-request")
    assert len((await client.get("/api/requests")).json()["data"]) == 1


async def test_questions_are_answered_with_answers(api: Served, client: httpx.AsyncClient, asked: str) -> None:
    await api.daemon.open_request(
        "th",
        "tu",
        rpc_id_json='"q"',
        method="item/tool/requestUserInput",
        kind="userInput",
        params_json='{"questions":[{"id":"q1","question":"Which?"}]}',
        decisions=(),
    )
    card = next(each for each in (await client.get("/api/requests")).json()["data"] if each["kind"] == "userInput")
    assert card["decisions"] == []
    response = await client.post(
        f"/api/sessions/a/requests/{card['id']}", json={"answers": {"q1": {"answers": ["this"]}}}
    )
    assert response.json()["status"] == "answered"


async def test_a_request_that_never_was_is_not_found(client: httpx.AsyncClient, asked: str) -> None:
    response = await client.post("/api/sessions/a/requests/none", json={"decision": "accept"})
    problem_of(response, "unknown-request")


async def test_an_answer_after_the_process_is_gone_is_a_conflict(
    api: Served, client: httpx.AsyncClient, asked: str
) -> None:
    """REQ-07: what was asked in an attachment that is gone can no longer be answered."""
    await api.daemon.hears(RuntimeExited(at_ms=1, runtime=LINK.runtime_id, cause="killed"))
    problem_of(await client.post(f"/api/sessions/a/requests/{asked}", json={"decision": "accept"}), "request-closed")


async def test_a_request_of_another_session_is_not_found_here(
    client: httpx.AsyncClient, asked: str, tmp_path: Path
) -> None:
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "b"})
    response = await client.post(f"/api/sessions/b/requests/{asked}", json={"decision": "accept"})
    problem_of(response, "unknown-request")
    assert (await client.get("/api/sessions/b/requests")).json()["data"] == []
