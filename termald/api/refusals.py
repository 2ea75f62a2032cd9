"""What the shell answers by itself, before or instead of the application: a problem document, then the connection ends.

Every answer from here closes its connection: after a request that was not understood nobody can say where the next
begins, and the others are rare enough for that to cost nothing.
"""

import http
from typing import Final

import msgspec

DETAIL_CHARS_MAX: Final = 300  # a detail may quote what was refused, which can be as long as the head cap


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """One RFC 9457 problem. `headers` are extra response headers."""

    slug: str
    status: int
    title: str
    detail: str
    retryable: bool = False
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Refused(Exception):  # noqa: N818 - named for what happened, as the settings' and Codex's errors are
    """Ends the request at hand with `refusal`."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"{refusal.status} {refusal.slug}: {refusal.detail}")
        self.refusal = refusal


def encode_body(refusal: Refusal) -> bytes:
    """Return the problem document as JSON."""
    return msgspec.json.encode(
        {
            "type": f"urn:termald:problem:{refusal.slug}",
            "title": refusal.title,
            "status": refusal.status,
            "detail": refusal.detail[:DETAIL_CHARS_MAX],
            "retryable": refusal.retryable,
        }
    )


def encode_response(refusal: Refusal, *, body_wanted: bool = True) -> bytes:
    """Return the whole answer as bytes. Without `body_wanted` (HEAD) the head still has the length of the body.

    Written by hand: it must also work where h11 has given up on the connection or was never asked.
    """
    body = encode_body(refusal)
    lines = [
        b"HTTP/1.1 %d %s" % (refusal.status, http.HTTPStatus(refusal.status).phrase.encode()),
        b"content-type: application/problem+json",
        b"content-length: %d" % len(body),
        b"connection: close",
        *(b"%s: %s" % header for header in refusal.headers),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body if body_wanted else b"")


def bad_request(detail: str) -> Refusal:
    """Something that is not HTTP/1.1, or that two readers could read differently."""
    return Refusal(slug="bad-request", status=400, title="Malformed request", detail=detail)


def host_refused(detail: str) -> Refusal:
    """A name that is not ours: what a rebound DNS name looks like from here."""
    return Refusal(slug="host-refused", status=421, title="Not a name of this daemon", detail=detail)


def origin_refused(detail: str) -> Refusal:
    """A page of somebody else's, in a browser that can reach us."""
    return Refusal(slug="origin-refused", status=403, title="Not an origin of this daemon", detail=detail)


def body_too_large(limit: int) -> Refusal:
    """`limit` in bytes."""
    return Refusal(
        slug="body-too-large",
        status=413,
        title="Request body too large",
        detail=f"a request body may have {limit} bytes; raise server.body_bytes_max for more",
    )


def head_too_large(limit: int) -> Refusal:
    """`limit` in bytes, request line included."""
    return Refusal(
        slug="head-too-large",
        status=431,
        title="Request head too large",
        detail=f"a request line with its headers may have {limit} bytes; raise server.header_bytes_max for more",
    )


def request_timeout(part: str) -> Refusal:
    """`part` of the request did not arrive in time."""
    return Refusal(
        slug="request-timeout",
        status=408,
        title="Request too slow",
        detail=f"the {part} of the request did not arrive within server.head_deadline_ms",
        retryable=True,
    )


def too_many_connections(limit: int) -> Refusal:
    """`limit` connections are open already."""
    return Refusal(
        slug="too-many-connections",
        status=503,
        title="Too many connections",
        detail=f"{limit} connections are open; close one, or raise server.connections_max",
        retryable=True,
        headers=((b"retry-after", b"1"),),
    )


def not_implemented(detail: str) -> Refusal:
    """Correct HTTP that this server does not speak."""
    return Refusal(slug="not-implemented", status=501, title="Not supported here", detail=detail)


def version_refused(detail: str) -> Refusal:
    """Another HTTP version."""
    return Refusal(slug="http-version-refused", status=505, title="HTTP version not supported", detail=detail)


def upgrade_refused(detail: str) -> Refusal:
    """A WebSocket handshake of another version than the only one there is."""
    return Refusal(
        slug="websocket-version-refused",
        status=426,
        title="WebSocket version not supported",
        detail=detail,
        headers=((b"upgrade", b"websocket"), (b"sec-websocket-version", b"13")),
    )


def websocket_refused() -> Refusal:
    """The application closed a WebSocket that it had not accepted, without saying more."""
    return Refusal(
        slug="websocket-refused", status=403, title="WebSocket refused", detail="this WebSocket was not accepted"
    )


def internal_error() -> Refusal:
    """The application raised, or returned without an answer; the log has it."""
    return Refusal(
        slug="internal-error",
        status=500,
        title="Internal error",
        detail="the request failed inside the daemon; its log says why",
    )
