"""The seam between the shell and an application: ASGI 3 as types, and the one error the shell raises into it.

The seam is deliberately loose: frameworks describe the same dictionaries with their own TypedDicts, and a Protocol that
fits Litestar would fit nothing else. What the shell fills in and what it accepts is said in `http1` and `websocket`.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ASGIApp: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

ASGI_VERSION: Final = {"version": "3.0", "spec_version": "2.4"}
TRANSPORT_EXTENSION: Final = "termald.transport"
"""Key below `scope["extensions"]`: `{"kind": "tcp" | "unix", "peer_uid": int | None}`."""

LEAVE_GRACE_S: Final = 2.0
"""What an application gets to end by itself once its peer has left; then it is cancelled. Its clean-up is the closing
of a subscription, which takes no time; 2 s is what the daemon's own stop allows as well."""


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Who is at the other end of a connection.

    `client` is (address, port) on TCP and None on a Unix socket, where `uid` is known instead. `server` is the local
    end as ASGI wants it, `port` the port that was listened on (None on a Unix socket).
    """

    kind: Literal["tcp", "unix"]
    client: tuple[str, int] | None
    server: tuple[str, int | None]
    port: int | None
    uid: int | None


class ClientDisconnected(OSError):  # noqa: N818 - named for what happened
    """What was sent cannot arrive any more: the peer has left, or was cut for not reading. (ASGI wants an OSError.)"""


def is_disconnect(error: BaseException) -> bool:
    """Tell whether `error` is, wraps, or was raised while handling a `ClientDisconnected`.

    Frameworks wrap it: a task group in an exception group, Litestar in an exception of its own.
    """
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        if isinstance(current, ClientDisconnected):
            return True
        seen.add(id(current))
        pending += (current.__cause__, current.__context__)
        if isinstance(current, BaseExceptionGroup):
            pending += current.exceptions
    return False
