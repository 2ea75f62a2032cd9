"""What a thread's `source` says: whether somebody talks to it, or it works for another thread.

Codex writes the same value in two spellings. The state DB holds a bare word (`cli`, `vscode`) or JSON in snake case
(`{"subagent":{"thread_spawn":{"parent_thread_id":…}}}`); the protocol sends JSON in camel case (`"vscode"`,
`{"subAgent":…}`). Measured on codex 0.163 and 0.171: `parentThreadId` of `thread/list` is null for the very threads
whose source names their parent, so the source is what counts.
"""

from typing import Final

import msgspec

_PARENT_KEYS: Final = ("parent_thread_id", "parentThreadId")
# A kind that names the parent lies two levels deep; one more is room for a layout nobody has seen.
_DEPTH_MAX: Final = 4


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """`subagent`: another thread's work, whether or not the source says whose. `parent`: whose, if it does."""

    kind: str
    subagent: bool = False
    parent: str | None = None


def read_source(text: str) -> Source:
    """Return what the source says. Text that is neither a word nor JSON is a kind of its own, and nobody's child."""
    try:
        value = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return Source(kind=text)
    if isinstance(value, str):
        return Source(kind=value)
    if not isinstance(value, dict):
        return Source(kind=text)
    for key, inner in value.items():
        if _is_subagent(key):
            return Source(kind=key, subagent=True, parent=_parent_in(inner, _DEPTH_MAX))
    # `{"custom": "atlas"}`: another front-end's name for itself.
    return Source(kind=next(iter(value), text))


def _is_subagent(key: str) -> bool:
    return key.replace("_", "").lower() == "subagent"


def _parent_in(value: object, depth: int) -> str | None:
    if depth == 0 or not isinstance(value, dict):
        return None
    for key in _PARENT_KEYS:
        named = value.get(key)
        if isinstance(named, str) and named:
            return named
    return next((found for inner in value.values() if (found := _parent_in(inner, depth - 1))), None)
