"""A session to a program: prompts, what comes of them, and its end."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from termald.client.events import Done, PromptEvent, SessionEvent, Synced
from termald.client.feed import EventFeed
from termald.client.link import Link
from termald.client.models import Interrupted, Item, Killed, Page, Prompt, Prompted, Turn
from termald.client.models import Session as SessionInfo
from termald.client.paging import all_pages
from termald.client.requests import Request
from termald.client.run import Handler, Run
from termald.client.turns import TurnAccumulator

T = TypeVar("T")
Input = str | Sequence[dict[str, Any]]


class Session:
    """A session of the daemon's. It holds no connection and no state of its own: any number of programs may have one of
    the same session. Errors of every call: `ClientError`, with the daemon's slug."""

    def __init__(self, link: Link, session_id: str, abandon: Callable[[EventFeed], None]) -> None:
        self.id = session_id
        self._link = link
        self._abandon = abandon
        self._path = f"/api/sessions/{quote(session_id, safe='')}"

    # --- prompts ---

    def run(self, prompt: Input, *, on_request: Handler | None = None, key: str | None = None, **choices: Any) -> Run:
        """Prompt, and give the events of what comes of it: `async for event in session.run("…")`.

        `on_request` is awaited with each request that the turn opens; what it does not answer stays open. `key`: an
        idempotency key of your own. A run with a key that was used before sends nothing, and tells the same prompt's
        events again from its beginning, also after a crash of this program. `choices`: `mode`, `model`, `effort`,
        `serviceTier`, `interactionMode`, `outputSchema`.
        """
        body = {"input": prompt, **choices}

        async def begin() -> tuple[EventFeed, str]:
            # The place in the log first and the prompt after it, so that nothing of the prompt is missed. One that may
            # have been sent before is looked for from the beginning of the session's log.
            feed = EventFeed(self._link, session=self.id, after=None if key is None else 0)
            try:
                if key is None:
                    while not isinstance(await anext(feed), Synced):
                        pass
                answer = await self._link.post(
                    f"{self._path}/prompts", Prompted, body, key=key or f"run-{uuid.uuid4()}"
                )
            except BaseException:
                await feed.aclose()
                raise
            return feed, answer.prompt.id

        return Run(self._link, self.id, begin, on_request, self._abandon)

    def follow(self, prompt_id: str, *, on_request: Handler | None = None) -> Run:
        """Give the events of a prompt that was sent already, from its beginning."""

        async def begin() -> tuple[EventFeed, str]:
            return EventFeed(self._link, session=self.id, after=0), prompt_id

        return Run(self._link, self.id, begin, on_request, self._abandon)

    async def ask(
        self, prompt: Input, *, on_request: Handler | None = None, key: str | None = None, **choices: Any
    ) -> TurnAccumulator:
        """Prompt, wait for the end, and return all that was said. Look at its `done`: a turn may fail."""
        turn = TurnAccumulator()
        async with self.run(prompt, on_request=on_request, key=key, **choices) as run:
            async for event in run:
                turn.feed(event)
        return turn

    async def send(self, prompt: Input, *, key: str | None = None, **choices: Any) -> Prompt:
        """Prompt, and do not wait for what comes of it."""
        body = {"input": prompt, **choices}
        answer = await self._link.post(f"{self._path}/prompts", Prompted, body, key=key or f"send-{uuid.uuid4()}")
        return answer.prompt

    async def steer(self, text: Input) -> Prompt:
        """Add to the turn that runs. Errors: `mode-unsupported` from a daemon that cannot."""
        return await self.send(text, mode="steer")

    async def take_back(self, prompt_id: str) -> Prompt:
        """Take a queued prompt back. Errors: `prompt-sent`."""
        answer = await self._link.send("DELETE", f"{self._path}/prompts/{quote(prompt_id, safe='')}", Prompted)
        return answer.prompt

    async def reorder(self, *prompt_ids: str) -> list[Prompt]:
        """Let these queued prompts run first, in this order, and return all that wait. Errors: `prompt-sent`."""
        body = {"promptIds": list(prompt_ids)}
        return list((await self._link.post(f"{self._path}/prompts/reorder", Page[Prompt], body)).data)

    # --- endings ---

    async def interrupt(self) -> bool:
        """Ask for the end of what runs, and return whether anything did. Its end comes as an event."""
        return (await self._link.post(f"{self._path}/interrupt", Interrupted)).interrupted

    async def cancel(self) -> Done | None:
        """Interrupt what runs, wait until it is over, and return its end; None where nothing ran.

        A `run` of the same turn still gets its events and its own `Done`.
        """
        async with EventFeed(self._link, session=self.id) as feed:
            while not isinstance(await anext(feed), Synced):
                pass
            if not await self.interrupt():
                return None
            async for event in feed:
                if isinstance(event, Done):
                    return event
                if isinstance(event, PromptEvent) and event.kind == "prompt/cancelled" and event.turn_id is None:
                    message = None if event.error is None else event.error.message
                    return Done(seq=event.seq, kind="turn/done", session_id=self.id, state="cancelled", message=message)
                if isinstance(event, SessionEvent) and event.kind == "session/killed":
                    return Done(seq=event.seq, kind="turn/done", session_id=self.id, state="cancelled")
        return None

    async def stop(self) -> SessionInfo:
        """End what runs and let go of the thread; the next prompt goes on."""
        return await self._do("stop", SessionInfo)

    async def close(self) -> SessionInfo:
        """As `stop`, for good."""
        return await self._do("close", SessionInfo)

    async def kill(self, *, thread: str | None = None, dry_run: bool = False) -> Killed:
        """Remove the session; its thread is ignored from here on. `thread`: ignore, archive or delete it in Codex."""
        return await self._do("kill", Killed, {"thread": thread, "dryRun": dry_run})

    async def retry(self, *, fresh: bool = False) -> SessionInfo:
        """Let held prompts go on; `fresh` gives up a lost thread for a new one."""
        return await self._do("retry", SessionInfo, {"fresh": fresh})

    # --- what it is, and what was ---

    async def info(self) -> SessionInfo:
        """Return how it stands."""
        return await self._link.get(self._path, SessionInfo)

    async def update(self, **changes: Any) -> SessionInfo:
        """Change settings from the next turn on, by their names in the API: `title`, `model`, `runtimeMode`, …"""
        return await self._link.send("PATCH", self._path, SessionInfo, changes)

    async def turns(self, *, order: str = "asc") -> list[Turn]:
        """Return its turns."""
        return await all_pages(self._link, f"{self._path}/turns", Page[Turn], order=order)

    async def items(self, *, turn_id: str | None = None, order: str = "asc") -> list[Item]:
        """Return its items, or those of one turn: the history."""
        return await all_pages(self._link, f"{self._path}/items", Page[Item], order=order, turnId=turn_id)

    history = items

    async def prompts(self) -> list[Prompt]:
        """Return its prompts in the order of their acceptance."""
        return await all_pages(self._link, f"{self._path}/prompts", Page[Prompt])

    async def requests(self) -> list[Request]:
        """Return what waits for an answer here."""
        found = await all_pages(self._link, f"{self._path}/requests", Page[Request])
        return [request.bound(self._link) for request in found]

    def events(self, *, after: int | None = None) -> EventFeed:
        """Give the session's events from a number on, or from now on. Use it with `async with`."""
        return EventFeed(self._link, session=self.id, after=after)

    # --- what not every daemon can yet: it answers `not-found` then ---

    async def compact(self) -> object:
        """Have Codex shorten the history."""
        return await self._do("compact", object)

    async def review(self, target: dict[str, Any] | None = None) -> SessionInfo:
        """Have Codex review changes: uncommitted ones, or the `target` as Codex names it (`{"type": "baseBranch",
        "branch": "main"}`). It is a turn of its own; its events are the session's."""
        return await self._do("review", SessionInfo, {"target": target})

    async def archive(self) -> SessionInfo:
        """Archive the thread in Codex; prompts are held until it is unarchived."""
        return await self._do("archive", SessionInfo)

    async def unarchive(self) -> SessionInfo:
        """Take the thread out of Codex's archive."""
        return await self._do("unarchive", SessionInfo)

    async def revert(self, *, turns: int | None = None, before_turn_id: str | None = None) -> SessionInfo:
        """Take the newest turns back: so many, or one and all after it. Errors: `session-busy`, `unknown-turn`."""
        return await self._do("revert", SessionInfo, {"turns": turns, "beforeTurnId": before_turn_id})

    async def fork(self, **fields: Any) -> "Session":
        """Make a session that goes on from here beside this one."""
        made = await self._do("fork", SessionInfo, fields)
        return Session(self._link, made.id, self._abandon)

    async def _do(self, what: str, answer: type[T], body: dict[str, Any] | None = None) -> T:
        said = {name: value for name, value in (body or {}).items() if value is not None}
        return await self._link.post(f"{self._path}/{what}", answer, said)
