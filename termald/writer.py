"""The single task that decides and writes: take, decide, commit, act.

It takes everything that waits (up to a cap), loads what the batch names, lets the core decide item by item, commits all
of it in one transaction, and only then lets any of it be seen: frames go out, events are published, callers are
answered. Nothing that was promised can be lost, nothing sent is unrecorded, and a busy daemon commits in groups by
itself.

What may go wrong, and what then: a commit fails: memory is as before, callers are told, what Codex and the timers said
is decided again after a pause. The handling of one input raises, or the schema refuses the batch: it is decided again
item by item, and that one item is set aside, counted and logged; the rest goes on (WIRE-16). A write hangs: the process
must end, and the next start reads the truth.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

import msgspec
import structlog
import trio

from state.errors import StoreError, StoreRefused, StoreStuck
from state.records import Changes, EventRecord, LinkId, Loaded, SessionId, Wanted
from termald.codex.translate import incoming
from termald.core.effects import (
    Answer,
    Arm,
    Disarm,
    Effect,
    Refused,
    Respond,
    RestartProcess,
    Send,
    SendAnswer,
    SendRefusal,
)
from termald.core.inputs import Command, Input, ThreadsSeen, ThreadStarted, Ticket
from termald.core.model import Purpose
from termald.core.refusals import problem
from termald.core.state import State
from termald.core.step import step
from termald.core.wanted import wanted
from termald.intake import consequences
from termald.timers import Timers

BATCH_INPUTS_MAX: Final = 256
"""One synced commit costs about the same for 1 and for 10 rows and 1 ms for 100; beyond a few hundred a batch only
delays its callers."""
RETRY_FIRST_S: Final = 0.1
RETRY_LAST_S: Final = 5.0
"""Pauses before a batch that could not be committed is decided again: a full disk is freed by a person, a busy one by
itself."""

Frame = Send | SendAnswer | SendRefusal
log = structlog.get_logger()


class FrameIn(msgspec.Struct, frozen=True):
    """A frame as it came over a link; read by `codex.translate` when it is decided."""

    link: LinkId
    raw: bytes
    at_ms: int


class Mark(msgspec.Struct, frozen=True):
    """Everything before it was taken, committed and carried out once `reached` is set."""

    reached: trio.Event


W = TypeVar("W", bound="Input | FrameIn | Mark")


class Records(Protocol):
    """The part of the store that the writer writes to."""

    async def load(self, wanted: Wanted) -> Loaded:
        """Return what there is of what is named."""

    async def commit(self, changes: Changes, *, sync: bool) -> None:
        """Write the whole batch, or nothing of it."""


class WriterStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Counts since the start, and what waits."""

    inbox: int
    inbox_peak: int
    batches: int
    inputs: int
    set_aside: int
    commit_failures: int
    timers: int


def wall_ms() -> int:
    """Return Unix milliseconds."""
    return time.time_ns() // 1_000_000


