"""Live events: a short memory of the newest ones, and any number of readers over it and the durable log behind it.

There is no queue per reader. Each reader has a position, the last sequence number that it was given or passed over,
and asks for what comes after it. What the ring still holds is taken from there; what the ring has dropped is read
from the store. So memory is bounded by the ring however slow a reader is, `publish` waits for nobody, and since the
position is all there is, nothing can be given twice or left out where replay meets live (I11).

What competes, and who wins:

- A publication falls between a read of the store and the next look at the ring: the look comes later and finds it.
- The log is cut shorter while a reader is behind: the bounds are asked for *after* each read, so a cut that could
  have taken something is seen, and the reader is told with a `reset`.
- The store already holds what is not published yet, since the commit comes first: a snapshot may name a number that
  the ring does not have. A position ahead of the ring waits; only one ahead of the store is from the future.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Literal, Protocol

import msgspec
import trio

from state.records import EventRecord, Seq, SessionId
from state.views import EventPage

RING_EVENTS: Final = 4_096
"""A burst of 20 turns arrives at about 14,000 events/s: a third of a second of it. Whoever is further behind is served
by the store."""
BATCH_EVENTS: Final = 256
"""Events handed over at once. Writing what is ready in one go matters more than anything else here; 256 deltas are
about 64 KiB."""
STORE_EVENTS: Final = 1_024
"""Events read from the store at once. Each read costs two visits to another thread, whatever it brings; the store ends
a page of long lines earlier."""

ResetReason = Literal["malformed", "future", "too-old"]

_CURSOR: Final = re.compile(r"[0-9]{1,18}")  # 18 digits stay below 2**63, the largest number that the store compares
_LINE_BREAKS: Final = b"\r\n"
_encoder = msgspec.json.Encoder()


class EventLog(Protocol):
    """What the hub needs of the store: the log as committed."""

    async def events(
        self, after: Seq, limit: int, *, session: SessionId | None = None, kinds: frozenset[str] | None = None
    ) -> EventPage:
        """Return up to `limit` events behind `after` that pass the filter, in order, and how far was looked."""

    async def event_bounds(self) -> tuple[Seq, Seq]:
        """Return the numbers of the oldest and the newest event kept; (1, 0) before the first."""


class Frame:
    """One event as readers get it. Each of the two encodings is made once, by the first reader that wants it."""

    __slots__ = ("_sse", "_text", "data", "event", "id", "session")

    def __init__(self, seq: Seq, event: str, data: bytes, session: SessionId | None = None) -> None:
        self.id = seq
        self.event = event
        self.data = data
        self.session = session
        self._sse: bytes | None = None
        self._text: str | None = None

    @property
    def sse(self) -> bytes:
        """The frame in the event stream format.

        What Codex sent stands in the data verbatim and may be laid out over several lines, which would end the field.
        Raw line breaks in JSON are always white space between tokens.
        """
        if self._sse is None:
            data = self.data.translate(None, _LINE_BREAKS)
            self._sse = b"id: %d\nevent: %s\ndata: %s\n\n" % (self.id, self.event.encode(), data)
        return self._sse

    @property
    def text(self) -> str:
        """The frame as a JSON object `{id, event, data}`."""
        if self._text is None:
            self._text = f'{{"id":{self.id},"event":"{self.event}","data":{self.data.decode()}}}'
        return self._text


def parse_cursor(text: str) -> Seq | Literal["malformed"]:
    """Return the sequence number that a client's cursor names, or that it names none."""
    return Seq(int(text)) if _CURSOR.fullmatch(text) else "malformed"


class HubStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The hub as it stands: readers now, the newest number, events in the ring, reads of the store and resets so
    far."""

    readers: int
    last: Seq
    ring_events: int
    store_reads: int
    resets: int


class Hub:
    """The fan-out. `last` is the number of the newest event that is committed and was, or need not be, published."""

    def __init__(self, log: EventLog, *, last: Seq, ring_events: int = RING_EVENTS) -> None:
        self._log = log
        self._ring: list[Frame | None] = [None] * ring_events
        self._last = last
        self._floor = last
        self._waiting = trio.lowlevel.ParkingLot()
        self._closed = False
        self._readers = 0
        self._store_reads = 0
        self._resets = 0

    @property
    def last(self) -> Seq:
        """The number of the newest published event."""
        return self._last

    def publish(self, events: Sequence[EventRecord]) -> None:
        """Show committed events to every reader, in the order of their numbers. Never waits."""
        for event in events:
            assert event.seq > self._last, "I11: the sequence only grows"
            if event.seq != self._last + 1:
                self._floor = Seq(event.seq - 1)  # a hole would be passed over in the ring; the store knows better
            self._ring[event.seq % len(self._ring)] = Frame(event.seq, event.kind, event.data_json, event.session_id)
            self._last = event.seq
        self._floor = Seq(max(self._floor, self._last - len(self._ring)))
        self._waiting.unpark_all()

    @contextmanager
    def subscribe(
        self,
        *,
        after: Seq | Literal["malformed"] | None = None,
        session: SessionId | None = None,
        kinds: frozenset[str] | None = None,
    ) -> Iterator["Subscription"]:
        """Open a reader. With `after` it replays what follows that number; without, it begins with what comes next."""
        self._readers += 1
        try:
            yield Subscription(self, after, session, kinds)
        finally:
            self._readers -= 1

    def close(self) -> None:
        """End every reader once it has what was published."""
        self._closed = True
        self._waiting.unpark_all()

    def statistics(self) -> HubStatistics:
        """Return counts for the metrics."""
        return HubStatistics(
            readers=self._readers,
            last=self._last,
            ring_events=self._last - self._floor,
            store_reads=self._store_reads,
            resets=self._resets,
        )


class Subscription:
    """One reader. Asked for batches by a single task; being cut while asking loses nothing."""

    def __init__(
        self,
        hub: Hub,
        after: Seq | Literal["malformed"] | None,
        session: SessionId | None,
        kinds: frozenset[str] | None,
    ) -> None:
        self._hub = hub
        self._position = hub.last if after is None or after == "malformed" else after
        self._session = session
        self._kinds = kinds
        self._unchecked = after is not None
        self._malformed = after == "malformed"
        self._synced = False

    async def next_batch(self) -> list[Frame]:
        """Return the next frames, at least one; none at all means that the hub is closing.

        `synced` is given once, when everything up to its number was given. `reset` is given instead of a replay that
        cannot be exact. Both carry a number to go on from.
        """
        await trio.lowlevel.checkpoint()
        while True:
            frames = await self._reset_of_cursor() if self._unchecked else await self._take()
            if self._position >= self._hub.last and not self._synced:
                self._synced = True
                frames.append(_mark("synced", self._position, {}))
            if frames:
                return frames
            if self._position < self._hub.last:
                continue
            if self._hub._closed:
                return []
            await self._hub._waiting.park()

    def heartbeat(self) -> Frame:
        """Return a frame that says that nothing was to be said, with the number to go on from."""
        return _mark("heartbeat", self._position, {})

    async def _reset_of_cursor(self) -> list[Frame]:
        """Compare the caller's cursor with what can be replayed, before anything is."""
        if self._malformed:
            reset: ResetReason | None = "malformed"
        elif self._hub._floor <= self._position <= self._hub.last:
            reset = None
        else:
            oldest, newest = await self._hub._log.event_bounds()
            future = self._position > max(newest, self._hub.last)
            reset = "future" if future else "too-old" if self._position < oldest - 1 else None
        self._unchecked = False
        return [] if reset is None else [self._reset(reset)]

    async def _take(self) -> list[Frame]:
        """Advance the position over what is there and return what of it passes the filter."""
        if self._position >= self._hub.last:
            return []
        if self._position >= self._hub._floor:
            return self._take_from_ring()
        return await self._take_from_store()

    def _take_from_ring(self) -> list[Frame]:
        hub, frames = self._hub, list[Frame]()
        while self._position < hub.last and len(frames) < BATCH_EVENTS:
            self._position = Seq(self._position + 1)
            frame = hub._ring[self._position % len(hub._ring)]
            assert frame is not None and frame.id == self._position, "the ring has no holes above its floor"
            if self._passes(frame):
                frames.append(frame)
        return frames

    def _passes(self, frame: Frame) -> bool:
        return (self._session is None or frame.session == self._session) and (
            self._kinds is None or frame.event in self._kinds
        )

    async def _take_from_store(self) -> list[Frame]:
        hub = self._hub
        published = hub.last  # committed before the read begins, so the read sees all of it
        hub._store_reads += 1
        page = await hub._log.events(self._position, STORE_EVENTS, session=self._session, kinds=self._kinds)
        oldest, _ = await hub._log.event_bounds()
        if self._position < oldest - 1:
            return [self._reset("too-old")]
        # Nothing more is the reader's up to where the log went when the read began; a filter may look at less of it.
        self._position = page.through if page.through > self._position else published
        return [Frame(event.seq, event.kind, event.data_json) for event in page.events]

    def _reset(self, reason: ResetReason) -> Frame:
        self._position = self._hub.last
        self._hub._resets += 1
        fields = {"reason": reason, "snapshot": "/api/state", "lastEventId": self._position}
        return _mark("reset", self._position, fields)


def _mark(kind: Literal["synced", "reset", "heartbeat"], seq: Seq, fields: Mapping[str, object]) -> Frame:
    """A frame of the stream itself, not of the log: it has a number to go on from, and no time."""
    return Frame(seq, kind, _encoder.encode({"seq": seq, "kind": kind, **fields}))
