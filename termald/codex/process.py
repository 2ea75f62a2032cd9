"""One app-server process: started in a session of its own, or found alive, and in the end gone with everything it
started.

Two kinds are handled alike. A child is reaped by us and tells how it ended; an adopted process, started by a daemon
that is no more, is watched through a descriptor and tells nothing. Neither is ever signalled by its number alone
(`identity`).

The end: TERM asks. With a turn in progress Codex answers the first by refusing new work and staying until the turn ends
(measured), and the second by ending with its tools; then KILL, for the whole family. Codex's tools are in sessions of
their own, so the family is looked for again until nobody is left.
"""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, Literal, ParamSpec, TypeVar

import msgspec
import trio

from termald.codex.errors import CodexUnusable
from termald.codex.identity import MARK_NAME, ProcessIdentity, family_of, identify, is_alive, send_signal
from termald.codex.stderr import StderrFile, StderrPipe

Transport = Literal["unix", "stdio"]

# How long the first TERM may take to end an idle process (measured: 20 ms) before a second one says that it is meant.
_FIRST_TERM_S: Final = 0.5
# A process that is just being executed has no environment to show: one look may miss it.
_EMPTY_LOOKS: Final = 2
# Between two looks at a family that is being killed, and at a process where no descriptor can be waited for.
_LOOK_PAUSE_S: Final = 0.02
_POLL_PAUSE_S: Final = 0.2
_NO_DESCRIPTOR: Final = frozenset({errno.EMFILE, errno.ENFILE})

P = ParamSpec("P")
T = TypeVar("T")


class ExitReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended. Neither code nor signal where it was not our child; the tail may be empty."""

    code: int | None = None
    signal: str | None = None
    stderr_tail: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.signal is not None:
            return f"ended by {self.signal}"
        return "ended" if self.code is None else f"ended with status {self.code}"


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """All that starting an app-server takes. `mark` is found again in the environment of whatever it starts."""

    binary: Path
    transport: Transport
    socket: Path
    stderr_log: Path
    codex_home: Path
    mark: str
    config: tuple[str, ...] = ()
    """Values for `-c`, as `key=value`."""

    def arguments(self) -> list[str]:
        config = [word for value in self.config for word in ("-c", value)]
        listen = f"unix://{self.socket}" if self.transport == "unix" else "stdio://"
        return [str(self.binary), "app-server", *config, "--listen", listen]

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Ours without our own settings: no tool of Codex's has any use for them."""
        kept = {name: value for name, value in inherited.items() if not name.startswith("TERMALD_")}
        return {**kept, "CODEX_HOME": str(self.codex_home), MARK_NAME: self.mark}


class Pipes(msgspec.Struct, frozen=True):
    """Our ends of a process's standard input and output."""

    to_codex: trio.abc.SendStream
    from_codex: trio.abc.ReceiveStream


class CodexProcess:
    """A running, or just ended, app-server. `pipes` only with transport `stdio`, and only for a child."""

    def __init__(
        self,
        identity: ProcessIdentity,
        mark: str,
        stderr: StderrFile | StderrPipe,
        *,
        child: "subprocess.Popen[bytes] | None" = None,
        pipes: Pipes | None = None,
    ) -> None:
        self.identity = identity
        self.mark = mark
        self.pipes = pipes
        self._stderr = stderr
        self._child = child

    async def tend(self) -> None:
        """Keep what it says on standard error bounded. Runs until it has ended or until cancelled."""
        await self._stderr.keep_bounded()

    async def wait(self) -> None:
        """Return once it is gone, and reaped if it is our child. Any number of tasks may wait; may be cut."""
        await _gone(self.identity)
        if self._child is not None:
            self._child.poll()

    def report(self) -> ExitReport:
        """Say how it ended; to be asked after `wait`."""
        code = self._child.returncode if self._child is not None else None
        if code is not None and code < 0:
            return ExitReport(signal=signal.Signals(-code).name, stderr_tail=self._stderr.tail())
        return ExitReport(code=code, stderr_tail=self._stderr.tail())

    async def end(self, *, term_s: float, kill_s: float) -> frozenset[ProcessIdentity]:
        """End it and its family, within the two deadlines. Returns who could not be ended: nobody, as a rule."""
        survivors = await end_family(self.identity, self.mark, term_s=term_s, kill_s=kill_s)
        if self.identity not in survivors:
            await self.wait()
        return survivors

    def disown(self) -> None:
        """Let a child go on without us: it will be the system's to reap."""
        if self._child is not None and self._child.returncode is None:
            # Popen warns of a child that still runs when it is forgotten; this one is left on purpose.
            self._child.returncode = 0
            self._child = None


