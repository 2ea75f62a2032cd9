"""Litestar on the shell: JSON through msgspec, an event stream, a WebSocket, its lifespan and its ways to fail."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
import structlog.testing
import trio
import trio.testing
import trio_websocket
from litestar import Litestar, WebSocket, get, post, websocket
from litestar.exceptions import NotAuthorizedException
from litestar.params import JSONBody
from litestar.response import ServerSentEvent
from support.asgi_apps import Running, running

from termald.limits import ServerLimits


class Item(msgspec.Struct):
    """A body."""

    name: str
    count: int = 1


class House:
    """One Litestar application with what it experienced."""

    def __init__(self) -> None:
        self.lived: list[str] = []
        self.feed, self._feed = trio.open_memory_channel[str](0)
        self.stream_ended = trio.Event()
        self.app = Litestar(
            route_handlers=[self._double(), self._fail(), self._events(), self._chat(), self._closed()],
            lifespan=[self._lifespan],
            openapi_config=None,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Litestar) -> AsyncIterator[None]:
        self.lived.append("begin")
        yield
        self.lived.append("end")

    def _double(self) -> Any:
        @post("/double", status_code=200)
        async def double(data: JSONBody[Item]) -> Item:
            return Item(data.name * 2, data.count * 2)

        return double

    def _fail(self) -> Any:
        @get("/fail")
        async def fail() -> None:
            raise ValueError("as told")

        return fail

    def _events(self) -> Any:
        async def stream() -> AsyncGenerator[str, None]:
            try:
                async for event in self._feed:
                    yield event
            finally:
                self.stream_ended.set()

        @get("/events", sync_to_thread=False)
        def events() -> ServerSentEvent:
            return ServerSentEvent(stream())

        return events

    def _chat(self) -> Any:
        @websocket("/chat")
        async def chat(socket: WebSocket[Any, Any, Any]) -> None:
            await socket.accept()
            async for text in socket.iter_data(mode="text"):
                await socket.send_data(f"you said {text}", mode="text")

        return chat

    def _closed(self) -> Any:
        @websocket("/closed")
        async def closed(socket: WebSocket[Any, Any, Any]) -> None:
            raise NotAuthorizedException("no token")

        return closed


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[tuple[House, Running, httpx.AsyncClient]]:
    """A house, the shell around it, and a client in front of it."""
    house = House()
    limits = ServerLimits(drain_ms=9_000)  # a drain that is done much earlier was a drain, not a cut
    async with running(house.app, limits=limits) as server, httpx.AsyncClient(base_url=server.listener.url) as client:
        yield house, server, client


async def test_json_goes_in_and_out_as_structs() -> None:
    """And what does not fit is Litestar's to refuse."""
    async with serving() as (_, _, client):
        answer = await client.post("/double", json={"name": "ab", "count": 2})
        assert (answer.status_code, answer.json()) == (200, {"name": "abab", "count": 4})
        assert (await client.post("/double", json={"name": 1})).status_code == 400
        assert (await client.get("/double")).status_code == 405
        assert (await client.get("/fail")).status_code == 500
        assert (await client.get("/nowhere")).status_code == 404


async def test_an_event_stream_is_live_and_ends_when_its_reader_leaves() -> None:
    """Each event arrives before the next is made; the generator is closed, and nothing is logged about it."""
    with structlog.testing.capture_logs() as logs:
        async with serving() as (house, server, _):
            client = await server.connect()
            await client.send(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"content-type: text/event-stream" in await client.until(b"\r\n\r\n")
            for event in ("one", "two"):
                await house.feed.send(event)
                await client.until(b"data: " + event.encode() + b"\r\n\r\n")
            await client.stream.aclose()
            with trio.fail_after(30):
                await house.stream_ended.wait()
    assert [entry["event"] for entry in logs] == []


async def test_a_drain_ends_an_event_stream_without_an_error_on_either_side() -> None:
    """The reader sees its end."""
    with structlog.testing.capture_logs() as logs:
        async with serving() as (house, server, client), client.stream("GET", "/events") as answer:
            await house.feed.send("one")
            lines = answer.aiter_lines()
            assert await anext(lines) == "data: one"
            assert await server.drained() < 5
            assert [line async for line in lines] == [""]
            assert house.stream_ended.is_set()
            assert house.lived == ["begin", "end"]
    assert [entry["event"] for entry in logs] == []


async def test_a_websocket_speaks_and_is_closed_by_either_side() -> None:
    """By the client, and by a drain."""
    with structlog.testing.capture_logs() as logs:
        async with serving() as (_, server, _):
            async with server.websocket("/chat") as first:
                await first.send_message("hello")
                assert await first.get_message() == "you said hello"
            async with server.websocket("/chat") as second:
                await second.send_message("hello")
                assert await second.get_message() == "you said hello"
                assert await server.drained() < 5
                with pytest.raises(trio_websocket.ConnectionClosed) as closed:
                    await second.get_message()
                assert closed.value.reason is not None
                assert closed.value.reason.code == 1001
    assert [entry["event"] for entry in logs] == []


async def test_a_websocket_that_litestar_refuses_is_an_http_answer() -> None:
    """Litestar closes it unaccepted."""
    async with serving() as (_, server, _):
        answer = await server.ask(
            b"GET /closed HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
        )
        assert (answer.status, answer.problem["type"]) == (403, "urn:termald:problem:websocket-refused")
