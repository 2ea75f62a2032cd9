"""What the daemon remembers, and nothing else.

Lives here: `records` (the frozen values that every room speaks in), `schema` and `migrations/` (the SQLite layout, one
file a step, never
edited again), `store` (one connection that writes whole batches, one that reads). May import: the standard library,
msgspec, apsw, trio.
Keeps: I5 and I10 on disk (a promise is synced before it is heard), I9 (owned and ignored never meet), I11 (the log's
sequence only grows).
Begin at `records.py`. Not here: any decision about sessions (`termald.core`), anything of Codex's files (`discovery`).
"""
