"""One world of a crash run: a folder, a model, a daemon over the real Codex, clients, and somebody who kills.

Each cycle: the clients work, something is killed, what was killed comes back, everything is brought to rest, and the
records are compared. All choices come from one seed. What the machine does between them does not, so a seed makes a run
like the one that failed, not the same.
"""

import os
import signal
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import msgspec
import trio
from support import crash_checker
from support.crash_clients import Approver, Client, Reader, UnansweredError, persist
from support.crash_ledger import Ledger
from support.crash_records import app_servers, process, read_codex_store, rows
from support.daemon import Daemon, Json

from termald.scripted_model.model import ScriptedModel

REST_DEADLINE_S: Final = 90.0
"""A prompt whose fate Codex does not tell is looked for again and again; all looks together take about a minute."""
LOOK_S: Final = 0.02
READ_DEADLINE_S: Final = 30.0
DESCRIPTORS_MAX: Final = 120
"""Of the daemon: its listeners, database, link, and a few clients. What leaks passes this soon."""
MEMORY_KB_MAX: Final = 200_000

CRASHES: Final = (
    "daemon",
    "daemon",
    "codex",
    "both",
    "codex while no daemon",
    "daemon twice",
    "codex while adopted",
    "asked to end",
    "asked to end",
    "freeze",
    "freeze the daemon",
)

ON_SHUTDOWN: Final = "TERMALD_CODEX_ON_SHUTDOWN"
ENVIRONMENT: Final = {
    # Dying is what this Codex is here for.
    "TERMALD_CODEX_CRASHES_MAX": "1000",
    "TERMALD_CODEX_BACKOFF_FIRST_MS": "20",
    "TERMALD_CODEX_BACKOFF_MAX_MS": "200",
    # A freeze is long enough to be told, and its end as well.
    "TERMALD_CODEX_SILENCE_MS": "200",
}


class Cycle(msgspec.Struct, kw_only=True):
    """What one cycle did and found. Times in seconds."""

    crash: str
    wrong: list[str]
    turns_open: int = 0
    """Turns that ran when the daemon alone went."""
    turns_went_on: int = 0
    adopted_after_s: float | None = None
    first_event_after_s: float | None = None
    rest_after_s: float = 0.0
    daemon_descriptors: int = 0
    daemon_memory_kb: int = 0
    codex_descriptors: int = 0
    codex_memory_kb: int = 0


