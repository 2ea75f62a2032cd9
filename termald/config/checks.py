"""What values that are each well-formed must not do together. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from termald.settings import Settings

# One label, address or bracketed IPv6 address, as it stands in a Host header without its port.
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]")
_ORIGIN: Final = re.compile(rf"https?://(?:{_NAME.pattern})(?::\d{{1,5}})?")


def contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the key of each value that cannot stand, with why and the way out, as the end of a sentence."""
    server, codex = settings.server, settings.codex
    if server.listen is not None and not server.listen.is_loopback and not server.allow_non_loopback:
        yield (
            "server.listen",
            "other machines can reach that; use 127.0.0.1 or [::1], or say server.allow_non_loopback = true",
        )
    if server.listen is None and server.unix_socket is None:
        yield "server.listen", 'there is nothing to listen on, since server.unix_socket is "off" as well'
    for name in server.hosts:
        if not _NAME.fullmatch(name):
            yield "server.hosts", f"{name!r} is not a host name; it stands without scheme, port and path"
    for origin in server.origins:
        if not _ORIGIN.fullmatch(origin):
            yield "server.origins", f"{origin!r} is not an origin; it looks like https://name:port, without a path"
    if codex.on_shutdown == "leave" and codex.transport == "stdio":
        yield "codex.on_shutdown", 'codex.transport "stdio" cannot: Codex ends with the daemon there; use "unix"'
    if codex.backoff_first_ms > codex.backoff_max_ms:
        yield "codex.backoff_first_ms", f"codex.backoff_max_ms is less: {codex.backoff_max_ms}"
