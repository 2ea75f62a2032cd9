"""Requests that two readers could read differently. Each is refused, and nothing behind it is ever taken for a request.

A proxy or a second parser between a browser and the daemon may see one request where we would see two; the second would
then carry whatever authority the first one's connection has. So every case here is sent with a request behind it, and
must get exactly one answer. The control is the same pair without the ambiguity.
"""

import pytest
import trio.testing
from support.asgi_apps import describe, running

from termald.api.asgi import Receive, Scope, Send
from termald.limits import ServerLimits

BEHIND = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"


def post(*lines: str, body: str = "", version: str = "1.1", end: str = "\r\n") -> bytes:
    return (end.join([f"POST /first HTTP/{version}", "Host: localhost", *lines, "", ""]) + body).encode("latin-1")


class Recorder:
    """Notes the paths that reached the application."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.paths.append(scope["path"])
        await describe(scope, receive, send)


async def send_and_close(request: bytes) -> tuple[Recorder, int, dict[str, object], bytes]:
    """Send; return what reached the application, the answer, and what came behind it until the connection closed."""
    recorder = Recorder()
    async with running(recorder, limits=ServerLimits(header_bytes_max=4_096)) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(request)
            answer = await client.answer()
            return recorder, answer.status, answer.problem, await client.until_closed()


CASES: dict[str, tuple[int, bytes]] = {
    "content-length and transfer-encoding": (
        400,
        post("Content-Length: 6", "Transfer-Encoding: chunked", body="0\r\n\r\n"),
    ),
    "transfer-encoding and content-length": (
        400,
        post("Transfer-Encoding: chunked", "Content-Length: 6", body="0\r\n\r\n"),
    ),
    "two equal content-lengths": (400, post("Content-Length: 1", "Content-Length: 1", body="x")),
    "two different content-lengths": (400, post("Content-Length: 0", "Content-Length: 60")),
    "a list of content-lengths": (400, post("Content-Length: 1, 1", body="x")),
    "a signed content-length": (400, post("Content-Length: +1", body="x")),
    "a hexadecimal content-length": (400, post("Content-Length: 0x1", body="x")),
    "a content-length of Arabic digits": (400, post("Content-Length: \xb2", body="xx")),
    "bare LF everywhere": (400, post("Content-Length: 0", end="\n")),
    "one bare LF": (400, post("X: y\nContent-Length: 0")),
    "a bare LF for the blank line": (400, post("X: y")[:-2] + b"\n"),
    "a bare CR in a value": (400, post("X: y\rContent-Length: 60")),
    "a folded line": (400, post("X: y", " Content-Length: 60")),
    "a folded framing header": (400, post("Transfer-Encoding:", " chunked", body="0\r\n\r\n")),
    "a folded first line": (400, b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n"),
    "space before the colon": (400, post("Content-Length : 1", body="x")),
    "no colon": (400, post("Content-Length")),
    "nul in a value": (400, post("X: a\0b")),
    "nul in a name": (400, post("X\0: b")),
    "an empty name": (400, post(": b")),
    "chunks in HTTP/1.0": (400, post("Transfer-Encoding: chunked", version="1.0", body="0\r\n\r\n")),
    "another coding": (501, post("Transfer-Encoding: gzip", body="x")),
    "two codings": (501, post("Transfer-Encoding: chunked, chunked", body="0\r\n\r\n")),
    "two coding headers": (501, post("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body="0\r\n\r\n")),
    "a coding that looks like chunked": (501, post("Transfer-Encoding: xchunked", body="0\r\n\r\n")),
    "a coding behind a vertical tab": (400, post("Transfer-Encoding: \x0bchunked", body="0\r\n\r\n")),
    "a chunk size that is none": (400, post("Transfer-Encoding: chunked", body="x\r\n\r\n")),
    "a chunk size in LF": (400, post("Transfer-Encoding: chunked", body="1\nx\r\n0\r\n\r\n")),
    "a signed chunk size": (400, post("Transfer-Encoding: chunked", body="+1\r\nx\r\n0\r\n\r\n")),
    "a chunk longer than it says": (400, post("Transfer-Encoding: chunked", body="1\r\nxyz\r\n0\r\n\r\n")),
    "the last chunk ends in LF": (400, post("Transfer-Encoding: chunked", body="0\r\n\n")),
    "a trailer": (501, post("Transfer-Encoding: chunked", body="0\r\nHost: evil.example\r\n\r\n")),
    "an oversize head": (431, post("X: " + "y" * 5_000)),
    "an oversize head without end": (431, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 5_000),
    "two hosts": (400, post("Host: evil.example")),
    "no host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "a host without value": (421, b"GET / HTTP/1.1\r\nHost:\r\n\r\n"),
    "an absolute target": (400, b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "connect": (400, b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "http 2": (505, b"PRI * HTTP/2.0\r\nHost: localhost\r\n\r\n"),
    "http 1.2": (505, b"GET / HTTP/1.2\r\nHost: localhost\r\n\r\n"),
    "http 0.9": (400, b"GET /\r\n\r\n"),
    "a blank line first": (400, b"\r\n" + post()),
    "tls": (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    "a space in the target": (400, b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "two spaces in the request line": (400, b"GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
}


@pytest.mark.parametrize("name", CASES)
async def test_an_ambiguous_request_is_refused_and_nothing_behind_it_is_read(name: str) -> None:
    """One problem document, then the end; the application hears of neither request."""
    status, request = CASES[name]
    recorder, answered, problem, rest = await send_and_close(request + BEHIND)
    assert answered == status
    assert str(problem["type"]).startswith("urn:termald:problem:")
    assert rest == b""
    assert recorder.paths == []


@pytest.mark.parametrize(
    "request_",
    [
        post("Content-Length: 1", body="x"),
        post("Transfer-Encoding: chunked", body="1\r\nx\r\n0\r\n\r\n"),
        post("transfer-encoding:CHUNKED", body="1;ext=1\r\nx\r\n000\r\n\r\n"),
        post("X: y  z\t", "Content-Length:0"),
    ],
)
async def test_the_control_an_unambiguous_request_and_the_one_behind_it_are_both_answered(request_: bytes) -> None:
    """Or the cases above would prove nothing."""
    recorder = Recorder()
    async with running(recorder) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(request_ + BEHIND)
            assert (await client.answer()).status == 200
            assert (await client.answer()).status == 200
    assert recorder.paths == ["/first", "/smuggled"]


async def test_a_good_request_before_a_bad_one_is_answered_first() -> None:
    """Pipelined: the error ends the connection, but not before what was right."""
    recorder = Recorder()
    async with running(recorder) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(post("Content-Length: 0") + CASES["one bare LF"][1] + BEHIND)
            assert (await client.answer()).status == 200
            assert (await client.answer()).status == 400
            assert await client.until_closed() == b""
    assert recorder.paths == ["/first"]


@pytest.mark.parametrize("name", ["bare LF everywhere", "the last chunk ends in LF", "a trailer", "a folded line"])
async def test_a_refusal_does_not_depend_on_how_the_bytes_are_cut(name: str) -> None:
    """Byte by byte, each in a read of its own."""
    status, request = CASES[name]
    recorder = Recorder()
    async with running(recorder) as server:
        client = await server.connect()
        async with client.stream:
            for position in range(len(request)):
                await client.send(request[position : position + 1])
                await trio.testing.wait_all_tasks_blocked()
            assert (await client.answer()).status == status
    assert recorder.paths == []
