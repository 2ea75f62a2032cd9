"""One open event stream of httpx's, that can be left at any moment."""

from collections.abc import AsyncIterator
from typing import Self

import anyio
import httpx

from termald.client.errors import BadAnswer, ConnectionFailed
from termald.client.sse import ServerEvent, SseDecoder


class EventStream(AsyncIterator[ServerEvent]):
    """The events of one connection. Ends when the daemon ends it. Errors: `connection-failed` where it breaks or falls
    silent, `bad-answer`."""

    def __init__(self, response: httpx.Response, path: str) -> None:
        self._response = response
        self._path = path
        self._pieces = response.aiter_bytes()
        self._decoder = SseDecoder()
        self._ready: list[ServerEvent] = []
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ServerEvent:
        while not self._ready:
            try:
                piece = await anext(self._pieces)
                self._ready = self._decoder.feed(piece)[::-1]
            except httpx.TransportError as error:
                raise ConnectionFailed(f"GET {self._path}: {type(error).__name__}: {error}".rstrip(": ")) from error
            except ValueError as error:
                raise BadAnswer(f"GET {self._path}: {error}") from error
        return self._ready.pop()

    async def aclose(self) -> None:
        """Close the connection, whatever is unread."""
        if self._closed:
            return
        self._closed = True
        # httpx reads through a handful of async generators, one within the other. `aclose` of the outermost leaves the
        # rest to the garbage collector, which trio and asyncio complain of; a read that is cancelled unwinds them all.
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                while True:
                    await anext(self._pieces)
            except (StopAsyncIteration, httpx.TransportError, httpx.StreamError):
                pass
        with anyio.CancelScope(shield=True):
            await self._response.aclose()
