"""HTTP, SSE and WebSocket: what others may ask of the daemon, and see of it.

Lives here: two halves with one seam between them. The *shell* speaks HTTP/1.1 on TCP and a Unix socket and knows no
route: `server` (listen, serve, drain), `exchange`, `http1`, `heads`, `websocket`, `transport`, `listeners`, `gate`
(`Host`, `Origin`), `refusals`, `lifespan`; `asgi` is the seam. The *application* knows no socket: `app` (what is
served), `edge` and `auth` (before any route), `daemon`, `sessions`, `prompts`, `requests`, `threads`, `events` (the
routes), `bodies` and `strict` (what comes in), `views` (what goes out), `cursors`, `commands` (the way to the
engine), `problems` (every refusal), `openapi`, `metrics`, `token`.
May import: Litestar, trio, h11, trio-websocket, msgspec, prometheus-client; of the rest of termald `engine`, `hub` and
the core's inputs, answers and refusals; `state.records` and `state.views`.
Keeps: nothing is answered as done before the engine said so; a command is refused before it is sent or answered as
the core decided it; a reader of events is shown all of them or a `reset` (I11); nobody without the token learns
anything but that the process lives.
Begin at `app.py`. Not here: any decision about a session (`termald.core`), SQL (`state`), Codex's wire names
(`termald.codex`). HTTP's names and statuses stop here.
"""
