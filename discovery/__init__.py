"""Which Codex threads exist, and what is to become of each: reading Codex's own files, changing none of them.

Lives here: the import policy (`policy`) and what a thread's source tells (`source`), both pure; where a home keeps its
state DB (`homes`), how that is read beside a writing Codex (`readonly`, `state_db`), how many messages a thread has
(`rollouts`, with `segments` and `lines`), what Codex lists where its state DB cannot be read (`listed`), and the scan
that joins them (`scanner`).
May import: `state`, the standard library, msgspec, apsw, trio; `policy` and `source` only `state.records`, `state.tags`
and msgspec.
Keeps: I9 (an ignored thread is never imported, an owned one never ignored), and that a scan has no effect on Codex: no
byte and no file of a home is changed, no thread is resumed, and no process is asked but for its list. One home's
trouble stays that home's.
Begin at `policy.py`; `docs/discovery.md` says what is read and which test measures it.
Not here: what the daemon remembers (`state`), the deciding task and its frames (`termald`), wire messages
(`termald.codex`).
"""
