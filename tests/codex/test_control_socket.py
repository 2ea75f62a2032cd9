"""The socket link: what Codex takes, what it drops the connection for, and that no peer can hold the daemon up."""

import base64
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio_websocket import WebSocketConnection, wrap_server_stream

from termald.codex.control_socket import ControlSocketLink, connect_control_socket, socket_address
from termald.codex.errors import LinkClosed, MessageTooLarge
from termald.codex.lines import Oversize
from termald.codex.link import CLOSE_DEADLINE_S, MESSAGE_BYTES_MAX

Serve = Callable[[trio.SocketStream], Awaitable[None]]


@asynccontextmanager
async def listening(path: Path, serve: Serve) -> AsyncIterator[None]:
    """Let `serve` have each connection to `path`, for as long as the block runs."""
    sock = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    await sock.bind(str(path))
    sock.listen()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [trio.SocketListener(sock)])
        yield
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def linked(path: Path, **options: Any) -> AsyncIterator[ControlSocketLink]:
    async with trio.open_nursery() as nursery:
        link = await connect_control_socket(nursery, path, **options)
        yield link
        await link.aclose()


def websocket(talk: Callable[[WebSocketConnection], Awaitable[None]]) -> Serve:
    async def serve(stream: trio.SocketStream) -> None:
        async with trio.open_nursery() as nursery:
            request = await wrap_server_stream(nursery, stream)
            await talk(await request.accept())
            nursery.cancel_scope.cancel()

    return serve


async def test_frames_go_as_text_both_ways(tmp_path: Path) -> None:
    """Codex ignores binary messages."""

    async def echo(connection: WebSocketConnection) -> None:
        message = await connection.get_message()
        assert isinstance(message, str)
        await connection.send_message(message)
        await connection.aclose()

    async with listening(tmp_path / "s", websocket(echo)), linked(tmp_path / "s") as link:
        await link.send('{"a":"ä"}'.encode())
        assert await link.receive() == '{"a":"ä"}'.encode()
        for _ in range(2):
            with pytest.raises(LinkClosed, match="1000"):
                await link.receive()


async def test_frames_before_the_end_are_read_first(tmp_path: Path) -> None:
    """RUNTIME-02 on the socket: also where the peer is killed and says no goodbye."""

    async def burst(connection: WebSocketConnection) -> None:
        for number in range(300):
            await connection.send_message(str(number))

    async with listening(tmp_path / "s", websocket(burst)), linked(tmp_path / "s") as link:
        assert [await link.receive() for _ in range(300)] == [str(number).encode() for number in range(300)]
        with pytest.raises(LinkClosed, match="1006"):
            await link.receive()


async def test_link_follows_the_symbolic_link_that_codex_leaves(tmp_path: Path) -> None:
    """A runtime folder of any depth will do: the path is longer than a socket's address may be."""
    deep = tmp_path / ("d" * 100)
    deep.mkdir()

    async def greet(connection: WebSocketConnection) -> None:
        await connection.send_message("hello")

    async with listening(tmp_path / "s", websocket(greet)):
        (deep / "s").symlink_to(tmp_path / "s")
        async with linked(deep / "s") as link:
            assert await link.receive() == b"hello"


def test_path_that_no_address_can_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LinkClosed, match="shorter runtime folder"):
        socket_address(tmp_path / ("d" * 100))


async def test_too_long_a_message_is_refused_and_the_link_lives(tmp_path: Path) -> None:
    """WIRE-05."""

    async def echo(connection: WebSocketConnection) -> None:
        await connection.send_message(await connection.get_message())

    async with listening(tmp_path / "s", websocket(echo)), linked(tmp_path / "s") as link:
        with pytest.raises(MessageTooLarge):
            await link.send(b"x" * (MESSAGE_BYTES_MAX + 1))
        await link.send(b"{}")
        assert await link.receive() == b"{}"


