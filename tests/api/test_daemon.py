"""The daemon about itself: alive, ready, which one, and everything at one moment."""

from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families
from support.api_daemon import Served
from support.problems import problem_of

from state.errors import StoreFull, StoreIOError
from termald.engine import DiscoveryView, RuntimeView


async def test_ready_tells_each_part(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/ready")
    assert (response.status_code, response.json()) == (
        200,
        {
            "ready": True,
            "parts": {
                "store": {"state": "ready", "reason": None},
                "runtime": {"state": "ready", "reason": None},
                "discovery": {"state": "idle", "reason": None},
            },
        },
    )


@pytest.mark.parametrize("status", ["stopped", "starting", "backoff", "broken", "stopping"])
async def test_without_codex_it_is_not_ready_and_says_why(api: Served, client: httpx.AsyncClient, status: Any) -> None:
    api.daemon.runtime = RuntimeView(status=status, reason="exited with 1 five times")
    response = await client.get("/api/ready")
    assert response.status_code == 503
    assert response.json()["ready"] is False
    assert response.json()["parts"]["runtime"] == {"state": status, "reason": "exited with 1 five times"}


async def test_while_the_past_is_being_settled_it_is_not_ready(api: Served, client: httpx.AsyncClient) -> None:
    api.daemon.accepting = trio.Event()
    response = await client.get("/api/ready")
    assert (response.status_code, response.json()["parts"]["runtime"]["state"]) == (503, "starting")


async def test_a_scan_that_failed_keeps_nobody_from_working(api: Served, client: httpx.AsyncClient) -> None:
    api.daemon.discovery = DiscoveryView(status="failed", reason="/home/u/.codex: locked")
    response = await client.get("/api/ready")
    assert response.status_code == 200
    assert response.json()["parts"]["discovery"] == {"state": "failed", "reason": "/home/u/.codex: locked"}


async def test_a_store_that_cannot_be_read_is_told_everywhere_but_in_health(
    api: Served, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise StoreIOError("the disk is gone")

    for name in ("event_bounds", "list_sessions", "snapshot"):
        monkeypatch.setattr(api.daemon.store, name, fails)
    ready = await client.get("/api/ready")
    assert (ready.status_code, ready.json()["parts"]["store"]["reason"]) == (503, "the disk is gone")
    problem = problem_of(await client.get("/api/sessions"), "store-unavailable")
    assert ("the disk is gone" in problem["detail"], problem["retryable"]) == (True, True)
    problem_of(await client.get("/api/state"), "store-unavailable")
    assert (await client.get("/api/health")).json() == {"status": "ok"}


async def test_a_disk_that_takes_nothing_is_told_by_the_store(
    api: Served, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt would not be taken now."""

    async def full() -> None:
        raise StoreFull("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(api.daemon.store, "check_writes", full)
        ready = await client.get("/api/ready")
        assert (ready.status_code, ready.json()["ready"]) == (503, False)
        assert ready.json()["parts"]["store"] == {"state": "failed", "reason": "no space left"}
    assert (await client.get("/api/ready")).status_code == 200


async def test_version_names_what_runs(api: Served, client: httpx.AsyncClient) -> None:
    told = (await client.get("/api/version")).json()
    assert told.keys() == {"termald", "codex", "protocolSchema"}
    assert (told["codex"], told["protocolSchema"]) == (None, "0.171.0")
    api.daemon.runtime = replace(api.daemon.runtime, codex_version="0.163.0")
    assert (await client.get("/api/version")).json()["codex"] == "0.163.0"


async def test_the_runtime_is_shown_in_full(api: Served, client: httpx.AsyncClient) -> None:
    api.daemon.runtime = RuntimeView(
        status="backoff",
        pid=None,
        started_at_ms=5_000,
        transport="stdio",
        adopted=True,
        codex_version="0.171.0",
        codex_home="/h",
        restarts=2,
        last_exit_json='{"status": 1,  "stderr": "no"}',
        reason="exited",
    )
    assert (await client.get("/api/runtime")).json() == {
        "id": None,
        "status": "backoff",
        "reason": "exited",
        "pid": None,
        "startedAt": "1970-01-01T00:00:05.000Z",
        "transport": "stdio",
        "adopted": True,
        "codexVersion": "0.171.0",
        "codexHome": "/h",
        "restarts": 2,
        "lastExit": {"status": 1, "stderr": "no"},
    }


async def test_a_restart_is_asked_for_once_per_request(api: Served, client: httpx.AsyncClient) -> None:
    response = await client.post("/api/runtime/restart")
    assert (response.status_code, response.json()["status"]) == (202, "ready")
    assert api.daemon.restarts == 1
    problem_of(await client.post("/api/runtime/restart", json={"force": True}), "invalid-request")
    assert api.daemon.restarts == 1


async def test_the_state_is_everything_at_one_moment(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> None:
    for name in ("a", "b"):
        await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": name})
    await client.post("/api/sessions/a/prompts", json={"input": "x"})
    await client.put("/api/ignored-threads/t", json={"reason": "noise"})
    state = (await client.get("/api/state")).json()
    assert state.keys() == {"host", "runtime", "sessions", "ignoredThreads", "discovery", "lastEventId"}
    assert state["host"].keys() == {"id", "epoch", "label", "platform", "version", "codexVersion", "capabilities"}
    assert (state["host"]["id"], state["host"]["epoch"]) == (api.daemon.host.id, 1)
    assert {session["id"]: session["queuedPrompts"] for session in state["sessions"]} == {"a": 1, "b": 0}
    listed = (await client.get("/api/sessions")).json()["data"]
    assert sorted(state["sessions"], key=str) == sorted(listed, key=str)
    assert [entry["threadId"] for entry in state["ignoredThreads"]] == ["t"]
    assert state["runtime"] == (await client.get("/api/runtime")).json()
    assert state["lastEventId"] == api.daemon.hub.last


async def test_the_counts_can_be_scraped(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> None:
    for name in ("a", "b"):
        await client.post("/api/sessions", json={"cwd": str(tmp_path), "id": name, "prompt": "x"})
    await client.post("/api/sessions/b/close")
    await client.get("/api/sessions/a")
    await client.get("/api/sessions/b")
    await client.get("/made/up/address")
    api.daemon.runtime = replace(api.daemon.runtime, restarts=3)
    response = await client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    values = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }
    assert values["termald_sessions", ("status", "closed")] == 1
    assert values["termald_sessions", ("status", "running")] == 0
    assert values["termald_prompts_queued",] == 1
    assert values["termald_runtime_up",] == 1
    assert values["termald_runtime_restarts_total",] == 3
    assert values["termald_events_total",] == api.daemon.hub.last
    got = (("method", "GET"), ("route", "/api/sessions/{session_id}"), ("status", "200"))
    assert values["termald_http_requests_total", *got] == 2
    assert values["termald_http_requests_total", ("method", "GET"), ("route", "none"), ("status", "404")] == 1
