"""One prompt's events, from its acceptance to its one end."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Self

from termald.client.errors import Refused
from termald.client.events import Done, Event, RequestEvent, Reset
from termald.client.feed import EventFeed
from termald.client.link import Link
from termald.client.models import Page, Prompt, Turn
from termald.client.prompt_watch import PromptWatch
from termald.client.requests import Request

Handler = Callable[[Request], Awaitable[object]]
Begin = Callable[[], Awaitable[tuple[EventFeed, str]]]


class Run(AsyncIterator[Event]):
    """The events of one prompt: `async for event in run`. The last is a `Done`, and there is exactly one.

    Nothing is sent before it is first read. Leaving the loop early leaves the turn running; `cancel` ends it. Use it
    with `async with` where it is left early, so that its connection is closed at once; else that is done with the next
    call. Errors: `ClientError`; a turn that fails is no error of this kind: its `Done` says so.
    """

    def __init__(
        self,
        link: Link,
        session_id: str,
        begin: Begin,
        handler: Handler | None,
        abandon: Callable[[EventFeed], None],
    ) -> None:
        self._link = link
        self._path = f"/api/sessions/{session_id}"
        self._session_id = session_id
        self._begin = begin
        self._handler = handler
        self._abandon = abandon
        self._feed: EventFeed | None = None
        self._watch: PromptWatch | None = None
        self._ready: deque[Event] = deque()
        self._over = False

    @property
    def prompt_id(self) -> str | None:
        """The prompt's id, once it is accepted."""
        return None if self._watch is None else self._watch.prompt_id

    @property
    def done(self) -> Done | None:
        """The end, once it is known."""
        return None if self._watch is None else self._watch.done

    async def submit(self) -> str:
        """Send the prompt, if that is not done yet, and return its id. Errors: `ClientError`."""
        if self._watch is None:
            self._feed, prompt = await self._begin()
            self._watch = PromptWatch(self._session_id, prompt)
        return self._watch.prompt_id

    async def __anext__(self) -> Event:
        if self._over:
            raise StopAsyncIteration
        await self.submit()
        while not self._ready:
            await self._read()
        event = self._ready.popleft()
        if isinstance(event, RequestEvent) and self._handler is not None and event.kind == "request/opened":
            await self._handle(event, self._handler)
        if event is self.done:
            await self.aclose()
        return event

    async def _read(self) -> None:
        assert self._feed is not None
        assert self._watch is not None
        try:
            event = await anext(self._feed)
        except Refused as error:
            if error.slug != "unknown-session":
                raise
            # Killed while nobody listened; its events went with it.
            self._ready.append(self._watch.end_unseen("cancelled", "the session was killed"))
            return
        if isinstance(event, Reset):
            self._ready.append(event)
            await self._settle_from_records()
        else:
            self._ready.extend(self._watch.feed(event))

    async def _settle_from_records(self) -> None:
        """The log cannot be replayed. If the prompt has ended meanwhile, its record and its turn's say how."""
        assert self._watch is not None
        prompt = await self._link.get(f"{self._path}/prompts/{self._watch.prompt_id}", Prompt)
        if prompt.ended_at is None:
            return
        message = prompt.error.message if prompt.error is not None else None
        state = {"done": "normal", "cancelled": "cancelled"}.get(prompt.state, "error")
        if prompt.turn_id is not None:
            self._watch.turn_id = prompt.turn_id
            page = await self._link.get(f"{self._path}/turns", Page[Turn], limit=500)
            turn = next((each for each in page.data if each.id == prompt.turn_id), None)
            if turn is not None and turn.state is not None:
                state, message = turn.state, turn.message
        self._ready.append(self._watch.end_unseen(state, message))

    async def _handle(self, event: RequestEvent, handler: Handler) -> None:
        # A replay tells of requests that were decided long ago: only one that is open is handed over.
        page = await self._link.get(f"{self._path}/requests", Page[Request], limit=500)
        request = next((each for each in page.data if each.id == event.request_id), None)
        if request is not None:
            await handler(request.bound(self._link))

    async def drain(self) -> Done:
        """Read to the end and return it."""
        async for _ in self:
            pass
        assert self.done is not None
        return self.done

    async def cancel(self) -> Done:
        """Take the prompt back if it still waits, else interrupt its turn; read to the end and return it."""
        prompt = await self.submit()
        if self.done is None:
            try:
                await self._link.send("DELETE", f"{self._path}/prompts/{prompt}", object)
            except Refused as error:
                if error.slug not in ("prompt-sent", "unknown-session"):
                    raise
                if error.slug == "prompt-sent" and not await self._has_ended(prompt):
                    await self._link.post(f"{self._path}/interrupt", object)
        return await self.drain()

    async def _has_ended(self, prompt: str) -> bool:
        return (await self._link.get(f"{self._path}/prompts/{prompt}", Prompt)).ended_at is not None

    async def aclose(self) -> None:
        """Stop listening; the turn goes on."""
        self._over = True
        feed, self._feed = self._feed, None
        if feed is not None:
            await feed.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # Left early, and not closed: a finalizer cannot wait for the connection's end, the next call can.
        if getattr(self, "_feed", None) is not None:
            assert self._feed is not None
            self._abandon(self._feed)
