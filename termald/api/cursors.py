"""Where a list goes on, as an opaque text: the store's cursor with the list's name and filters sealed in.

A cursor is only good for the list that gave it, under the same filters: used elsewhere it would skip rows in silence.
It is not signed. Whoever makes one up reads rows that are theirs to read anyhow.
"""

import base64
import binascii
from typing import Any, TypeVar

import msgspec

from state.views import Cursor
from termald.api.problems import FieldError, ProblemError, invalid

C = TypeVar("C", bound=Cursor)


def write_cursor(cursor: Cursor | None, listing: str, *filters: str | None) -> str | None:
    """Return the cursor as text, or None at the list's end."""
    if cursor is None:
        return None
    sealed = msgspec.json.encode((listing, filters, msgspec.structs.astuple(cursor)))
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()


def read_cursor(text: str | None, kind: type[C], listing: str, *filters: str | None) -> C | None:
    """Return the store's cursor; None for the list's beginning. Errors: `invalid-request`."""
    if text is None:
        return None
    try:
        sealed = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        named, given, position = msgspec.json.decode(sealed, type=tuple[str, tuple[str | None, ...], list[Any]])
        if (named, given) != (listing, filters):
            raise _refused("it belongs to another list, or to other filters")
        fields = kind.__struct_fields__
        return msgspec.convert(dict(zip(fields, position, strict=True)), kind)
    except (UnicodeEncodeError, binascii.Error, msgspec.DecodeError, ValueError) as error:
        raise _refused("it is none of this daemon's") from error


def is_cursor_of(text: str, listing: str) -> bool:
    """Whether the text is a cursor that this list gave, under whatever filters."""
    try:
        sealed = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(sealed, type=tuple[str, msgspec.Raw, msgspec.Raw])[0] == listing
    except (UnicodeEncodeError, binascii.Error, msgspec.DecodeError, ValueError):
        return False


def _refused(why: str) -> ProblemError:
    return invalid(FieldError(parameter="cursor", detail=f"cursor: {why}; begin again without one"))
