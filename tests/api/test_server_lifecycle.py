"""Open connections of every kind, and a stop. The table that decided for a shell of our own, row by row.

Other servers hang for ever on the two rows with a reader that stopped: they write without a deadline, in a shield.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import structlog.testing
import trio
import trio.testing
import trio_websocket
from support.asgi_apps import (
    SMALL_BUFFER_BYTES,
    EventSource,
    RawClient,
    Running,
    describe,
    echo,
    flood,
    running,
    running_on_unix,
)
from trio.testing import MockClock

from termald.api.asgi import ASGIApp, Receive, Scope, Send
from termald.api.websocket import CLOSE_S
from termald.limits import ServerLimits

GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIMITS = ServerLimits(drain_ms=2_000, write_deadline_ms=60_000)
DRAIN_S = 2.0

Opener = Callable[[Running, AsyncExitStack], Awaitable[None]]


async def nobody(server: Running, stack: AsyncExitStack) -> None:
    """No connection at all."""


async def never_spoke(server: Running, stack: AsyncExitStack) -> None:
    await stack.enter_async_context((await server.connect()).stream)


async def between_two(server: Running, stack: AsyncExitStack) -> None:
    client = await server.connect()
    await stack.enter_async_context(client.stream)
    await client.send(GET % b"")
    assert (await client.answer()).status == 200


async def half_a_head(server: Running, stack: AsyncExitStack) -> None:
    client = await server.connect()
    await stack.enter_async_context(client.stream)
    await client.send(b"GET / HT")


async def half_a_body(server: Running, stack: AsyncExitStack) -> None:
    client = await server.connect()
    await stack.enter_async_context(client.stream)
    await client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhalf")


async def reading_stream(server: Running, stack: AsyncExitStack) -> None:
    client = await server.connect()
    await stack.enter_async_context(client.stream)
    await client.send(GET % b"")
    await client.until(b"\r\n\r\n")


async def idle_websocket(server: Running, stack: AsyncExitStack) -> None:
    await stack.enter_async_context(server.websocket())


async def stopped_stream(server: Running, stack: AsyncExitStack) -> None:
    client = await server.connect(receive_buffer_bytes=SMALL_BUFFER_BYTES)
    await stack.enter_async_context(client.stream)
    await client.send(GET % b"")
    await client.until(b"\r\n\r\n")


async def stopped_websocket(server: Running, stack: AsyncExitStack) -> None:
    client = await server.connect(receive_buffer_bytes=SMALL_BUFFER_BYTES)
    await stack.enter_async_context(client.stream)
    await client.send(
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    )
    await client.until(b"\r\n\r\n")


async def endless(scope: Scope, receive: Receive, send: Send) -> None:
    """A handler that takes longer than anybody waits."""
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan here")
    await trio.sleep_forever()


async def a_request(server: Running, stack: AsyncExitStack) -> None:
    client = await server.connect()
    await stack.enter_async_context(client.stream)
    await client.send(GET % b"")


ROWS: dict[str, tuple[ASGIApp, Opener, float]] = {
    "nobody": (describe, nobody, 0),
    "never spoke": (describe, never_spoke, 0),
    "idle between two requests": (describe, between_two, 0),
    "half a head": (describe, half_a_head, 0),
    "half a body": (describe, half_a_body, DRAIN_S),
    "reading an event stream": (EventSource(), reading_stream, 0),
    "an idle websocket": (echo, idle_websocket, 0),
    "an event stream whose reader stopped": (flood, stopped_stream, DRAIN_S),
    "a websocket whose reader stopped": (flood, stopped_websocket, CLOSE_S),
    "a request that takes for ever": (endless, a_request, DRAIN_S),
}


@pytest.mark.parametrize("row", ROWS)
async def test_a_drain_ends_every_kind_of_connection_in_its_time(
    row: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """To the tick, on a clock that jumps."""
    app, opener, seconds = ROWS[row]
    async with running_on_unix(app, tmp_path, limits=LIMITS) as server, AsyncExitStack() as stack:
        await opener(server, stack)
        await trio.testing.wait_all_tasks_blocked()
        assert await server.drained() == pytest.approx(seconds)


@pytest.mark.parametrize("row", ["an event stream whose reader stopped", "a websocket whose reader stopped"])
async def test_a_reader_that_stopped_does_not_hold_up_the_stop(row: str) -> None:
    """The same over TCP in real time, where the kernel has buffers of its own."""
    app, opener, _ = ROWS[row]
    limits = ServerLimits(drain_ms=300, write_deadline_ms=60_000)
    async with running(app, limits=limits, small_buffers=True) as server, AsyncExitStack() as stack:
        await opener(server, stack)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert await server.drained() < 5.0


@pytest.mark.parametrize("opener", [stopped_stream, stopped_websocket])
async def test_a_reader_that_stopped_is_cut_within_the_write_limit_while_others_are_served(opener: Opener) -> None:
    """It loses its connection and slows nobody. The control: a reader that reads is not cut."""
    limits = ServerLimits(write_deadline_ms=300)
    async with running(flood, limits=limits, small_buffers=True) as server, AsyncExitStack() as stack:
        begun = trio.current_time()
        await opener(server, stack)
        reader = await server.connect()
        await stack.enter_async_context(reader.stream)
        await reader.send(GET % b"")
        events = 0
        with trio.fail_after(30):
            while server.control.statistics().cut_slow_total == 0:
                events += (await reader.until(b"data: x\n\n")).count(b"data: x")
            assert 0.3 <= trio.current_time() - begun < 5.0
            assert events > 0
            for _ in range(3):
                await reader.until(b"data: x\n\n")
        statistics = server.control.statistics()
        assert (statistics.streams, statistics.websockets, statistics.cut_slow_total) == (1, 0, 1)


async def test_a_slow_reader_that_reads_is_not_cut(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The deadline is for a part of a write, not for the whole of a large one."""
    body = b"x" * 2_000_000

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async with running_on_unix(app, tmp_path, limits=ServerLimits(write_deadline_ms=2_000)) as server:
        client = await server.connect()
        async with client.stream:
            begun = trio.current_time()
            await client.send(GET % b"")
            await client.until(b"\r\n\r\n")
            received = len(client.received)
            while received < len(body):
                part = await client.stream.receive_some(50_000)
                assert part
                received += len(part)
                await trio.sleep(0.25)
            assert trio.current_time() - begun > 8
            assert server.control.statistics().cut_slow_total == 0


