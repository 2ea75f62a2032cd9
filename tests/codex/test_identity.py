"""Who is meant by a pid, and who belongs to whom: a stranger is never signalled, and no tool is left behind."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.waiting import until

from termald.codex import identity
from termald.codex.identity import (
    MARK_NAME,
    ProcessIdentity,
    family_of,
    find_listening,
    find_marked,
    identify,
    is_alive,
    send_signal,
)

MARK = "test-of-identity"


@contextmanager
def running(
    script: str, *arguments: str, mark: str = MARK
) -> Iterator[tuple[ProcessIdentity, "subprocess.Popen[str]"]]:
    """A shell in a session of its own, which has said "ready"; ended with whatever it started."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", script, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, MARK_NAME: mark},
    )
    assert process.stdout is not None
    leader = identify(process.pid)
    assert leader is not None
    try:
        assert process.stdout.readline() == "ready\n"
        yield leader, process
    finally:
        looks_left = 2  # one that is just being executed has no environment to show
        while looks_left > 0:
            left = set(find_marked(mark))
            looks_left = 2 if left else looks_left - 1
            for member in left:
                send_signal(member, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def children_of(leader: ProcessIdentity) -> set[ProcessIdentity]:
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(leader.pid)], capture_output=True, text=True, check=False
    )
    return {found for pid in listed.stdout.split() if (found := identify(int(pid))) is not None}


def test_own_process_is_known_and_a_free_number_is_nobody() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert is_alive(me)
    assert identify(2**22 + 1) is None


def test_other_start_time_is_another_process() -> None:
    """BOOT-11: the recorded pid may be a stranger's by now."""
    with running("echo ready; exec sleep 60") as (leader, process):
        stranger = ProcessIdentity(leader.pid, leader.start_time + "0")
        assert not is_alive(stranger)
        assert not send_signal(stranger, signal.SIGKILL)
        assert family_of(stranger, "no-such-mark") == frozenset()
        assert process.poll() is None
        assert send_signal(leader, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


async def test_unreaped_remains_are_not_alive() -> None:
    with running("echo ready; exec sleep 60") as (leader, _):
        os.kill(leader.pid, signal.SIGKILL)
        await until(lambda: not is_alive(leader))
        assert not send_signal(leader, signal.SIGTERM)


def test_name_with_brackets_and_spaces_is_read_past(tmp_path: Path) -> None:
    trick = tmp_path / "a) S 1 (b"
    trick.symlink_to("/bin/sleep")
    process = subprocess.Popen([trick, "60"])
    try:
        found = identify(process.pid)
        assert found is not None
        assert process.pid in {member.pid for member in family_of(found, "no-such-mark")}
    finally:
        process.kill()
        process.wait()


def test_family_has_descendants_in_sessions_of_their_own() -> None:
    """Codex gives each tool its own session: the group alone would miss every one of them."""
    with running("setsid sh -c 'sleep 60 & echo ready; sleep 61' & wait") as (leader, _):
        family = family_of(leader, "no-such-mark")
        assert leader in family
        assert len(family) >= 3
        assert os.getpid() not in {member.pid for member in family}


async def test_orphans_are_found_by_the_mark() -> None:
    """RUNTIME-14: after a SIGKILL of the app-server its tools descend from nobody we know, and their shell dies
    with it."""
    script = "setsid sh -c 'sleep 60 & kill -9 $$' ; echo ready; sleep 60 & wait"
    with running(script) as (leader, process):
        assert leader in set(find_marked(MARK))
        await until(lambda: len(family_of(leader, MARK)) == 3)
        (orphan,) = family_of(leader, MARK) - {leader} - children_of(leader)
        process.kill()
        process.wait()
        assert orphan in family_of(leader, MARK)
        assert is_alive(orphan)
        assert not set(find_marked(MARK + "0"))


async def test_who_left_on_purpose_is_spared() -> None:
    """A terminal multiplexer that an agent has started holds the user's own work by now."""
    script = "setsid sh -c 'setsid sleep 60 &' ; echo ready; exec sleep 60"
    with running(script) as (leader, _):
        await until(lambda: len(set(find_marked(MARK)) - family_of(leader, MARK)) == 1)
        assert leader in family_of(leader, MARK)


def test_listener_is_found_by_its_command_line(tmp_path: Path) -> None:
    """BOOT-10: the daemon may have died between the start of the process and its record."""
    with running("echo ready; sleep 60", "app-server", "--listen", f"unix://{tmp_path}/s") as (leader, _):
        assert leader in set(find_listening(tmp_path / "s"))  # a child that it has just forked looks the same
        assert not set(find_listening(tmp_path / "other"))


@pytest.mark.skipif(not Path("/bin/ps").exists(), reason="no ps here to compare with")
def test_ps_tells_the_same_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no /proc, `ps` is asked; both read the one process table."""
    with running("sleep 60 & echo ready; wait") as (leader, _):
        by_proc = {member.pid for member in family_of(leader, "no-such-mark")}
        with monkeypatch.context() as patched:
            patched.setattr(identity, "_LINUX", False)
            patched.setattr(identity, "_environments", lambda: iter(()))
            again = identify(leader.pid)
            assert again is not None
            assert is_alive(again)
            assert {member.pid for member in family_of(again, "no-such-mark")} == by_proc
            assert send_signal(again, signal.SIGKILL)
            assert not send_signal(ProcessIdentity(again.pid, "Thu Jan  1 00:00:00 1970"), signal.SIGKILL)
