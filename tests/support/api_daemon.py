"""A daemon without a Codex: the real store, core, writer and hub behind the real API and the real shell.

Commands are decided as in production. What Codex would say is put into the inbox by the test (`hears`), and an answer
that is hard to bring about is dictated (`refuse`).
"""

import random
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import trio
from support.asgi_apps import Running, running, running_on_unix

from discovery.homes import HomeUnreadable
from discovery.lookup import Held
from state.records import Host, LinkId, RuntimeId, Seq, SessionId, ThreadId, TurnId
from state.store import Store, open_store
from termald.api.app import build_api
from termald.api.settings import ApiSettings
from termald.core.effects import Answer, Effect, OpenFresh, Refused, Send, StartTurn
from termald.core.inputs import (
    Command,
    Input,
    LinkUp,
    RequestArrived,
    ThreadOpened,
    Ticket,
    TurnAccepted,
    TurnStarted,
    UnignoreThread,
)
from termald.core.refusals import problem
from termald.core.state import State
from termald.engine import DiscoveryView, RuntimeView
from termald.hub import Hub
from termald.limits import ServerLimits
from termald.outbox import file_bytes, is_folder
from termald.timers import Timers
from termald.writer import Writer, wall_ms

TOKEN: Final = "t" * 43
BEARER: Final = {"Authorization": f"Bearer {TOKEN}"}
LINK: Final = LinkId(runtime_id=RuntimeId("r1"), connection=1)


class Daemon:
    """The engine that the API is given."""

    def __init__(self, store: Store, hub: Hub, state: State) -> None:
        self._store = store
        self._hub = hub
        self.frames: list[Effect] = []
        self.asked: list[Command] = []
        self.scans = 0
        self.dry_scans = 0
        self.writers: dict[ThreadId, int] = {}
        self.held: dict[ThreadId, Held] = {}
        self.unreadable: HomeUnreadable | None = None
        self.restarts = 0
        self.accepting = trio.Event()
        self.accepting.set()
        self.runtime = RuntimeView(status="ready", id=LINK.runtime_id, pid=4_242, started_at_ms=1_000)
        self.discovery = DiscoveryView(status="idle")
        self.hangs = False
        self._dictated: list[Answer] = []
        self.writer = Writer(
            state,
            store,
            publish=hub.publish,
            send=self.frames.append,
            restart=self._restart,
            new_session_id=lambda: SessionId("found"),
            timers=lambda fire: Timers(fire, wall_ms, random.Random(0)),
        )

    @property
    def host(self) -> Host:
        return self._store.host

    @property
    def store(self) -> Store:
        return self._store

    @property
    def hub(self) -> Hub:
        return self._hub

    async def ask(self, command: Callable[[Ticket, int], Command]) -> Answer:
        self.asked.append(command(Ticket(0), 0))
        if self.hangs:
            await trio.sleep_forever()
        if self._dictated:
            await trio.lowlevel.checkpoint()
            return self._dictated.pop(0)
        return await self.writer.ask(command)

    async def is_folder(self, path: Path) -> bool:
        return await is_folder(path)

    async def file_bytes(self, path: Path) -> int | None:
        return await file_bytes(path)

    def scan_now(self) -> None:
        self.scans += 1

    async def look_up(self, threads: Collection[ThreadId]) -> Mapping[ThreadId, Held]:
        await trio.lowlevel.checkpoint()
        if self.unreadable is not None:
            raise self.unreadable
        nothing = Held(stored=False, messages=0, reason="neither a row nor a rollout of it")
        return {thread: self.held.get(thread, nothing) for thread in threads}

    async def writers_elsewhere(self) -> Mapping[ThreadId, int]:
        await trio.lowlevel.checkpoint()
        return self.writers

    async def dry_scan(self) -> str:
        await trio.lowlevel.checkpoint()
        self.dry_scans += 1
        return '[{"home": "/h", "wouldBe": {"import": 2}}]'

    def _restart(self) -> None:
        self.restarts += 1

    # --- what a test does to it ---

    def dictate(self, answer: Answer) -> None:
        """Answer the next command with this, whatever it asks."""
        self._dictated.append(answer)

    def refuse(self, slug: str, **codex: Any) -> None:
        """Refuse the next command."""
        self.dictate(Refused(problem=problem(slug, f"refused as {slug}", **codex)))

    async def hears(self, *happened: Input) -> None:
        """Let the process or Codex say something; return once that is committed and published."""
        for each in happened:
            self.writer.put(each)
        # The inbox is in order: what is answered was taken after what was put before it.
        marker = ThreadId("not-ignored")
        await self.writer.ask(lambda ticket, at_ms: UnignoreThread(ticket=ticket, at_ms=at_ms, thread=marker))

    async def link_up(self) -> None:
        """Connect to a Codex that says only what the test lets it say."""
        await self.hears(LinkUp(at_ms=wall_ms(), link=LINK, adopted=False))

    async def open_thread(self, thread: str) -> None:
        """Let the thread that was asked for last be opened."""
        call = next(
            frame for frame in reversed(self.frames) if isinstance(frame, Send) and isinstance(frame.op, OpenFresh)
        )
        await self.hears(
            ThreadOpened(at_ms=wall_ms(), link=LINK, call=call.call, thread=ThreadId(thread), status="idle")
        )

    async def start_turn(self, thread: str, turn: str) -> None:
        """Let the turn that was asked for last begin."""
        call = next(
            frame for frame in reversed(self.frames) if isinstance(frame, Send) and isinstance(frame.op, StartTurn)
        )
        at_ms, turn_id = wall_ms(), TurnId(turn)
        await self.hears(
            TurnAccepted(at_ms=at_ms, link=LINK, call=call.call, turn=turn_id),
            TurnStarted(at_ms=at_ms, link=LINK, thread=ThreadId(thread), turn=turn_id),
        )

    async def open_request(self, thread: str, turn: str, **fields: Any) -> None:
        """Let Codex ask something in a turn."""
        given = {
            "rpc_id_json": "7",
            "method": "item/commandExecution/requestApproval",
            "kind": "command",
            "item": None,
            "params_json": '{"command": ["ls"],  "note": "as sent"}',
            "decisions": ('"accept"', '"decline"', '{"acceptWith": {"rule": "ls"}}'),
            **fields,
        }
        await self.hears(
            RequestArrived(at_ms=wall_ms(), link=LINK, thread=ThreadId(thread), turn=TurnId(turn), **given)
        )


