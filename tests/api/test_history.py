"""Turns and items over HTTP: page by page, from either end."""

from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from support.api_daemon import Served
from support.problems import problem_of

from state.records import (
    Changes,
    ItemId,
    ItemRecord,
    Seq,
    SessionId,
    SessionRecord,
    ThreadId,
    Tokens,
    TurnId,
    TurnRecord,
)
from termald.core.effects import CodexAnswer
from termald.core.inputs import AskCodex

A = SessionId("a")


@pytest.fixture
async def client(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> httpx.AsyncClient:
    """A client, and a session `a` with five turns of two items each."""
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "a"})
    turns = tuple(
        TurnRecord(
            id=TurnId(f"t{number}"),
            session_id=A,
            thread_id=ThreadId("th"),
            ours=number != 3,
            started_at_ms=1_000 * number,
            ended_at_ms=1_000 * number + 500,
            state="error" if number == 4 else "normal",
            message="no" if number == 4 else None,
            provider_error_json='{"type": "rate_limit"}' if number == 4 else None,
            usage=Tokens(input=3, output=4, cache_read=1, cache_write=0, total=7),
        )
        for number in range(5)
    )
    items = tuple(
        ItemRecord(
            id=ItemId(f"i{number}"),
            session_id=A,
            turn_id=TurnId(f"t{number // 2}"),
            type="agentMessage",
            state="completed",
            item_json=f'{{"id": "i{number}",  "type": "agentMessage"}}',
            first_seq=Seq(number + 1),
        )
        for number in range(10)
    )
    await api.daemon.store.commit(Changes(turns=turns, items=items), sync=True)
    return client


