"""What holds at every address: media types, methods, headers, and the shape of every refusal."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import trio
from support.api_daemon import Served, served
from support.problems import problem_of
from support.waiting import until

from termald.api.problems import PROBLEMS
from termald.core.effects import InterruptAnswer
from termald.core.refusals import REFUSALS


async def test_every_refusal_of_the_core_is_told_as_a_problem(api: Served, client: httpx.AsyncClient) -> None:
    for slug in sorted(REFUSALS):
        api.daemon.refuse(slug)
        problem = problem_of(await client.post("/api/sessions/a/kill"), slug)
        assert (problem["detail"], problem["retryable"]) == (f"refused as {slug}", REFUSALS[slug].retryable)
        assert "codex" not in problem


async def test_what_codex_said_is_kept(api: Served, client: httpx.AsyncClient) -> None:
    api.daemon.refuse("codex-refused", codex_code=-32600, codex_message="no rollout found")
    problem = problem_of(await client.post("/api/sessions/a/kill"), "codex-refused")
    assert problem["codex"] == {"code": -32600, "message": "no rollout found"}


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/x-www-form-urlencoded", "application/json-seq", "json"]
)
async def test_a_body_of_another_type_is_refused_at_every_address(
    api: Served, client: httpx.AsyncClient, content_type: str | None
) -> None:
    """A page of another origin may send these types unasked, also to what takes no body."""
    headers = {} if content_type is None else {"Content-Type": content_type}
    for method, path in (
        ("POST", "/api/sessions"),
        ("PATCH", "/api/sessions/a"),
        ("POST", "/api/sessions/a/stop"),
        ("PUT", "/api/ignored-threads/t"),
        ("DELETE", "/api/ignored-threads/t"),
        ("POST", "/nowhere"),
    ):
        response = await client.request(method, path, content=b"{}", headers=headers)
        problem_of(response, "unsupported-media-type")
    assert api.daemon.asked == []


async def test_a_chunked_body_has_a_type_as_well(client: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"{}"

    problem_of(await client.post("/api/sessions", content=chunks()), "unsupported-media-type")


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8"])
async def test_json_is_taken_with_its_parameters(client: httpx.AsyncClient, tmp_path: Path, content_type: str) -> None:
    body = f'{{"cwd": "{tmp_path}"}}'
    response = await client.post("/api/sessions", content=body, headers={"Content-Type": content_type})
    assert response.status_code == 201


async def test_what_is_not_json_is_malformed(client: httpx.AsyncClient) -> None:
    for body in [
        b"",
        b"{",
        b'{"a":1}x',
        b"\xff",
        b'{"cwd":"\\ud800"}',
        b"[" * 5_000,
        b'{"cwd":' + b"1" * 5_000 + b"}",
        b"nul",
    ]:
        response = await client.post("/api/sessions", content=body, headers={"Content-Type": "application/json"})
        problem_of(response, "malformed-body")


@pytest.mark.parametrize("body", [b"[]", b"null", b'"x"', b"7"])
async def test_json_that_is_no_object_is_not_valid(client: httpx.AsyncClient, body: bytes) -> None:
    for path in ("/api/sessions", "/api/sessions/a/kill"):
        response = await client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert problem_of(response, "invalid-request")["errors"][0]["pointer"] == "#"


async def test_what_is_not_there_is_not_found(client: httpx.AsyncClient) -> None:
    for path in [
        "/index.html",
        "/api",
        "/schema",
        "/api/model",
        "/api/phantom",
        "/api/sessions/a/rename",
    ]:
        problem_of(await client.get(path), "not-found")
        problem_of(await client.post(path, json={}), "not-found")


async def test_another_method_is_refused_with_those_that_are_allowed(client: httpx.AsyncClient) -> None:
    for method, path, allow in [
        ("DELETE", "/api/sessions", "GET, HEAD, OPTIONS, POST"),
        ("PUT", "/api/sessions/a", "GET, HEAD, OPTIONS, PATCH"),
        ("GET", "/api/sessions/a/kill", "OPTIONS, POST"),
        ("POST", "/api/health", "GET, HEAD, OPTIONS"),
        ("GET", "/api/ignored-threads/t", "DELETE, OPTIONS, PUT"),
    ]:
        response = await client.request(method, path)
        problem_of(response, "method-not-allowed")
        assert response.headers["allow"] == allow
        options = await client.request("OPTIONS", path)
        assert (options.status_code, options.headers["allow"], options.content) == (204, allow, b"")


async def test_no_answer_tells_a_browser_that_others_may_read_it(client: httpx.AsyncClient) -> None:
    for method in ("GET", "HEAD", "OPTIONS"):
        response = await client.request(method, "/api/sessions")
        assert not [name for name in response.headers if name.startswith("access-control-")]
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-content-type-options"] == "nosniff"


async def test_head_is_get_without_its_body(client: httpx.AsyncClient) -> None:
    for path in ("/api/sessions", "/api/version", "/api/sessions/nobody"):
        got, head = await client.get(path), await client.head(path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        assert head.headers["content-length"] == str(len(got.content))
        assert head.headers["content-type"] == got.headers["content-type"]


async def test_head_of_a_stream_ends(client: httpx.AsyncClient, api: Served) -> None:
    head = await client.head("/api/events")
    assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream")
    await until(lambda: api.daemon.hub.statistics().readers == 0)
    assert (await client.get("/api/sessions")).status_code == 200


async def test_a_command_waits_for_a_daemon_that_is_still_settling(tmp_path: Path) -> None:
    async with served(tmp_path, accepting_wait_s=0.05) as api, api.client() as client:
        api.daemon.accepting = trio.Event()
        problem = problem_of(await client.post("/api/sessions", json={"cwd": str(tmp_path)}), "starting")
        assert problem["retryable"] is True
        assert api.daemon.asked == []
        assert (await client.get("/api/sessions")).json()["data"] == []  # reads are served


async def test_a_command_goes_on_as_soon_as_all_is_settled(tmp_path: Path) -> None:
    async with served(tmp_path) as api, api.client() as client, trio.open_nursery() as nursery:
        settled = api.daemon.accepting = trio.Event()

        async def create() -> None:
            assert (await client.post("/api/sessions", json={"cwd": str(tmp_path)})).status_code == 201

        nursery.start_soon(create)
        await until(lambda: settled.statistics().tasks_waiting == 1)
        assert api.daemon.asked == []
        settled.set()


async def test_a_command_that_is_not_answered_in_time_may_still_be_carried_out_and_says_so(tmp_path: Path) -> None:
    async with served(tmp_path, answer_wait_s=0.05) as api, api.client() as client:
        api.daemon.hangs = True
        problem = problem_of(await client.post("/api/sessions/a/kill"), "no-answer-yet")
        assert "may still be carried out" in problem["detail"]


async def test_a_mistake_of_ours_tells_nothing_of_itself(api: Served, client: httpx.AsyncClient) -> None:
    """An answer of a kind that the core never gives to a kill stands for any mistake."""
    api.daemon.dictate(InterruptAnswer(interrupted=True))
    problem = problem_of(await client.post("/api/sessions/a/kill"), "internal")
    assert "InterruptAnswer" not in str(problem)
    assert (await client.get("/api/sessions")).status_code == 200


def test_every_problem_has_a_status_of_its_class() -> None:
    for slug, kind in PROBLEMS.items():
        assert 400 <= kind.status < 600, slug
        assert kind.title, slug