class World:
    """`cycle` as often as wanted, inside `live`."""

    def __init__(self, daemon: Daemon, model: ScriptedModel, random: Random) -> None:
        self._daemon = daemon
        self._model = model
        self._random = random
        self.ledger = Ledger()
        self.readers = [Reader(daemon, random) for _ in range(3)]
        self._clients = [Client(name, daemon, self.ledger, random) for name in "abcd"]
        self._approver = Approver(daemon, self.ledger, random)
        self._most_servers: list[int] = []
        self.lost_resumes = 0
        """Sessions whose thread was given up for a fresh one, because Codex had lost it."""

    def live(self, nursery: trio.Nursery) -> None:
        """Start those who read and watch; they end with the nursery."""
        for reader in self.readers:
            nursery.start_soon(reader.live)
        nursery.start_soon(self._watch)

    async def cycle(self, crash: str) -> Cycle:
        """Work, crash in one of the ways of `CRASHES`, come back, rest, compare."""
        done = Cycle(crash=crash, wrong=[])
        running: list[tuple[str, str]] = []
        try:
            running = await self._work(done)
        except* UnansweredError as unanswered:
            done.wrong += map(str, unanswered.exceptions)
        await self._daemon.wait_ready()
        began = trio.current_time()
        if not await _until(self._stir_to_rest, REST_DEADLINE_S):
            done.wrong.append("it never came to rest")
        done.rest_after_s = trio.current_time() - began
        done.wrong += crash_checker.check(await self._evidence())
        done.wrong += await self._machine(done)
        ended = {(row["session_id"], row["id"]): row["state"] for row in self._rows("select * from turns")}
        done.turns_open = len(running)
        done.turns_went_on = sum(ended.get(turn) in ("normal", "cancelled") for turn in running)
        return done

    async def _work(self, done: Cycle) -> list[tuple[str, str]]:
        """Let everybody work until after the crash. Returns the turns that ran when the daemon alone went."""
        resting = trio.Event()
        async with trio.open_nursery() as nursery:
            for client in self._clients:
                nursery.start_soon(client.live, resting)
            nursery.start_soon(self._approver.live, resting)
            nursery.start_soon(self._release_now_and_then, resting)
            await trio.sleep(self._random.uniform(0.05, 1.2))
            running = await self._crash(done.crash, done)
            await trio.sleep(self._random.uniform(0, 0.5))
            resting.set()
        return running

    # --- the crash ---

    async def _crash(self, crash: str, done: Cycle) -> list[tuple[str, str]]:
        """Do it, and bring back what was killed. Returns the turns that ran when the daemon alone went."""
        running: list[tuple[str, str]] = []
        if crash == "codex":
            self._kill_codex()
        elif crash == "freeze":
            self._signal_codex(signal.SIGSTOP)
            await trio.sleep(self._random.uniform(0.1, 1.0))
            self._signal_codex(signal.SIGCONT)
        elif crash == "freeze the daemon":
            self._daemon.send(signal.SIGSTOP)
            await trio.sleep(self._random.uniform(0.1, 1.0))
            self._daemon.send(signal.SIGCONT)
        elif crash == "both":
            if self._random.random() < 0.5:
                self._kill_codex()
                await trio.sleep(self._random.uniform(0, 0.02))
            await self._daemon.end(signal.SIGKILL)
            self._kill_codex()
            await self._start(done)
        elif crash == "asked to end":
            leaves = self._daemon.environment.get(ON_SHUTDOWN) == "leave"
            status = await self._daemon.end(signal.SIGTERM)
            if status != 0:
                done.wrong.append(f"asked to end, the daemon ended with status {status}")
            running = self._running()
            if running and not leaves:
                done.wrong.append(f"turns without an end after an orderly one: {running}")
            await self._start(done)
        else:
            await self._daemon.end(signal.SIGKILL)
            running = self._running()
            await trio.sleep(self._random.choice((0.0, 0.3)))
            if crash == "codex while no daemon":
                running = []
                self._kill_codex()
            elif crash == "daemon twice":
                with trio.move_on_after(self._random.uniform(0.2, 1.5)):
                    await self._daemon.start()
                await self._daemon.end(signal.SIGKILL)
            await self._start(done)
            if crash == "codex while adopted":
                running = []
                await trio.sleep(self._random.uniform(0, 0.3))
                self._kill_codex()
        return running

    async def _start(self, done: Cycle) -> None:
        # What SIGTERM will mean to it; a SIGKILL asks nobody.
        self._daemon.environment[ON_SHUTDOWN] = self._random.choice(("leave", "leave", "stop"))
        reader = self.readers[0]
        reader.listen_anew()
        last, began, wall_ms = reader.last, trio.current_time(), time.time() * 1000
        await self._daemon.start()
        await self._daemon.wait_ready()
        await self._daemon.until(lambda: reader.heard_at is not None, "an event after the start")
        assert reader.heard_at is not None
        done.first_event_after_s = reader.heard_at - began
        for row in self._rows("select at_ms from events where seq > ? and kind = 'runtime/adopted'", last):
            done.adopted_after_s = (row["at_ms"] - wall_ms) / 1000

    def _running(self) -> list[tuple[str, str]]:
        found = self._rows("select session_id, id from turns where ended_at_ms is null")
        return [(row["session_id"], row["id"]) for row in found]

    def _kill_codex(self) -> None:
        self._signal_codex(signal.SIGKILL)

    def _signal_codex(self, number: signal.Signals) -> None:
        for pid in app_servers(self._daemon.home):
            os.kill(pid, number)

    # --- coming to rest ---

    async def _release_now_and_then(self, resting: trio.Event) -> None:
        while not resting.is_set():
            for held in self._model.holds:
                if self._random.random() < 0.3:
                    self._model.release(held.name)
            with trio.move_on_after(self._random.uniform(0, 0.5)):
                await resting.wait()

    async def _stir_to_rest(self) -> bool:
        """Give everybody what they wait for; whether nothing moves any more."""
        for held in self._model.holds:
            self._model.release(held.name)
        await self._approver.decide_all()
        stirring = False
        for session in self._rows("select * from sessions where killed_at_ms is null"):
            retry = f"/api/sessions/{session['id']}/retry"
            queued = self._rows("select 1 from prompts where ended_at_ms is null and session_id = ?", session["id"])
            if session["resume_lost"]:
                self.lost_resumes += 1
                await persist(self._daemon, "POST", retry, {"fresh": True})
            elif session["paused"] and queued and session["ending"] is None:
                await persist(self._daemon, "POST", retry, {})
            stirring |= session["status"] in ("running", "connecting") or bool(queued) or session["ending"] is not None
        open_prompts = "select 1 from prompts where ended_at_ms is null limit 1"
        open_requests = "select 1 from requests where closed_at_ms is null limit 1"
        return not (stirring or self._rows(open_prompts) or self._rows(open_requests))

    # --- the records ---

    async def _evidence(self) -> crash_checker.Evidence:
        await self._scan()
        replay = await self._replay()
        for reader in self.readers:
            await _until(partial(_has_read, reader, len(replay)), READ_DEADLINE_S)
        ran = self._daemon.cwd / "ran"
        return crash_checker.Evidence(
            ledger=self.ledger,
            calls=self._model.calls,
            store=read_codex_store(self._daemon.home),
            replay=replay,
            readers=self.readers,
            sessions=self._rows("select * from sessions"),
            prompts=self._rows("select * from prompts"),
            turns=self._rows("select * from turns"),
            requests=self._rows("select * from requests"),
            ignored=self._rows("select * from ignored_threads"),
            threads=await self._all("/api/threads"),
            runtime=(await self._get("/api/runtime"))["id"],
            commands_run=ran.read_text().split() if ran.exists() else (),
        )

    async def _scan(self) -> None:
        last = self._rows("select max(seq) as last from events")[0]["last"]
        await persist(self._daemon, "POST", "/api/discovery/scan", {})
        await self._daemon.wait_event(lambda event: event["kind"] == "discovery/finished", after=last, what="the scan")

    async def _replay(self) -> dict[int, bytes]:
        newcomer = Reader(self._daemon, Random(0))
        last = self._rows("select max(seq) as last from events")[0]["last"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(newcomer.live)
            await _until(partial(_has_read, newcomer, last), READ_DEADLINE_S)
            nursery.cancel_scope.cancel()
        return newcomer.seen

    async def _machine(self, done: Cycle) -> list[str]:
        wrong = [f"app-servers at one moment: {self._most_servers}"] if len(self._most_servers) > 1 else []
        assert self._daemon.process is not None
        ours = process(self._daemon.process.pid)
        theirs = process((await self._get("/api/runtime"))["pid"])
        done.daemon_descriptors, done.daemon_memory_kb = ours.descriptors, ours.memory_kb
        done.codex_descriptors, done.codex_memory_kb = theirs.descriptors, theirs.memory_kb
        if ours.descriptors > DESCRIPTORS_MAX or ours.memory_kb > MEMORY_KB_MAX:
            wrong.append(f"the daemon grows: {ours}")
        return wrong

    async def _watch(self) -> None:
        while True:
            servers = app_servers(self._daemon.home)
            if len(servers) > len(self._most_servers):
                self._most_servers = servers
            await trio.sleep(0.1)

    # --- asking ---

    def _rows(self, query: str, *values: object) -> list[Json]:
        return rows(Path(self._daemon.state), query, *values)

    async def _get(self, path: str) -> Json:
        answer = await persist(self._daemon, "GET", path)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def _all(self, path: str) -> list[Json]:
        found: list[Json] = []
        cursor = ""
        while True:
            page = await self._get(f"{path}?limit=200{cursor}")
            found += page["data"]
            if page["nextCursor"] is None:
                return found
            cursor = f"&cursor={page['nextCursor']}"


async def _has_read(reader: Reader, last: int) -> bool:
    await trio.lowlevel.checkpoint()
    return reader.last >= last


async def _until(condition: Callable[[], Awaitable[bool]], deadline_s: float) -> bool:
    """Wait for what nothing tells of; whether it came about in time."""
    with trio.move_on_after(deadline_s):
        while True:
            if await condition():
                return True
            await trio.sleep(LOOK_S)
    return False
