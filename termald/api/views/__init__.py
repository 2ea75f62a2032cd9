"""What goes out: the public shapes, and how records become them. camelCase begins here.

Lives here: `shared` (lists, times, failures), `sessions`, `history`, `threads`, `daemon`; each holds shapes and the
functions that fill them. May import: msgspec, the records and views of `state`, the views of the engine, the answers of
the core.
Keeps: times are RFC 3339 in UTC with milliseconds, as in the events; a list is `{data, nextCursor}`, as Codex's own
lists are; what Codex said is shown as it stands (`Any` in a shape is JSON of Codex's, not decoded on the way).
Begin at `sessions.py`. Not here: what comes in (`bodies`), statuses and headers (the routes).
"""
