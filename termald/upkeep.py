"""Keeps the log bounded, in steps between which the writer comes first."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

import structlog
import trio

from state.errors import StoreError, StoreStuck
from state.records import Seq
from state.upkeep import FOLDED_MAX, Folded

T = TypeVar("T")
log = structlog.get_logger()

PAUSE_S: Final = 60.0
"""Between two looks; where nothing was written since, and nothing is left to be folded, the database is not asked."""
SHARE: Final = 4
"""A step is followed by a pause of so many times its length: upkeep has a fifth of the writer at most."""


class Log(Protocol):
    """The part of the store that is looked after."""

    async def fold(self, before_ms: int) -> Folded:
        """Take out deltas that complete items say themselves; one step."""

    async def excess(self, events_max: int) -> int:
        """Count the events beyond so many."""

    async def cut(self, events: int) -> int:
        """Cut off so many of the oldest."""


class Upkeep:
    """One task. `newest` is the number of the newest event."""

    def __init__(
        self,
        store: Log,
        newest: Callable[[], Seq],
        now_ms: Callable[[], int],
        *,
        events_max: int,
        fold_after_ms: int,
    ) -> None:
        self._store = store
        self._newest = newest
        self._now_ms = now_ms
        self._events_max = events_max
        self._fold_after_ms = fold_after_ms
        self._seen: Seq | None = None
        self._seen_at_ms = 0
        self._finished = False

    async def run(self) -> None:
        """Look after the log, for ever. Errors: `StoreStuck`."""
        while True:
            try:
                await self.once()
            except StoreStuck:
                raise
            except StoreError as error:
                log.warning("the log could not be made smaller", reason=str(error), slug=error.slug)
            await trio.sleep(PAUSE_S)

    async def once(self) -> None:
        """Do all that is to be done now. Errors: `StoreError`."""
        newest, now_ms = self._newest(), self._now_ms()
        if newest != self._seen:
            self._seen, self._seen_at_ms, self._finished = newest, now_ms, False
        if self._finished:
            return
        before_ms = now_ms - self._fold_after_ms
        folded, cut, more = 0, 0, True
        while more:
            step = await _unhurried(self._store.fold, before_ms)
            folded, more = folded + step.events, step.more
        while (excess := await self._store.excess(self._events_max)) > 0:
            cut += await _unhurried(self._store.cut, min(excess, FOLDED_MAX))
        self._finished = before_ms > self._seen_at_ms  # all that there is was old enough
        if folded or cut:
            log.info("the log was made smaller", folded=folded, cut=cut)


async def _unhurried(step: Callable[[int], Awaitable[T]], argument: int) -> T:
    began = trio.current_time()
    done = await step(argument)
    await trio.sleep(SHARE * (trio.current_time() - began))
    return done
