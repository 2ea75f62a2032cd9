"""Who may ask for anything: in front of every route, known or not, HTTP and WebSocket alike.

On the Unix socket the shell has compared the peer's user with ours; nothing more is asked. On TCP a caller shows the
token, or is a browser with a cookie (`browser`). Two addresses are open: `GET /api/health` tells that the process
lives, and nothing else; `GET /open` exchanges a link, which is a proof of its own. What proves a caller is a list, so
that another proof is one more entry and not another way in.
"""

import hmac
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from termald.api.asgi import TRANSPORT_EXTENSION, ASGIApp, Receive, Scope, Send
from termald.api.browser import LINK_PATH
from termald.api.problems import ProblemError, send_problem

Proof: TypeAlias = Callable[[Scope], bool]
"""Says whether what a request carries proves its caller. May raise ProblemError, which is then the answer."""

PAGE_PATH: Final = "/"
# HEAD does not use a link up: what looks at links before people do asks with it.
_OPEN: Final = frozenset({("/api/health", "GET"), ("/api/health", "HEAD"), (LINK_PATH, "GET")})


def bearer(token: str) -> Proof:
    """Return the proof by `Authorization: Bearer <token>`, compared in constant time."""
    expected = token.encode("ascii")

    def shown(scope: Scope) -> bool:
        values = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(values) != 1:  # of two, a proxy may have judged the other one
            return False
        scheme, _, credentials = values[0].partition(b" ")
        return hmac.compare_digest(credentials.strip(), expected) and scheme.lower() == b"bearer"

    return shown


class Authenticated:
    """ASGI: lets through to `app` who is proven."""

    def __init__(self, app: ASGIApp, proofs: Sequence[Proof]) -> None:
        assert proofs, "without a proof nobody could come in over TCP, and that is not how it is switched off"
        self._app = app
        self._proofs = tuple(proofs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or answer 401."""
        try:
            passes = scope["type"] == "lifespan" or self._may_pass(scope)
        except ProblemError as refusal:
            await send_problem(refusal, scope, send)
            return
        if passes:
            await self._app(scope, receive, send)
            return
        sent = any(name == b"authorization" for name, _ in scope["headers"])
        detail = "the token is not this daemon's" if sent else "no token; send Authorization: Bearer <token>"
        if scope["path"] == PAGE_PATH and not sent:
            detail = "this browser is not known, or no longer; `termald open` prints a link that lets it in"
        challenge = 'Bearer realm="termald"' + (', error="invalid_token"' if sent else "")
        await send_problem(ProblemError("unauthorized", detail, headers={"WWW-Authenticate": challenge}), scope, send)

    def _may_pass(self, scope: Scope) -> bool:
        # A transport that is not named is not the Unix socket.
        if scope.get("extensions", {}).get(TRANSPORT_EXTENSION, {}).get("kind") == "unix":
            return True
        if scope["type"] == "http" and (scope["path"], scope["method"]) in _OPEN:
            return True
        return any(proof(scope) for proof in self._proofs)