@asynccontextmanager
async def daemon_in(folder: Path) -> AsyncIterator[Daemon]:
    """Run a daemon whose state lies in `folder`."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(folder))
        image = await store.boot()
        hub = Hub(store, last=Seq(image.next_seq - 1))
        daemon = Daemon(store, hub, State.boot(image))
        nursery = await stack.enter_async_context(trio.open_nursery())
        nursery.start_soon(daemon.writer.run)
        stack.callback(nursery.cancel_scope.cancel)
        yield daemon


class Served:
    """A daemon with its API behind the shell, and clients to it."""

    def __init__(self, daemon: Daemon, server: Running) -> None:
        self.daemon = daemon
        self.server = server

    def client(self, **headers: str) -> httpx.AsyncClient:
        """Return a client that shows the token, or what it is given instead."""
        return self._client(headers or BEARER)

    def stranger(self) -> httpx.AsyncClient:
        """Return a client that shows nothing."""
        return self._client({})

    def _client(self, headers: dict[str, str]) -> httpx.AsyncClient:
        path = self.server.listener.path
        transport = httpx.AsyncHTTPTransport(uds=None if path is None else str(path))
        base = "http://localhost" if path is not None else f"http://127.0.0.1:{self.server.port}"
        return httpx.AsyncClient(transport=transport, base_url=base, headers=headers, timeout=10, trust_env=False)


@asynccontextmanager
async def served(
    folder: Path, *, unix: bool = False, limits: ServerLimits | None = None, **settings: Any
) -> AsyncIterator[Served]:
    """Serve a daemon on TCP, or on a Unix socket."""
    state = folder / "state"
    async with daemon_in(state) as daemon:
        app = build_api(daemon, ApiSettings(token=TOKEN, protocol_schema="0.171.0", **settings))
        serving = running_on_unix(app, folder, limits=limits) if unix else running(app, limits=limits)
        async with serving as server:
            yield Served(daemon, server)
