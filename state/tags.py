"""Tags: the one text of ours that Codex stores with a thread, by which a thread we minted is found again.

Pure. A tag travels as `threadSource` of `thread/start` and `thread/fork` and comes back from the state DB's
`thread_source`. It is for finding, not for trusting: whoever writes `threadSource` can write anything, so what a tag
names is always compared with our own intent before it means something.
"""

from typing import Final

import msgspec

from state.records import SessionId

_HEAD: Final = "termald"
# `msgspec` encodes integers of 64 bits; more digits than that are nobody's generation, and `int()` refuses 4,300.
_GENERATION_DIGITS_MAX: Final = 18


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """What a tag names: the termald state that minted the thread, the session it was minted for, and the attachment's
    generation."""

    host_id: str
    session_id: SessionId
    generation: int


def mint_tag(host_id: str, session_id: SessionId, generation: int) -> str:
    """Return the tag of the thread that this setup is about to mint; `parse_tag` gives the three back.

    Errors: `ValueError` for a host id that is empty or holds a colon, or a negative generation. A session id may be any
    text, since callers choose it: it stands between the first two colons and the last.
    """
    if not host_id or ":" in host_id:
        raise ValueError(f"host id {host_id!r} cannot stand in a tag: it must be non-empty and without a colon")
    if generation < 0 or generation >= 10**_GENERATION_DIGITS_MAX:
        raise ValueError(f"generation {generation} cannot stand in a tag: it must be 0 to 18 digits")
    return f"{_HEAD}:{host_id}:{session_id}:{generation}"


def parse_tag(text: str | None) -> Tag | None:
    """Return what the tag names; None for no text, and for any text that `mint_tag` would not have made."""
    if text is None or text.count(":") < 3:  # noqa: PLR2004 - head, host, session, generation
        return None
    head, host_id, rest = text.split(":", 2)
    session_id, digits = rest.rsplit(":", 1)
    if head != _HEAD or not host_id or not _is_generation(digits):
        return None
    return Tag(host_id=host_id, session_id=SessionId(session_id), generation=int(digits))


def _is_generation(digits: str) -> bool:
    # `isdecimal` alone lets other scripts' digits pass, and a leading zero would name a generation a second time.
    plain = digits.isascii() and digits.isdecimal() and len(digits) <= _GENERATION_DIGITS_MAX
    return plain and (digits == "0" or digits[0] != "0")
