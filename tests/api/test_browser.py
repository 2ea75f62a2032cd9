"""A browser is let in by a link that works once, and its cookie does what the token does only where it is meant."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest
from support.api_daemon import TOKEN, Served, served
from support.problems import problem_of

from termald.api.browser import COOKIE_S, LINK_S, LINKS_MAX, Browsers

FILES = Path(__file__).parents[2] / "termald" / "api" / "page_files"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


async def link(client: httpx.AsyncClient) -> str:
    made = await client.post("/api/browser-links")
    assert made.status_code == 201
    path = made.json()["path"]
    assert isinstance(path, str)
    return path


@asynccontextmanager
async def let_in(api: Served) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that has followed a link: it has the cookie, and nothing else."""
    async with api.client() as owner, api.stranger() as browser:
        assert (await browser.get(await link(owner))).status_code == 200
        yield browser


def own(api: Served) -> dict[str, str]:
    return {"Origin": f"http://127.0.0.1:{api.server.port}", "Sec-Fetch-Site": "same-origin"}


# --- whoever has it first is let in, and nobody after ---


async def test_the_link_sets_a_cookie_that_no_script_and_no_other_site_gets(api: Served) -> None:
    async with api.client() as owner, api.stranger() as browser:
        opened = await browser.get(await link(owner))
        [morsel] = SimpleCookie(opened.headers["set-cookie"]).values()
        assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "Strict", "/")
        assert int(morsel["max-age"]) == COOKIE_S
        assert TOKEN not in opened.text + str(opened.headers)
        assert (opened.headers["referrer-policy"], opened.headers["cache-control"]) == ("no-referrer", "no-store")
        assert (await browser.get("/api/sessions")).status_code == 200


async def test_the_link_works_once(api: Served) -> None:
    async with api.client() as owner, api.stranger() as first, api.stranger() as second:
        path = await link(owner)
        assert (await first.get(path)).status_code == 200
        again = await second.get(path)
        assert "termald open" in problem_of(again, "unauthorized")["detail"]
        assert "set-cookie" not in again.headers
        assert (await second.get("/api/sessions")).status_code == 401


async def test_what_only_looks_at_a_link_does_not_use_it_up(api: Served) -> None:
    async with api.client() as owner, api.stranger() as scanner:
        path = await link(owner)
        assert (await scanner.head(path)).status_code == 401
        assert (await scanner.get(path)).status_code == 200


@pytest.mark.parametrize("code", ["", "x", "%ff", "ä" * 43, "x" * 4_000])
async def test_a_code_that_is_none_opens_nothing(api: Served, code: str) -> None:
    async with api.client() as owner, api.stranger() as stranger:
        path = await link(owner)
        problem_of(await stranger.get("/open", params={"code": code}), "unauthorized")
        problem_of(await stranger.get("/open"), "unauthorized")
        problem_of(await stranger.get(path[:-1]), "unauthorized")
        assert (await stranger.get(path)).status_code == 200, "the good one is still good"


async def test_the_link_is_made_for_whoever_shows_the_token_and_not_for_a_cookie(api: Served) -> None:
    """A cookie that made links would never end."""
    async with let_in(api) as browser:
        problem_of(await browser.post("/api/browser-links", headers=own(api)), "unauthorized")


async def test_over_the_unix_socket_a_link_is_made_without_a_token(tmp_path: Path) -> None:
    async with served(tmp_path, unix=True) as local, local.stranger() as owner:
        assert (await link(owner)).startswith("/open?code=")


async def test_the_link_says_until_when_it_is_good(api: Served) -> None:
    async with api.client() as owner:
        expires = datetime.fromisoformat((await owner.post("/api/browser-links")).json()["expiresAt"])
        assert 0 < (expires - datetime.now(UTC)).total_seconds() <= LINK_S


# --- what was made ends, by the clock and with the token ---


