"""Events over reconnects: what a reader gets who never left."""

from collections.abc import AsyncIterator, Collection
from types import TracebackType
from typing import Self

from termald.client.errors import ClientError, ConnectionFailed
from termald.client.events import Event, read_event
from termald.client.link import Link, Pauses, may_pass
from termald.client.stream import EventStream


class EventFeed(AsyncIterator[Event]):
    """Events from a number on, or from now on; never ends by itself.

    Where the connection breaks or the daemon restarts, it goes on behind the last event that was given: none is lost
    and none comes twice. Use it with `async with`, or close it. Marks of the stream (`Synced`, `Reset`) come too.
    Errors: `ClientError` once the daemon stays away for longer than the link's `reconnect_s`, or refuses.
    """

    def __init__(
        self, link: Link, *, after: int | None = None, session: str | None = None, kinds: Collection[str] = ()
    ) -> None:
        self._link = link
        self._session = session
        self._kinds = tuple(kinds)
        self._stream: EventStream | None = None
        self._closed = False
        self.position = after
        """The number of the last event or mark that was given; where to go on."""

    async def __anext__(self) -> Event:
        while not self._closed:
            if self._stream is None:
                await self._connect()
            assert self._stream is not None
            try:
                event = read_event(await anext(self._stream))
            except (StopAsyncIteration, ConnectionFailed):
                await self._drop()
                continue
            self.position = event.seq
            return event
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the connection."""
        self._closed = True
        await self._drop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _drop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    async def _connect(self) -> None:
        pauses = Pauses(self._link.reconnect_s)
        while True:
            try:
                self._stream = await self._link.open_events(self.position, self._session, self._kinds)
            except ClientError as error:
                if not may_pass(error):
                    raise
                await pauses.after(error)
            else:
                return
            try:
                await self._link.renew()
            except ClientError as error:
                await pauses.after(error)
