"""The application's life around its requests."""

import pytest
import trio
import trio.testing
from support.asgi_apps import describe, running
from trio.testing import MockClock

from termald.api.asgi import Receive, Scope, Send
from termald.api.lifespan import END_DEADLINE_S, StartupFailed

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Living:
    """Notes what happens to it."""

    def __init__(self, *, end_takes_s: float = 0) -> None:
        self.events: list[str] = []
        self._end_takes_s = end_takes_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            self.events.append(f"request {scope['state']}")
            scope["state"]["own"] = True
            await describe(scope, receive, send)
            return
        assert await receive() == {"type": "lifespan.startup"}
        scope["state"]["pool"] = 1
        self.events.append("startup")
        await send({"type": "lifespan.startup.complete"})
        assert await receive() == {"type": "lifespan.shutdown"}
        await trio.sleep(self._end_takes_s)
        self.events.append("shutdown")
        await send({"type": "lifespan.shutdown.complete"})


async def test_it_begins_before_the_first_request_and_ends_after_the_last() -> None:
    """Each request has a copy of what the start left."""
    app = Living()
    async with running(app) as server:
        for _ in range(2):
            assert (await server.ask(GET)).status == 200
        await server.drained()
    assert app.events == ["startup", "request {'pool': 1}", "request {'pool': 1}", "shutdown"]


async def test_a_cancelled_server_ends_it_as_well(autojump_clock: MockClock) -> None:
    """Whoever is cancelled still wants the application's resources closed."""
    app = Living(end_takes_s=END_DEADLINE_S / 2)
    async with running(app):
        pass
    assert app.events == ["startup", "shutdown"]


async def test_an_end_that_takes_for_ever_is_cut(autojump_clock: MockClock) -> None:
    """The daemon's own stop has a deadline."""
    app = Living(end_takes_s=3_600)
    async with running(app) as server:
        assert await server.drained() == pytest.approx(END_DEADLINE_S)
    assert app.events == ["startup"]


@pytest.mark.parametrize("raises", [False, True])
async def test_an_application_may_refuse_to_begin(raises: bool) -> None:
    """As Litestar does, which raises as well. Nobody is served, and the listener is closed."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})
        if raises:
            raise ValueError("no database")

    with pytest.RaisesGroup(pytest.RaisesExc(StartupFailed, match="no database"), flatten_subgroups=True):
        async with running(app):
            pass


async def test_it_is_not_served_before_its_start_is_complete() -> None:
    """Even though the kernel lets connections in already."""
    begin = trio.Event()
    app = Living()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await begin.wait()
        await app(scope, receive, send)

    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[None]) -> None:
            async with running(slow) as server:
                task_status.started()
                assert (await server.ask(GET)).status == 200

        nursery.start_soon(nursery.start, run)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert app.events == []
        begin.set()
    assert app.events[0] == "startup"
