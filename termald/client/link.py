"""The way to the daemon, kept: found anew when it breaks, and calls that may be repeated are.

Repeated is what changes nothing (GET) and what carries an idempotency key. Anything else is tried once: whether the
daemon acted before the connection broke is for the caller to find out.
"""

import random
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from termald.client.errors import ClientError, ConnectionFailed, DaemonNotRunning, Refused
from termald.client.http import AsyncClient
from termald.client.locate import Endpoint
from termald.client.stream import EventStream

T = TypeVar("T")

RECONNECT_S: Final = 60.0
"""A daemon that is restarted is back within seconds; a minute leaves room for a slow disk and a stop in between."""
_PAUSE_FIRST_S: Final = 0.05
_PAUSE_MAX_S: Final = 2.0
_AGAIN: Final = frozenset({"starting", "no-answer-yet", "store-unavailable"})


class Pauses:
    """The pauses between attempts: doubled, with jitter, within a deadline."""

    def __init__(self, limit_s: float) -> None:
        self._ends = anyio.current_time() + limit_s
        self._next_s = _PAUSE_FIRST_S

    async def after(self, error: ClientError) -> None:
        """Wait before the next attempt. Errors: the given one, when there is no time left."""
        left = self._ends - anyio.current_time()
        if left <= 0:
            raise error
        await anyio.sleep(min(left, self._next_s * random.uniform(0.5, 1)))  # noqa: S311 - jitter, no secret
        self._next_s = min(_PAUSE_MAX_S, self._next_s * 2)


def may_pass(error: ClientError) -> bool:
    """Whether the same may succeed in a moment without anybody doing anything."""
    if isinstance(error, ConnectionFailed | DaemonNotRunning):
        return True
    return isinstance(error, Refused) and error.slug in _AGAIN


class Link:
    """Connections to one daemon, over its restarts. `find` blocks, and tells where it listens now."""

    def __init__(self, find: Callable[[], Endpoint], endpoint: Endpoint, reconnect_s: float) -> None:
        self.reconnect_s = reconnect_s
        self.endpoint = endpoint
        self._find = find
        self._client = AsyncClient(endpoint)
        self._former: list[AsyncClient] = []

    async def get(self, path: str, answer: type[T], *, accept: Collection[int] = (), **query: Any) -> T:
        """Read a resource; repeated where the connection breaks. Errors: `ClientError`."""
        asked = {name: value for name, value in query.items() if value is not None}
        return await self._repeated(lambda client: client.get(path, answer, accept=accept, **asked))

    async def post(self, path: str, answer: type[T], body: object = None, *, key: str | None = None) -> T:
        """Do something; repeated only with a key. Errors: `ClientError`."""
        if key is not None:
            return await self._repeated(lambda client: client.post(path, answer, body, key=key))
        return await self._client.post(path, answer, body)

    async def send(self, method: str, path: str, answer: type[T], body: object = None) -> T:
        """Do something by another method, once. Errors: `ClientError`."""
        return await self._client.send(method, path, answer, body)

    async def open_events(self, after: int | None, session: str | None, kinds: Collection[str]) -> EventStream:
        """Open a stream, once. Errors: `ClientError`."""
        return await self._client.open_events(after, session, kinds)

    async def renew(self) -> None:
        """Find out where the daemon is by now. Errors: `daemon-not-running`."""
        endpoint = await anyio.to_thread.run_sync(self._find, abandon_on_cancel=True)
        if endpoint != self.endpoint:
            # Other readers may still be on the former one, and find out for themselves that it is over.
            self._former.append(self._client)
            self._client, self.endpoint = AsyncClient(endpoint), endpoint

    async def aclose(self) -> None:
        """Close every connection."""
        for client in (self._client, *self._former):
            await client.aclose()

    async def _repeated(self, call: Callable[[AsyncClient], Awaitable[T]]) -> T:
        pauses = Pauses(self.reconnect_s)
        while True:
            try:
                return await call(self._client)
            except ClientError as error:
                if not may_pass(error):
                    raise
                await pauses.after(error)
            await self._renew_if_there()

    async def _renew_if_there(self) -> None:
        try:
            await self.renew()
        except DaemonNotRunning:
            return  # the next attempt fails, and has the deadline
