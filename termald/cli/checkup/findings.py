"""One thing that was looked at, and what was found."""

from collections.abc import Callable
from typing import Literal

import msgspec

Level = Literal["ok", "note", "problem"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`note`: worth knowing, nothing is broken. `help`: the way out. `fix` makes it well, if that is safe."""

    what: str
    level: Level
    says: str
    help: str | None = None
    fix: Callable[[], None] | None = None


def ok(what: str, says: str) -> Finding:
    """Nothing to do."""
    return Finding(what=what, level="ok", says=says)


def note(what: str, says: str, help: str | None = None, fix: Callable[[], None] | None = None) -> Finding:
    """Worth knowing."""
    return Finding(what=what, level="note", says=says, help=help, fix=fix)


def problem(what: str, says: str, help: str, fix: Callable[[], None] | None = None) -> Finding:
    """Something will not work."""
    return Finding(what=what, level="problem", says=says, help=help, fix=fix)