async def spawn(launch: Launch) -> CodexProcess:
    """Start an app-server, in its own session, so that no signal that is meant for us reaches it. Not to be cut.

    Errors: `codex-unusable`.
    """
    with trio.CancelScope(shield=True):  # bounded by one fork and exec; a child nobody knows of would be the price
        started = await trio.to_thread.run_sync(_start, launch)
        identity = await _looked(identify, started.child.pid)
    # Even one that has ended already keeps its number until we reap it.
    assert identity is not None
    if started.pipes is None:
        return CodexProcess(identity, launch.mark, StderrFile(launch.stderr_log), child=started.child)
    stdin, stdout, stderr = map(trio.lowlevel.FdStream, started.pipes)
    return CodexProcess(
        identity, launch.mark, StderrPipe(stderr), child=started.child, pipes=Pipes(to_codex=stdin, from_codex=stdout)
    )


def adopt(identity: ProcessIdentity, mark: str, stderr_log: Path) -> CodexProcess:
    """Return a process that an earlier daemon started, and that listens on the control socket."""
    return CodexProcess(identity, mark, StderrFile(stderr_log))


async def end_family(
    leader: ProcessIdentity, mark: str | None, *, term_s: float, kill_s: float
) -> frozenset[ProcessIdentity]:
    """Ask the leader to end, then kill whoever is left of its family; also where the leader is gone already.

    Takes `term_s + kill_s` at most. Returns who is still there: nobody, unless the system itself holds a process up.
    """
    # Who descends from the leader can be told only as long as it lives.
    family = await _looked(family_of, leader, mark)
    with trio.move_on_after(term_s):
        with trio.move_on_after(min(_FIRST_TERM_S, term_s)):
            if await _looked(send_signal, leader, signal.SIGTERM):
                await _gone(leader)
        if await _looked(send_signal, leader, signal.SIGTERM):
            await _gone(leader)
    with trio.move_on_after(kill_s):
        empty_looks = 0
        while empty_looks < _EMPTY_LOOKS:
            left = await _looked(_left_of, family, leader, mark)
            empty_looks = 0 if left else empty_looks + 1
            family |= left
            for member in left:
                await _looked(send_signal, member, signal.SIGKILL)
            await trio.sleep(_LOOK_PAUSE_S)
    return await _looked(_left_of, family, leader, mark)


async def _looked(look: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a look at the process table finds, in a thread. Each look takes a descriptor: where none is left it
    is taken again until there is one, for what becomes of a process is never guessed."""
    while True:
        try:
            return await trio.to_thread.run_sync(partial(look, *args, **kwargs))
        except OSError as error:
            if error.errno not in _NO_DESCRIPTOR:
                raise
        await trio.sleep(_POLL_PAUSE_S)


def _left_of(
    family: frozenset[ProcessIdentity], leader: ProcessIdentity, mark: str | None
) -> frozenset[ProcessIdentity]:
    """Who is alive of a family known from before, and of what it has started since."""
    return frozenset(member for member in family | family_of(leader, mark) if is_alive(member))


async def _gone(identity: ProcessIdentity) -> None:
    while await _looked(is_alive, identity):
        if sys.platform != "linux":
            await trio.sleep(_POLL_PAUSE_S)
            continue
        try:
            descriptor = await _looked(os.pidfd_open, identity.pid)
        except ProcessLookupError:
            break
        try:
            if await _looked(is_alive, identity):  # nobody can take its place any more
                await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
    await trio.lowlevel.checkpoint()


_Popen = Callable[[int, int, int], "subprocess.Popen[bytes]"]


class _Started(msgspec.Struct, frozen=True):
    child: "subprocess.Popen[bytes]"
    pipes: tuple[int, int, int] | None
    """Our ends of its standard input, output and error."""


def _start(launch: Launch) -> _Started:
    """Fork and exec. Blocks while the kernel maps the binary."""

    def popen(stdin: int, stdout: int, stderr: int) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603 - the user's Codex, found or set by the user
            launch.arguments(),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=launch.environment(os.environ),
            # Nobody's folder: a thread that names none of its own must not fall into somebody's work.
            cwd="/",
            start_new_session=True,
        )

    try:
        return _start_on_socket(launch, popen) if launch.transport == "unix" else _start_with_pipes(popen)
    except OSError as error:
        raise CodexUnusable(f"{launch.binary} cannot be started: {error.strerror or error}") from error


def _start_on_socket(launch: Launch, popen: _Popen) -> _Started:
    log = StderrFile(launch.stderr_log).open_new()
    try:
        return _Started(popen(subprocess.DEVNULL, subprocess.DEVNULL, log), None)
    finally:
        os.close(log)


def _start_with_pipes(popen: _Popen) -> _Started:
    theirs_in, ours_in = os.pipe()
    ours_out, theirs_out = os.pipe()
    ours_err, theirs_err = os.pipe()
    try:
        child = popen(theirs_in, theirs_out, theirs_err)
    except BaseException:
        for ours in (ours_in, ours_out, ours_err):
            os.close(ours)
        raise
    finally:
        for theirs in (theirs_in, theirs_out, theirs_err):
            os.close(theirs)
    return _Started(child, (ours_in, ours_out, ours_err))
