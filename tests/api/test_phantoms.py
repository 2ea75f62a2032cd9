"""Phantoms over HTTP: offered with the evidence of both records, killed only while they hold nothing."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from support.api_daemon import Served
from support.problems import problem_of

from discovery.homes import HomeUnreadable
from discovery.lookup import Held
from state.records import (
    Changes,
    ItemId,
    ItemRecord,
    PromptId,
    PromptRecord,
    Seq,
    SessionId,
    SessionRecord,
    ThreadId,
    TurnId,
    TurnRecord,
)
from termald.core.inputs import KillSession


def record(name: str, **fields: Any) -> SessionRecord:
    return SessionRecord(id=SessionId(name), cwd="/w", created_at_ms=1_000, **fields)


def prompt(session: str, **fields: Any) -> PromptRecord:
    return PromptRecord(
        id=PromptId(f"p-{session}"), session_id=SessionId(session), position=0, input_json="[]", **fields
    )


async def ids(client: httpx.AsyncClient) -> list[str]:
    return [phantom["sessionId"] for phantom in (await client.get("/api/phantoms")).json()["data"]]


async def test_only_what_holds_nothing_anywhere_is_offered(api: Served, client: httpx.AsyncClient) -> None:
    holding = {name: SessionId(name) for name in ("turn", "item")}
    changes = Changes(
        sessions=(
            record("bare"),
            record("opened", thread_id=ThreadId("not-stored")),
            record("stored-empty", thread_id=ThreadId("stored-empty")),
            record("codex-has-one", thread_id=ThreadId("has-one")),
            record("codex-unknown", thread_id=ThreadId("unknown")),
            record("history", history=True),
            record("count", message_count=1),
            record("killed", killed_at_ms=2),
            record("turn"),
            record("item"),
            record("waiting"),
            record("uncertain"),
            record("refused"),
        ),
        turns=(
            TurnRecord(id=TurnId("t"), session_id=holding["turn"], thread_id=ThreadId("T"), ours=True, started_at_ms=1),
        ),
        items=(
            ItemRecord(
                id=ItemId("i"),
                session_id=holding["item"],
                turn_id=TurnId("t"),
                type="userMessage",
                state="completed",
                item_json="{}",
                first_seq=Seq(1),
            ),
        ),
        prompts=(
            prompt("waiting"),
            prompt("uncertain", delivery="failed", attempts=1),
            prompt("refused", delivery="not_delivered"),
        ),
    )
    await api.daemon.store.commit(changes, sync=True)
    api.daemon.held = {
        ThreadId("stored-empty"): Held(stored=True, messages=0, reason="r"),
        ThreadId("has-one"): Held(stored=True, messages=1, reason="r"),
        ThreadId("unknown"): Held(stored=True, messages=None, reason="r"),
    }
    shown = {one["sessionId"]: one for one in (await client.get("/api/phantoms")).json()["data"]}
    assert set(shown) == {"bare", "opened", "stored-empty", "refused"}
    assert {name: one["evidence"]["codex"]["thread"] for name, one in shown.items()} == {
        "bare": "none",
        "opened": "notStored",
        "stored-empty": "empty",
        "refused": "none",
    }
    assert shown["refused"]["evidence"]["record"] == {"messages": 0, "turns": 0, "undelivered": 1}
    answer = (await client.post("/api/phantoms/kill")).json()
    assert set(answer["killed"]) == set(shown)
    assert await ids(client) == []
    left = {session["id"] for session in (await client.get("/api/sessions")).json()["data"]}
    assert left == {"codex-has-one", "codex-unknown", "history", "count", "turn", "item", "waiting", "uncertain"}
    ignored = {entry["threadId"] for entry in (await client.get("/api/ignored-threads")).json()["data"]}
    assert ignored == {"not-stored", "stored-empty"}


async def test_some_are_killed_a_dry_run_kills_none_and_strangers_are_named(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": name})
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "full", "prompt": "hello"})
    body = {"ids": ["a", "full", "nobody"]}
    dry = (await client.post("/api/phantoms/kill", json={**body, "dryRun": True})).json()
    assert (dry["dryRun"], dry["killed"]) == (True, ["a"])
    assert [one["sessionId"] for one in dry["spared"]] == ["full", "nobody"]
    assert sorted(await ids(client)) == ["a", "b"]
    real = (await client.post("/api/phantoms/kill", json=body)).json()
    assert real == {**dry, "dryRun": False}
    assert await ids(client) == ["b"]


async def test_disc_16_one_that_came_alive_between_the_look_and_the_commit_is_spared(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    for name in ("alive", "phantom"):
        await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": name})
    ask = api.daemon.ask
    woken: list[httpx.Response] = []

    async def meanwhile(command: Any) -> Any:
        if not woken and isinstance(command(0, 0), KillSession):
            woken.append(await client.post("/api/sessions/alive/prompts", json={"input": "I live"}))
        return await ask(command)

    api.daemon.ask = meanwhile  # type: ignore[method-assign]  # between the look and the commit
    answer = (await client.post("/api/phantoms/kill")).json()
    assert [one.status_code for one in woken] == [202]
    assert answer["killed"] == ["phantom"]
    assert [one["sessionId"] for one in answer["spared"]] == ["alive"]
    assert [session["id"] for session in (await client.get("/api/sessions")).json()["data"]] == ["alive"]


async def test_a_home_that_cannot_be_read_offers_and_kills_nothing(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "a"})
    api.daemon.unreadable = HomeUnreadable(Path("/h"), "read-failed", "locked")
    problem_of(await client.get("/api/phantoms"), "home-unreadable")
    problem_of(await client.post("/api/phantoms/kill"), "home-unreadable")
    api.daemon.unreadable = None
    assert await ids(client) == ["a"]


async def test_phantoms_come_in_pages(client: httpx.AsyncClient, tmp_path: Path) -> None:
    for number in range(5):
        await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": f"s{number}"})
    seen, query = [], {"limit": 2}
    while True:
        page = (await client.get("/api/phantoms", params=query)).json()
        seen += [one["sessionId"] for one in page["data"]]
        if page["nextCursor"] is None:
            break
        query["cursor"] = page["nextCursor"]
    assert sorted(seen) == [f"s{number}" for number in range(5)]


@pytest.mark.parametrize("body", [{"ids": "a"}, {"ids": ["-"]}, {"all": True}])
async def test_what_makes_no_sense_kills_nothing(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    problem_of(await client.post("/api/phantoms/kill", json=body), "invalid-request")
