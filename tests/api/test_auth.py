"""Who may ask: on TCP nobody without the token, at any address, by any method, over any protocol."""

from pathlib import Path

import httpx
import pytest
import trio_websocket
from support.api_daemon import BEARER, TOKEN, Served, served
from support.problems import problem_of

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ADDRESSES = (
    "/api/ready",
    "/api/state",
    "/api/sessions",
    "/api/sessions/a",
    "/api/sessions/a/prompts",
    "/api/events",
    "/api/sessions/a/events",
    "/api/events/ws",
    "/api/ignored-threads/t",
    "/metrics",
    "/openapi.json",
    "/",
    "/nowhere",
    "/api/health/",
    "//api/health",
    "/API/HEALTH",
)


@pytest.mark.parametrize("method", METHODS)
async def test_every_address_wants_the_token_whatever_the_method(api: Served, method: str) -> None:
    async with api.stranger() as stranger:
        for address in ADDRESSES:
            response = await stranger.request(method, f"http://127.0.0.1:{api.server.port}{address}")
            assert response.status_code == 401, (method, address)
            assert response.headers["www-authenticate"] == 'Bearer realm="termald"'
            if method != "HEAD":
                problem_of(response, "unauthorized")
    assert api.daemon.asked == []


async def test_health_is_open_and_nothing_else_of_its_address(api: Served) -> None:
    async with api.stranger() as stranger:
        response = await stranger.get("/api/health")
        assert (response.status_code, response.json()) == (200, {"status": "ok"})
        assert (await stranger.head("/api/health")).status_code == 200
        for method in ("POST", "DELETE", "OPTIONS"):
            assert (await stranger.request(method, "/api/health")).status_code == 401


async def test_what_is_not_the_token_is_refused(api: Served) -> None:
    for value in [
        "Bearer",
        f"Bearer {TOKEN[:-1]}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN.upper()}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}, Bearer {TOKEN}",
        f"Bearer {TOKEN} {TOKEN}",
    ]:
        async with api.client(Authorization=value) as other:
            response = await other.get("/api/sessions")
        problem_of(response, "unauthorized")
        assert response.headers["www-authenticate"] == 'Bearer realm="termald", error="invalid_token"'
        assert TOKEN not in response.text


async def test_two_authorizations_are_none(api: Served) -> None:
    """A proxy in front may have judged the other one."""
    headers = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")]
    async with api.stranger() as stranger:
        assert (await stranger.get("/api/sessions", headers=headers)).status_code == 401


@pytest.mark.parametrize("value", [f"Bearer {TOKEN}", f"bearer {TOKEN}", f"BEARER  {TOKEN}"])
async def test_the_token_opens_whatever_the_case_of_the_scheme(api: Served, value: str) -> None:
    async with api.client(Authorization=value) as own:
        assert (await own.get("/api/sessions")).status_code == 200


@pytest.mark.parametrize("address", ["/api/sessions?token=", "/api/sessions?access_token="])
async def test_a_token_in_the_address_is_none(api: Served, address: str) -> None:
    """Addresses end up in logs."""
    async with api.stranger() as stranger:
        assert (await stranger.get(address + TOKEN)).status_code == 401


async def test_a_websocket_is_refused_before_it_is_one(api: Served) -> None:
    for headers in ((), ((b"authorization", b"Bearer wrong"),)):
        with pytest.RaisesGroup(pytest.RaisesExc(trio_websocket.ConnectionRejected)) as refused:
            async with api.server.websocket("/api/events/ws", headers=headers):
                pass
        [rejection] = refused.value.exceptions
        assert isinstance(rejection, trio_websocket.ConnectionRejected)
        assert rejection.status_code == 401
        assert rejection.body is not None
        assert b"urn:termald:problem:unauthorized" in rejection.body


async def test_a_websocket_opens_with_the_token(api: Served) -> None:
    headers = ((b"authorization", BEARER["Authorization"].encode()),)
    async with api.server.websocket("/api/events/ws", headers=headers) as socket:
        assert '"event":"synced"' in str(await socket.get_message())


async def test_the_unix_socket_needs_no_token(tmp_path: Path) -> None:
    """The shell has compared the peer's user with ours (and refuses others before a byte is read)."""
    async with served(tmp_path, unix=True) as local, local.stranger() as stranger:
        assert (await stranger.get("/api/sessions")).json() == {"data": [], "nextCursor": None}
        wrong = httpx.Headers({"Authorization": "Bearer wrong"})
        assert (await stranger.get("/api/sessions", headers=wrong)).status_code == 200
