"""How a WebSocket ends when both sides are busy: nobody's last words are lost, and nobody is waited for too long."""

from pathlib import Path

import pytest
import structlog.testing
import trio
import trio.testing
from support.asgi_apps import RawClient, running, running_on_unix
from trio.testing import MockClock

from termald.api.asgi import LEAVE_GRACE_S, Receive, Scope, Send
from termald.api.websocket import INBOX_MESSAGES
from termald.limits import ServerLimits

HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
)
MASK = b"\0\0\0\0"
CLOSE = b"\x88\x82" + MASK + b"\x03\xe8"
PING = b"\x89\x81" + MASK + b"p"
TEXT = b"\x81\x82" + MASK + b"hi"


async def publish(scope: Scope, receive: Receive, send: Send) -> None:
    """Send without pause until that fails; never receive."""
    if scope["type"] == "lifespan":
        raise RuntimeError("no lifespan here")
    await receive()
    await send({"type": "websocket.accept"})
    while True:
        await send({"type": "websocket.send", "text": "x" * 10_000})


async def opened(client: RawClient) -> None:
    await client.send(HANDSHAKE)
    await client.until(b"\r\n\r\n")


async def test_a_close_of_the_peer_is_answered_although_the_application_ends_at_once() -> None:
    """The answer waits behind a message that is being written; the application hears of the close before it is out."""
    with structlog.testing.capture_logs() as logs:
        async with running(publish, small_buffers=True) as server:
            client = await server.connect(receive_buffer_bytes=4_096)
            async with client.stream:
                await opened(client)
                await client.send(CLOSE)
                await trio.testing.wait_all_tasks_blocked(0.05)
                assert (await client.until_closed()).endswith(b"\x88\x02\x03\xe8")
    assert [entry["event"] for entry in logs] == ["lifespan-raised"]


async def test_a_goodbye_is_completed_although_the_application_ends_at_once() -> None:
    """Its send fails as soon as the drain has begun; the closing handshake goes on without it."""
    async with running(publish) as server:
        client = await server.connect()
        async with client.stream:
            await opened(client)
            server.control.begin_drain()
            await client.until(b"\x88\x02\x03\xe9")
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert not server.ended.is_set()
            await client.send(CLOSE)
            assert await client.until_closed() == b""
        with trio.fail_after(30):
            await server.ended.wait()


async def test_a_ping_behind_our_close_is_the_peers_fault_and_no_news() -> None:
    """trio-websocket would answer it and finds that it may not."""

    async def close(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})

    with structlog.testing.capture_logs() as logs:
        async with running(close) as server:
            client = await server.connect()
            async with client.stream:
                await opened(client)
                await client.until(b"\x88\x02\x03\xe8")
                await client.send(PING)
                with pytest.raises(trio.BrokenResourceError):
                    await client.until_closed()
            async with server.websocket():
                pass
    assert {entry["log_level"] for entry in logs} == {"debug"}


async def test_an_application_that_leaves_messages_unread_is_not_waited_for(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The task that reads them for it ends with it."""
    leave = trio.Event()

    async def read_nothing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await receive()
        await send({"type": "websocket.accept"})
        await leave.wait()

    async with running_on_unix(read_nothing, tmp_path) as server:
        client = await server.connect()
        async with client.stream:
            await opened(client)
            await client.send(TEXT * INBOX_MESSAGES * 3)
            await trio.testing.wait_all_tasks_blocked()
            begun = trio.current_time()
            leave.set()
            await client.until(b"\x88\x02\x03\xe8")
            await client.send(CLOSE)
            assert await client.until_closed() == b""
            await trio.testing.wait_all_tasks_blocked()
            assert server.control.statistics().websockets == 0
            assert trio.current_time() == begun


async def test_an_application_that_does_not_notice_the_end_is_cancelled_after_a_grace(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """It only publishes, and its next event may be hours away."""
    cancelled_at: list[float] = []

    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await receive()
        await send({"type": "websocket.accept"})
        try:
            await trio.sleep_forever()
        finally:
            cancelled_at.append(trio.current_time())

    async with running_on_unix(wait, tmp_path) as server:
        client = await server.connect()
        async with client.stream:
            await opened(client)
            left_at = trio.current_time()
            await client.send(CLOSE)
            assert await client.until_closed() == CLOSE[:1] + b"\x02" + CLOSE[-2:]
        await trio.sleep(LEAVE_GRACE_S + 1)
        assert cancelled_at == [pytest.approx(left_at + LEAVE_GRACE_S)]
        assert server.control.statistics().websockets == 0


async def test_a_peer_that_is_cut_for_a_message_too_large_hears_why() -> None:
    """It is still sending: closing over unread bytes resets the connection, and the reset would overtake the 1009."""
    size = 4_000_000
    frame = b"\x82\xff" + size.to_bytes(8, "big") + MASK + b"x" * size

    async def listen(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()

    async with running(listen, limits=ServerLimits(body_bytes_max=1_000)) as server:
        client = await server.connect()
        async with client.stream, trio.open_nursery() as nursery:
            await opened(client)
            nursery.start_soon(client.send, frame)
            assert (await client.until_closed())[2:4] == (1009).to_bytes(2, "big")