def test_a_link_ends() -> None:
    now = 1_000.0
    browsers = Browsers(TOKEN, lambda: now)
    early, late = browsers.make_link(), browsers.make_link()
    now += LINK_S - 1
    assert browsers.redeem(early.code, 1) is not None
    now += 1
    assert browsers.redeem(late.code, 1) is None


def test_of_many_links_the_newest_are_kept() -> None:
    browsers = Browsers(TOKEN)
    made = [browsers.make_link() for _ in range(LINKS_MAX + 1)]
    assert [browsers.redeem(each.code, 1) is not None for each in made] == [False] + [True] * LINKS_MAX


def test_a_cookie_ends_by_the_clock_and_its_end_cannot_be_moved() -> None:
    now = 1_000.0
    browsers = Browsers(TOKEN, lambda: now)
    cookie = browsers.redeem(browsers.make_link().code, 8_787)
    assert cookie is not None
    expires, nonce, signature = cookie.split(".")
    now += COOKIE_S - 1
    assert browsers.knows(cookie, 8_787)
    now += 1
    assert not browsers.knows(cookie, 8_787)
    assert not browsers.knows(f"{int(expires) + 10}.{nonce}.{signature}", 8_787)


def test_a_cookie_is_of_one_token_and_one_port_and_holds_over_a_restart() -> None:
    cookie = (browsers := Browsers(TOKEN)).redeem(browsers.make_link().code, 8_787)
    assert cookie is not None
    assert Browsers(TOKEN).knows(cookie, 8_787)
    assert not Browsers("u" * 43).knows(cookie, 8_787)
    assert not Browsers(TOKEN).knows(cookie, 8_788)


@pytest.mark.parametrize("cookie", ["", ".", "..", "x", "9999999999.x.", "9999999999.x.ÿ", "é.é.é"])
def test_what_is_no_cookie_is_none(cookie: str) -> None:
    assert not Browsers(TOKEN).knows(cookie, 8_787)


# --- a browser sends it by itself: it counts where the daemon's own page asks, and nowhere else ---


