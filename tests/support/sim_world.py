"""The whole daemon in one trio run, with a Codex, a disk and a machine that outlive it: started, asked, killed, started
again.

Everything between the doors is production code: writer, timers, outbox, bridge, supervisor, scanner, hub. Said from
outside are the clock, chance, ids, the machine, the file system and the rows.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, Literal, cast

import msgspec
import structlog.testing
import trio
from support.scripted_codex import ScriptedCodex
from support.scripted_codex_faults import Faults
from support.scripted_codex_home import CodexHome, ThreadRow
from support.settings import resolve_from
from support.sim_machine import SimMachine
from support.sim_store import DaemonDied, Rows, SimStore, Troubles

from discovery.homes import Marks
from discovery.scanner import Emit, KnownStamps, ScanReport
from state.records import BootImage, Host, KnownThread, PromptId, SessionId, ThreadId
from state.store import Store
from termald.codex.binary import CodexBinary
from termald.core import inputs as ins
from termald.core.effects import Answer
from termald.daemon import Daemon
from termald.outside import Outside
from termald.settings import Settings

EPOCH_MS = 1_800_000_000_000
HOME = "/codex-home"
Json = dict[str, Any]


class DaemonGone(Exception):  # noqa: N818 - it is what a client sees, not a failure of the simulation
    """There is no daemon, or there is none any more."""


class World:
    """One machine, one Codex home, one state folder; and a daemon over them, most of the time."""

    def __init__(self, nursery: trio.Nursery, seed: str, *, transport: Literal["unix", "stdio"] = "unix") -> None:
        self.nursery = nursery
        self.dice = Random(seed)
        self.faults = Faults()
        self.home = CodexHome(HOME, seed)
        self.machine = SimMachine(nursery, self.home, self.faults, self.now_ms)
        self.rows = Rows(Host(id="host", epoch=0))
        self.troubles = Troubles()
        self.missing_folders: set[str] = set()
        self.settings = _settings(transport)
        self.daemon: Daemon | None = None
        self.store: SimStore | None = None
        self.boots = 0
        self._ids = 0
        self._life = trio.CancelScope()
        self._over = trio.Event()

    # --- what is said from outside ---

    def now_ms(self) -> int:
        """Unix milliseconds, on trio's clock."""
        return EPOCH_MS + round(trio.current_time() * 1000)

    def new_id(self) -> str:
        """Return an id that nobody has used."""
        self._ids += 1
        return f"id-{self._ids}"

    async def dawdle(self, door: str) -> None:
        """Give way at one of the daemon's doors, as often as this world likes."""

    async def _find_codex(self, setting: str | None, env_path: str) -> CodexBinary:
        await trio.lowlevel.checkpoint()
        await self.dawdle("find_codex")
        return CodexBinary(path=Path("/bin/codex"), version="0.171.0", origin="setting")

    async def _is_folder(self, path: Path) -> bool:
        await trio.lowlevel.checkpoint()
        await self.dawdle("is_folder")
        return str(path) not in self.missing_folders

    async def _scan(
        self, home: Path, *, emit: Emit, known_stamps: KnownStamps, page_size: int, sqlite_home: Path | None = None
    ) -> ScanReport:
        """Tell of what the home has stored, a page at a time, as the state DB would."""
        told = 0
        stored = [row for row in self.home.threads.values() if row.stored and not row.deleted]
        for start in range(0, len(stored), page_size):
            page = tuple(_known(row, home) for row in stored[start : start + page_size])
            await trio.sleep(0.01)
            await self.dawdle("scan")
            stamps = await known_stamps([thread.thread_id for thread in page])
            changed = tuple(thread for thread in page if stamps.get(thread.thread_id) != thread.stamp)
            if changed:
                await emit(changed)
                told += len(changed)
        return ScanReport(home=str(home), told=told)

    async def _look_at_marks(self, home: Path, sqlite_home: Path | None) -> Marks:
        await trio.lowlevel.checkpoint()
        stored = sum(len(row.turns) for row in self.home.threads.values() if row.stored)
        return frozenset({("state_5.sqlite", stored, 0)})

    # --- the daemon's lives ---

    @property
    def codex(self) -> ScriptedCodex:
        """The newest app-server."""
        return self.machine.codex

    def make_store(self, image: BootImage) -> SimStore:
        """Make what a daemon that begins with `image` holds of the rows."""
        return SimStore(self.rows, self.troubles, self.dawdle)

    def made(self, daemon: Daemon) -> None:
        """Do what is to be done with a new daemon before it begins."""

    async def boot(self) -> Daemon:
        """Start a daemon over what is there; return it once commands may be asked of it."""
        assert self.daemon is None
        self.boots += 1
        image = self.rows.boot()
        self.store = store = self.make_store(image)
        self.machine.daemon_is_dead = lambda: store.is_dead
        outside = Outside(
            now_ms=self.now_ms,
            random=self.dice,
            new_id=self.new_id,
            machine=self.machine,
            find_codex=self._find_codex,
            is_folder=self._is_folder,
            scan=self._scan,
            look_at_marks=self._look_at_marks,
        )
        # The API alone asks a store for more than this one has.
        daemon = Daemon(self.settings, cast("Store", store), image, outside)
        self.made(daemon)
        self._life, self._over = trio.CancelScope(), trio.Event()
        began = trio.Event()
        self.daemon = daemon
        self.nursery.start_soon(self._live, daemon, began)
        async with trio.open_nursery() as race:
            race.start_soon(_first, began, race.cancel_scope)
            race.start_soon(self.until_over, race.cancel_scope)
        return daemon

    async def _live(self, daemon: Daemon, began: trio.Event) -> None:
        try:
            with self._life:
                async with trio.open_nursery() as nursery:
                    await daemon.begin(nursery)
                    began.set()
                    await trio.sleep_forever()
        except* DaemonDied:
            pass
        finally:
            self.daemon = None
            self.machine.daemon_is_gone()
            self._over.set()

    async def crash(self) -> None:
        """Kill the daemon, wherever it stands. Codex lives on, if it listens on its socket."""
        self.kill()
        await self._over.wait()

    def kill(self) -> None:
        """As `crash`, without waiting for the end."""
        if self.store is not None:
            self.store.is_dead = True
        self._life.cancel()

    async def revive(self) -> None:
        """See to it that a daemon is there, and not about to die."""
        while self.daemon is None or self._life.cancel_called:
            if self.daemon is not None:
                await self._over.wait()
            else:
                await self.boot()

    async def stop(self) -> None:
        """Stop it as a service manager would."""
        assert self.daemon is not None
        await self.daemon.finish()
        self._life.cancel()
        await self._over.wait()

    async def until_over(self, scope: trio.CancelScope) -> None:
        """Cancel `scope` when this daemon's life ends."""
        await self._over.wait()
        scope.cancel()

    # --- what people ask ---

    def id_of(self, prompt: str) -> PromptId:
        """Return the id of a prompt that somebody asked for under this name."""
        return PromptId(prompt)

    async def ask(self, make: Callable[[ins.Ticket, int], ins.Command]) -> Answer:
        """Ask, and return the answer.

        Errors: `DaemonGone` where no daemon is there, or it dies before it answers: then nobody knows what was done.
        """
        if self.daemon is None:
            raise DaemonGone
        answers: list[Answer] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.until_over, nursery.cancel_scope)
            answers.append(await self.daemon.ask(make))
            nursery.cancel_scope.cancel()
        if not answers:
            raise DaemonGone
        return answers[0]

    async def create(
        self, session: str, *, cwd: str | None = None, prompt: str | None = None, **settings: Any
    ) -> Answer:
        """Create a session, which works in a folder of its own."""
        first = None if prompt is None else self.new_prompt(prompt)
        return await self.ask(
            lambda ticket, at_ms: ins.CreateSession(
                ticket=ticket,
                at_ms=at_ms,
                session=SessionId(session),
                settings=ins.SessionSettings(cwd=cwd or f"/{session}", **settings),
                prompt=first,
                idempotency=ins.Idempotency(key=f"create {session}", fingerprint=session),
            )
        )

    def new_prompt(self, text: str, *, id_: str | None = None, mode: Any = "queue") -> ins.NewPrompt:
        """Return a prompt to be accepted."""
        parts = [{"type": "text", "text": text}]
        encoded = msgspec.json.encode(parts).decode()
        return ins.NewPrompt(id=PromptId(id_ or self.new_id()), input_json=encoded, mode=mode)

    async def prompt(self, session: str, text: str, *, id_: str | None = None, mode: Any = "queue") -> Answer:
        """Prompt a session. With `id_` it may be asked again, and is done once."""
        new = self.new_prompt(text, id_=id_, mode=mode)
        return await self.ask(
            lambda ticket, at_ms: ins.SubmitPrompt(
                ticket=ticket,
                at_ms=at_ms,
                session=SessionId(session),
                prompt=new,
                idempotency=ins.Idempotency(key=f"prompt {new.id}", fingerprint=text),
            )
        )

    async def command(self, kind: type[ins.Command], session: str, **fields: Any) -> Answer:
        """Ask any command about a session."""
        return await self.ask(lambda ticket, at_ms: kind(ticket=ticket, at_ms=at_ms, session=session, **fields))  # type: ignore[call-arg]  # each kind names a session

    # --- waiting ---

    async def until(
        self, condition: Callable[[], bool], what: str, *, within_s: float = 600.0, look_s: float = 0.05
    ) -> None:
        """Return once the condition holds; looked at whenever the clock has moved on a little.

        Errors: AssertionError naming `what`, after so many seconds of the simulation's time.
        """
        deadline = trio.current_time() + within_s
        while not condition():
            if trio.current_time() >= deadline:
                raise AssertionError(f"waited {within_s} s for {what}")
            await trio.sleep(look_s)

    def kinds(self, session: str) -> list[str]:
        """Return the kinds of a session's events."""
        return [event.kind for event in self.rows.events if event.session_id == session]

    def events(self, *kinds: str, session: str | None = None) -> list[Json]:
        """Return the events of these kinds, or all."""
        found = (event for event in self.rows.events if session is None or event.session_id == session)
        return [msgspec.json.decode(event.data_json) for event in found if not kinds or event.kind in kinds]


