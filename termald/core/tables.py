"""Tables that remember what a batch changed, so that the batch can be written, or taken back, as one.

A batch that cannot be committed must leave memory as it was (SETUP-14). Copying the state for each batch would cost as
much as the state is large; a table keeps the value that each touched key had before, which costs as much as the batch
touches.
"""

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Change(NamedTuple, Generic[K, V]):
    """What became of one key since the last `keep`: None stands for absent."""

    key: K
    before: V | None
    after: V | None


class Table(Generic[K, V]):
    """A dict of frozen values with undo."""

    __slots__ = ("_before", "_loaded", "_rows")

    def __init__(self) -> None:
        self._rows: dict[K, V] = {}
        self._before: dict[K, V | None] = {}
        self._loaded: set[K] = set()

    def __contains__(self, key: K) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[K]:
        return iter(tuple(self._rows))

    def values(self) -> tuple[V, ...]:
        """Return the values as they stand; the table may be changed while they are walked."""
        return tuple(self._rows.values())

    def get(self, key: K) -> V | None:
        """Return the value, or None."""
        return self._rows.get(key)

    def __getitem__(self, key: K) -> V:
        return self._rows[key]

    def put(self, key: K, value: V) -> None:
        """Set the value; it counts as changed."""
        self._before.setdefault(key, self._rows.get(key))
        self._rows[key] = value

    def drop(self, key: K) -> V | None:
        """Remove and return the value; a missing key is no change."""
        if key not in self._rows:
            return None
        self._before.setdefault(key, self._rows[key])
        return self._rows.pop(key)

    def load(self, key: K, value: V) -> None:
        """Take in what the database already holds: not a change, and never over something newer."""
        if key not in self._rows and key not in self._before:
            self._rows[key] = value
            self._loaded.add(key)

    def forget(self, key: K) -> None:
        """Drop from memory what the database holds: not a change. Only between batches."""
        assert key not in self._before, "forgotten in the middle of a batch"
        self._rows.pop(key, None)

    def changes(self) -> Iterator[Change[K, V]]:
        """Yield what differs from the last `keep`, in the order first touched."""
        for key, before in self._before.items():
            after = self._rows.get(key)
            if after is not before:
                yield Change(key, before, after)

    def keep(self) -> list[K]:
        """Make the changes final; return the keys that were touched and are still here, so that they can be looked at
        for eviction."""
        touched = [key for key in {**self._before, **dict.fromkeys(self._loaded)} if key in self._rows]
        self._before.clear()
        self._loaded.clear()
        return touched

    def undo(self) -> None:
        """Take the changes back. What was loaded for the batch stays until it is looked at after a commit."""
        for key, before in self._before.items():
            if before is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = before
        self._before.clear()


class Cell(Generic[V]):
    """One value with undo."""

    __slots__ = ("_kept", "value")

    def __init__(self, value: V) -> None:
        self.value = value
        self._kept = value

    def keep(self) -> None:
        """Make the value final."""
        self._kept = self.value

    def undo(self) -> None:
        """Take the changes back."""
        self.value = self._kept
