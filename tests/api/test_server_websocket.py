"""WebSockets on the shell: the handshake, messages, pings, closes from both sides, refusals, and a bounded end."""

import base64
import hashlib
from collections.abc import Awaitable, Callable

import pytest
import structlog.testing
import trio
import trio.testing
import trio_websocket
from support.asgi_apps import RawClient, describe, echo, running

from termald.api.asgi import ClientDisconnected, Message, Receive, Scope, Send
from termald.api.websocket import INBOX_MESSAGES
from termald.limits import ServerLimits

KEY = b"MDEyMzQ1Njc4OWFiY2RlZg=="
GET = b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n"
UPGRADE = (b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: " + KEY)


def handshake(*lines: bytes, first: bytes = b"GET /ws HTTP/1.1", host: bytes = b"localhost") -> bytes:
    return b"\r\n".join([first, b"Host: " + host, *lines, b"", b""])


def frame(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """A masked frame of a client, with a mask that changes nothing; up to 125 bytes."""
    assert len(payload) < 126
    return bytes([opcode | (0x80 if final else 0), 0x80 | len(payload), 0, 0, 0, 0]) + payload


class Script:
    """An application that accepts and then does what the test wants; it keeps what it received."""

    def __init__(self, act: Callable[["Script", Send], Awaitable[None]] | None = None) -> None:
        self._act = act
        self.received: list[Message] = []
        self.ended = trio.Event()
        self.receive: Receive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            raise RuntimeError("only websocket here")
        self.receive = receive
        try:
            assert await receive() == {"type": "websocket.connect"}
            await send({"type": "websocket.accept"})
            if self._act is not None:
                await self._act(self, send)
                return
            while not self.received or self.received[-1]["type"] != "websocket.disconnect":
                self.received.append(await receive())
        finally:
            self.ended.set()


async def closed_with(websocket: trio_websocket.WebSocketConnection) -> tuple[int, str | None]:
    with trio.fail_after(30), pytest.raises(trio_websocket.ConnectionClosed) as closed:
        while True:
            await websocket.get_message()
    assert closed.value.reason is not None
    return closed.value.reason.code, closed.value.reason.reason


async def test_the_handshake_is_answered_as_the_standard_says() -> None:
    """The answer is a hash of the peer's own key, although trio-websocket was given a handshake of ours."""
    accept = base64.b64encode(hashlib.sha1(KEY + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    async with running(echo) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(handshake(*UPGRADE))
            head = (await client.until(b"\r\n\r\n")).lower()
    assert head.startswith(b"http/1.1 101 switching protocols\r\n")
    assert b"\r\nsec-websocket-accept: " + accept.lower() + b"\r\n" in head


@pytest.mark.parametrize("message", ["", "text ä", b"", b"\x00\xff", "x" * 300_000, b"y" * 300_000])
async def test_messages_come_back_as_they_went(message: str | bytes) -> None:
    """Text as text, bytes as bytes, also such as need several reads."""
    async with running(echo) as server, server.websocket() as websocket:
        for _ in range(3):
            await websocket.send_message(message)
            assert await websocket.get_message() == message


async def test_frames_sent_right_behind_the_handshake_are_not_lost() -> None:
    """Before our answer to it: forbidden to clients, and done by some."""
    async with running(echo) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(handshake(*UPGRADE) + frame(0x1, b"early"))
            await client.until(b"\r\n\r\n")
            assert await client.until(b"early") == b"\x81\x05early"


async def test_a_message_in_pieces_is_one_message() -> None:
    """With a ping between the pieces."""
    async with running(echo) as server:
        client = await server.connect()
        async with client.stream:
            pieces = frame(0x1, b"one ", final=False) + frame(0x9, b"p") + frame(0x0, b"message")
            await client.send(handshake(*UPGRADE) + pieces)
            await client.until(b"\r\n\r\n")
            assert await client.until(b"message") == b"\x8a\x01p\x81\x0bone message"


async def test_the_subprotocol_and_headers_that_the_application_chose_are_told() -> None:
    """From what was offered, in whatever number of lines."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        assert scope["subprotocols"] == ["a", "b", "c"]
        await receive()
        await send({"type": "websocket.accept", "subprotocol": "b", "headers": [(b"x-told", b"yes")]})
        await receive()

    async with running(app) as server:
        client = await server.connect()
        async with client.stream:
            offers = (b"Sec-WebSocket-Protocol: a, b", b"Sec-WebSocket-Protocol: c")
            await client.send(handshake(*UPGRADE, *offers))
            head = (await client.until(b"\r\n\r\n")).lower()
    assert b"\r\nsec-websocket-protocol: b\r\n" in head
    assert b"\r\nx-told: yes\r\n" in head


async def test_a_subprotocol_that_was_not_offered_is_the_applications_fault() -> None:
    """The client would have to fail the connection; 500 says whose fault it is."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept", "subprotocol": "mine"})

    async with running(app) as server:
        assert (await server.ask(handshake(*UPGRADE, b"Sec-WebSocket-Protocol: yours"))).status == 500


async def test_the_scope_of_a_websocket() -> None:
    """What the auth layer reads is there as in a request."""
    scopes: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            scopes.append(scope)
        await echo(scope, receive, send)

    async with running(app) as server, server.websocket("/a%20b?x=1", headers=((b"authorization", b"Bearer t"),)):
        pass
    (scope,) = scopes
    assert (scope["scheme"], scope["path"], scope["query_string"]) == ("ws", "/a b", b"x=1")
    assert (b"authorization", b"Bearer t") in scope["headers"]
    assert scope["extensions"] == {
        "termald.transport": {"kind": "tcp", "peer_uid": None},
        "websocket.http.response": {},
    }
    assert "method" not in scope


async def test_pings_and_closes_are_answered_for_an_application_that_never_receives() -> None:
    """It only publishes; somebody has to read, or its peer takes it for dead."""

    async def publish(script: Script, send: Send) -> None:
        await send({"type": "websocket.send", "text": "news"})
        await trio.sleep_forever()

    script = Script(publish)
    async with running(script) as server, server.websocket() as websocket:
        assert await websocket.get_message() == "news"
        for _ in range(INBOX_MESSAGES):
            await websocket.send_message("ignored")
        with trio.fail_after(2):
            await websocket.ping()
        assert server.control.statistics().websockets == 1
        await websocket.aclose()
        assert websocket.closed is not None
        assert websocket.closed.code == 1000


@pytest.mark.parametrize(("code", "reason"), [(1000, None), (1001, "leaving"), (4321, "mine")])
async def test_the_peers_close_reaches_the_application_behind_its_last_message(code: int, reason: str | None) -> None:
    """With its code, and after everything that came before it."""
    script = Script()
    async with running(script) as server:
        async with server.websocket() as websocket:
            await websocket.send_message("last")
            await websocket.aclose(code, reason)
        await script.ended.wait()
    assert script.received == [
        {"type": "websocket.receive", "text": "last"},
        {"type": "websocket.disconnect", "code": code, "reason": reason or ""},
    ]


async def test_a_peer_that_vanishes_is_an_abnormal_close() -> None:
    """No close frame, only the end of the connection. The control is the test above."""
    script = Script()
    async with running(script) as server:
        client = await server.connect()
        await client.send(handshake(*UPGRADE))
        await client.until(b"\r\n\r\n")
        await client.stream.aclose()
        with trio.fail_after(30):
            await script.ended.wait()
    assert script.received == [{"type": "websocket.disconnect", "code": 1006, "reason": ""}]


async def test_the_applications_close_reaches_the_peer() -> None:
    """And what it receives afterwards is that."""

    async def close(script: Script, send: Send) -> None:
        await send({"type": "websocket.close", "code": 4001, "reason": "enough"})
        script.received.append(await script.receive())

    script = Script(close)
    async with running(script) as server, server.websocket() as websocket:
        assert await closed_with(websocket) == (4001, "enough")
        await script.ended.wait()
    assert script.received == [{"type": "websocket.disconnect", "code": 4001, "reason": "enough"}]


async def test_an_application_that_returns_closes_normally_and_one_that_fails_does_not() -> None:
    """1000 and 1011; the failure is logged."""

    async def end(script: Script, send: Send) -> None:
        message = await script.receive()
        if message["text"] == "fail":
            raise ValueError("as told")

    with structlog.testing.capture_logs() as logs:
        async with running(Script(end)) as server:
            for text, code in (("return", 1000), ("fail", 1011)):
                async with server.websocket() as websocket:
                    await websocket.send_message(text)
                    assert (await closed_with(websocket))[0] == code
    assert [entry["event"] for entry in logs] == ["lifespan-raised", "application-failed"]


async def test_a_send_after_the_end_raises_a_client_disconnected() -> None:
    """Which is no news in the log."""
    raised: list[OSError] = []

    async def send_on(script: Script, send: Send) -> None:
        assert (await script.receive())["type"] == "websocket.disconnect"
        try:
            await send({"type": "websocket.send", "bytes": b"too late"})
        except OSError as error:
            raised.append(error)
            raise

    script = Script(send_on)
    with structlog.testing.capture_logs() as logs:
        async with running(script) as server:
            async with server.websocket():
                pass
            await script.ended.wait()
    assert [type(error) for error in raised] == [ClientDisconnected]
    assert [entry["event"] for entry in logs] == ["lifespan-raised"]


async def test_a_message_over_the_cap_is_1009() -> None:
    """In one frame and in many; one of exactly the cap passes."""
    async with running(echo, limits=ServerLimits(body_bytes_max=1_000)) as server:
        async with server.websocket() as websocket:
            await websocket.send_message("x" * 1_000)
            assert await websocket.get_message() == "x" * 1_000
            await websocket.send_message("x" * 1_001)
            assert (await closed_with(websocket))[0] == 1009
        client = await server.connect()
        async with client.stream:
            await client.send(handshake(*UPGRADE) + frame(0x2, b"x" * 100, final=False) + frame(0x0, b"x" * 100) * 0)
            await client.send(frame(0x0, b"x" * 100, final=False) * 10)
            await client.until(b"\r\n\r\n")
            assert (await client.until_closed())[2:4] == (1009).to_bytes(2, "big")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\x81\x02hi", 1002),  # not masked
        (frame(0x3, b""), 1002),  # no such opcode
        (frame(0x0, b"x"), 1002),  # goes on with nothing
        (frame(0x1, b"\xff"), 1007),  # no UTF-8
        (frame(0x8, b"\x03"), 1002),  # half a code
        (frame(0x9, b"x" * 125, final=False), 1002),  # a ping in pieces
    ],
)
async def test_a_frame_that_is_none_closes_the_connection(sent: bytes, code: int) -> None:
    """The application hears the code that names the offence; the log hears nothing above debug.

    The peer only sees the end: trio-websocket 0.12 sends no close frame here, which the standard merely recommends.
    """
    script = Script()
    with structlog.testing.capture_logs() as logs:
        async with running(script) as server:
            client = await server.connect()
            async with client.stream:
                await client.send(handshake(*UPGRADE) + sent)
                await client.until(b"\r\n\r\n")
                assert await client.until_closed() == b""
            with trio.fail_after(30):
                await script.ended.wait()
    assert {entry["log_level"] for entry in logs} == {"debug"}
    assert script.received[-1]["code"] == code


