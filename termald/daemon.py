"""The composition root: opens the state, and runs every long-lived task in one nursery.

In start order: the timers, the writer, the outbox, the scanner, the supervisor, the API. Nothing is served before what
an earlier daemon left was settled or handed to the supervisor for adoption; commands wait until that is known. On a
planned stop the order is the reverse of what depends on what: no new turns, then Codex (ended, or left), then the
streams and connections, then the state.
"""

import importlib.metadata
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
import structlog
import trio

from discovery.lookup import Held
from state.errors import StoreStuck
from state.records import BootImage, EventRecord, Host, RuntimeId, Seq, SessionId, ThreadId
from state.store import Store, open_store
from termald import journal
from termald.api.app import build_api
from termald.api.gate import Gate
from termald.api.listeners import Listener, open_tcp_listener, open_unix_listener
from termald.api.server import ServerControl, serve
from termald.api.settings import ApiSettings
from termald.api.token import read_or_make_token
from termald.bridge import Bridge, exit_fields
from termald.client.locate import RunningDaemon
from termald.codex.identity import ProcessIdentity
from termald.codex.protocol.methods import CODEX_VERSION
from termald.codex.supervisor import Plan, Supervisor, World
from termald.core.effects import Answer
from termald.core.inputs import Booted, Command, ShuttingDown, Ticket
from termald.core.limits import Limits
from termald.core.log import rfc3339
from termald.core.state import State
from termald.daemon_file import remove_daemon_file, write_daemon_file
from termald.engine import DiscoveryView, RuntimeView
from termald.hub import Hub
from termald.listing import CodexListing
from termald.notify import STOPPING, notify
from termald.outbox import Outbox
from termald.outside import Outside
from termald.scanning import ScanService
from termald.settings import Settings
from termald.timers import Timers
from termald.upkeep import Upkeep
from termald.writer import Frame, Writer

log = structlog.get_logger()

STUCK_STATUS = 74
"""The exit status where the state's disk hangs: EX_IOERR of sysexits.h, for whoever restarts us."""

TURNS_END_S = 3.0
"""How long a planned stop waits for interrupted turns to say that they ended; an interrupt was measured to take 15
ms."""

SETTLED_S = 5.0
"""How long a planned stop waits for the last commits; one takes about a millisecond."""


class ReadyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Where the daemon can be reached. `url` and `socket` are None where it does not listen there."""

    pid: int
    url: str | None
    socket: Path | None


async def run(settings: Settings, *, ready: Callable[[ReadyInfo], None]) -> int:
    """Run the daemon until SIGTERM or SIGINT; return its exit status. `ready` is called once, when it can be used.

    Errors: `StateLocked` names the daemon that holds the state; `StoreError`, `TokenRefused`, `OSError` (an address in
    use) say what is wrong.
    """
    async with open_store(settings.state.dir) as store:
        # After the store: by default it is in the state's folder, which would be made on the way, and for all to see.
        make_private(settings.runtime.dir)
        daemon = Daemon(settings, store, await store.boot())
        try:
            await daemon.run(ready)
        except* StoreStuck as stuck:
            # A write hangs in the kernel, with its outcome unknown. Its thread cannot be joined, so an orderly end
            # would hang as well; the next start reads the truth, and adopts the Codex that goes on meanwhile.
            log.critical("a write hangs; ending at once", reason=str(stuck.exceptions[0]))
            os._exit(STUCK_STATUS)
    return 0


def make_private(folder: Path) -> None:
    """Make a folder that is the user's alone; one that exists is tightened."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


