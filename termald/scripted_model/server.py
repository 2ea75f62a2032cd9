"""The scripted model on a port, served by the same shell as the daemon's API."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial

import trio

from termald.api.gate import Gate
from termald.api.listeners import open_tcp_listener
from termald.api.server import ServerControl, serve
from termald.limits import ServerLimits
from termald.scripted_model.app import ScriptedApp
from termald.scripted_model.model import ScriptedModel

# A history with its images may be larger than a message to the daemon, and a hundred threads may ask at once.
LIMITS = ServerLimits(body_bytes_max=67_108_864, connections_max=4_096)


@contextlib.asynccontextmanager
async def open_server(model: ScriptedModel, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve the model while the block runs, and give the base URL for `codex_config`.

    Answers that are still held or on their way when the block ends are dropped. Only clients that name a loopback
    address are served, since anybody who asks may script what Codex will do.
    Errors: `AddressTaken`, or `OSError` for a host that is not this machine's.
    """
    listener = await open_tcp_listener(host, port)
    async with trio.open_nursery() as nursery:
        await nursery.start(
            partial(serve, ScriptedApp(model), [listener], gate=Gate(), limits=LIMITS, control=ServerControl())
        )
        yield f"{listener.url}/v1"
        nursery.cancel_scope.cancel()


async def run(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    model: ScriptedModel | None = None,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; `task_status` is told the base URL. Errors: as `open_server`."""
    async with open_server(model or ScriptedModel(), host, port) as base_url:
        task_status.started(base_url)
        await trio.sleep_forever()
