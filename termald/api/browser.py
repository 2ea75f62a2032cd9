"""A browser's way in: a link that works once, and the cookie that it sets.

Theory. A browser cannot be given the token: it would have to lie where scripts, extensions or a history can read it. So
whoever has the token (or the Unix socket) asks for a link, the link is good once and for two minutes, and what it is
exchanged for is a cookie that no script sees (HttpOnly) and no other site makes a browser send (SameSite=Strict).

Two things about cookies shape the rest. The browser sends them by itself, so a request that carries one is not yet
meant: what changes something, and a WebSocket, must also name our own origin, and a browser that says where a request
comes from (Sec-Fetch-Site) must say that it comes from us. And they belong to a host, not to a port: another program's
page at 127.0.0.1:9999 is the same site, which is why the origin is looked at although the cookie is Strict, and such a
program's server is sent the cookie if its page is visited, which is why it ends after twelve hours.

The cookie is signed with a key made from the token, and nothing of it is kept: it holds over a restart of the daemon,
and ends with the token. Links are kept in memory alone.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from termald.api.asgi import Scope
from termald.api.problems import ProblemError

LINK_PATH: Final = "/open"
MAKE_LINK_PATH: Final = "/api/browser-links"
LINK_S: Final = 120.0
"""Long enough to go and fetch a browser, too short for a link that lies in a scrollback."""
LINKS_MAX: Final = 16
"""Not yet used; one more takes the place of the oldest."""
COOKIE_S: Final = 12 * 3_600
"""A working day."""
SECRET_BYTES: Final = 32
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_OUR_OWN: Final = frozenset({"same-origin", "none"})
_PURPOSE: Final = b"termald browser cookie 1"


class Link(msgspec.Struct, frozen=True):
    """A link that was not used yet. Times are Unix seconds."""

    code: str
    expires_s: float


class Browsers:
    """Makes links, takes them back once, and knows its cookies. `now_s` tells the Unix time."""

    def __init__(self, token: str, now_s: Callable[[], float] = time.time) -> None:
        self._key = hmac.digest(token.encode("ascii"), _PURPOSE, hashlib.sha256)
        self._now_s = now_s
        self._links: list[Link] = []

    def make_link(self) -> Link:
        """Return a new link."""
        link = Link(secrets.token_urlsafe(SECRET_BYTES), self._now_s() + LINK_S)
        self._links = [*self._unused(), link][-LINKS_MAX:]
        return link

    def redeem(self, code: str, port: int | None) -> str | None:
        """Use a link up: return the value of a new cookie for this port, or None for a code that is not, or no longer,
        one. All are compared, each in constant time, so that the time taken tells nothing about any of them."""
        shown = code.encode("utf-8", "surrogatepass")
        links = self._unused()
        found = [hmac.compare_digest(link.code.encode("ascii"), shown) for link in links]
        self._links = [link for link, is_it in zip(links, found, strict=True) if not is_it]
        if not any(found):
            return None
        body = f"{int(self._now_s()) + COOKIE_S}.{secrets.token_urlsafe(SECRET_BYTES)}"
        return f"{body}.{self._signature(body, port)}"

    def knows(self, cookie: str, port: int | None) -> bool:
        """Tell whether this is a cookie of ours for this port, and still good."""
        body, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(body, port).encode()):
            return False
        return int(body.partition(".")[0]) > self._now_s()

    def _unused(self) -> list[Link]:
        now = self._now_s()
        return [link for link in self._links if link.expires_s > now]

    def _signature(self, body: str, port: int | None) -> str:
        return hmac.new(self._key, f"{port}.{body}".encode(), hashlib.sha256).hexdigest()


def cookie_name(port: int | None) -> str:
    """Return the cookie's name. To browsers ports are one: two daemons must not take each other's cookie away."""
    return f"termald_{port}"


def set_cookie(value: str, port: int | None) -> str:
    """Return what `Set-Cookie` says. Not `Secure`: there is no TLS on this machine's own interface."""
    return f"{cookie_name(port)}={value}; Path=/; Max-Age={COOKIE_S}; HttpOnly; SameSite=Strict"


def port_of(scope: Scope) -> int | None:
    """Return the port that the request came to."""
    server = scope.get("server")
    return None if server is None else server[1]


def by_cookie(browsers: Browsers) -> Callable[[Scope], bool]:
    """Return the proof by cookie: for a request that shows no token. Errors: `origin-refused` for one that a page of
    somebody else's may have had our browser send."""

    def shown(scope: Scope) -> bool:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if any(name == b"authorization" for name, _ in headers) or scope["path"] == MAKE_LINK_PATH:
            return False  # a cookie makes no links: it would never end
        port = port_of(scope)
        if not any(browsers.knows(value, port) for value in _cookies(headers, cookie_name(port))):
            return False
        _must_be_meant(scope, headers)
        return True

    return shown


def _cookies(headers: list[tuple[bytes, bytes]], wanted: str) -> Iterator[str]:
    for name, value in headers:
        if name == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                found, _, content = pair.strip().partition("=")
                if found == wanted:
                    yield content


def _must_be_meant(scope: Scope, headers: list[tuple[bytes, bytes]]) -> None:
    said = {name: value.decode("latin-1").lower() for name, value in headers}
    if said.get(b"sec-fetch-site", "none") not in _OUR_OWN:
        raise ProblemError("origin-refused", "another page asks for this; the cookie is for the daemon's own page")
    if scope["type"] == "http" and scope["method"] in _SAFE_METHODS:
        return
    # The gate has refused foreign origins; one that the settings allow besides shows the token.
    if said.get(b"origin", "").partition("://")[2] != said.get(b"host"):
        raise ProblemError(
            "origin-refused", "with the cookie, what changes something must carry the daemon's own Origin"
        )