class Daemon:
    """Everything that lives as long as the daemon does; what the API sees of it is `engine.Engine`."""

    def __init__(self, settings: Settings, store: Store, image: BootImage, outside: Outside | None = None) -> None:
        self._settings = settings
        self._outside = outside = outside or Outside()
        self._store = store
        self._record = image.runtime
        self._accepting = trio.Event()
        self._stopping = trio.Event()
        self._hub = Hub(store, last=Seq(image.next_seq - 1))
        self._writer = Writer(
            State.boot(image, core_limits(settings)),
            store,
            publish=self._publish,
            send=self._send,
            restart=self._restart,
            new_session_id=lambda: SessionId(outside.new_id()),
            timers=lambda fire: Timers(fire, outside.now_ms, outside.random),
            now_ms=outside.now_ms,
        )
        self._bridge = Bridge(self._writer, store, outside.now_ms, image.runtime, self._accepting.set)
        plan = Plan(
            find=partial(outside.find_codex, settings.codex.bin, os.environ.get("PATH", "")),
            transport=settings.codex.transport,
            codex_home=settings.codex.home,
            runtime_folder=settings.runtime.dir,
            config=() if settings.codex.shell_snapshot else ("features.shell_snapshot=false",),
            client_version=importlib.metadata.version("termald"),
        )
        world = World(
            random=outside.random,
            now_ms=outside.now_ms,
            new_runtime_id=lambda: RuntimeId(outside.new_id()),
            machine=outside.machine,
        )
        self._supervisor = Supervisor(plan, settings.codex, self._bridge, world)
        self._outbox = Outbox(self._supervisor, self._writer.put, outside.now_ms, outside.is_folder)
        self._scanner = ScanService(
            (settings.codex.home, *settings.discovery.homes),
            store,
            self._writer,
            outside.now_ms,
            page_threads=settings.discovery.page_threads,
            watch_s=settings.discovery.watch_ms / 1000,
            sqlite_home=sqlite_home(),
            listing=CodexListing(self._writer),
            scan=outside.scan,
            look=outside.look_at_marks,
        )

    def _publish(self, events: Sequence[EventRecord]) -> None:
        self._hub.publish(events)
        journal.write(events)

    # The writer is made before these two, for both put into its inbox.
    def _send(self, frame: Frame) -> None:
        self._outbox.send(frame)

    def _restart(self) -> None:
        self._supervisor.restart()

    # --- the engine: what the API sees ---

    @property
    def host(self) -> Host:
        """Who we are."""
        return self._store.host

    @property
    def store(self) -> Store:
        """Committed rows."""
        return self._store

    @property
    def hub(self) -> Hub:
        """Live events."""
        return self._hub

    @property
    def runtime(self) -> RuntimeView:
        """The process, in the API's words."""
        status = self._supervisor.status
        return RuntimeView(
            status=status.state,
            id=status.runtime_id,
            pid=status.pid,
            started_at_ms=status.started_at_ms,
            transport=status.transport or self._settings.codex.transport,
            adopted=status.adopted,
            codex_version=status.codex_version,
            codex_home=str(self._settings.codex.home),
            restarts=status.restarts,
            last_exit_json=None
            if status.last_exit is None
            else msgspec.json.encode(exit_fields(status.last_exit)).decode(),
            reason=status.reason,
        )

    @property
    def discovery(self) -> DiscoveryView:
        """The scanner."""
        return self._scanner.view

    @property
    def accepting(self) -> trio.Event:
        """Set once what was live before the start is settled or adopted."""
        return self._accepting

    async def ask(self, command: Callable[[Ticket, int], Command]) -> Answer:
        """Put a command into the inbox and return its answer."""
        return await self._writer.ask(command)

    async def is_folder(self, path: Path) -> bool:
        """Look at the file system."""
        return await self._outside.is_folder(path)

    async def file_bytes(self, path: Path) -> int | None:
        """Look at the file system."""
        return await self._outside.file_bytes(path)

    def scan_now(self) -> None:
        """Wake the scanner."""
        self._scanner.scan_now()

    async def look_up(self, threads: Collection[ThreadId]) -> Mapping[ThreadId, Held]:
        """Tell what Codex's files hold of these threads."""
        return await self._scanner.look_up(threads)

    async def writers_elsewhere(self) -> Mapping[ThreadId, int]:
        """Tell which threads another process than our Codex writes."""
        ours = self._supervisor.status.pid
        return {thread: pid for thread, pid in (await self._scanner.writers()).items() if pid != ours}

    async def dry_scan(self) -> str:
        """Tell what a scan would do."""
        return await self._scanner.dry_run()

    # --- its life ---

    async def run(self, ready: Callable[[ReadyInfo], None]) -> None:
        """Run until a signal asks for the end."""
        listeners = await self._listen()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_signals)
            await self.begin(nursery)
            control = ServerControl()
            served = trio.Event()
            await nursery.start(self._serve, listeners, control, served)
            if self._settings.discovery.enabled:
                self.scan_now()
                nursery.start_soon(self._scanner.watch)
            nursery.start_soon(self._upkeep().run)
            info = self._announce(listeners)
            ready(info)
            await self._stopping.wait()
            await self.finish()
            control.begin_drain()
            await served.wait()
            nursery.cancel_scope.cancel()
        remove_daemon_file(self._settings.runtime.dir, os.getpid())

    def _upkeep(self) -> Upkeep:
        limits = self._settings.state
        return Upkeep(
            self._store,
            lambda: self._hub.last,
            self._outside.now_ms,
            events_max=limits.events_max,
            fold_after_ms=limits.fold_after_ms,
        )

    async def begin(self, nursery: trio.Nursery) -> None:
        """Start everything behind the doors; return when what an earlier daemon left is settled, or up for adoption."""
        nursery.start_soon(self._writer.timers.run)
        nursery.start_soon(self._writer.run)
        nursery.start_soon(self._outbox.run)
        await self._settle_what_was()
        nursery.start_soon(self._scanner.run)
        nursery.start_soon(self._supervisor.run, self._record)

    async def _settle_what_was(self) -> None:
        """Settle every session whose process is gone, in one synced commit, before anybody is served (I7, I10)."""
        record = self._record
        alive = record is not None and self._outside.machine.is_alive(ProcessIdentity(record.pid, record.start_time))
        runtime = record.runtime_id if record is not None and alive else None
        self._writer.put(Booted(at_ms=self._outside.now_ms(), alive=runtime))
        await self._writer.settled()
        # A process that lives is the supervisor's to adopt or to end; commands wait until one of the two has happened.
        if not alive:
            self._accepting.set()

    async def _listen(self) -> list[Listener]:
        server = self._settings.server
        listeners = []
        if server.listen is not None:
            listeners.append(await open_tcp_listener(server.listen.host, server.listen.port))
        if server.unix_socket is not None:
            listeners.append(open_unix_listener(server.unix_socket))
        return listeners

    async def _serve(
        self,
        listeners: list[Listener],
        control: ServerControl,
        served: trio.Event,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        server = self._settings.server
        token = read_or_make_token(self._settings.state.dir)
        api = build_api(
            self,
            ApiSettings(
                token=token,
                protocol_schema=CODEX_VERSION,
                heartbeat_s=server.heartbeat_ms / 1000,
                streams_max=server.streams_max,
            ),
        )
        gate = Gate(hosts=frozenset(server.hosts), origins=frozenset(server.origins))
        await serve(api, listeners, gate=gate, limits=server, control=control, task_status=task_status)
        served.set()

    def _announce(self, listeners: list[Listener]) -> ReadyInfo:
        url = next((listener.url for listener in listeners if listener.path is None), None)
        socket = next((listener.path for listener in listeners if listener.path is not None), None)
        self._store.announce(url or str(socket))
        write_daemon_file(
            self._settings.runtime.dir,
            RunningDaemon(
                pid=os.getpid(),
                url=url,
                socket=None if socket is None else str(socket),
                started_at=rfc3339(self._outside.now_ms()),
            ),
        )
        log.info("ready", url=url, socket=None if socket is None else str(socket), host=self.host.id)
        return ReadyInfo(pid=os.getpid(), url=url, socket=socket)

    async def _watch_signals(self) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                log.info("stopping", signal=signal.Signals(number).name)
                notify(STOPPING)
                self._stopping.set()

    async def finish(self) -> None:
        """End what is behind the doors, first what depends on others. Each step is bounded; a second signal changes
        nothing about that."""
        leave = self._settings.codex.on_shutdown == "leave" and self._settings.codex.transport == "unix"
        self._writer.put(ShuttingDown(at_ms=self._outside.now_ms(), interrupt=not leave))
        await self._writer.settled()
        if not leave:
            await self._wait_for_turns()
        await self._supervisor.stop(leave=leave)
        await self._settled()
        self._writer.close("the daemon is stopping")
        self._hub.close()

    async def _settled(self) -> None:
        # A disk that takes nothing must not keep the daemon: what is not committed was not promised, and is settled at
        # the next start.
        with trio.move_on_after(SETTLED_S):
            await self._writer.settled()

    async def _wait_for_turns(self) -> None:
        def running() -> bool:
            return any(session.turn is not None for session in self._writer.state.sessions.values())

        with trio.move_on_after(TURNS_END_S), self._hub.subscribe(kinds=frozenset({"turn/done"})) as ends:
            while running():
                await ends.next_batch()


def sqlite_home() -> Path | None:
    """Return the folder that the environment gives to our Codex for its state DB; Codex inherits the variable."""
    named = os.environ.get("CODEX_SQLITE_HOME", "")
    return Path(named).expanduser() if named else None


def core_limits(settings: Settings) -> Limits:
    """Return the core's limits as the settings have them."""
    codex, sessions = settings.codex, settings.sessions
    return Limits(
        setups_max=codex.setups_max,
        calls_max=codex.calls_max,
        open_ms=codex.open_deadline_ms,
        turn_ms=codex.turn_deadline_ms,
        read_ms=codex.read_deadline_ms,
        idle_ms=codex.idle_ms,
        attached_max=codex.attached_max,
        queue_prompts_max=sessions.queue_prompts_max,
        request_ms=sessions.request_deadline_ms,
    )
