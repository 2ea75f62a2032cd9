"""Turns and items over HTTP: page by page, from either end."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from support.api_daemon import Served
from support.problems import problem_of

from state.records import Changes, ItemId, ItemRecord, Seq, SessionId, ThreadId, Tokens, TurnId, TurnRecord

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
