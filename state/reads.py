"""The reading side: committed rows, on connections of their own. No read waits for the writer, nor it for a read."""

from collections.abc import Callable, Sequence
from typing import Concatenate, Literal, ParamSpec, TypeVar

import apsw
import trio

from state import queries
from state.records import (
    IgnoredThread,
    ItemId,
    ItemRecord,
    KnownThread,
    PromptId,
    PromptRecord,
    RequestId,
    RequestRecord,
    RequestStatus,
    Seq,
    SessionId,
    ThreadClass,
    ThreadId,
    TurnId,
    TurnRecord,
)
from state.upkeep import read_excess
from state.views import (
    EmptySession,
    EventPage,
    ItemCursor,
    Page,
    PromptCursor,
    RequestCursor,
    SessionCursor,
    SessionFilter,
    SessionView,
    Snapshot,
    Standing,
    ThreadCursor,
    TurnCursor,
)
from state.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")
Order = Literal["oldest", "newest"]
"""Which comes first."""


class Reads:
    """What can be read. Each call is one snapshot, sees the last commit, and may be cut; of a killed session nothing is
    shown but its events. `limit` is at least 1. Errors: `StoreError`."""

    def __init__(self, readers: list[Worker]) -> None:
        self._idle = list(readers)
        self._free = trio.Semaphore(len(readers))

    async def snapshot(self) -> Snapshot:
        """Return everything at one moment; some 15 us a session."""
        return await self._read(queries.read_snapshot)

    async def list_sessions(
        self, wanted: SessionFilter, *, after: SessionCursor | None = None, limit: int
    ) -> Page[SessionView, SessionCursor]:
        """Return sessions, newest first."""
        return await self._read(queries.read_sessions, wanted, after, limit)

    async def session(self, session: SessionId) -> SessionView | None:
        """Return the session; None where there is none, or no more."""
        return await self._read(queries.read_session, session)

    async def prompts(
        self, session: SessionId, *, after: PromptCursor | None = None, limit: int
    ) -> Page[PromptRecord, PromptCursor]:
        """Return the session's prompts in their order."""
        return await self._read(queries.read_prompts, session, after, limit)

    async def prompt(self, prompt: PromptId) -> PromptRecord | None:
        """Return the prompt; None where there is none, or its session is no more."""
        return await self._read(queries.read_prompt, prompt)

    async def turns(
        self, session: SessionId, *, order: Order, after: TurnCursor | None = None, limit: int
    ) -> Page[TurnRecord, TurnCursor]:
        """Return the session's turns by their beginning."""
        return await self._read(queries.read_turns, session, newest_first=order == "newest", after=after, limit=limit)

    async def items(
        self,
        session: SessionId,
        *,
        turn: TurnId | None = None,
        order: Order,
        after: ItemCursor | None = None,
        limit: int,
    ) -> Page[ItemRecord, ItemCursor]:
        """Return the items of the session, or of one turn of it, by their first event."""
        return await self._read(
            queries.read_items, session, turn, newest_first=order == "newest", after=after, limit=limit
        )

    async def turns_named(self, session: SessionId, turns: Sequence[TurnId]) -> dict[TurnId, TurnRecord]:
        """Return those of the turns that we have of the session, by id."""
        return await self._read(queries.read_turns_named, session, turns)

    async def items_named(
        self, session: SessionId, items: Sequence[tuple[TurnId, ItemId]]
    ) -> dict[tuple[TurnId, ItemId], ItemRecord]:
        """Return those of the items that we have of the session, by turn and id."""
        return await self._read(queries.read_items_named, session, items)

    async def requests(
        self,
        *,
        session: SessionId | None = None,
        status: RequestStatus | None = None,
        after: RequestCursor | None = None,
        limit: int,
    ) -> Page[RequestRecord, RequestCursor]:
        """Return the requests of one session or of all, oldest first."""
        return await self._read(queries.read_requests, session, status, after, limit)

    async def request(self, request: RequestId) -> RequestRecord | None:
        """Return the request; None where there is none, or its session is no more."""
        return await self._read(queries.read_request, request)

    async def empty_sessions(
        self, *, after: SessionCursor | None = None, limit: int
    ) -> Page[EmptySession, SessionCursor]:
        """Return the sessions in which nothing was ever said, newest first; what Codex has of them is not asked."""
        return await self._read(queries.read_empty_sessions, after, limit)

    async def ignored(self, *, after: ThreadCursor | None = None, limit: int) -> Page[IgnoredThread, ThreadCursor]:
        """Return the ignore set."""
        return await self._read(queries.read_ignored, after, limit)

    async def threads(
        self, *, cls: ThreadClass | None = None, after: ThreadCursor | None = None, limit: int
    ) -> Page[KnownThread, ThreadCursor]:
        """Return the threads that discovery knows, each with the class that it has now.

        `owned` and `ignored` are decided by the sessions and the ignore set as they stand, not by what the scan saw.
        """
        return await self._read(queries.read_threads, cls, after, limit)

    async def standings(self, threads: Sequence[ThreadId]) -> tuple[Standing, ...]:
        """Return how those of the threads stand here that are known."""
        return await self._read(queries.read_standings, threads)

    async def events(
        self, after: Seq, limit: int, *, session: SessionId | None = None, kinds: frozenset[str] | None = None
    ) -> EventPage:
        """Return events behind `after`, in order."""
        return await self._read(queries.read_events, after, limit, session, kinds)

    async def excess(self, events_max: int) -> int:
        """Count the events beyond so many."""
        return await self._read(read_excess, events_max)

    async def event_bounds(self) -> tuple[Seq, Seq]:
        """Return the oldest and the newest event's number; (1, 0) before the first."""
        return await self._read(queries.read_event_bounds)

    def waiting(self) -> int:
        """Return how many reads wait for a connection."""
        return self._free.statistics().tasks_waiting

    async def _read(
        self, call: Callable[Concatenate[apsw.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        async with self._free:
            reader = self._idle.pop()
            try:
                return await reader.run(call, *args, **kwargs)
            finally:
                self._idle.append(reader)
