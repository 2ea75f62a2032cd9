"""Whatever a peer sends, the shell answers properly or closes, says nothing above debug, and serves the next one."""

import h11
import structlog.testing
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.asgi_apps import Running, echo, running

from termald.api.asgi import Receive, Scope, Send

HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)
REQUESTS = (
    b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"HEAD /a?b HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
    b"POST /a HTTP/1.1\r\nHost: [::1]:1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    HANDSHAKE + b"\x81\x82\0\0\0\0hi" + b"\x88\x82\0\0\0\0\x03\xe8",
)
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await echo(scope, receive, send)
    elif scope["type"] == "http":
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})
    else:
        raise RuntimeError("no lifespan here")


async def survives(server: Running, sent: bytes) -> bytes:
    """Send, close our half, read everything; then see that another one is served. Return what was read."""
    client = await server.connect()
    received = b""
    async with client.stream:
        try:
            await client.send(sent)
            await client.stream.send_eof()
            received = await client.until_closed()
        except trio.BrokenResourceError:
            received = client.received
    assert (await server.ask(REQUESTS[0])).status == 200
    return received


def check_answers(received: bytes) -> None:
    """Every byte up to an upgrade belongs to a well-formed answer."""
    while received:
        parser = h11.Connection(h11.CLIENT)
        # CONNECT is never sent, and HEAD is told from GET by the answer to it having no body.
        parser.send(h11.Request(method="GET", target="/", headers=[("host", "x"), ("upgrade", "websocket")]))
        parser.send(h11.EndOfMessage())
        parser.receive_data(received)
        while not isinstance(event := parser.next_event(), h11.Response):
            if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                return
            assert isinstance(event, h11.InformationalResponse), event
        received = parser.trailing_data[0]
        length = int(dict(event.headers)[b"content-length"])
        assert event.status_code == 200 or dict(event.headers)[b"connection"] == b"close"
        received = received[length:] if received[:2] == b"ok" or received[:1] == b"{" else received


@st.composite
def mutations(draw: st.DrawFn) -> bytes:
    """A few requests with a few bytes lost, doubled, or put in."""
    data = b"".join(draw(st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=3)))
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        start = draw(st.integers(min_value=0, max_value=len(data)))
        end = draw(st.integers(min_value=start, max_value=min(len(data), start + 12)))
        middle = draw(
            st.sampled_from([b"", b"\n", b"\r", b"\r\n", b"\0", b" ", b":", b"\r\n\r\n", b"0", b"\xff"])
            | st.just(data[start:end] * 2)
        )
        data = data[:start] + middle + data[end:]
    return data


@FEW
@given(mutations())
async def test_mutated_requests(sent: bytes) -> None:
    """Where the parser and the checks before it might disagree."""
    with structlog.testing.capture_logs() as logs:
        async with running(app) as server:
            check_answers(await survives(server, sent))
    assert [entry for entry in logs if entry["log_level"] != "debug"] == []


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    """WebSocket frames of a client, some of them wrong."""
    payload = draw(st.binary(max_size=20) | st.sampled_from([b"", b"\x03\xe8", b"\x03\xedx", "ä".encode()]))
    first = draw(st.sampled_from([0x81, 0x82, 0x88, 0x89, 0x8A, 0x01, 0x00, 0x80]) | st.integers(0, 255))
    length = draw(st.sampled_from([len(payload)] * 4 + [0, 125, 126, 127]))
    masked = draw(st.sampled_from([0x80, 0x80, 0x80, 0]))
    return bytes([first, masked | length]) + (b"\0\0\0\0" if masked else b"") + payload


@FEW
@given(st.lists(frames(), min_size=1, max_size=6))
async def test_wild_frames(sent: list[bytes]) -> None:
    """Pings after a close, pieces of nothing, lengths that lie."""
    with structlog.testing.capture_logs() as logs:
        async with running(app) as server:
            received = await survives(server, HANDSHAKE + b"".join(sent))
    assert received == b"" or received.startswith(b"HTTP/1.1 101 ")
    assert [entry for entry in logs if entry["log_level"] != "debug"] == []
