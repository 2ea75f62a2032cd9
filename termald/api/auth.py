"""Who may ask for anything: in front of every route, known or not, HTTP and WebSocket alike.

On the Unix socket the shell has compared the peer's user with ours; nothing more is asked. On TCP a caller shows the
token. One address is open, `GET /api/health`: it tells that the process lives, and nothing else. What proves a caller
is a list, so that another proof (a browser's cookie) is one more entry and not another way in.
"""

import hmac
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from termald.api.asgi import TRANSPORT_EXTENSION, ASGIApp, Receive, Scope, Send
from termald.api.problems import ProblemError, send_problem

Proof: TypeAlias = Callable[[Scope], bool]
"""Says whether what a request carries proves its caller."""

OPEN_PATH: Final = "/api/health"
_OPEN_METHODS: Final = frozenset({"GET", "HEAD"})


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
        if scope["type"] == "lifespan" or self._may_pass(scope):
            await self._app(scope, receive, send)
            return
        sent = any(name == b"authorization" for name, _ in scope["headers"])
        detail = "the token is not this daemon's" if sent else "no token; send Authorization: Bearer <token>"
        challenge = 'Bearer realm="termald"' + (', error="invalid_token"' if sent else "")
        await send_problem(ProblemError("unauthorized", detail, headers={"WWW-Authenticate": challenge}), scope, send)

    def _may_pass(self, scope: Scope) -> bool:
        # A transport that is not named is not the Unix socket.
        if scope.get("extensions", {}).get(TRANSPORT_EXTENSION, {}).get("kind") == "unix":
            return True
        if scope["type"] == "http" and scope["path"] == OPEN_PATH and scope["method"] in _OPEN_METHODS:
            return True
        return any(proof(scope) for proof in self._proofs)
