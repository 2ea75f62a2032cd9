"""The scripted model, with each `STAMP` in its words replaced by the time at which it is sent: `python -m
bench.clock_model --port 0`. The clock is the machine's (CLOCK_MONOTONIC), and so the same for whoever reads it."""

import time
from functools import partial

import trio

from termald.api.asgi import Message, Receive, Scope, Send
from termald.api.gate import Gate
from termald.api.listeners import open_tcp_listener
from termald.api.server import ServerControl, serve
from termald.scripted_model.app import ScriptedApp
from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import LIMITS

STAMP = "TIME-OF-ITS-SENDING"
_WANTED = STAMP.encode()


async def stamped(app: ScriptedApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Serve a request with the times filled in. A number has as many digits as the word has letters."""

    async def out(message: Message) -> None:
        if _WANTED in message.get("body", b""):
            now = str(time.monotonic_ns()).zfill(len(_WANTED)).encode()
            message = {**message, "body": message["body"].replace(_WANTED, now)}
        await send(message)

    await app(scope, receive, out)


async def main() -> None:
    """Serve until interrupted."""
    listener = await open_tcp_listener("127.0.0.1", 0)
    app = partial(stamped, ScriptedApp(ScriptedModel()))
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, app, [listener], gate=Gate(), limits=LIMITS, control=ServerControl()))
        print(f"{listener.url}/v1", flush=True)


if __name__ == "__main__":
    try:
        trio.run(main)
    except* KeyboardInterrupt:
        pass
