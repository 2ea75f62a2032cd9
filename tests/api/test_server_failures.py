"""What the shell answers by itself: for an application that fails, who may not speak, and who is one too many."""

import pytest
import structlog.testing
import trio
import trio.testing
from support.asgi_apps import describe, running

from termald.api.asgi import Receive, Scope, Send
from termald.api.gate import Gate
from termald.limits import ServerLimits

GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def test_an_exception_is_500_and_the_server_goes_on() -> None:
    """The log has it, the peer does not."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/fails":
            raise ValueError("a secret")
        await describe(scope, receive, send)

    with structlog.testing.capture_logs() as logs:
        async with running(app) as server:
            client = await server.connect()
            async with client.stream:
                await client.send(GET % b"fails")
                answer = await client.answer()
                assert answer.status == 500
                assert answer.problem["type"] == "urn:termald:problem:internal-error"
                assert b"secret" not in answer.body
                assert await client.until_closed() == b""
            assert (await server.ask(GET % b"works")).status == 200
    failures = [entry for entry in logs if entry["event"] == "application-failed"]
    assert [(entry["path"], entry["exc_info"]) for entry in failures] == [("/fails", True)]


@pytest.mark.parametrize(
    "header", [(b"content-length", b"1000"), (b"content-type", b"text/event-stream"), (b"x", b"y")]
)
async def test_an_exception_in_the_middle_of_an_answer_shows_as_a_torn_one(header: tuple[bytes, bytes]) -> None:
    """Nobody may take half an answer for a whole one."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await send({"type": "http.response.start", "status": 200, "headers": [header]})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ValueError("the other half")

    async with running(app) as server:
        for version in (b"1.1", b"1.0"):
            client = await server.connect()
            async with client.stream:
                await client.send(b"GET / HTTP/%b\r\nHost: localhost\r\n\r\n" % version)
                with pytest.raises(trio.BrokenResourceError):
                    await client.until_closed()


BROKEN_APPS: dict[str, list[dict[str, object]]] = {
    "returns without an answer": [],
    "a body first": [{"type": "http.response.body", "body": b"x"}],
    "a header that splits": [{"type": "http.response.start", "status": 200, "headers": [(b"x", b"a\r\nb: c")]}],
    "a status that is none": [{"type": "http.response.start", "status": 42, "headers": []}],
    "an unknown message": [{"type": "http.response.push"}],
    "a websocket message": [{"type": "websocket.accept"}],
}


@pytest.mark.parametrize("name", BROKEN_APPS)
async def test_an_application_that_breaks_the_protocol_is_500(name: str) -> None:
    """It is ours, so the fault is ours."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        for message in BROKEN_APPS[name]:
            await send(message)

    async with running(app) as server:
        assert (await server.ask(GET % b"")).status == 500


GATED: dict[str, tuple[int, bytes]] = {
    "host": (421, b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
    "origin": (403, b"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n"),
    "origin null": (403, b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n"),
    "two hosts": (400, b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
    "origin of a post": (
        403,
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nOrigin: http://evil.example\r\n\r\n{}",
    ),
    "origin of an event stream": (
        403,
        b"GET /events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nOrigin: http://evil.example\r\n\r\n",
    ),
}


@pytest.mark.parametrize("name", GATED)
async def test_the_gate_is_asked_before_the_application(name: str) -> None:
    """For the attacker's page a refusal must be as good as silence. The control: the same without the bad line."""
    reached: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            reached.append(scope["path"])
        await describe(scope, receive, send)

    status, request = GATED[name]
    async with running(app) as server:
        answer = await server.ask(request, request.split(b" ")[0].decode())
        assert answer.status == status
        assert answer.problem["retryable"] is False
        assert not any(header.startswith("access-control") for header in answer.headers)
        assert reached == []
        good = [line for line in request.split(b"\r\n") if not line.startswith((b"Host", b"Origin"))]
        own = b"127.0.0.1:%d" % server.port
        good[1:1] = [b"Host: " + own, b"Origin: http://" + own]
        assert (await server.ask(b"\r\n".join(good))).status == 200
    assert len(reached) == 1


async def test_the_gate_is_the_one_that_was_given() -> None:
    """Configured names pass."""
    request = b"GET / HTTP/1.1\r\nHost: box.lan\r\nOrigin: https://panel.example\r\n\r\n"
    gate = Gate(hosts=frozenset({"box.lan"}), origins=frozenset({"https://panel.example"}))
    async with running(describe, gate=gate) as server:
        assert (await server.ask(request)).status == 200


async def test_one_connection_too_many_is_told_so_and_a_free_place_is_taken() -> None:
    """Also when it has sent its request already."""
    async with running(describe, limits=ServerLimits(connections_max=2)) as server:
        first, second = [await server.connect() for _ in range(2)]
        async with first.stream, second.stream:
            for client in (first, second):
                await client.send(GET % b"")
                assert (await client.answer()).status == 200
            third = await server.connect()
            async with third.stream, trio.open_nursery() as nursery:
                nursery.start_soon(third.send, GET % b"" + b"x" * 4_000_000)
                answer = await third.answer()
                assert answer.status == 503
                assert answer.problem["retryable"] is True
                assert answer.headers["retry-after"] == "1"
                assert await third.until_closed() == b""
            await first.stream.aclose()
            await trio.testing.wait_all_tasks_blocked(0.01)
            statistics = server.control.statistics()
            assert (statistics.idle, statistics.accepted_total, statistics.refused_total) == (1, 3, 1)
            assert (await server.ask(GET % b"")).status == 200
