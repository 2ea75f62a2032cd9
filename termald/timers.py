"""Timers: what the core armed comes back into the inbox when it is due. They decide nothing; the stamp they carry is
compared when they are taken."""

import heapq
import random
from collections.abc import Callable
from typing import Final

import trio
from msgspec.structs import replace

from termald.core.effects import Arm
from termald.core.inputs import Input

Key = tuple[str, ...]
FOREVER_S: Final = 86_400.0
"""How long the task sleeps when nothing is armed; an arming wakes it."""


class Timers:
    """A heap of armed timers. `run` fires them; arming an equal key replaces it."""

    def __init__(self, fire: Callable[[Input], None], now_ms: Callable[[], int], rng: random.Random) -> None:
        self._fire = fire
        self._now_ms = now_ms
        self._rng = rng
        self._armed: dict[Key, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, Key, Input]] = []
        self._count = 0
        self._changed = trio.Event()

    def __len__(self) -> int:
        return len(self._armed)

    def arm(self, effect: Arm) -> None:
        """Arm a timer. The jitter is drawn here: the core has no randomness of its own."""
        after_ms = effect.after_ms + (self._rng.randrange(effect.jitter_ms + 1) if effect.jitter_ms else 0)
        due = trio.current_time() + after_ms / 1000
        self._count += 1
        self._armed[effect.key] = (due, self._count)
        heapq.heappush(self._heap, (due, self._count, effect.key, effect.timer))
        if self._heap[0][1] == self._count:
            self._changed.set()

    def disarm(self, key: Key) -> None:
        """Forget a timer; its heap entry is passed over when it comes up."""
        self._armed.pop(key, None)
        if len(self._heap) > 64 + 2 * len(self._armed):
            self._heap = [entry for entry in self._heap if self._armed.get(entry[2]) == entry[:2]]
            heapq.heapify(self._heap)

    async def run(self) -> None:
        """Fire what is due, for ever."""
        while True:
            self._changed = trio.Event()
            with trio.move_on_at(self._heap[0][0] if self._heap else trio.current_time() + FOREVER_S):
                await self._changed.wait()
            while self._heap and self._heap[0][0] <= trio.current_time():
                due, count, key, timer = heapq.heappop(self._heap)
                if self._armed.get(key) == (due, count):
                    del self._armed[key]
                    self._fire(replace(timer, at_ms=self._now_ms()))