async def test_our_own_page_may_do_what_the_token_may(api: Served) -> None:
    async with let_in(api) as browser:
        assert (await browser.get("/api/state")).status_code == 200
        assert (await browser.put("/api/ignored-threads/t", json={"reason": "r"}, headers=own(api))).is_success
        assert (await browser.delete("/api/ignored-threads/t", headers=own(api))).is_success


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_what_changes_something_must_name_our_origin(api: Served, method: str) -> None:
    async with let_in(api) as browser:
        before = len(api.daemon.asked)
        problem_of(await browser.request(method, "/api/ignored-threads/t", json={"reason": "r"}), "origin-refused")
        for origin in ("http://evil.example", "null", f"http://localhost:{api.server.port}", "http://127.0.0.1:1"):
            answer = await browser.request(
                method, "/api/ignored-threads/t", json={"reason": "r"}, headers={"Origin": origin}
            )
            assert (answer.status_code, answer.json()["type"]) == (403, "urn:termald:problem:origin-refused")
        assert len(api.daemon.asked) == before


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_foreign_origin_reads_nothing(api: Served, method: str) -> None:
    async with let_in(api) as browser:
        for headers in ({"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "same-site"}):
            assert (await browser.request(method, "/api/state", headers=headers)).status_code == 403
        for site in ("none", "same-origin"):
            assert (await browser.request(method, "/api/state", headers={"Sec-Fetch-Site": site})).is_success


async def test_a_wrong_token_is_not_made_good_by_it(api: Served) -> None:
    async with let_in(api) as browser:
        wrong = {"Authorization": "Bearer wrong"}
        problem_of(await browser.get("/api/state", headers=wrong), "unauthorized")


async def test_a_cookie_of_another_name_or_value_is_none(api: Served) -> None:
    async with let_in(api) as browser, api.stranger() as stranger:
        [(name, value)] = browser.cookies.items()
        for cookie in (f"{name}={value}x", f"{name}x={value}", f"x{name}={value}", f"{name}", f"{name}={TOKEN}"):
            assert (await stranger.get("/api/state", headers={"Cookie": cookie})).status_code == 401
        beside = {"Cookie": f"other=1; {name}={value}; more=2"}
        assert (await stranger.get("/api/state", headers=beside)).status_code == 200


async def test_an_event_source_opens_with_it(api: Served) -> None:
    async with let_in(api) as browser:
        [(name, value)] = browser.cookies.items()
    host = f"127.0.0.1:{api.server.port}"
    for beside, heard in {
        "Sec-Fetch-Site: same-origin": b"event: synced",
        "Origin: http://127.0.0.1:1": b" 403 ",
    }.items():
        client = await api.server.connect()
        async with client.stream:
            asked = f"GET /api/events HTTP/1.1\r\nHost: {host}\r\n{beside}\r\nCookie: {name}={value}\r\n\r\n"
            await client.send(asked.encode())
            await client.until(heard)


async def test_a_websocket_opens_with_it_for_our_own_page_alone(api: Served) -> None:
    async with let_in(api) as browser:
        [(name, value)] = browser.cookies.items()
    host = f"127.0.0.1:{api.server.port}"
    origins = {None: 403, "http://evil.example": 403, f"http://localhost:{api.server.port}": 403}
    for origin, status in {**origins, f"http://{host}": 101}.items():
        client = await api.server.connect()
        async with client.stream:
            said = "" if origin is None else f"Origin: {origin}\r\n"
            await client.send(
                f"GET /api/events/ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{said}"
                f"Cookie: {name}={value}\r\n\r\n".encode()
            )
            head = await client.until(b"\r\n\r\n")
            assert head.startswith(f"HTTP/1.1 {status} ".encode()), (origin, head)
            if status == 101:
                assert b'"event":"synced"' in await client.until(b"}}")


# --- three files, which reach nothing but this daemon ---


@pytest.mark.parametrize(
    ("path", "kind"), [("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")]
)
async def test_the_page_is_served_to_a_browser_that_was_let_in(api: Served, path: str, kind: str) -> None:
    async with let_in(api) as browser, api.stranger() as stranger:
        answer = await browser.get(path, headers={"Sec-Fetch-Site": "same-origin"})
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert "unsafe" not in str(policy)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert (await stranger.get(path)).status_code == 401


async def test_a_browser_that_is_not_known_is_told_the_way_in(api: Served) -> None:
    async with api.stranger() as stranger:
        assert "termald open" in problem_of(await stranger.get("/"), "unauthorized")["detail"]


def test_the_page_needs_no_other_address_and_nothing_that_its_policy_forbids() -> None:
    markup, script = ((FILES / name).read_text(encoding="utf-8") for name in ("index.html", "page.js"))
    for text in (markup, script, (FILES / "page.css").read_text(encoding="utf-8")):
        assert not re.search(r"(?<![:\w$}])https?://|@import|url\(", text)
    assert not re.search(r"<script(?! src=\"/)|<style|\son\w+=|\sstyle=", markup)
    # What comes from Codex is text: none of the ways to make markup, or a program, of it.
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script)


async def test_the_page_asks_for_nothing_that_is_not_there(client: httpx.AsyncClient) -> None:
    script = (FILES / "page.js").read_text(encoding="utf-8")
    paths = (await client.get("/openapi.json")).json()["paths"]
    calls = re.findall(r'\bask\("(\w+)", (inSession\([\w.]+(?:, ["`]([^"`?$]*))?|["`]([^"`?]*))', script)
    assert len(calls) == script.count('ask("') > 10
    for method, begins, in_session, address in calls:
        wanted = f"/api/sessions/{{id}}{in_session}" if begins.startswith("inSession") else address
        found = [path for path, item in paths.items() if path.startswith(wanted) and method.lower() in item]
        assert found, (method, wanted)