async def refuse_plainly(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.close", "code": 4401})
    assert (await receive())["type"] == "websocket.disconnect"


async def refuse_with_an_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", b"2")]
    await send({"type": "websocket.http.response.start", "status": 401, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": b"{", "more_body": True})
    await send({"type": "websocket.http.response.body", "body": b"}"})


async def fail_before_accepting(scope: Scope, receive: Receive, send: Send) -> None:
    raise ValueError("before accepting")


async def return_without_a_word(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()


async def test_an_application_refuses_a_websocket() -> None:
    """As an HTTP answer, which a browser's script sees as an error and a client can read."""
    async with running(refuse_plainly) as server:
        answer = await server.ask(handshake(*UPGRADE))
        assert answer.status == 403
        assert answer.problem["type"] == "urn:termald:problem:websocket-refused"
    for app in (fail_before_accepting, return_without_a_word):
        async with running(app) as server:
            assert (await server.ask(handshake(*UPGRADE))).status == 500


async def test_an_application_refuses_a_websocket_in_its_own_words_and_the_connection_goes_on() -> None:
    """A 401 as problem+json; the client may try again with its token."""
    async with running(refuse_with_an_answer) as server:
        client = await server.connect()
        async with client.stream:
            for _ in range(2):
                await client.send(handshake(*UPGRADE))
                answer = await client.answer()
                assert (answer.status, answer.body) == (401, b"{}")


BAD_HANDSHAKES: dict[str, tuple[int, bytes]] = {
    "post": (400, handshake(*UPGRADE, b"Content-Length: 0", first=b"POST /ws HTTP/1.1")),
    "http 1.0": (400, handshake(*UPGRADE, first=b"GET /ws HTTP/1.0")),
    "a body": (400, handshake(*UPGRADE, b"Content-Length: 2") + b"hi"),
    "chunks": (400, handshake(*UPGRADE, b"Transfer-Encoding: chunked") + b"0\r\n\r\n"),
    "no key": (400, handshake(*UPGRADE[:3])),
    "a short key": (400, handshake(*UPGRADE[:3], b"Sec-WebSocket-Key: MDEy")),
    "a key that is no base64": (400, handshake(*UPGRADE[:3], b"Sec-WebSocket-Key: ~~~~~~~~~~~~~~~~~~~~~~~~")),
    "two keys": (400, handshake(*UPGRADE, UPGRADE[3])),
    "a subprotocol beyond ASCII": (400, handshake(*UPGRADE, b"Sec-WebSocket-Protocol: \xe9")),
    "an old version": (426, handshake(*UPGRADE[:2], b"Sec-WebSocket-Version: 8", UPGRADE[3])),
    "no version": (426, handshake(*UPGRADE[:2], UPGRADE[3])),
    "another host": (421, handshake(*UPGRADE, host=b"evil.example")),
    "another origin": (403, handshake(*UPGRADE, b"Origin: http://evil.example")),
    "no origin at all": (403, handshake(*UPGRADE, b"Origin: null")),
}


@pytest.mark.parametrize("name", BAD_HANDSHAKES)
async def test_a_handshake_that_is_refused_never_reaches_the_application(name: str) -> None:
    """Cross-site hijacking above all: no same-origin policy stands in its way. The control is every other test."""
    status, request = BAD_HANDSHAKES[name]
    reached: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            reached.append(scope["type"])
        await echo(scope, receive, send)

    async with running(app) as server:
        answer = await server.ask(request)
        assert answer.status == status
        assert answer.problem["retryable"] is False
        assert (answer.headers.get("sec-websocket-version") == "13") == (status == 426)
        assert reached == []
        own = b"127.0.0.1:%d" % server.port
        client = await server.connect()
        async with client.stream:
            await client.send(handshake(*UPGRADE, b"Origin: http://" + own, host=own))
            assert (await client.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize("lines", [(b"Upgrade: h2c", b"Connection: Upgrade"), UPGRADE[1:]])
async def test_an_upgrade_to_anything_else_is_a_plain_request(lines: tuple[bytes, ...]) -> None:
    """As HTTP wants it, and the connection goes on."""
    async with running(describe) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(handshake(*lines) + GET % b"next")
            assert b'"path":"/ws"' in (await client.answer()).body
            assert b'"path":"/next"' in (await client.answer()).body


async def test_a_cancelled_send_cuts_the_connection() -> None:
    """Half a frame may be out, and trio-websocket would put the next one behind it."""

    async def give_up(script: Script, send: Send) -> None:
        with trio.move_on_after(0.05):
            while True:
                await send({"type": "websocket.send", "text": "x" * 10_000})
        with pytest.raises(ClientDisconnected):
            await send({"type": "websocket.send", "text": "y"})

    script = Script(give_up)
    async with running(script, small_buffers=True) as server:
        client: RawClient = await server.connect(receive_buffer_bytes=4_096)
        async with client.stream:
            await client.send(handshake(*UPGRADE))
            with trio.fail_after(30):
                await script.ended.wait()
            with pytest.raises(trio.BrokenResourceError):
                await client.until_closed()


async def test_several_tasks_may_send_at_once() -> None:
    """Frames do not mix."""

    async def publish(script: Script, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            for letter in "abcd":
                nursery.start_soon(send, {"type": "websocket.send", "text": letter * 50_000})

    async with running(Script(publish)) as server, server.websocket() as websocket:
        messages = sorted([str(await websocket.get_message()) for _ in range(4)])
    assert messages == [letter * 50_000 for letter in "abcd"]


@pytest.mark.parametrize(
    "messages",
    [
        [{"type": "websocket.send", "text": "too early"}],
        [{"type": "websocket.accept"}, {"type": "websocket.accept"}],
        [{"type": "websocket.accept"}, {"type": "websocket.http.response.start", "status": 200, "headers": []}],
        [{"type": "websocket.close"}, {"type": "websocket.accept"}],
        [{"type": "http.response.start", "status": 200, "headers": []}],
    ],
)
async def test_an_application_that_breaks_the_protocol_is_told(messages: list[Message]) -> None:
    """It is ours, so it shall hear of it."""
    told: list[Exception] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            raise RuntimeError("no lifespan here")
        await receive()
        for message in messages[:-1]:
            await send(message)
        try:
            await send(messages[-1])
        except RuntimeError as error:
            told.append(error)

    async with running(app) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(handshake(*UPGRADE) + frame(0x8, b"\x03\xe8"))
            await client.until_closed()
    assert len(told) == 1