def _settings(transport: str) -> Settings:
    return resolve_from(
        environment={"CODEX_HOME": HOME, "TERMALD_CODEX_TRANSPORT": transport}, runtime_dir=Path("/run/sim")
    ).settings


def _known(row: ThreadRow, home: Path) -> KnownThread:
    return KnownThread(
        thread_id=ThreadId(row.id),
        home=str(home),
        cls="discovered",
        reason="",
        preview=row.preview,
        title=row.name,
        cwd=row.cwd,
        tag=row.tag or "",
        rollout_path=f"/sessions/{row.id}",
        archived=row.archived,
        message_count=sum(len(turn.items) for turn in row.turns),
        created_at_ms=row.at_s * 1000,
        updated_at_ms=row.at_s * 1000,
        stamp=f"{len(row.turns)}/{sum(len(turn.items) for turn in row.turns)}/{row.name}/{row.archived}",
    )


async def _first(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


@asynccontextmanager
async def open_world(
    seed: str = "0", *, kind: type[World] = World, boot: bool = True, **options: Any
) -> AsyncIterator[World]:
    """Open a world, with a daemon in it; everybody in it is gone when the block ends, and nobody had a fault."""
    with structlog.testing.capture_logs() as logs:
        async with trio.open_nursery() as nursery:
            world = kind(nursery, seed, **options)
            if boot:
                await world.boot()
            yield world
            if world.daemon is not None:
                await world.crash()
            nursery.cancel_scope.cancel()
    faults = [entry for entry in logs if entry["event"] == "input set aside"]
    assert not faults, f"the daemon failed on an input: {faults[0]}"
