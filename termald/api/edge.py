"""What is the same for every route, done once around all of them: HEAD, the type of bodies, headers of every answer."""

from collections.abc import Iterable, Mapping
from typing import Final

from termald.api.asgi import ASGIApp, Message, Receive, Scope, Send
from termald.api.problems import ProblemError, allowed, send_problem

_BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_COMMON_HEADERS: Final = (
    (b"cache-control", b"no-store"),  # a route that knows better says so itself
    (b"x-content-type-options", b"nosniff"),
)


class Edge:
    """ASGI: `app` with the rules that no route should have to remember. `methods`: those of each route, by its
    pattern."""

    def __init__(self, app: ASGIApp, methods: Mapping[str, Iterable[str]]) -> None:
        self._app = app
        self._allow = {pattern: allowed(known).encode() for pattern, known in methods.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _with_common_headers(send)
        if scope["method"] in _BODY_METHODS and _body_of_other_type(scope):
            detail = "send the body as Content-Type: application/json"
            await send_problem(ProblemError("unsupported-media-type", detail), scope, send)
        elif scope["method"] == "HEAD":
            await self._head(scope, receive, send)
        elif scope["method"] == "OPTIONS":
            await self._app(scope, receive, self._with_allow(scope, send))
        else:
            await self._app(scope, receive, send)

    async def _head(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer HEAD with what GET would say before its body. An event stream ends there as well: it is told that its
        reader has left, for its answer is complete."""
        scope["method"] = "GET"

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(scope, receive, send_head)

    def _with_allow(self, scope: Scope, send: Send) -> Send:
        """Name all methods of the route: Litestar names those that were registered first."""

        async def send_with_allow(message: Message) -> None:
            if message["type"] == "http.response.start" and "path_template" in scope:
                others = [(name, value) for name, value in message["headers"] if name.lower() != b"allow"]
                message = {**message, "headers": [*others, (b"allow", self._allow[scope["path_template"]])]}
            await send(message)

        return send_with_allow


def _with_common_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message["headers"])
            named = {name.lower() for name, _ in headers}
            message = {**message, "headers": headers + [pair for pair in _COMMON_HEADERS if pair[0] not in named]}
        await send(message)

    return send_with_headers


def _body_of_other_type(scope: Scope) -> bool:
    """Whether there is a body that is not declared as JSON. A page of another origin cannot send that type unasked."""
    headers = dict(scope["headers"])
    if headers.get(b"content-length", b"0").strip(b"0") == b"" and b"transfer-encoding" not in headers:
        return False
    essence = headers.get(b"content-type", b"").split(b";", 1)[0]
    return bool(essence.strip().lower() != b"application/json")
