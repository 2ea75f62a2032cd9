"""The whole behaviour of the daemon as a function of its inputs.

Lives here: `inputs` (what can happen), `effects` (what should be done about it), `state` (what is known, with undo),
`step` (find the session, dispatch), `queue` (what a session does next), `setup`, `turns`, `items`, `steering`,
`operations`, `reverting`, `requests`, `standstill`, `ending`, `disposal`, `children`, `discovery`, `recovery` (the
decisions), `log` (what subscribers are told). May import: the standard library's pure parts, msgspec, `state.records`,
`state.tags`, `termald.redact`. Keeps I1-I7 and I12; the writer and the store keep the rest. Begin at `step.py`. Not
here: await, clock, randomness, wire names, HTTP, SQL.
"""
