"""How a scripted app-server misbehaves: by script, at exact steps, and by seed, at a rate for each misdeed.

The app-server asks at each of its steps, by the step's name, whether something is to go wrong there. `MENU` is the list
of steps and of what can go wrong at each; a script or a rate that names anything else is refused, so that no
misbehaviour is ever asked for in vain.
"""

from collections.abc import Mapping
from random import Random
from typing import Final

import msgspec

ANYWHERE: Final = ("hangup", "die", "freeze")
"""The connection is closed; the process ends; the process stands still for a while."""

MENU: Final[dict[str, tuple[str, ...]]] = {
    # A request was taken in and nothing was done about it yet.
    "taken": (*ANYWHERE, "overload", "ignore", "late", "unknown-refusal"),
    "taken:thread/start": ("provider-missing",),
    "taken:thread/resume": ("archived", "active-writer", "no-rollout", "provider-missing"),
    "taken:turn/start": ("not-found", "too-large", "unload"),
    "taken:turn/steer": ("no-turn-to-steer",),
    "taken:thread/turns/list": ("no-turns-yet",),
    # It was carried out, and is to be answered.
    "done": (*ANYWHERE, "lose", "late", "twice", "notices-first", "malformed"),
    "done:thread/start": ("untold", "no-tag", "stored-empty"),
    "done:thread/resume": ("usage-again",),
    # The turn is acknowledged and not active.
    "gap": (*ANYWHERE, "slow", "vanish"),
    # Its user item is about to be written down; it was.
    "user": ANYWHERE,
    "recorded": ANYWHERE,
    # The model said something.
    "piece": (*ANYWHERE, "retry", "orphan", "late-turn", "started-again", "unknown-notice", "bad-frame", "status-idle"),
    # An item is complete.
    "item": (*ANYWHERE, "completed-twice", "delta-after", "other-text"),
    # Codex asks.
    "ask": (*ANYWHERE, "string-id", "resolved-elsewhere", "asked-twice", "no-thread", "unknown-request"),
    # The turn is over.
    "end": (*ANYWHERE, "end-twice", "end-untold", "end-late", "left-open", "late-item", "error-again"),
    "idle": (
        *ANYWHERE,
        *("foreign-turn", "compaction", "unload", "rename", "stranger", "bad-frame", "no-thread-notice"),
        *("stall", "deaf", "archive", "unarchive", "delete"),
    ),
}


class Deed(msgspec.Struct, frozen=True):
    """What goes wrong, and for how long where it is a matter of time (seconds)."""

    name: str
    seconds: float = 0.0


class _Rule(msgspec.Struct):
    point: str
    deed: Deed
    nth: int
    times: int
    seen: int = 0


class Faults:
    """Asked at every step. Nothing goes wrong before it is told to."""

    def __init__(self) -> None:
        self._dice = Random(0)
        self._rates: dict[str, float] = {}
        self._spared: frozenset[str] = frozenset()
        self._rules: list[_Rule] = []
        self._at_step: tuple[int, Deed] | None = None
        self.done: list[tuple[str, Deed]] = []
        """What went wrong so far, and where."""
        self.reached: list[str] = []
        """Every step so far, so that a second run can have something go wrong at each of them."""

    def script(self, point: str, deed: str, *, seconds: float = 0.0, nth: int = 1, times: int = 1) -> None:
        """Have `deed` happen at the `nth` time that this point is reached, and at the next ones up to `times`."""
        _check(point, deed)
        self._rules.append(_Rule(point, Deed(deed, seconds), nth, times))

    def at_step(self, number: int, deed: str, *, seconds: float = 0.0) -> None:
        """Have something that can go wrong anywhere happen at the `number`th step of all (from 1), whichever it is."""
        assert deed in ANYWHERE
        self._at_step = (number, Deed(deed, seconds))

    def brew(self, dice: Random, rates: Mapping[str, float], *, spared: frozenset[str] = frozenset()) -> None:
        """From now on have things go wrong by chance: `"point deed"` and how often. `spared`: the working folders to
        which nothing is done."""
        for name in rates:
            _check(*name.split(" "))
        self._dice, self._rates, self._spared = dice, dict(rates), spared

    def heal(self) -> None:
        """From now on nothing goes wrong by chance."""
        self._rates.clear()

    def at(self, point: str, where: str) -> Deed | None:
        """Return what is to go wrong at this step of somebody in this working folder."""
        self.reached.append(point)
        if where in self._spared:
            return None
        deed = self._counted(point) or self._scripted(point) or self._drawn(point)
        if deed is not None:
            self.done.append((point, deed))
        return deed

    def _counted(self, point: str) -> Deed | None:
        if self._at_step is None or self._at_step[0] != len(self.reached):
            return None
        return self._at_step[1]

    def _scripted(self, point: str) -> Deed | None:
        found = None
        for rule in self._rules:
            if rule.point == point:
                rule.seen += 1
                if rule.nth <= rule.seen < rule.nth + rule.times and found is None:
                    found = rule.deed
        return found

    def _drawn(self, point: str) -> Deed | None:
        for name, rate in self._rates.items():
            at, deed = name.split(" ")
            if at == point and self._dice.random() < rate:
                return Deed(deed, self._dice.choice(PAUSES_S))
        return None


PAUSES_S: Final = (0.02, 0.5, 3.0, 11.0, 31.0, 65.0)
"""Below and above each deadline of the daemon's: 10 s for an acknowledgement, 30 s for a turn, 60 s for a thread."""


def _check(point: str, deed: str) -> None:
    if deed not in MENU.get(point, ()):
        raise ValueError(f"nobody knows how to do {deed!r} at {point!r}")
