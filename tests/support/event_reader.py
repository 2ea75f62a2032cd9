"""A client of one event stream, on a connection of its own.

Not httpx: a stream of its that is left before its end leaves generators to the garbage collector, which trio reports.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import h11
import trio
from support.asgi_apps import PATIENCE_S, RawClient, Running

from termald.client.sse import ServerEvent, SseDecoder

READ_BYTES: Final = 65_536


class EventReader:
    """Reads events as they come. `headers`: those of the answer."""

    def __init__(self, client: RawClient, parser: h11.Connection, headers: dict[str, str]) -> None:
        self.headers = headers
        self._client = client
        self._parser = parser
        self._decoder = SseDecoder()
        self._ready: list[ServerEvent] = []

    async def next(self, count: int) -> list[ServerEvent]:
        """Return the next events."""
        with trio.fail_after(PATIENCE_S):
            while len(self._ready) < count:
                event = await _next(self._client, self._parser)
                assert isinstance(event, h11.Data), f"the stream ended: {event}"
                self._ready += self._decoder.feed(bytes(event.data))
        found, self._ready = self._ready[:count], self._ready[count:]
        return found

    async def until(self, kind: str) -> list[ServerEvent]:
        """Return everything up to an event of this kind, which is the last."""
        seen: list[ServerEvent] = []
        while not seen or seen[-1].kind != kind:
            seen += await self.next(1)
        return seen

    async def ends(self) -> bool:
        """Whether nothing more comes but a proper end."""
        with trio.fail_after(PATIENCE_S):
            return isinstance(await _next(self._client, self._parser), h11.EndOfMessage)


@asynccontextmanager
async def reading(server: Running, path: str, **headers: str) -> AsyncIterator[EventReader]:
    """Open an event stream, and leave it with the block. The answer must be a stream."""
    client = await server.connect()
    async with client.stream:
        parser = h11.Connection(h11.CLIENT)
        given = [("host", "localhost"), *((name.replace("_", "-"), value) for name, value in headers.items())]
        head = parser.send(h11.Request(method="GET", target=path, headers=given))
        await client.send((head or b"") + (parser.send(h11.EndOfMessage()) or b""))
        with trio.fail_after(PATIENCE_S):
            answer = await _next(client, parser)
        assert isinstance(answer, h11.Response)
        assert answer.status_code == 200, answer
        yield EventReader(client, parser, {name.decode(): value.decode() for name, value in answer.headers})


async def _next(client: RawClient, parser: h11.Connection) -> object:
    while (event := parser.next_event()) is h11.NEED_DATA:
        parser.receive_data(await client.stream.receive_some(READ_BYTES))
    return event