class Writer:
    """The inbox and the task that empties it."""

    def __init__(
        self,
        state: State,
        store: Records,
        *,
        publish: Callable[[Sequence[EventRecord]], None],
        send: Callable[[Frame], None],
        restart: Callable[[], None],
        new_session_id: Callable[[], SessionId],
        timers: Callable[[Callable[[Input], None]], Timers],
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self.state = state
        self.timers = timers(self.put)
        self._store = store
        self._publish = publish
        self._send = send
        self._restart = restart
        self._new_session_id = new_session_id
        self._now_ms = now_ms
        self._inbox: deque[Input | FrameIn | Mark] = deque()
        self._filled = trio.Event()
        self._callers: dict[Ticket, trio.Event] = {}
        self._answers: dict[Ticket, Answer] = {}
        self._next_ticket = 1
        self._closed: str | None = None
        self._peak = self._batches = self._inputs = self._set_aside = self._commit_failures = 0

    # --- the inbox ---

    def put(self, happened: Input) -> None:
        """Put an input into the inbox. Never waits: the reader must not (RUNTIME-17)."""
        self._inbox.append(happened)
        self._filled.set()

    def put_frame(self, link: LinkId, raw: bytes) -> None:
        """Put a frame of Codex's into the inbox."""
        self._inbox.append(FrameIn(link, raw, self._now_ms()))
        self._filled.set()

    async def settled(self) -> None:
        """Return once everything that is in the inbox now was committed and carried out."""
        mark = Mark(trio.Event())
        self._inbox.append(mark)
        self._filled.set()
        await mark.reached.wait()

    async def ask(self, make: Callable[[Ticket, int], Command]) -> Answer:
        """Put a command into the inbox and return its answer. Cancelling the wait does not take the command back."""
        if self._closed is not None:
            return Refused(problem=problem("runtime-unavailable", self._closed))
        ticket = Ticket(self._next_ticket)
        self._next_ticket += 1
        answered = self._callers[ticket] = trio.Event()
        self.put(make(ticket, self._now_ms()))
        try:
            await answered.wait()
            return self._answers[ticket]
        finally:
            self._callers.pop(ticket, None)
            self._answers.pop(ticket, None)

    def close(self, reason: str) -> None:
        """Take no more commands; those that wait are answered with the reason. What is in the inbox is still
        decided."""
        self._closed = reason
        for ticket in tuple(self._callers):
            self._respond(ticket, Refused(problem=problem("runtime-unavailable", reason)))

    def statistics(self) -> WriterStatistics:
        """Return what the state endpoint and the metrics show."""
        return WriterStatistics(
            inbox=len(self._inbox),
            inbox_peak=self._peak,
            batches=self._batches,
            inputs=self._inputs,
            set_aside=self._set_aside,
            commit_failures=self._commit_failures,
            timers=len(self.timers),
        )

    # --- the loop ---

    async def run(self) -> None:
        """Decide and write, for ever. Ends only by cancellation, between batches, or by `StoreStuck`."""
        while True:
            if not self._inbox:
                self._filled = trio.Event()
                await self._filled.wait()
            await self.drain()

    async def drain(self) -> None:
        """Take one batch and see it through."""
        batch, marks = self._take()
        await self._see_through(batch)
        for mark in marks:
            mark.reached.set()

    def _take(self) -> tuple[list[Input], list[Mark]]:
        self._peak = max(self._peak, len(self._inbox))
        batch: list[Input] = []
        marks: list[Mark] = []
        while self._inbox and len(batch) < BATCH_INPUTS_MAX:
            happened = self._inbox.popleft()
            if isinstance(happened, Mark):
                marks.append(happened)
                continue
            if isinstance(happened, FrameIn):
                happened = incoming.read(happened.link, happened.raw, self._purpose_of, happened.at_ms)
            batch.append(happened)
        self._batches += 1
        self._inputs += len(batch)
        return batch, marks

    def _purpose_of(self, call: int) -> Purpose | None:
        found = self.state.calls.get(call)  # type: ignore[arg-type]  # a number from the wire; an unknown one finds nothing
        return found.purpose if found is not None else None

    async def _see_through(self, batch: list[Input]) -> None:
        pause_s = RETRY_FIRST_S
        while batch:
            try:
                await self._decide_and_commit(batch)
            except StoreStuck:
                raise
            except StoreError as error:
                self.state.undo()
                if isinstance(error, StoreRefused):
                    await self._one_by_one(batch, error)
                    return
                self._commit_failures += 1
                log.warning("commit failed", error=str(error), slug=error.slug, inputs=len(batch))
                batch = self._give_back(batch, error)
                # Who asked meanwhile is told as well, instead of waiting behind what cannot be written.
                waiting = list(self._inbox)
                self._inbox.clear()
                self._inbox.extend(self._give_back(waiting, error))
                await trio.sleep(pause_s)
                pause_s = min(pause_s * 2, RETRY_LAST_S)
            except Exception as error:
                self.state.undo()
                await self._one_by_one(batch, error)
                return
            else:
                return

    async def _decide_and_commit(self, batch: list[Input]) -> None:
        names = wanted(self.state, batch)
        if names:
            self.state.load(await self._store.load(names))
        effects: list[Effect] = []
        for happened in batch:
            effects += self._decide(happened)
        changes = self.state.changes()
        # May not be cut: what is committed is also kept in memory and carried out. The store bounds it.
        with trio.CancelScope(shield=True):
            await self._store.commit(changes, sync=self.state.promised)
        self.state.keep()
        self._act(changes.events, effects)

    def _decide(self, happened: Input) -> list[Effect]:
        effects: list[Effect] = []
        if not isinstance(happened, ThreadsSeen):
            effects += step(self.state, happened)
        if isinstance(happened, ThreadsSeen | ThreadStarted):
            for each in consequences(self.state, happened, self._new_session_id):
                effects += step(self.state, each)
        return effects

    async def _one_by_one(self, batch: list[Input], cause: Exception) -> None:
        """One of these cannot be handled: find it, set it aside, and see the rest through."""
        if len(batch) > 1:
            for happened in batch:
                await self._see_through([happened])
            return
        (happened,) = batch
        self._set_aside += 1
        log.error("input set aside", input=type(happened).__name__, exc_info=cause)
        if isinstance(happened, Command):
            self._respond(happened.ticket, Refused(problem=problem("internal", "the daemon failed on this request")))

    def _give_back(self, items: Sequence[W], error: StoreError) -> list[W]:
        """Tell the callers that nothing of theirs was done; return the rest, which nobody would say again (SETUP-14,
        EVENT-19)."""
        kept = []
        for item in items:
            if isinstance(item, Command):
                self._respond(item.ticket, Refused(problem=problem("store-unavailable", str(error))))
            else:
                kept.append(item)
        return kept

    # --- acting ---

    def _act(self, events: Sequence[EventRecord], effects: list[Effect]) -> None:
        if events:
            self._publish(events)
        for effect in effects:
            match effect:
                case Send() | SendAnswer() | SendRefusal():
                    self._send(effect)
                case Respond():
                    self._respond(effect.ticket, effect.answer)
                case Arm():
                    self.timers.arm(effect)
                case Disarm():
                    self.timers.disarm(effect.key)
                case RestartProcess():
                    self._restart()
                case _:
                    raise AssertionError(f"no hand for {type(effect).__name__}")

    def _respond(self, ticket: Ticket, answer: Answer) -> None:
        answered = self._callers.get(ticket)
        if answered is not None:  # the caller may have gone; what it asked for is done all the same
            self._answers[ticket] = answer
            answered.set()
