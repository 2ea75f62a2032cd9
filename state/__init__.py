"""What the daemon remembers, and nothing else.

Lives here: `records`, `views` and `tags` (what every room speaks in; pure), `rows` (records to rows and back), `schema`
and `migrations/` (the file, one step a file, never edited again), `apply` and `load` (the writing connection),
`queries` and `paging` (the reading ones), `worker` (a connection and its thread), `lock`, `errors`, and `store`, the
door to all of it. May import: the standard library, msgspec, apsw, trio. Keeps: I5 and I10 on disk (a promise is synced
before it is heard), I9 (owned and ignored never meet), I11 (the log's sequence only grows). Begin at `records.py`, then
`store.py`. Not here: any decision about sessions (`termald.core`), anything of Codex's files (`discovery`). The whole
is told in `docs/state.md`.
"""