async def test_a_drained_event_stream_ends_properly_and_can_say_goodbye() -> None:
    """The reader sees an end, not a torn stream, and opens it anew with its last id."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await receive()
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        assert await receive() == {"type": "http.disconnect"}
        await send({"type": "http.response.body", "body": b": bye\n\n", "more_body": True})

    async with running(app) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(GET % b"")
            await client.until(b"\r\n\r\n")
            await server.drained()
            assert await client.until_closed() == b"7\r\n: bye\n\n\r\n0\r\n\r\n"


async def test_another_stream_that_a_drain_ends_looks_torn() -> None:
    """Half a download must not pass for a whole one."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        await receive()

    async with running(app) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(GET % b"")
            await client.until(b"half\r\n")
            await server.drained()
            with pytest.raises(trio.BrokenResourceError):
                await client.until_closed()


async def test_an_answer_in_the_making_is_finished_and_is_the_last(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A command that was taken is answered; what is behind it on the connection is not read."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await trio.sleep(1)
        await describe(scope, receive, send)

    async with running_on_unix(app, tmp_path, limits=LIMITS) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(GET % b"1" + GET % b"2")
            await trio.testing.wait_all_tasks_blocked()
            assert await server.drained() == pytest.approx(1)
            answer = await client.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close")
            assert client.received == b""


async def test_a_request_whose_body_comes_during_the_drain_is_the_last_as_well() -> None:
    """It was begun before; what it begins must hear of the end like all others."""
    source = EventSource()
    async with running(source, limits=ServerLimits(drain_ms=9_000)) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhalf")
            await trio.testing.wait_all_tasks_blocked(0.01)
            server.control.begin_drain()
            await trio.testing.wait_all_tasks_blocked(0.01)
            await client.send(b"!")
            assert (await client.answer()).headers["connection"] == "close"
            with trio.fail_after(30):
                await server.ended.wait()
    assert source.ended_by == "receive"


async def test_a_drained_websocket_is_told_that_we_go_away() -> None:
    """And so is its application."""
    told: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await receive()
        await send({"type": "websocket.accept"})
        told.append(await receive())

    async with running(app) as server, server.websocket() as websocket:
        server.control.begin_drain()
        with pytest.raises(trio_websocket.ConnectionClosed) as closed:
            await websocket.get_message()
        assert closed.value.reason is not None
        assert closed.value.reason.code == 1001
        await server.ended.wait()
    assert told == [{"type": "websocket.disconnect", "code": 1001, "reason": ""}]


async def test_nobody_comes_in_once_the_drain_has_begun() -> None:
    """Refused by the kernel at once, so a client can look elsewhere."""
    async with running(endless, limits=ServerLimits(drain_ms=60_000)) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(GET % b"")
            await trio.testing.wait_all_tasks_blocked(0.01)
            server.control.begin_drain()
            server.control.begin_drain()
            assert server.control.draining
            await trio.testing.wait_all_tasks_blocked(0.01)
            with pytest.raises(ConnectionRefusedError):
                await server.connect()
            assert not server.ended.is_set()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
    ],
)
async def test_a_stream_under_connection_close_or_http_1_0_is_closed_at_its_end(request_: bytes) -> None:
    """Its end is the only sign of it that HTTP/1.0 has."""
    source = EventSource()
    async with running(source) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(request_)
            head = await client.until(b"\r\n\r\n")
            await source.feed.send(b"data: 1\n\n")
            source.feed.close()
            chunked = b"transfer-encoding: chunked" in head.lower()
            assert chunked == (b"HTTP/1.1" in request_)
            assert b"connection: close" in head.lower()
            expected = b"9\r\ndata: 1\n\n\r\n0\r\n\r\n" if chunked else b"data: 1\n\n"
            assert await client.until_closed() == expected


async def test_cancelling_the_server_cuts_everything_at_once() -> None:
    """The second step of a drain, for whoever cannot wait."""
    source = EventSource()
    clients: list[RawClient] = []
    with structlog.testing.capture_logs() as logs:
        async with running(source) as server:
            for _ in range(3):
                clients.append(await server.connect())
                await clients[-1].send(GET % b"")
                await clients[-1].until(b"\r\n\r\n")
    for client in clients:
        with pytest.raises(trio.BrokenResourceError):
            await client.until_closed()
        await client.stream.aclose()
    assert [entry["event"] for entry in logs] == ["lifespan-raised"]
