"""ASGI's lifespan: the application is told that it begins and that it ends, and may refuse to begin.

Litestar opens its resources in it. An application that does not know it raises; that is the protocol's way of saying
so, and it is served all the same.
"""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import structlog
import trio

from termald.api.asgi import ASGI_VERSION, ASGIApp, Message

END_DEADLINE_S: Final = 5.0
"""How long an application may take to end; what it must keep is kept elsewhere."""

_log = structlog.get_logger(__name__)


class StartupFailed(Exception):  # noqa: N818 - named for what happened
    """The application refused to begin, with its reason."""


class _Life:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._told = False
        self._scope = trio.CancelScope(shield=True)
        self.state: dict[str, Any] = {}
        self.begun = trio.Event()
        self.refusal: str | None = None
        self._ending = trio.Event()

    async def run(self) -> None:
        scope = {"type": "lifespan", "asgi": ASGI_VERSION, "state": self.state}
        try:
            # Shielded: whoever is cancelled still wants the application's resources closed, and `end` bounds it.
            with self._scope:
                await self._app(scope, self._receive, self._send)
        except Exception as error:
            # Litestar reports a failure and raises it as well; elsewhere it means that there is no lifespan.
            _log.debug("lifespan-raised", error=repr(error))
        finally:
            self.begun.set()

    def end(self) -> None:
        self._ending.set()
        self._scope.deadline = trio.current_time() + END_DEADLINE_S

    def abandon(self) -> None:
        self._scope.cancel()

    async def _receive(self) -> Message:
        if not self._told:
            self._told = True
            return {"type": "lifespan.startup"}
        await self._ending.wait()
        return {"type": "lifespan.shutdown"}

    async def _send(self, message: Message) -> None:
        match message["type"]:
            case "lifespan.startup.complete":
                self.begun.set()
            case "lifespan.startup.failed":
                self.refusal = str(message.get("message", ""))
                self.begun.set()
            case "lifespan.shutdown.complete":
                pass
            case "lifespan.shutdown.failed":
                _log.error("lifespan-shutdown-failed", message=message.get("message", ""))
            case other:
                raise RuntimeError(f"unexpected lifespan message {other!r}")


@contextlib.asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[dict[str, Any]]:
    """Run the application's life around the block and give the state that it left for its requests.

    Raises StartupFailed. Waits for the application's start as long as it takes, and for its end `END_DEADLINE_S`, even
    where the block is cancelled.
    """
    life = _Life(app)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.run)
        try:
            await life.begun.wait()
            if life.refusal is None:
                yield life.state
        except trio.Cancelled:
            if not life.begun.is_set():
                life.abandon()
            raise
        finally:
            life.end()
    if life.refusal is not None:
        raise StartupFailed(life.refusal)
