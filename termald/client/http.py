"""Asking the daemon, and listening to it: `Client` for scripts and commands, `AsyncClient` for trio and asyncio.

Both find the running daemon by themselves and hold connections until they are closed: use them with `with` and `async
with`. A call returns the answer as the type that was asked for, or raises one of `errors`.
"""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx
import msgspec

from termald.client.errors import BadAnswer, ConnectionFailed, Refused
from termald.client.locate import Endpoint, find_endpoint, read_daemon_file
from termald.client.stream import EventStream

T = TypeVar("T")

# A kill waits for Codex for 5 s and a first attach for a slow login shell; nothing that answers at all takes longer.
CALL_DEADLINE_S: Final = 60.0
# The daemon sends a comment every 15 s; three missed ones mean that nobody is there any more.
STREAM_DEADLINE_S: Final = 50.0


class _ProblemBody(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 9457, as far as it is used."""

    type: str = ""
    title: str = ""
    detail: str = ""
    retryable: bool = False


class Client:
    """Blocking calls to a running daemon."""

    def __init__(self, endpoint: Endpoint) -> None:
        transport = httpx.HTTPTransport(uds=endpoint.socket)
        self._http = httpx.Client(transport=transport, **_options(endpoint))

    @classmethod
    def find(cls, runtime_dir: Path, state_dir: Path) -> Self:
        """Connect to the daemon that runs with these folders. Errors: `daemon-not-running`."""
        return cls(find_endpoint(read_daemon_file(runtime_dir), runtime_dir, state_dir))

    def get(self, path: str, answer: type[T], *, accept: Collection[int] = (), **query: str | int) -> T:
        """Read a resource. `accept`: statuses besides success whose body is an answer as well.

        Errors: `connection-failed`, `bad-answer`, and what the daemon refuses with.
        """
        return self._call("GET", path, answer, accept, params=query)

    def post(self, path: str, answer: type[T], body: object = None, *, key: str | None = None) -> T:
        """Create or do something. `key`: an Idempotency-Key, so that the call may be repeated. Errors: as `get`."""
        return self.send("POST", path, answer, body, key=key)

    def send(self, method: str, path: str, answer: type[T], body: object = None, *, key: str | None = None) -> T:
        """Do something by another method than POST. Errors: as `get`."""
        return self._call(method, path, answer, content=_encode(body), headers=_post_headers(key))

    def _call(self, method: str, path: str, answer: type[T], accept: Collection[int] = (), **request: Any) -> T:
        try:
            response = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise _connection_failed(method, path, error) from error
        return _read(response, answer, accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()


class AsyncClient:
    """The same for trio and asyncio, with events. Finding the daemon blocks for at most a moment."""

    def __init__(self, endpoint: Endpoint) -> None:
        transport = httpx.AsyncHTTPTransport(uds=endpoint.socket)
        self._http = httpx.AsyncClient(transport=transport, **_options(endpoint))

    @classmethod
    def find(cls, runtime_dir: Path, state_dir: Path) -> Self:
        """Connect to the daemon that runs with these folders. Errors: `daemon-not-running`."""
        return cls(find_endpoint(read_daemon_file(runtime_dir), runtime_dir, state_dir))

    async def get(self, path: str, answer: type[T], *, accept: Collection[int] = (), **query: str | int) -> T:
        """Read a resource. `accept`: statuses besides success whose body is an answer as well.

        Errors: `connection-failed`, `bad-answer`, and what the daemon refuses with.
        """
        return await self._call("GET", path, answer, accept, params=query)

    async def post(self, path: str, answer: type[T], body: object = None, *, key: str | None = None) -> T:
        """Create or do something. `key`: an Idempotency-Key, so that the call may be repeated. Errors: as `get`."""
        return await self.send("POST", path, answer, body, key=key)

    async def send(self, method: str, path: str, answer: type[T], body: object = None, *, key: str | None = None) -> T:
        """Do something by another method than POST. Errors: as `get`."""
        return await self._call(method, path, answer, content=_encode(body), headers=_post_headers(key))

    async def _call(self, method: str, path: str, answer: type[T], accept: Collection[int] = (), **request: Any) -> T:
        try:
            response = await self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise _connection_failed(method, path, error) from error
        return _read(response, answer, accept)

    async def open_events(
        self, after: str | int | None = None, session: str | None = None, kinds: Collection[str] = ()
    ) -> EventStream:
        """Open the stream of events: all, or one session's; those after the id `after`, then live ones.

        What happens after its `synced` is seen without a gap. It ends when the daemon ends it; go on with the last
        event's id. Close it, also where it is left early. Errors: as `get`.
        """
        path = "/api/events" if session is None else f"/api/sessions/{session}/events"
        query = {} if after is None else {"after": str(after)}
        if kinds:
            query["kinds"] = ",".join(kinds)
        request = self._http.build_request("GET", path, params=query, timeout=STREAM_DEADLINE_S)
        try:
            response = await self._http.send(request, stream=True)
            if not response.is_success:
                await response.aread()
                _read(response, object)
        except httpx.TransportError as error:
            raise _connection_failed("GET", path, error) from error
        return EventStream(response, path)

    @asynccontextmanager
    async def events(self, after: str | int | None = None, session: str | None = None) -> AsyncIterator[EventStream]:
        """The same for a block, which closes it: `async with client.events() as events: async for event in events`."""
        stream = await self.open_events(after, session)
        try:
            yield stream
        finally:
            await stream.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _options(endpoint: Endpoint) -> dict[str, Any]:
    headers = {} if endpoint.token is None else {"Authorization": f"Bearer {endpoint.token}"}
    # No proxy of the environment's between a client and a daemon on the same machine.
    return {"base_url": endpoint.url, "headers": headers, "timeout": CALL_DEADLINE_S, "trust_env": False}


def _encode(body: object) -> bytes:
    return msgspec.json.encode({} if body is None else body)


def _post_headers(key: str | None) -> Mapping[str, str]:
    headers = {"Content-Type": "application/json"}
    return headers if key is None else headers | {"Idempotency-Key": key}


def _read(response: httpx.Response, answer: type[T], accept: Collection[int] = ()) -> T:
    what = f"{response.request.method} {response.request.url.path}"
    try:
        if response.is_success or response.status_code in accept:
            return msgspec.json.decode(response.content, type=answer)
        problem = msgspec.json.decode(response.content, type=_ProblemBody)
    except msgspec.DecodeError as error:
        raise BadAnswer(f"{what} was answered {response.status_code} with an unexpected body: {error}") from error
    raise Refused(
        slug=problem.type.rpartition(":")[2] or f"status-{response.status_code}",
        status=response.status_code,
        title=problem.title or f"{what} was answered {response.status_code}",
        detail=problem.detail,
        retryable=problem.retryable,
    )


def _connection_failed(method: str, path: str, error: httpx.TransportError) -> ConnectionFailed:
    return ConnectionFailed(f"{method} {path}: {type(error).__name__}: {error}".rstrip(": "))
