"""Who may speak to the daemon at all, decided from the request's head before the application sees a byte.

Two attacks come through a browser that runs on this machine, and neither needs our token to be guessed if a cookie or
the Unix socket's trust were all that stood in the way:

- *DNS rebinding*: a page of `evil.example` whose name now resolves to 127.0.0.1. Its requests are same-origin to the
  browser, so no `Origin` gives it away on a GET, but they carry `Host: evil.example`. Hence `Host` must be a loopback
  address or a configured name, else 421.
- *Cross-site requests, WebSocket hijacking included*: a page of another origin that sends requests, or opens an event
  stream or a WebSocket (neither of which is bound by the same-origin policy). They carry that page's `Origin`. Hence an
  `Origin` that is not exactly the one this request was addressed to is refused with 403, whatever the method.

`Origin` is compared with `Host`, not with the set of all loopback spellings: where we listen on 127.0.0.1 only, another
user's process can listen on [::1] and serve a page as http://localhost:PORT.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from termald.api.refusals import Refusal, bad_request, host_refused, origin_refused

_HOST: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_LOOPBACK_4: Final = ipaddress.IPv4Network("127.0.0.0/8")
_LOOPBACK_6: Final = ipaddress.IPv6Address("::1")
_HTTP_PORT: Final = 80
_PORT_MAX: Final = 65_535


class _Authority(msgspec.Struct, frozen=True):
    name: str
    port: int


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Which names and origins are ours, besides loopback and the daemon's own origin.

    `hosts`: names (no port) that `Host` may carry. `origins`: `scheme://name[:port]` exactly as a browser sends it.
    Both are compared without regard to case. Raises ValueError for a host with a port and an origin with a path.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for host in self.hosts:
            parsed = _HOST.fullmatch(host)
            if parsed is None or parsed["port"] is not None:
                raise ValueError(f"not a host name: {host!r}; give it without scheme and port")
        for origin in self.origins:
            if not re.fullmatch(r"https?://[^/\s?#@]+", origin, re.IGNORECASE):
                raise ValueError(f"not an origin: {origin!r}; give it as scheme://name or scheme://name:port")

    def refusal(
        self, headers: Iterable[tuple[bytes, bytes]], *, kind: Literal["tcp", "unix"], port: int | None
    ) -> Refusal | None:
        """Say why a request with these headers (names in lower case) may not pass, or None if it may.

        `kind` and `port` are of the listener it came on. On a Unix socket any `Host` will do, since no browser gets
        there by a name; an `Origin` is refused there as well unless configured, since nothing that has one belongs
        there.
        """
        hosts: list[str] = []
        origins: list[str] = []
        for name, value in headers:
            if name == b"host":
                hosts.append(value.decode("latin-1"))
            elif name == b"origin":
                origins.append(value.decode("latin-1"))
        if len(hosts) > 1:
            return bad_request("more than one Host header")
        host = _authority(hosts[0]) if hosts else None
        if kind == "tcp" and (host is None or not self._is_ours(host.name)):
            named = f"Host {hosts[0]!r}" if hosts else "a request without Host"
            return host_refused(f"{named} does not name this daemon; use a loopback address or set server.hosts")
        if len(origins) > 1 or (origins and not self._is_own(origins[0], host if kind == "tcp" else None, port)):
            return origin_refused(
                f"Origin {', '.join(origins)!r} is not this daemon's own; set server.origins to allow it"
            )
        return None

    def _is_ours(self, name: str) -> bool:
        if name == "localhost" or any(name == host.lower() for host in self.hosts):
            return True
        try:
            # An address in brackets that is IPv4, or IPv4 mapped into IPv6, is nobody's honest spelling of it.
            if name.startswith("["):
                return ipaddress.IPv6Address(name[1:-1]) == _LOOPBACK_6
            return ipaddress.IPv4Address(name) in _LOOPBACK_4
        except ValueError:
            return False

    def _is_own(self, origin: str, host: _Authority | None, port: int | None) -> bool:
        origin = origin.lower()
        if any(origin == known.lower() for known in self.origins):
            return True
        scheme, _, rest = origin.partition("://")
        return scheme == "http" and host is not None and host.port == port and _authority(rest) == host


def _authority(text: str) -> _Authority | None:
    """Read `name[:port]`; None if it is anything else. The port defaults to HTTP's."""
    parsed = _HOST.fullmatch(text)
    if parsed is None:
        return None
    port = int(parsed["port"]) if parsed["port"] else _HTTP_PORT
    return _Authority(parsed["name"].lower(), port) if port <= _PORT_MAX else None
