"""Keeps one app-server alive for as long as the daemon lives: found, adopted or started, restarted, and ended.

Statuses: `stopped` → `starting` → `ready` → (`backoff` → `starting`)* or `broken` → …, and `stopping` → `stopped`.
One task, `run`, moves between them; everybody else only asks. What competes for a process's end (its own death, a
restart, a stop) is settled in `Runtime`: the first cause stands, and there is one exit. No process is started before
the one before is gone, and none that a record or a command line names is overlooked, so there is never a second one
(RUNTIME-12, BOOT-10).

The breaker: a process that dies young several times in a row is not started again until somebody asks or a long time
has passed. Nothing is failed for it; whoever waits for a process goes on waiting.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

import msgspec
import trio

from state.records import LinkId, RuntimeId, RuntimeRecord
from termald.codex.binary import CodexBinary
from termald.codex.errors import CodexFault, CodexUnusable
from termald.codex.handshake import ServerInfo
from termald.codex.hooks import ExitCause, RuntimeExit, RuntimeHooks, RuntimeStatus
from termald.codex.identity import ProcessIdentity
from termald.codex.machine import Machine, RealMachine, RunningProcess
from termald.codex.process import ExitReport, Launch, Transport
from termald.codex.runtime import Runtime, Terms
from termald.codex.stderr import StderrFile
from termald.limits import CodexLimits

SOCKET_NAME: Final = "codex.sock"
STDERR_NAME: Final = "codex.stderr"

# What is wrong with a binary may have been put right in the meantime; one try does no harm.
_BROKEN_PAUSE_S: Final = 600.0
# A binary that is being replaced, or a machine without descriptors or memory, is well again in a moment; one that is
# too old is not. So the looks begin close together, and end up that far apart.
_FAULT_PAUSE_FIRST_S: Final = 1.0
# After TERM has had its time, how long a family may take to vanish under KILL.
_KILL_S: Final = 5.0
_KEEPS_DYING: Final = "codex-keeps-dying"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, and where. `find` is asked at every start: the binary may have been replaced meanwhile."""

    find: Callable[[], Awaitable[CodexBinary]]
    transport: Transport
    codex_home: Path
    runtime_folder: Path
    """Private to the user (0700): the socket and the process's standard error are in it."""
    config: tuple[str, ...] = ()
    client_version: str = ""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What comes from outside, so that a test can say it instead."""

    random: Random
    now_ms: Callable[[], int]
    new_runtime_id: Callable[[], RuntimeId]
    machine: Machine = RealMachine()


class Supervisor:
    """`run` is the service. The rest asks it for something, and of that only `stop` waits."""

    def __init__(self, plan: Plan, limits: CodexLimits, hooks: RuntimeHooks, world: World) -> None:
        self._plan = plan
        self._limits = limits
        self._hooks = hooks
        self._world = world
        self._socket = plan.runtime_folder / SOCKET_NAME
        self._stderr_log = plan.runtime_folder / STDERR_NAME
        self._terms = Terms(
            client_version=plan.client_version,
            start_deadline_s=limits.start_deadline_ms / 1000,
            term_s=limits.stop_deadline_ms / 1000,
            kill_s=_KILL_S,
            silence_s=limits.silence_ms / 1000,
            silence_max_s=limits.silence_max_ms / 1000,
            machine=world.machine,
        )
        self._status = RuntimeStatus(state="stopped", codex_home=str(plan.codex_home))
        self._runtime: Runtime | None = None
        self._starts = 0
        self._crashes = 0
        self._faults = 0
        self._rest: _Rest | None = None
        self._hurry = trio.Event()
        self._stopping = False
        self._leave = False
        self._finished = trio.Event()

    @property
    def status(self) -> RuntimeStatus:
        """What there is to say about the process now."""
        return self._status

    def send(self, link: LinkId, frame: bytes) -> bool:
        """Queue a frame; frames of one link leave in this order. False: `link` is not the current one, and never will
        be.

        Errors: `message-too-large`, and nothing was queued.
        """
        return self._runtime is not None and self._runtime.send(link, frame)

    def restart(self) -> None:
        """Have the process ended and another started; in a pause, have it started now.

        Asked again before that one is ready, it is the same restart (RUNTIME-12).
        """
        if self._stopping:
            return
        if self._runtime is None:
            self.retry()
        elif self._runtime.adopted or self._runtime.ready_at is not None:
            self._say(state="stopping", reason="a restart was asked for")
            self._runtime.end("restart", "a restart was asked for")

    def retry(self) -> None:
        """End a pause, or a `broken`, now; nothing where there is neither. What was counted is forgotten."""
        if self._status.state in {"backoff", "broken"}:
            self._crashes = self._faults = 0
            self._hurry.set()

    async def stop(self, *, leave: bool) -> None:
        """Have `run` return, and wait for it. `leave`: a process on a socket goes on, for the next daemon to adopt.

        For a supervisor whose `run` runs. Bounded: a process that the system does not let go of is left, and is in the
        record still.
        """
        self._stopping = True
        self._leave = leave
        self._hurry.set()
        self._let_end()
        with trio.move_on_after(self._terms.term_s + 2 * self._terms.kill_s):
            await self._finished.wait()
        if self._runtime is not None:
            self._runtime.leave()
        await self._finished.wait()

    async def run(self, record: RuntimeRecord | None) -> None:
        """Supervise until `stop`. `record`: the process that an earlier daemon has not seen end.

        Errors: what `persist` raises. Cut: a process on pipes is ended, one on a socket is left.
        """
        try:
            runtime = await self._take_over(record) if record is not None else None
            while runtime is not None or not self._stopping:
                if runtime is None:
                    runtime = await self._start()
                if runtime is not None:
                    await self._live(runtime)
                    runtime = None
        finally:
            self._say(state="stopped", pid=None)
            self._finished.set()

    # --- one process after the other ---

    async def _live(self, runtime: Runtime) -> None:
        self._runtime = runtime
        if self._stopping:
            self._let_end()
        try:
            exit_ = await runtime.run(partial(self._ready, runtime), self._lost, self._silent)
        finally:
            self._runtime = None
        if exit_ is not None:
            self._count(runtime, exit_)
            self._exited(exit_)

    def _ready(self, runtime: Runtime, info: ServerInfo) -> None:
        self._say(
            state="stopping" if self._stopping else "ready",
            codex_version=info.version or runtime.record.codex_version,
            slug=None,
            reason=None,
        )

    def _lost(self, reason: str) -> None:
        if not self._stopping:
            self._say(state="starting", reason=f"reconnecting: {reason}")

    def _silent(self, reason: str) -> None:
        if not self._stopping:
            self._say(state="starting", reason=reason)

    def _let_end(self) -> None:
        runtime = self._runtime
        if runtime is None:
            return
        self._say(state="stopping", reason=None)
        if self._leave and runtime.record.transport == "unix":
            runtime.leave()
        else:
            runtime.end("stop", "the daemon stops")

    def _exited(self, exit_: RuntimeExit) -> None:
        self._say(pid=None, last_exit=exit_)
        self._hooks.on_exit(exit_)

    def _count(self, runtime: Runtime, exit_: RuntimeExit) -> None:
        """Decide on the pause before the next start: none where the end was asked for."""
        if exit_.cause in {"restart", "stop"}:
            self._crashes, self._rest = 0, None
            return
        lived_s = 0.0 if runtime.ready_at is None else trio.current_time() - runtime.ready_at
        self._crashes = 0 if lived_s >= self._limits.stable_ms / 1000 else self._crashes + 1
        if self._crashes >= self._limits.crashes_max:
            told = f"{self._crashes} starts in a row did not last; the last one: {exit_.reason}"
            self._rest = _Rest("broken", _BROKEN_PAUSE_S, _KEEPS_DYING, told)
            return
        cap_ms = min(self._limits.backoff_max_ms, self._limits.backoff_first_ms * 2 ** max(0, self._crashes - 1))
        # Full jitter: daemons that lost their processes to one cause do not all come back at one moment.
        pause_s = self._world.random.uniform(0, cap_ms / 1000)
        self._rest = _Rest("backoff", pause_s, "codex-restarting", exit_.reason)

    async def _pause(self) -> None:
        rest, self._rest = self._rest, None
        if rest is None:
            return
        self._hurry = trio.Event()
        self._say(state=rest.state, retry_in_s=rest.pause_s, slug=rest.slug, reason=rest.reason)
        with trio.move_on_after(rest.pause_s) as waited:
            await self._hurry.wait()
        if rest.slug == _KEEPS_DYING and waited.cancelled_caught:
            self._crashes = self._limits.crashes_max - 1  # one try, not a new series

    async def _start(self) -> Runtime | None:
        """Start a process when its time has come; None if it cannot be, or must not any more."""
        await self._pause()
        if self._stopping:
            return None
        self._say(state="starting", runtime_id=None, adopted=False, retry_in_s=None, slug=None, reason=None)
        try:
            process, record = await self._spawn()
        except (CodexFault, OSError) as fault:
            self._rest = self._after_fault(fault)
            return None
        self._faults = 0
        remembered = False
        try:
            await self._hooks.persist(record)
            remembered = True
        finally:
            if not remembered:
                with trio.CancelScope(shield=True):
                    await process.end(term_s=self._terms.term_s, kill_s=self._terms.kill_s)
        self._starts += 1
        return self._runtime_of(process, record, adopted=False)

    def _after_fault(self, fault: CodexFault | OSError) -> "_Rest":
        """Nothing dies here: it does not begin. Trying again at once would find the same."""
        pause_s = min(_BROKEN_PAUSE_S, _FAULT_PAUSE_FIRST_S * 2**self._faults)
        self._faults += 1
        slug = fault.slug if isinstance(fault, CodexFault) else CodexUnusable.slug
        return _Rest("broken", pause_s, slug, str(fault))

    async def _spawn(self) -> tuple[RunningProcess, RuntimeRecord]:
        binary = await self._plan.find()
        transport = self._plan.transport
        if transport == "unix" and not await self._world.machine.supports_unix(binary.path):
            transport = "stdio"
        runtime_id = self._world.new_runtime_id()
        launch = Launch(
            binary=binary.path,
            transport=transport,
            socket=self._socket,
            stderr_log=self._stderr_log,
            codex_home=self._plan.codex_home,
            mark=runtime_id,
            config=self._plan.config,
        )
        await self._end_strays()
        process = await self._world.machine.spawn(launch)
        record = RuntimeRecord(
            runtime_id=runtime_id,
            pid=process.identity.pid,
            start_time=process.identity.start_time,
            transport=transport,
            socket=str(self._socket) if transport == "unix" else None,
            codex_home=str(self._plan.codex_home),
            codex_version=binary.version,
            codex_path=str(binary.path),
            started_at_ms=self._world.now_ms(),
        )
        return process, record

    async def _end_strays(self) -> None:
        """End what listens on our socket and is in no record: the daemon died between its start and its record.

        It was never used: the record comes before the first link.
        """
        for stray in await self._world.machine.listening(self._socket):
            await self._world.machine.end_family(stray, None, term_s=self._terms.term_s, kill_s=self._terms.kill_s)

    # --- an earlier daemon's process ---

    async def _take_over(self, record: RuntimeRecord) -> Runtime | None:
        """Adopt the recorded process if it lives and is what we would start; else see to it that it is gone."""
        machine, identity = self._world.machine, ProcessIdentity(record.pid, record.start_time)
        if not machine.is_alive(identity):
            # Also where somebody else has the number by now: what the dead one left behind is known by its mark.
            await self._close(identity, record, "gone", "it ended while no daemon was there")
            return None
        socket = Path(record.socket) if record.socket is not None else None
        if not await machine.is_ours(identity, record.runtime_id, socket):
            self._exited(_exit_of(record, "gone", "what has its number now carries no mark of ours"))
            return None
        if record.transport == "unix" and record.socket == str(self._socket):
            if record.codex_home == str(self._plan.codex_home):
                self._starts = 1
                process = machine.adopt(identity, record.runtime_id, self._stderr_log)
                return self._runtime_of(process, record, adopted=True)
            await self._close(identity, record, "not-adoptable", f"it serves {record.codex_home}")
        else:
            await self._close(identity, record, "not-adoptable", "an earlier daemon held its only connection")
        return None

    async def _close(self, identity: ProcessIdentity, record: RuntimeRecord, cause: ExitCause, reason: str) -> None:
        machine, terms = self._world.machine, self._terms
        await machine.end_family(identity, record.runtime_id, term_s=terms.term_s, kill_s=terms.kill_s)
        said = StderrFile(self._stderr_log).tail() if record.transport == "unix" else ()
        self._exited(_exit_of(record, cause, reason, said))

    # --- what there is to say ---

    def _runtime_of(self, process: RunningProcess, record: RuntimeRecord, *, adopted: bool) -> Runtime:
        self._say(
            state="starting",
            runtime_id=record.runtime_id,
            pid=record.pid,
            transport=record.transport,
            adopted=adopted,
            started_at_ms=record.started_at_ms,
            codex_version=record.codex_version,
            restarts=max(0, self._starts - 1),
        )
        return Runtime(process, record, self._hooks, self._terms, adopted=adopted)

    def _say(self, **changes: Any) -> None:
        self._status = msgspec.structs.replace(self._status, **changes)
        self._hooks.on_status(self._status)


class _Rest(msgspec.Struct, frozen=True):
    """A pause before the next start, and what to say meanwhile."""

    state: Literal["backoff", "broken"]
    pause_s: float
    slug: str
    reason: str


def _exit_of(record: RuntimeRecord, cause: ExitCause, reason: str, said: tuple[str, ...] = ()) -> RuntimeExit:
    report = ExitReport(stderr_tail=said)
    return RuntimeExit(runtime_id=record.runtime_id, cause=cause, reason=reason, report=report)
