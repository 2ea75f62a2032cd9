"""`connect`, and the daemon as a program sees it."""

import functools
import uuid
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from termald.client.errors import DaemonNotRunning, Refused
from termald.client.events import OtherEvent, RequestEvent, Reset
from termald.client.feed import EventFeed
from termald.client.folders import Folders, find_folders
from termald.client.link import RECONNECT_S, Link
from termald.client.locate import Endpoint, find_endpoint, read_daemon_file
from termald.client.models import IgnoredThread, Killed, Page, Ready, State, Thread, Version
from termald.client.models import Session as SessionInfo
from termald.client.paging import all_pages
from termald.client.requests import Request
from termald.client.session import Session
from termald.client.start import start_daemon


@asynccontextmanager
async def connect(
    *,
    runtime_dir: Path | str | None = None,
    state_dir: Path | str | None = None,
    url: str | None = None,
    token: str | None = None,
    start: bool = False,
    reconnect_s: float = RECONNECT_S,
) -> AsyncIterator["Termald"]:
    """Find the running daemon and connect: `async with connect() as termald`.

    Over its Unix socket where it has one, else over TCP with the token from the state folder; with `url` (and `token`)
    there and nowhere else. `start=True` starts one that stays when this program ends. `reconnect_s`: for how long calls
    and streams wait for a daemon that went away. Errors: `daemon-not-running`, which says how to start it.
    """
    folders = await anyio.to_thread.run_sync(find_folders, runtime_dir, state_dir)
    given = None if url is None else Endpoint(url=url, token=token)
    find = functools.partial(_endpoint, folders, given)
    try:
        endpoint = await anyio.to_thread.run_sync(find)
    except DaemonNotRunning:
        if not start:
            raise
        await start_daemon(folders)
        endpoint = await anyio.to_thread.run_sync(find)
    termald = Termald(Link(find, endpoint, reconnect_s))
    try:
        yield termald
    finally:
        with anyio.CancelScope(shield=True):
            await termald.aclose()


def _endpoint(folders: Folders, given: Endpoint | None) -> Endpoint:
    return given or find_endpoint(read_daemon_file(folders.runtime_dir), folders.runtime_dir, folders.state_dir)


