"""Threads that Codex knows, the ignore set, and scans."""

from pathlib import Path

import httpx
import pytest
from support.api_daemon import Served
from support.problems import problem_of

from state.records import Changes, KnownThread, ThreadClass, ThreadId
from termald.engine import DiscoveryView


def known(name: str, cls: ThreadClass) -> KnownThread:
    return KnownThread(
        thread_id=ThreadId(name),
        home="/home/u/.codex",
        cls=cls,
        reason="as found",
        title=f"title of {name}",
        cwd="/w",
        source="cli",
        message_count=3,
        created_at_ms=1_000,
        updated_at_ms=2_000,
    )


async def test_every_known_thread_is_shown_with_what_it_is_here(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    threads = (known("t1", "discovered"), known("t2", "orphan"), known("t3", "child"), known("t4", "discovered"))
    await api.daemon.store.commit(Changes(threads=threads), sync=True)
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "a", "resumeCursor": {"threadId": "t1"}})
    await client.put("/api/ignored-threads/t4", json={"reason": "noise"})
    shown = (await client.get("/api/threads")).json()["data"]
    assert {thread["threadId"]: thread["class"] for thread in shown} == {
        "t1": "owned",
        "t2": "orphan",
        "t3": "child",
        "t4": "ignored",
    }
    owned = shown[0]
    assert (owned["sessionId"], owned["messageCount"], owned["createdAt"]) == ("a", 3, "1970-01-01T00:00:01.000Z")
    only = (await client.get("/api/threads", params={"class": "orphan"})).json()["data"]
    assert [thread["threadId"] for thread in only] == ["t2"]


async def test_known_threads_come_in_pages(api: Served, client: httpx.AsyncClient) -> None:
    threads = tuple(known(f"t{number}", "discovered") for number in range(5))
    await api.daemon.store.commit(Changes(threads=threads), sync=True)
    first = (await client.get("/api/threads", params={"limit": 3})).json()
    rest = (await client.get("/api/threads", params={"limit": 3, "cursor": first["nextCursor"]})).json()
    assert [thread["threadId"] for thread in first["data"] + rest["data"]] == [f"t{number}" for number in range(5)]
    assert rest["nextCursor"] is None


async def test_a_thread_is_ignored_with_a_reason_and_taken_back(api: Served, client: httpx.AsyncClient) -> None:
    put = await client.put("/api/ignored-threads/t1", json={"reason": "noise"})
    entry = put.json()
    assert (put.status_code, entry["threadId"], entry["reason"]) == (200, "t1", "noise")
    assert entry.keys() == {"threadId", "reason", "ignoredAt", "lastSeenAt"}
    again = (await client.put("/api/ignored-threads/t1", json={"reason": "still noise"})).json()
    assert (again["reason"], again["ignoredAt"]) == ("still noise", entry["ignoredAt"])
    assert (await client.get("/api/ignored-threads")).json() == {"data": [again], "nextCursor": None}
    taken = await client.delete("/api/ignored-threads/t1")
    assert (taken.status_code, taken.json()) == (200, again)
    assert api.daemon.scans == 1, "it is looked at anew"
    problem_of(await client.delete("/api/ignored-threads/t1"), "not-ignored")
    assert api.daemon.scans == 1
    assert (await client.get("/api/ignored-threads")).json()["data"] == []


async def test_the_ignore_set_comes_in_pages(client: httpx.AsyncClient) -> None:
    for number in range(3):
        await client.put(f"/api/ignored-threads/t{number}", json={"reason": "r"})
    first = (await client.get("/api/ignored-threads", params={"limit": 2})).json()
    rest = (await client.get("/api/ignored-threads", params={"cursor": first["nextCursor"]})).json()
    assert [entry["threadId"] for entry in first["data"] + rest["data"]] == ["t0", "t1", "t2"]


async def test_a_thread_that_a_session_owns_cannot_be_ignored(client: httpx.AsyncClient, tmp_path: Path) -> None:
    """I9, DISC-01."""
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "a", "resumeCursor": {"threadId": "t1"}})
    response = await client.put("/api/ignored-threads/t1", json={"reason": "noise"})
    assert "'a'" in problem_of(response, "thread-owned")["detail"]


@pytest.mark.parametrize(("thread", "body"), [("t1", {}), ("t1", {"reason": ""}), ("-", {"reason": "r"})])
async def test_what_makes_no_sense_is_not_ignored(client: httpx.AsyncClient, thread: str, body: dict[str, str]) -> None:
    problem_of(await client.put(f"/api/ignored-threads/{thread}", json=body), "invalid-request")
    assert (await client.get("/api/ignored-threads")).json()["data"] == []


async def test_a_scan_is_asked_for_and_its_state_is_shown(api: Served, client: httpx.AsyncClient) -> None:
    api.daemon.discovery = DiscoveryView(
        status="scanning", started_at_ms=1_000, report_json='{"seen": 3,  "homes": {"/h": null}}'
    )
    scan = await client.post("/api/discovery/scan")
    assert (scan.status_code, api.daemon.scans) == (202, 1)
    assert scan.json() == {
        "status": "scanning",
        "reason": None,
        "startedAt": "1970-01-01T00:00:01.000Z",
        "finishedAt": None,
        "report": {"seen": 3, "homes": {"/h": None}},
    }
    assert (await client.get("/api/discovery")).json() == scan.json()


async def test_a_dry_run_tells_what_a_scan_would_do_and_wakes_none(api: Served, client: httpx.AsyncClient) -> None:
    response = await client.post("/api/discovery/scan", json={"dryRun": True})
    assert response.status_code == 200
    assert response.json() == {"dryRun": True, "report": [{"home": "/h", "wouldBe": {"import": 2}}]}
    assert (api.daemon.scans, api.daemon.dry_scans) == (0, 1)
    await client.post("/api/discovery/scan", json={"dryRun": False})  # control
    assert (api.daemon.scans, api.daemon.dry_scans) == (1, 1)


async def test_a_thread_that_another_process_writes_shows_as_busy_and_is_not_prompted(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    threads = (known("t1", "discovered"), known("t2", "discovered"))
    await api.daemon.store.commit(Changes(threads=threads), sync=True)
    await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": "a", "resumeCursor": {"threadId": "t1"}})
    path, key = "/api/sessions/a/prompts", {"Idempotency-Key": "k"}
    first = await client.post(path, json={"input": "before"}, headers=key)
    api.daemon.writers = {ThreadId("t1"): 4_711}
    shown = (await client.get("/api/threads")).json()["data"]
    assert {thread["threadId"]: thread["busyElsewhere"] for thread in shown} == {"t1": True, "t2": False}
    refused = await client.post(path, json={"input": "now"})
    problem = problem_of(refused, "active-elsewhere")
    assert (refused.status_code, problem["retryable"]) == (409, True)
    assert "4711" in problem["detail"]
    # What was answered once is answered again.
    assert (await client.post(path, json={"input": "before"}, headers=key)).json() == first.json()
    api.daemon.writers = {}
    assert (await client.post(path, json={"input": "now"})).status_code == 202
    prompts = (await client.get(path)).json()["data"]
    assert [prompt["input"][0]["text"] for prompt in prompts] == ["before", "now"]
