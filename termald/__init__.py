"""The daemon: one supervised `codex app-server`, any number of durable sessions over it.

Lives here: the composition root (`daemon`), the single deciding task (`writer`), the live fan-out (`hub`), and the
rooms `core`, `codex`, `api`, `cli`, `client`, `config`, `scripted_model`. May import `discovery` and `state`; nothing
imports `termald` from there. Begin at `daemon.py`, which lists every long-lived task in start order. Not here: SQL
(`state`), reading Codex's own files (`discovery`).
"""