class Termald:
    """A connection to the daemon, over its restarts. Made by `connect`. Errors of every call: `ClientError`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._abandoned: list[EventFeed] = []

    # --- sessions ---

    async def session(self, id: str | None = None, *, cwd: Path | str | None = None, **settings: Any) -> Session:
        """Continue the session of this id, or create it.

        An existing one is continued as it is; `cwd` and `settings` are for a new one (`Session.update` changes them).
        `cwd` is the current folder unless told otherwise. `settings` by their names in the API: `title`, `model`,
        `effort`, `runtimeMode` (`approval-required`, the default, or `full-access`), `resumeCursor`, … Errors:
        `session-exists` for an id that was killed.
        """
        await self._close_abandoned()
        if id is not None:
            try:
                await self._link.get(f"/api/sessions/{id}", SessionInfo)
                return self.get_session(id)
            except Refused as error:
                if error.slug != "unknown-session":
                    raise
        folder = await anyio.Path(cwd or ".").resolve()
        body = {"id": id, "cwd": str(folder), **settings}
        made = await self._link.post("/api/sessions", SessionInfo, body, key=f"session-{uuid.uuid4()}")
        return self.get_session(made.id)

    def get_session(self, session_id: str) -> Session:
        """Return a session without asking whether it exists."""
        return Session(self._link, session_id, self._abandoned.append)

    async def sessions(
        self,
        *,
        status: str | None = None,
        origin: str | None = None,
        cwd: Path | str | None = None,
        limit: int | None = None,
    ) -> list[SessionInfo]:
        """Return sessions, newest first."""
        folder = None if cwd is None else str(cwd)
        return await all_pages(
            self._link, "/api/sessions", Page[SessionInfo], limit=limit, status=status, origin=origin, cwd=folder
        )

    async def kill(self, session_id: str) -> Killed:
        """Kill a session by its id, also one that is gone already."""
        return await self.get_session(session_id).kill()

    # --- events and requests ---

    def events(self, *, after: int | None = None, session: str | None = None, kinds: Collection[str] = ()) -> EventFeed:
        """Give all events, or one session's, from a number on, or from now on. Use it with `async with`."""
        return EventFeed(self._link, after=after, session=session, kinds=kinds)

    def requests(self, *, session_id: str | None = None) -> "Requests":
        """Give what waits for an answer, and then what comes: `async with termald.requests() as requests`, `async for
        request in requests`. Nothing is answered but by your code."""
        return Requests(self._link, session_id)

    async def open_requests(self) -> list[Request]:
        """Return what waits for an answer now."""
        found = await all_pages(self._link, "/api/requests", Page[Request])
        return [request.bound(self._link) for request in found]

    # --- threads ---

    async def threads(self, *, class_: str | None = None, limit: int | None = None) -> list[Thread]:
        """Return the threads that Codex has, each with what it is here."""
        return await all_pages(self._link, "/api/threads", Page[Thread], limit=limit, **{"class": class_})

    async def ignored_threads(self) -> list[IgnoredThread]:
        """Return the threads that are never imported."""
        return await all_pages(self._link, "/api/ignored-threads", Page[IgnoredThread])

    async def ignore(self, thread_id: str, reason: str) -> IgnoredThread:
        """Never import this thread. Errors: `thread-owned`."""
        return await self._link.send("PUT", f"/api/ignored-threads/{thread_id}", IgnoredThread, {"reason": reason})

    async def unignore(self, thread_id: str) -> IgnoredThread:
        """Let it be imported again. Errors: `not-ignored`."""
        return await self._link.send("DELETE", f"/api/ignored-threads/{thread_id}", IgnoredThread)

    async def scan(self) -> None:
        """Look for Codex's threads now; the end comes as `discovery/finished`."""
        await self._link.post("/api/discovery/scan", object)

    async def phantoms(self) -> list[dict[str, Any]]:
        """Return sessions that hold nothing, each with its evidence. Errors: `not-found` from an older daemon."""
        return await all_pages(self._link, "/api/phantoms", Page[dict[str, Any]])

    async def kill_phantoms(self, ids: Collection[str] | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        """Kill those of the named sessions, or of all, that hold nothing; return who was and who was spared."""
        chosen = {} if ids is None else {"ids": list(ids)}
        return await self._link.post("/api/phantoms/kill", dict[str, Any], {**chosen, "dryRun": dry_run})

    # --- the daemon ---

    async def models(self) -> list[dict[str, Any]]:
        """Return the models that Codex offers, as it tells them. Errors: `not-found` from an older daemon."""
        answer = await self._link.get("/api/models", dict[str, Any])
        return list(answer.get("data", ()))

    async def account(self) -> dict[str, Any]:
        """Return who Codex is logged in as, as it tells it, with its age."""
        return await self._link.get("/api/account", dict[str, Any])

    async def rate_limits(self) -> dict[str, Any]:
        """Return what is left of the account's quota, as Codex tells it, with its age."""
        return await self._link.get("/api/rate-limits", dict[str, Any])

    async def state(self) -> State:
        """Return everything at one moment."""
        return await self._link.get("/api/state", State)

    async def ready(self) -> Ready:
        """Return whether it takes work."""
        return await self._link.get("/api/ready", Ready, accept=(503,))

    async def version(self) -> Version:
        """Return what runs."""
        return await self._link.get("/api/version", Version)

    async def restart_codex(self) -> None:
        """End the one Codex process and start it again; sessions and queues stay."""
        await self._link.post("/api/runtime/restart", object)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._close_abandoned()
        await self._link.aclose()

    async def _close_abandoned(self) -> None:
        while self._abandoned:
            await self._abandoned.pop().aclose()


class Requests(AsyncIterator[Request]):
    """Requests that wait for an answer, each once, and then those that come. Never ends by itself."""

    def __init__(self, link: Link, session_id: str | None) -> None:
        self._link = link
        self._path = "/api/requests" if session_id is None else f"/api/sessions/{session_id}/requests"
        # `synced` comes with any filter: after it nothing is missed, and what was open before it is listed.
        self._feed = EventFeed(link, session=session_id, kinds=("request/opened",))
        self._waiting: list[Request] = []
        self._given: set[str] = set()

    async def __anext__(self) -> Request:
        while not self._waiting:
            event = await anext(self._feed)
            if not isinstance(event, OtherEvent):
                known = isinstance(event, RequestEvent) and event.request_id in self._given
                self._waiting = [] if known else await self._open(fresh=isinstance(event, Reset))
        request = self._waiting.pop(0)
        self._given.add(request.id)
        return request.bound(self._link)

    async def _open(self, *, fresh: bool) -> list[Request]:
        # The list and not the event: what was answered meanwhile by somebody else is not asked again.
        found = await all_pages(self._link, self._path, Page[Request])
        if fresh:
            self._given &= {request.id for request in found}
        return [request for request in found if request.id not in self._given]

    async def aclose(self) -> None:
        """Stop listening."""
        await self._feed.aclose()

    async def __aenter__(self) -> "Requests":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