async def pages(client: httpx.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while True:
        page = (await client.get(path, params=query)).json()
        assert len(page["data"]) <= query["limit"]
        rows += page["data"]
        if page["nextCursor"] is None:
            return rows
        query["cursor"] = page["nextCursor"]


async def test_turns_are_shown_newest_first_unless_told_otherwise(client: httpx.AsyncClient) -> None:
    path = "/api/sessions/a/turns"
    newest = await pages(client, path, limit=2)
    assert [turn["id"] for turn in newest] == ["t4", "t3", "t2", "t1", "t0"]
    assert await pages(client, path, limit=3, order="asc") == newest[::-1]
    assert newest[0] == {
        "id": "t4",
        "sessionId": "a",
        "threadId": "th",
        "ours": True,
        "state": "error",
        "kind": None,
        "message": "no",
        "providerError": {"type": "rate_limit"},
        "usage": {"input": 3, "output": 4, "cacheRead": 1, "cacheWrite": 0, "totalTokens": 7},
        "startedAt": "1970-01-01T00:00:04.000Z",
        "endedAt": "1970-01-01T00:00:04.500Z",
        "reconciled": False,
    }


async def test_items_are_shown_oldest_first_and_may_be_of_one_turn(client: httpx.AsyncClient) -> None:
    path = "/api/sessions/a/items"
    oldest = await pages(client, path, limit=4)
    assert [item["id"] for item in oldest] == [f"i{number}" for number in range(10)]
    assert await pages(client, path, limit=3, order="desc") == oldest[::-1]
    assert await pages(client, path, limit=1, turnId="t2") == oldest[4:6]
    assert oldest[0] == {
        "id": "i0",
        "sessionId": "a",
        "turnId": "t0",
        "type": "agentMessage",
        "state": "completed",
        "late": False,
        "firstSeq": 1,
        "item": {"id": "i0", "type": "agentMessage"},
    }


async def test_a_cursor_is_bound_to_its_direction(client: httpx.AsyncClient) -> None:
    """Turned round in the middle it would show the same half twice."""
    cursor = (await client.get("/api/sessions/a/turns", params={"limit": 2})).json()["nextCursor"]
    response = await client.get("/api/sessions/a/turns", params={"cursor": cursor, "order": "asc"})
    assert problem_of(response, "invalid-request")["errors"][0]["parameter"] == "cursor"


async def test_an_order_that_is_none_is_refused(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/sessions/a/items", params={"order": "random"})
    assert problem_of(response, "invalid-request")["errors"][0]["parameter"] == "order"


# --- what did not begin here is read through Codex ---


def codex_says(api: Served, result: dict[str, Any]) -> None:
    api.daemon.dictate(CodexAnswer(result_json=msgspec.json.encode(result).decode()))


def asked_of_codex(api: Served) -> list[tuple[str, dict[str, Any]]]:
    asked = [command for command in api.daemon.asked if isinstance(command, AskCodex)]
    return [(command.method, msgspec.json.decode(command.params_json)) for command in asked]


@pytest.fixture
async def found(api: Served) -> str:
    """The path of a session that was found, of whose turns we know one, with an item."""
    session = SessionId("found")
    await api.daemon.store.commit(
        Changes(
            sessions=(SessionRecord(id=session, origin="discovered", thread_id=ThreadId("T"), cwd="/w", history=True),),
            turns=(
                TurnRecord(
                    id=TurnId("ours"),
                    session_id=session,
                    thread_id=ThreadId("T"),
                    ours=True,
                    started_at_ms=9_000,
                    usage=Tokens(input=3, output=4, total=7),
                ),
            ),
            items=(
                ItemRecord(
                    id=ItemId("i"),
                    session_id=session,
                    turn_id=TurnId("ours"),
                    type="agentMessage",
                    state="completed",
                    item_json='{"id":"i","type":"agentMessage","text":"as told live"}',
                    first_seq=Seq(5),
                ),
            ),
        ),
        sync=True,
    )
    return "/api/sessions/found"


async def test_a_found_sessions_turns_are_codexs_with_what_we_know_put_over_them(
    api: Served, client: httpx.AsyncClient, found: str
) -> None:
    codex_says(
        api,
        {
            "data": [
                {"id": "ours", "status": "completed", "items": []},
                {"id": "theirs", "status": "failed", "startedAt": 2, "completedAt": 3, "error": {"message": "no"}},
                {"id": "cut", "status": "interrupted", "startedAt": 1, "completedAt": 1},
            ],
            "nextCursor": "codex\u2019s own",
        },
    )
    page = (await client.get(f"{found}/turns", params={"limit": 3})).json()
    assert [(turn["id"], turn["ours"], turn["state"], turn["usage"]["totalTokens"]) for turn in page["data"]] == [
        ("ours", True, None, 7),
        ("theirs", False, "error", 0),
        ("cut", False, "cancelled", 0),
    ]
    assert (page["data"][1]["message"], page["data"][1]["startedAt"]) == ("no", "1970-01-01T00:00:02.000Z")
    codex_says(api, {"data": [], "nextCursor": None})
    end = (await client.get(f"{found}/turns", params={"limit": 3, "cursor": page["nextCursor"]})).json()
    assert end == {"data": [], "nextCursor": None}
    common = {"threadId": "T", "limit": 3, "sortDirection": "desc", "itemsView": "notLoaded"}
    assert asked_of_codex(api) == [
        ("thread/turns/list", {**common, "cursor": None}),
        ("thread/turns/list", {**common, "cursor": "codex\u2019s own"}),
    ]


async def test_a_found_sessions_items_are_codexs_with_what_we_know_put_over_them(
    api: Served, client: httpx.AsyncClient, found: str
) -> None:
    message = {"id": "i", "type": "agentMessage", "text": "as stored"}
    items = [{"turnId": "old", "item": message}, {"turnId": "ours", "item": message}]
    codex_says(api, {"data": items, "nextCursor": None})
    page = (await client.get(f"{found}/items", params={"turnId": "ours"})).json()
    assert [(item["turnId"], item["firstSeq"], item["item"]["text"]) for item in page["data"]] == [
        ("old", 0, "as stored"),
        ("ours", 5, "as told live"),
    ]
    ((method, params),) = asked_of_codex(api)
    assert (method, params["turnId"], params["sortDirection"]) == ("thread/items/list", "ours", "asc")


@pytest.mark.parametrize(
    ("slug", "status"), [("codex-refused", 502), ("runtime-unavailable", 503), ("codex-overloaded", 502)]
)
async def test_what_codex_cannot_read_is_its_problem_and_nothing_is_made_up(
    api: Served, client: httpx.AsyncClient, found: str, slug: str, status: int
) -> None:
    api.daemon.refuse(slug)
    response = await client.get(f"{found}/turns")
    problem_of(response, slug)
    assert response.status_code == status


@pytest.mark.parametrize("result", [{"data": None}, {"data": [{"id": 7}]}, []])
async def test_an_answer_that_is_no_page_is_codexs_problem(
    api: Served, client: httpx.AsyncClient, found: str, result: Any
) -> None:
    for path in ("turns", "items"):
        codex_says(api, result)
        problem_of(await client.get(f"{found}/{path}"), "codex-refused")


async def test_disc_15_a_cursor_that_codex_repeats_ends_the_list(
    api: Served, client: httpx.AsyncClient, found: str
) -> None:
    codex_says(api, {"data": [], "nextCursor": "same"})
    cursor = (await client.get(f"{found}/turns")).json()["nextCursor"]
    codex_says(api, {"data": [], "nextCursor": "same"})
    problem_of(await client.get(f"{found}/turns", params={"cursor": cursor}), "codex-refused")


async def test_what_lies_in_a_foreign_home_is_not_asked_of_our_codex(api: Served, client: httpx.AsyncClient) -> None:
    session = SessionRecord(
        id=SessionId("far"), origin="discovered", thread_id=ThreadId("F"), home="/far", history=True
    )
    await api.daemon.store.commit(Changes(sessions=(session,)), sync=True)
    for path in ("turns", "items"):
        assert "/far" in problem_of(await client.get(f"/api/sessions/far/{path}"), "foreign-home")["detail"]
    assert asked_of_codex(api) == []
