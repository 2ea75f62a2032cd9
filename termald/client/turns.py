"""A turn put together from its events: `TurnAccumulator`, and `committed` for those who want only what stays.

The text of an item arrives in deltas; its completion says it whole, and wins. `block/reset` takes items back: Codex
tries again and says it anew. A later reader of the log may get no deltas at all, only completions; the result is the
same.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, TypeVar, overload

import msgspec

from termald.client.events import (
    BlockReset,
    Done,
    Event,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    Usage,
)

E = TypeVar("E", bound=Event)


class AccumulatedItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item as far as it is known. `item` is Codex's own, `text` what its deltas said until it was complete."""

    id: str
    turn_id: str | None
    item: dict[str, Any]
    text: str = ""
    completed: bool = False
    incomplete: bool = False

    @property
    def type(self) -> str:
        """Codex's type."""
        return str(self.item.get("type", ""))


class TurnAccumulator:
    """Feed it events; it holds what stands. What was taken back is gone."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._items: dict[tuple[str | None, str], AccumulatedItem] = {}
        self.done: Done | None = None
        for event in events:
            self.feed(event)

    def feed(self, event: Event) -> None:
        """Take an event in; kinds that build nothing are passed over."""
        if isinstance(event, Done):
            self.done = event
            return
        if isinstance(event, BlockReset):
            for taken in event.items:
                self._items.pop((event.turn_id, taken), None)
            return
        if not isinstance(event, ItemStarted | ItemDelta | ItemCompleted) or event.item_id is None:
            return
        key = (event.turn_id, event.item_id)
        known = self._items.get(key)
        if isinstance(event, ItemCompleted):
            self._items[key] = AccumulatedItem(
                id=event.item_id, turn_id=event.turn_id, item=event.item, completed=True, incomplete=event.incomplete
            )
        elif known is None:
            item = event.item if isinstance(event, ItemStarted) else {}
            text = event.delta if isinstance(event, ItemDelta) else ""
            self._items[key] = AccumulatedItem(id=event.item_id, turn_id=event.turn_id, item=item, text=text)
        elif isinstance(event, ItemDelta) and not known.completed:
            self._items[key] = msgspec.structs.replace(known, text=known.text + event.delta)

    @property
    def items(self) -> tuple[AccumulatedItem, ...]:
        """Everything that stands, in the order in which it began."""
        return tuple(self._items.values())

    @property
    def committed_items(self) -> tuple[AccumulatedItem, ...]:
        """Only what is complete."""
        return tuple(item for item in self._items.values() if item.completed)

    @property
    def messages(self) -> tuple[str, ...]:
        """The model's messages, the last perhaps not yet whole."""
        return tuple(_text(item) for item in self._items.values() if item.type == "agentMessage")

    @property
    def text(self) -> str:
        """The model's messages as one text, as far as it has come."""
        return "\n\n".join(self.messages)

    @property
    def final_text(self) -> str:
        """The last complete message: the answer, where the ones before only said what would be done."""
        whole = [_text(item) for item in self.committed_items if item.type == "agentMessage"]
        return whole[-1] if whole else ""

    @property
    def usage(self) -> Usage:
        """What the turn cost; zeros until it is done."""
        return Usage() if self.done is None else self.done.usage


def _text(item: AccumulatedItem) -> str:
    return str(item.item.get("text", "")) if item.completed else item.text


def is_committed(event: Event) -> bool:
    """Whether nothing that comes later takes it back: all but items that are begun, their deltas, and resets."""
    return not isinstance(event, ItemStarted | ItemDelta | BlockReset)


@overload
def committed(events: Iterable[E]) -> Iterator[E]: ...
@overload
def committed(events: AsyncIterable[E]) -> AsyncIterator[E]: ...
def committed(events: Iterable[E] | AsyncIterable[E]) -> Iterator[E] | AsyncIterator[E]:
    """Pass on only what stays: text comes whole, with its `item/completed`. Takes and gives either kind of iterable."""
    return _Committed(events) if isinstance(events, AsyncIterable) else filter(is_committed, events)


class _Committed(AsyncIterator[E]):
    # Not an async generator: one that is left early would have to be closed by its user.
    def __init__(self, events: AsyncIterable[E]) -> None:
        self._events = aiter(events)

    async def __anext__(self) -> E:
        while not is_committed(event := await anext(self._events)):
            pass
        return event
