"""How long the shell waits for a peer, and how it notices that one has left. On a clock that jumps."""

from pathlib import Path

import pytest
import structlog.testing
import trio
import trio.testing
from support.asgi_apps import EventSource, RawClient, describe, running, running_on_unix
from trio.testing import MockClock

from termald.api.asgi import LEAVE_GRACE_S, ClientDisconnected, Receive, Scope, Send
from termald.api.http1 import READ_AHEAD_BYTES
from termald.limits import ServerLimits

GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n"
HALF_A_POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhalf"
LIMITS = ServerLimits(head_deadline_ms=5_000, write_deadline_ms=2_000)
START = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
EVENT = {"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True}


async def closed_after(client: RawClient) -> float:
    """Wait until the other side closes without a word; return how long that took."""
    begun = trio.current_time()
    assert await client.until_closed() == b""
    return trio.current_time() - begun


async def test_an_idle_connection_is_closed_without_a_word(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Before its first request and between two; being idle is no offence."""
    async with running_on_unix(describe, tmp_path, limits=LIMITS) as server:
        client = await server.connect()
        async with client.stream:
            assert await closed_after(client) == pytest.approx(5)
        client = await server.connect()
        async with client.stream:
            await trio.sleep(4)
            await client.send(GET % b"")
            assert (await client.answer()).status == 200
            assert await closed_after(client) == pytest.approx(5)


async def test_a_head_has_its_deadline_from_its_first_byte_however_it_trickles(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A byte a second would otherwise keep a connection for as many seconds as a head may have bytes."""
    async with running_on_unix(describe, tmp_path, limits=LIMITS) as server:
        client = await server.connect()
        async with client.stream:
            await trio.sleep(4)
            begun = trio.current_time()
            for byte in b"GET /":
                await client.send(bytes([byte]))
                await trio.sleep(0.9)
            answer = await client.answer()
            assert answer.status == 408
            assert answer.problem["retryable"] is True
            assert trio.current_time() - begun == pytest.approx(5)


async def test_half_a_body_is_408_after_the_deadline(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The application is never called with half of what it was sent."""
    async with running_on_unix(describe, tmp_path, limits=LIMITS) as server:
        client = await server.connect()
        async with client.stream:
            begun = trio.current_time()
            await client.send(HALF_A_POST)
            assert (await client.answer()).status == 408
            assert trio.current_time() - begun == pytest.approx(5)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HALF_A_POST, GET % b""])
async def test_a_peer_that_leaves_at_any_point_is_no_news(sent: bytes) -> None:
    """Nothing is logged, nothing raised, and the next one is served."""
    with structlog.testing.capture_logs() as logs:
        async with running(describe) as server:
            client = await server.connect()
            await client.send(sent)
            await client.stream.aclose()
            assert (await server.ask(GET % b"")).status == 200
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert server.control.statistics().idle == 0
    assert [entry for entry in logs if entry["event"] != "lifespan-raised"] == []


async def test_a_quiet_stream_notices_at_once_that_its_peer_has_left(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Only a read sees it: nothing is written for the next hour."""
    source = EventSource()
    async with running_on_unix(source, tmp_path, limits=LIMITS) as server:
        client = await server.connect()
        await client.send(GET % b"")
        await client.until(b"\r\n\r\n")
        begun = trio.current_time()
        await client.stream.aclose()
        await source.ended.wait()
        assert source.ended_by == "receive"
        assert trio.current_time() == begun


async def test_a_stream_that_does_not_listen_is_cancelled_after_a_grace(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """It may be waiting for its next event for hours. Its clean-up is given time."""
    cancelled_at: list[float] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await send(START)
        try:
            await trio.sleep_forever()
        finally:
            cancelled_at.append(trio.current_time())

    async with running_on_unix(app, tmp_path, limits=LIMITS) as server:
        client = await server.connect()
        await client.send(GET % b"")
        await client.until(b"\r\n\r\n")
        left_at = trio.current_time()
        await client.stream.aclose()
        await trio.sleep(LEAVE_GRACE_S + 1)
        assert cancelled_at == [pytest.approx(left_at + LEAVE_GRACE_S)]
        assert server.control.statistics().streams == 0


async def test_a_write_to_a_peer_that_has_left_raises_a_client_disconnected_each_time() -> None:
    """ASGI wants an OSError; an application that catches it and goes on is told again."""
    raised: list[OSError] = []
    done = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await send(START)
        while len(raised) < 2:
            try:
                await send(EVENT)
            except OSError as error:
                raised.append(error)
        done.set()

    with structlog.testing.capture_logs() as logs:
        async with running(app) as server:
            client = await server.connect()
            await client.send(GET % b"")
            await client.until(b"data: 1")
            await client.stream.aclose()
            with trio.fail_after(30):
                await done.wait()
    assert [type(error) for error in raised] == [ClientDisconnected, ClientDisconnected]
    assert [entry["event"] for entry in logs] == ["lifespan-raised"]


async def test_a_plain_answer_is_made_although_nobody_waits_for_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    """What was asked for is done: a command must not depend on its caller's patience."""
    done = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await trio.sleep(60)
            done.set()
        await describe(scope, receive, send)

    async with running_on_unix(app, tmp_path, limits=LIMITS) as server:
        client = await server.connect()
        await client.send(GET % b"")
        await client.stream.aclose()
        await done.wait()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_peer_that_only_closed_its_sending_half_gets_its_answer(stream: bool) -> None:
    """As `nc -N` does. End of input is no proof that nobody listens."""
    source = EventSource()
    async with running(source if stream else describe) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(GET % b"")
            await client.stream.send_eof()
            assert (await client.answer()).status == 200
            assert await client.until_closed() == b""
    if stream:
        assert source.ended_by == "receive"


async def test_what_comes_during_a_stream_is_kept_and_is_the_next_request() -> None:
    """The read beside it must not eat it, nor confuse it."""
    source = EventSource()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await (source if scope["path"] == "/stream" else describe)(scope, receive, send)

    async with running(app) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(GET % b"stream")
            await client.until(b"\r\n\r\n")
            await client.send(GET % b"next")
            await trio.testing.wait_all_tasks_blocked(0.01)
            await source.feed.send(b"data: 1\n\n")
            await client.until(b"data: 1\n\n\r\n")
            await client.send(b"")
            assert not source.ended.is_set()
            source.feed.close()
            await client.until(b"0\r\n\r\n")
            assert b'"path":"/next"' in (await client.answer()).body


async def test_a_peer_that_sends_without_end_during_a_stream_is_not_read_without_end() -> None:
    """What is kept has a bound, and the stream goes on."""
    source = EventSource()
    async with running(source) as server:
        client = await server.connect()
        async with client.stream, trio.open_nursery() as nursery:
            await client.send(GET % b"")
            await client.until(b"\r\n\r\n")
            nursery.start_soon(client.send, b"x" * 64 * READ_AHEAD_BYTES)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert nursery.child_tasks  # our reader has stopped, so the writer has not come to its end
            await source.feed.send(b"data: 1\n\n")
            await client.until(b"data: 1\n\n")
            nursery.cancel_scope.cancel()
