"""The page for a browser: the link that lets one in, and three files that stand beside this module as they are served.

The page has no step that builds it and asks no address but this one; its policy (CSP) would not let it. It may do what
the API lets it do, and nothing here knows what that is.
"""

from pathlib import Path
from typing import Annotated, Final, cast

from litestar import Request, Response, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter

from termald.api import bodies
from termald.api.asgi import Scope
from termald.api.browser import LINK_PATH, MAKE_LINK_PATH, Browsers, port_of, set_cookie
from termald.api.problems import ProblemError, documented
from termald.api.views.daemon import BrowserLink
from termald.core.log import rfc3339

_FILES: Final = Path(__file__).parent / "page_files"
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
# Not a redirect: that would still count as begun by the page where the link was clicked, and a Strict cookie stay home.
_GO_ON: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>termald</title>'
    '<meta http-equiv="refresh" content="0; url=/"><p><a href="/">Go on to termald</a></p></html>\n'
)
_MS: Final = 1_000


@post(
    MAKE_LINK_PATH,
    responses=documented("malformed-body", "unsupported-media-type", "invalid-request"),
)
async def make_link(browsers: NamedDependency[Browsers], data: JSONBody[bodies.Nothing | None] = None) -> BrowserLink:
    """Make a link that lets a browser in: once, and for two minutes. Not for a browser that was let in this way."""
    link = browsers.make_link()
    return BrowserLink(path=f"{LINK_PATH}?code={link.code}", expires_at=rfc3339(int(link.expires_s * _MS)))


@get(LINK_PATH, include_in_schema=False)
async def open_page(
    request: Request[object, object, State],
    browsers: NamedDependency[Browsers],
    code: Annotated[str, QueryParameter(name="code")] = "",
) -> Response[str]:
    """Exchange a link for the cookie, and go on to the page."""
    port = port_of(cast("Scope", request.scope))
    cookie = browsers.redeem(code, port)
    if cookie is None:
        detail = "this link was used already, or has expired; `termald open` prints another"
        raise ProblemError("unauthorized", detail, headers={"WWW-Authenticate": 'Bearer realm="termald"'})
    return Response(_GO_ON, media_type="text/html", headers={**_HEADERS, "Set-Cookie": set_cookie(cookie, port)})


def _served(name: str, media_type: str) -> Response[bytes]:
    return Response((_FILES / name).read_bytes(), media_type=media_type, headers=_HEADERS)


@get("/", include_in_schema=False, sync_to_thread=True)
def index() -> Response[bytes]:
    """Return the page."""
    return _served("index.html", "text/html")


@get("/page.js", include_in_schema=False, sync_to_thread=True)
def script() -> Response[bytes]:
    """Return what the page does."""
    return _served("page.js", "text/javascript")


@get("/page.css", include_in_schema=False, sync_to_thread=True)
def style() -> Response[bytes]:
    """Return how it looks."""
    return _served("page.css", "text/css")


HANDLERS: Final = (make_link, index, script, style)