@pytest.mark.parametrize("fragments", [1, 7], ids=["whole", "in fragments"])
async def test_message_that_is_too_long_is_passed_over_and_its_call_is_known(tmp_path: Path, fragments: int) -> None:
    """WIRE-06: hung up over, it would be asked for again, and be as long, over every link that follows."""
    long, limit = b'{"id":7,"result":"' + b"x" * 300_000 + b'"}', 100_000
    exact = b'"' + b"y" * (limit - 2) + b'"'

    async def serve(stream: trio.SocketStream) -> None:
        await shake_hands(stream)
        size = -(-len(long) // fragments)
        for start in range(0, len(long), size):
            opcode = (0 if start else 1) | (0x80 if start + size >= len(long) else 0)
            await stream.send_all(frame_of(opcode, long[start : start + size]))
        await stream.send_all(frame_of(0x81, exact) + frame_of(0x81, b"{}"))
        await trio.sleep_forever()

    async with listening(tmp_path / "s", serve), linked(tmp_path / "s", message_bytes_max=limit) as link:
        dropped = await link.receive()
        assert isinstance(dropped, Oversize)
        assert (dropped.id, dropped.bytes) == (7, len(long))
        assert dropped.excerpt.startswith('{"id":7,"result":"xxx')
        assert await link.receive() == exact
        assert await link.receive() == b"{}"
        await link.send(b"{}")  # it lives


def frame_of(first: int, payload: bytes) -> bytes:
    """Return a server's frame."""
    size = len(payload)
    short, mark, width = size < 126, *((126, 2) if size < 2**16 else (127, 8))
    length = bytes([size]) if short else bytes([mark]) + size.to_bytes(width, "big")
    return bytes([first]) + length + payload


async def test_write_that_is_not_taken_ends_the_link(tmp_path: Path) -> None:
    """WIRE-14: trio-websocket itself would go on behind half a frame."""
    async with listening(tmp_path / "s", stalled), linked(tmp_path / "s", write_deadline_s=0.05) as link:
        with pytest.raises(LinkClosed, match="took no input"):
            await link.send(b"x" * MESSAGE_BYTES_MAX)
        with pytest.raises(LinkClosed):
            await link.send(b"{}")
        with pytest.raises(LinkClosed):
            await link.receive()


async def test_close_does_not_wait_for_a_peer_that_stopped_reading(tmp_path: Path) -> None:
    async with listening(tmp_path / "s", stalled), linked(tmp_path / "s", write_deadline_s=0.05) as link:
        with trio.fail_after(5 * CLOSE_DEADLINE_S):
            await link.aclose()
            await link.aclose()


@pytest.mark.parametrize(
    "junk",
    [
        pytest.param(b"\x81\x01\xff", id="bad UTF-8"),
        pytest.param(b"\xff\xff\xff\xff", id="no frame"),
        pytest.param(b"\x81\x7f" + (2**40).to_bytes(8, "big") + b"x" * 100, id="half a frame"),
    ],
)
async def test_bytes_that_break_the_websocket_cost_the_connection_and_no_more(tmp_path: Path, junk: bytes) -> None:
    """WIRE-03: what came before is read, and the reason is told."""

    async def serve(stream: trio.SocketStream) -> None:
        await shake_hands(stream)
        await stream.send_all(b"\x81\x02{}" + junk)

    async with listening(tmp_path / "s", serve), linked(tmp_path / "s") as link:
        assert await link.receive() == b"{}"
        with pytest.raises(LinkClosed, match="control socket was closed"):
            await link.receive()


async def test_nobody_listens(tmp_path: Path) -> None:
    async with trio.open_nursery() as nursery:
        with pytest.raises(LinkClosed, match="nobody listens"):
            await connect_control_socket(nursery, tmp_path / "s")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", id="refused"),
        pytest.param(b"SSH-2.0-OpenSSH\r\n", id="another protocol"),
        pytest.param(b"", id="silence"),
        pytest.param(None, id="leaves"),
    ],
)
async def test_peer_that_does_not_shake_hands_is_given_up(tmp_path: Path, answer: bytes | None) -> None:
    """A frozen process accepts and says nothing; trio-websocket waits for ever, also where the peer just leaves."""

    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        if answer is None:
            await stream.aclose()
            return
        await stream.send_all(answer)
        await trio.sleep_forever()

    async with listening(tmp_path / "s", serve), trio.open_nursery() as nursery:
        with pytest.raises(LinkClosed):
            await connect_control_socket(nursery, tmp_path / "s", connect_deadline_s=0.2)
        assert not nursery.child_tasks


async def stalled(stream: trio.SocketStream) -> None:
    """Shake hands, and then neither read nor write."""
    await shake_hands(stream)
    await trio.sleep_forever()


async def shake_hands(stream: trio.SocketStream) -> None:
    head = bytes(await stream.receive_some())
    key = next(line.split(b":")[1].strip() for line in head.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key:"))
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    await stream.send_all(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )
