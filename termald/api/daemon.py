"""The daemon itself: alive, ready, which one, and all that it holds."""

from typing import Final

import msgspec
import trio
from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody

from state.errors import StoreError
from termald.api import bodies
from termald.api.commands import Desk
from termald.api.metrics import CONTENT_TYPE, Metrics
from termald.api.problems import documented
from termald.api.views import daemon as show
from termald.core.effects import DoneAnswer
from termald.core.inputs import RestartRuntime


@get("/api/health", tags=["daemon"])
async def health() -> show.Health:
    """Say that the process answers. Open to all; touches neither Codex nor the database."""
    return show.Health()


@get(
    "/api/ready",
    responses={
        503: ResponseSpec(data_container=show.Ready, description="Not ready, and why", generate_examples=False),
        **{status: spec for status, spec in documented().items() if status != 503},  # noqa: PLR2004 - as above
    },
)
async def ready(desk: NamedDependency[Desk]) -> Response[show.Ready]:
    """Say whether a prompt would be taken and run now: 200, or 503 with the part that keeps it from that."""
    engine = desk.engine
    process, scanner = engine.runtime, engine.discovery
    store = await _store_part(desk)
    settling = process.status == "ready" and not engine.accepting.is_set()
    runtime = (
        show.Part(state="starting", reason="what was live before the start is being settled")
        if settling
        else show.Part(state=process.status, reason=process.reason)
    )
    view = show.Ready(
        ready=store.state == "ready" and runtime.state == "ready",
        parts=show.Parts(
            store=store,
            runtime=runtime,
            discovery=show.Part(state=scanner.status, reason=scanner.reason),
        ),
    )
    return Response(view, status_code=200 if view.ready else 503)


async def _store_part(desk: Desk) -> show.Part:
    with trio.move_on_after(desk.settings.store_wait_s):
        try:
            await desk.engine.store.event_bounds()
            await desk.engine.store.check_writes()
        except StoreError as error:
            return show.Part(state="failed", reason=str(error))
        return show.Part(state="ready", reason=None)
    return show.Part(state="stalled", reason=f"the disk did not answer within {desk.settings.store_wait_s:g} s")


@get("/api/version", responses=documented())
async def version(desk: NamedDependency[Desk]) -> show.Version:
    """Say what runs: termald, Codex, and the Codex whose protocol is spoken."""
    settings = desk.settings
    return show.Version(
        termald=settings.version,
        codex=desk.engine.runtime.codex_version,
        protocol_schema=settings.protocol_schema,
    )


@get(
    "/api/state",
    media_type="application/json",
    responses={
        200: ResponseSpec(data_container=show.State, description="Everything at one moment", generate_examples=False),
        **documented(),
    },
)
async def state(desk: NamedDependency[Desk]) -> Response[bytes]:
    """Return everything at one moment. Listen to the events after `lastEventId` to keep it true."""
    engine, settings = desk.engine, desk.settings
    moment = await engine.store.snapshot()
    process, scanner = engine.runtime, engine.discovery
    # Beside the daemon's loop: with 100,000 discovered sessions it takes two seconds, and nobody else is to wait.
    return Response(
        await trio.to_thread.run_sync(lambda: msgspec.json.encode(show.state(moment, process, scanner, settings)))
    )


@get("/api/runtime", responses=documented())
async def get_runtime(desk: NamedDependency[Desk]) -> show.Runtime:
    """Return the one Codex process, as it is supervised."""
    return show.runtime(desk.engine.runtime)


@post(
    "/api/runtime/restart",
    status_code=202,
    responses=documented("malformed-body", "unsupported-media-type", "invalid-request", "starting", "no-answer-yet"),
)
async def restart_runtime(desk: NamedDependency[Desk], data: JSONBody[bodies.Nothing | None] = None) -> show.Runtime:
    """End Codex and start it anew: 202. Running turns are settled, sessions and queues stay."""
    await desk.ask(lambda ticket, at_ms: RestartRuntime(ticket=ticket, at_ms=at_ms), DoneAnswer)
    return show.runtime(desk.engine.runtime)


@get("/metrics", media_type=CONTENT_TYPE, responses=documented())
async def metrics(desk: NamedDependency[Desk], counts: NamedDependency[Metrics]) -> str:
    """Return counts in Prometheus's text format."""
    moment = await desk.engine.store.snapshot()
    return counts.exposition(moment, desk.engine.runtime, desk.engine.hub.statistics()).decode()


HANDLERS: Final = (ready, version, state, get_runtime, restart_runtime, metrics)
