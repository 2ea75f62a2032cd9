"""HTTP/1.1 on the shell: requests in order, bodies and their caps, HEAD, 100-continue, answers in one part and many."""

import pytest
import trio
import trio.testing
from support.asgi_apps import describe, running

from termald.api.asgi import Receive, Scope, Send
from termald.limits import ServerLimits

GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n"
SMALL = ServerLimits(body_bytes_max=10)


def post(body: bytes, *lines: bytes) -> bytes:
    return b"\r\n".join([b"POST /p HTTP/1.1", b"Host: localhost", *lines, b"", b""]) + body


async def test_requests_on_one_connection_are_answered_in_order() -> None:
    """Pipelined: all are sent before the first answer is read."""
    async with running(describe) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(b"".join(GET % b"%d" % number for number in range(20)))
            paths = [(await client.answer()).body.split(b'"path":"')[1].split(b'"')[0] for _ in range(20)]
    assert paths == [b"/%d" % number for number in range(20)]


async def test_a_second_request_waits_until_the_first_is_answered() -> None:
    """One at a time per connection: the application is not called for the next before."""
    calls: list[str] = []
    release = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            calls.append(scope["path"])
            await release.wait()
        await describe(scope, receive, send)

    async with running(app) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(GET % b"1" + GET % b"2")
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert calls == ["/1"]
            release.set()
            assert (await client.answer()).status == (await client.answer()).status == 200
    assert calls == ["/1", "/2"]


async def test_the_scope_says_what_was_asked_and_over_what() -> None:
    """The auth layer tells TCP from the Unix socket by it."""
    async with running(describe) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(b"PATCH /a%20b?x=1&y HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi")
            answer = await client.answer()
            port = client.stream.socket.getsockname()[1]
    expected = (
        b'{"method":"PATCH","path":"/a b","raw_path":"/a%20b","query":"x=1&y","body":"hi",'
        b'"client":["127.0.0.1",' + str(port).encode() + b'],"transport":{"kind":"tcp","peer_uid":null}}'
    )
    assert answer.body == expected
    assert answer.headers["date"].endswith(" GMT")


async def test_connection_close_ends_it_after_the_answer() -> None:
    """Whatever is behind is not read."""
    async with running(describe) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" + GET % b"2")
            answer = await client.answer()
            assert answer.headers["connection"] == "close"
            assert client.received == b""


@pytest.mark.parametrize("size", [0, 1, 10])
@pytest.mark.parametrize("framing", ["length", "chunks"])
async def test_a_body_up_to_the_cap_arrives_whole(size: int, framing: str) -> None:
    """In as many reads as it takes."""
    body = b"0123456789"[:size]
    if framing == "length":
        request = post(body, b"Content-Length: %d" % size)
    else:
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        request = post(chunks, b"Transfer-Encoding: chunked")
    async with running(describe, limits=SMALL) as server:
        client = await server.connect()
        async with client.stream:
            for position in range(0, len(request), 7):
                await client.send(request[position : position + 7])
                await trio.testing.wait_all_tasks_blocked()
            assert b'"body":"%b"' % body in (await client.answer()).body
            await client.send(GET % b"again")
            assert (await client.answer()).status == 200


@pytest.mark.parametrize(
    "request_",
    [
        post(b"", b"Content-Length: 11"),
        post(b"01234567890", b"Content-Length: 11"),
        post(b"", b"Content-Length: 11", b"Expect: 100-continue"),
        post(b"", b"Content-Length: 99999999999999999"),
        post(b"b\r\n01234567890\r\n0\r\n\r\n", b"Transfer-Encoding: chunked"),
        post(b"6\r\n012345\r\n5\r\n67890\r\n", b"Transfer-Encoding: chunked"),
        post(b"fffffffffffffff\r\n" + b"x" * 11, b"Transfer-Encoding: chunked"),
    ],
)
async def test_one_byte_more_than_the_cap_is_413_and_the_end(request_: bytes) -> None:
    """Said as soon as it is known, and before anything was asked to be sent."""
    async with running(describe, limits=SMALL) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(request_)
            answer = await client.answer()
            assert (answer.status, answer.interim) == (413, ())
            assert answer.problem["type"] == "urn:termald:problem:body-too-large"
            assert await client.until_closed() == b""


async def test_a_refusal_reaches_a_peer_that_is_still_sending() -> None:
    """Closing with unread input would reset the connection, and the reset would overtake the answer."""
    async with running(describe, limits=SMALL) as server:
        client = await server.connect()
        async with client.stream, trio.open_nursery() as nursery:
            nursery.start_soon(client.send, post(b"x" * 4_000_000, b"Content-Length: 4000000"))
            assert (await client.answer()).status == 413


async def test_100_continue_is_said_when_the_body_is_wanted_and_has_not_come() -> None:
    """A client that did not wait for it is not told."""
    waiting = post(b"", b"Content-Length: 2", b"Expect: 100-continue")
    async with running(describe) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(waiting)
            assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await client.send(b"hi")
            answer = await client.answer()
            assert b'"body":"hi"' in answer.body
            await client.send(waiting + b"ho")
            answer = await client.answer()
            assert b'"body":"ho"' in answer.body
            assert answer.interim == ()


async def test_head_has_the_head_of_get_and_no_body() -> None:
    """And the connection goes on."""
    async with running(describe) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(b"HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n" + GET % b"next")
            answer = await client.answer("HEAD")
            assert int(answer.headers["content-length"]) > 0
            assert answer.body == b""
            assert (await client.answer()).status == 200


async def test_a_refusal_of_head_has_no_body_either() -> None:
    """Or the client would take it for the next answer."""
    async with running(describe) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(b"HEAD /x HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            assert (await client.until_closed()).endswith(b"\r\n\r\n")


@pytest.mark.parametrize("status", [204, 304])
async def test_answers_without_body_stay_without(status: int) -> None:
    """Whatever the application sends."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"not this"})

    async with running(app) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(GET % b"1" + GET % b"2")
            assert (await client.answer()).body == b""
            assert (await client.answer()).status == status


async def test_an_answer_in_parts_arrives_whole() -> None:
    """With and without its length; more than the kernel takes at once."""
    part = b"x" * 300_000

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        headers = [(b"content-length", b"600000")] if scope["path"] == "/length" else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await send({"type": "http.response.body", "body": part})

    async with running(app) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(GET % b"length" + GET % b"chunks")
            for _ in range(2):
                assert (await client.answer()).body == part + part


async def test_an_answer_of_known_length_goes_out_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writes would be two packets, and the reader would wake twice."""
    writes: list[bytes] = []
    send_all = trio.SocketStream.send_all

    async def note(stream: trio.SocketStream, data: bytes | bytearray | memoryview) -> None:
        if bytes(data).startswith(b"HTTP/1.1 "):
            writes.append(bytes(data))
        await send_all(stream, data)

    monkeypatch.setattr(trio.SocketStream, "send_all", note)
    async with running(describe) as server:
        answer = await server.ask(GET % b"")
    assert len(writes) == 1
    assert writes[0].endswith(answer.body)
