"""The base of all generated message types.

Reading is lenient: unknown fields are skipped, and what is absent or null is None. Writing is exact: a field that was
not set is not written, so that Codex's own default applies, while an explicit None is written as null.
"""

import msgspec


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value on the wire. Wire names are given per field by the generator: Codex mixes camelCase and snake_case."""
