"""The other side of the pipe: one real `codex app-server`, and the bytes that go to and from it.

Lives here: the binary (`binary`), the process and its family (`identity`, `process`), what a frame is (`frames`,
`lines`; pure), the two links (`stdio`, `control_socket`), the handshake, the service that keeps one process alive
(`supervisor`), the message types generated from Codex's own schema (`protocol`, never edited) and the translation
to the core's words (`translate`; pure).
May import: the standard library, trio, trio-websocket, msgspec, and from the rest of termald the core's types only.
Keeps: at most one app-server per daemon and home; one exit report per process; no frame reaches a process or a
connection that it was not decided for; no bytes of Codex's make anything raise beyond `frames`.
Begin at `supervisor.py`; `docs/codex.md` says what is relied on and which test measures it.
Not here: any decision about a session (`termald.core`), anything durable (`state`), Codex's files (`discovery`).
"""
