"""Where names change: Codex's on the wire, ours inside.

Lives here: `ops` (what the core wants sent), `replies` (what answers it), `notices` (what nobody asked for), `asks`
(what Codex asks of us), `incoming` (one frame to one input). May import: `codex.frames`, `codex.protocol`,
`core.inputs`, `core.effects`, `state.records`. Pure: no I/O, no state. Keeps I8: a payload that cannot be read costs at
most its own session an event. Begin at `incoming`. Not here: what any of it means for a session.
"""
