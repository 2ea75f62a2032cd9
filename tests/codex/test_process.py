"""Starting and ending a process: how it is started, how it is said to have ended, and that nobody outlives the end."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from support.waiting import until

from termald.codex.errors import CodexUnusable
from termald.codex.identity import ProcessIdentity, find_marked, is_alive
from termald.codex.process import CodexProcess, ExitReport, Launch, Transport, adopt, end_family, spawn

TRANSPORTS: tuple[Transport, ...] = ("unix", "stdio")


def launch(program: Path, folder: Path, *, transport: Transport = "unix", mark: str = "test-of-process") -> Launch:
    return Launch(
        binary=program,
        transport=transport,
        socket=folder / "s",
        stderr_log=folder / "stderr",
        codex_home=folder / "home",
        mark=mark,
        config=("a.b=1", "c=true"),
    )


def program(folder: Path, script: str) -> Path:
    path = folder / "program"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return path


@asynccontextmanager
async def running(folder: Path, script: str, *, transport: Transport = "unix") -> AsyncIterator[CodexProcess]:
    """A shell script in place of Codex, which has said "ready" on standard error; ended with its family."""
    process = await spawn(launch(program(folder, script), folder, transport=transport))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.tend)
        try:
            await until(lambda: "ready" in process.report().stderr_tail)
            yield process
        finally:
            with trio.CancelScope(shield=True):
                await process.end(term_s=0.1, kill_s=5)
            nursery.cancel_scope.cancel()


def link_of(process: CodexProcess, name: str) -> str:
    return str(Path(f"/proc/{process.identity.pid}/{name}").readlink())


def reap(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_command_and_environment(tmp_path: Path) -> None:
    """Nothing of our own settings reaches a tool of Codex's, and the mark always does."""
    plan = launch(Path("/x/codex"), tmp_path)
    assert plan.arguments() == [
        *("/x/codex", "app-server", "-c", "a.b=1", "-c", "c=true"),
        *("--listen", f"unix://{tmp_path}/s"),
    ]
    inherited = {"PATH": "/bin", "TERMALD_STATE_DIR": "/secret", "CODEX_HOME": "/other", "TERMALD_RUNTIME": "outer"}
    assert plan.environment(inherited) == {
        "PATH": "/bin",
        "CODEX_HOME": str(tmp_path / "home"),
        "TERMALD_RUNTIME": "test-of-process",
    }
    assert launch(Path("/x/codex"), tmp_path, transport="stdio").arguments()[-1] == "stdio://"


async def test_process_is_in_a_session_of_its_own_and_in_nobodys_folder(tmp_path: Path) -> None:
    """A Ctrl-C in the daemon's terminal must not reach Codex."""
    async with running(tmp_path, "echo ready >&2; exec sleep 600") as process:
        assert os.getsid(process.identity.pid) == process.identity.pid
        assert link_of(process, "cwd") == "/"
        assert link_of(process, "fd/0") == link_of(process, "fd/1") == "/dev/null"


@pytest.mark.parametrize(
    ("script", "report"),
    [
        ("echo ready >&2; exit 3", ExitReport(code=3, stderr_tail=("ready",))),
        ("echo ready >&2; kill -SEGV $$", ExitReport(signal="SIGSEGV", stderr_tail=("ready",))),
    ],
)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_exit_is_reported_with_the_last_words(
    tmp_path: Path, script: str, report: ExitReport, transport: Transport
) -> None:
    async with running(tmp_path, script, transport=transport) as process:
        async with trio.open_nursery() as nursery:  # any number may wait
            nursery.start_soon(process.wait)
            nursery.start_soon(process.wait)
        assert process.report() == report
        assert str(report) in {"ended with status 3", "ended by SIGSEGV"}


async def test_program_that_cannot_be_started_is_unusable(tmp_path: Path) -> None:
    before = descriptors()
    for transport in TRANSPORTS:
        with pytest.raises(CodexUnusable, match="cannot be started"):
            await spawn(launch(tmp_path / "missing", tmp_path, transport=transport))
    assert descriptors() == before


async def test_adopted_process_is_watched_and_ended_like_a_child(tmp_path: Path) -> None:
    """It is not ours to wait for: its end is seen through a descriptor, and its status is nobody's business."""
    async with running(tmp_path, "echo ready >&2; exec sleep 600") as child:
        process = adopt(child.identity, child.mark, tmp_path / "stderr")
        with trio.move_on_after(0.05) as waited:
            await process.wait()
        assert waited.cancelled_caught
        assert await process.end(term_s=2, kill_s=2) == frozenset()
        assert process.report() == ExitReport(stderr_tail=("ready",))
        assert not is_alive(child.identity)


async def test_second_term_is_sent_to_one_that_only_drains(tmp_path: Path) -> None:
    """RUNTIME-13: the first is taken for "refuse new work"; without the second it would be killed with its tools."""
    script = (
        "trap 'trap \"echo twice >&2; exit 0\" TERM; echo once >&2' TERM; echo ready >&2; while :; do sleep 0.02; done"
    )
    async with running(tmp_path, script) as process:
        assert await process.end(term_s=5, kill_s=5) == frozenset()
        assert process.report() == ExitReport(code=0, stderr_tail=("ready", "once", "twice"))


async def test_family_that_ignores_term_is_killed_within_the_deadlines(tmp_path: Path) -> None:
    """RUNTIME-14: children in sessions of their own, and what those start while they are being killed."""
    children = "setsid sh -c 'while :; do sleep 600 & sleep 0.02; done' &"
    script = f"trap '' TERM; {children} echo ready >&2; while :; do sleep 0.02; done"
    async with running(tmp_path, script) as process:
        began = trio.current_time()
        assert await process.end(term_s=0.2, kill_s=5) == frozenset()
        assert trio.current_time() - began < 5
        assert process.report().signal == "SIGKILL"
        assert not set(find_marked("test-of-process"))


async def test_end_of_a_stranger_touches_nobody(tmp_path: Path) -> None:
    """BOOT-11."""
    async with running(tmp_path, "echo ready >&2; exec sleep 600") as process:
        stranger = ProcessIdentity(process.identity.pid, "another boot/1")
        assert await end_family(stranger, "no-such-mark", term_s=1, kill_s=1) == frozenset()
        assert is_alive(process.identity)


async def test_disowned_child_goes_on_without_a_warning(tmp_path: Path) -> None:
    process = await spawn(launch(program(tmp_path, "exec sleep 600"), tmp_path))
    identity = process.identity
    process.disown()
    del process  # Popen would warn of a running child here, and warnings are errors
    assert is_alive(identity)
    await end_family(identity, None, term_s=1, kill_s=1)
    assert reap(identity.pid)


async def test_end_is_told_by_looking_where_no_descriptor_can_be_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS."""
    async with running(tmp_path, "echo ready >&2; exec sleep 600") as process:
        monkeypatch.setattr(sys, "platform", "darwin")
        os.kill(process.identity.pid, signal.SIGKILL)
        with trio.fail_after(30):
            await process.wait()
        monkeypatch.undo()
        assert process.report().signal == "SIGKILL"
