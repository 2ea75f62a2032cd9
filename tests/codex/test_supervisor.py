"""One process, whatever happens to it, its links and us; against an app-server that misbehaves on demand."""

import os
import signal
from pathlib import Path

import msgspec
import pytest
import trio
import trio.lowlevel
from support.fake_app_server import Script, frames_taken, install, starts_of
from support.supervising import QUICK, Came, Lost, Recorder, payload, supervising
from support.waiting import until

from state.records import LinkId, RuntimeId, RuntimeRecord
from termald.codex.binary import CodexBinary
from termald.codex.errors import CodexTooOld, MessageTooLarge
from termald.codex.hooks import LinkUp, RuntimeExit
from termald.codex.identity import ProcessIdentity, find_marked, identify, is_alive
from termald.codex.link import MESSAGE_BYTES_MAX
from termald.codex.process import Transport

BOTH = pytest.mark.parametrize("transport", ["unix", "stdio"])


def link(runtime: int, connection: int = 1) -> LinkId:
    return LinkId(runtime_id=RuntimeId(f"run-{runtime}"), connection=connection)


def notice(method: str, number: int) -> dict[str, object]:
    return {"method": method, "params": {"n": number}}


async def replies(told: Recorder, number: int) -> list[object]:
    """Wait for so many frames that are no notices of the start; return what they say."""

    def so_far() -> list[object]:
        return [said for came in told.all(Came) if (said := payload(came)).get("method") != "configWarning"]

    await told.until(lambda: len(so_far()) >= number)
    return so_far()


@BOTH
async def test_process_is_remembered_before_it_is_used_and_ends_once(tmp_path: Path, transport: Transport) -> None:
    async with supervising(install(tmp_path), tmp_path, transport=transport) as ran:
        up = await ran.ready()
        assert up == LinkUp(link=link(1), info=up.info, adopted=False)
        assert (up.info.version, up.info.codex_home) == ("9.9.9", str(tmp_path / "home"))
        (record,) = ran.told.all(RuntimeRecord)
        assert is_alive(ProcessIdentity(record.pid, record.start_time))
        assert ran.told.told.index(record) < ran.told.told.index(up)
        assert ran.ask(up.link, "a") and ran.ask(up.link, "b")
        assert await replies(ran.told, 2) == [
            {"id": 1, "result": {"method": "a"}},
            {"id": 1, "result": {"method": "b"}},
        ]
        assert payload(ran.told.all(Came)[0])["method"] == "configWarning"  # what came before the handshake was over
    (exit_,) = ran.told.all(RuntimeExit)
    assert (exit_.runtime_id, exit_.cause, exit_.left_behind) == ("run-1", "stop", ())
    assert exit_.report.signal == "SIGTERM"
    assert exit_.report.stderr_tail == ("fake app-server, start 1",)
    assert identify(record.pid) is None
    assert ran.told.states == ["starting", "ready", "stopping", "stopped"]
    assert not ran.ask(up.link, "c")


@BOTH
async def test_last_words_are_handed_on_before_the_exit(tmp_path: Path, transport: Transport) -> None:
    """RUNTIME-02, RUNTIME-03: a turn that completed must not be told as failed, and the exit comes once."""
    async with supervising(install(tmp_path), tmp_path, transport=transport) as ran:
        up = await ran.ready()
        words = [notice("turn/completed", number) for number in range(100)]
        assert ran.ask(up.link, "fake/exit", frames=words, code=7)
        exit_ = await ran.told.nth(RuntimeExit)
        assert (exit_.cause, exit_.report.code, exit_.reason) == ("exited", 7, "ended with status 7")
        told = ran.told.told
        heard = [payload(entry) for entry in told[: told.index(exit_)] if isinstance(entry, Came)]
        assert heard[-100:] == words
        assert not ran.told.all(Lost)
        await ran.ready(2)
        assert len(ran.told.all(RuntimeExit)) == 1


@BOTH
async def test_killed_process_is_replaced_and_its_frames_are_not_written_to_the_next(
    tmp_path: Path, transport: Transport
) -> None:
    """RUNTIME-05: what was decided for one process would be a stray thread in another."""
    program = install(tmp_path)
    async with supervising(program, tmp_path, transport=transport) as ran:
        first = await ran.ready()
        (record,) = ran.told.all(RuntimeRecord)
        os.kill(record.pid, signal.SIGKILL)
        second = await ran.ready(2)
        assert second.link == link(2)
        assert not second.adopted
        assert not ran.ask(first.link, "stale")
        assert ran.ask(second.link, "fresh")  # the control: the live link takes the same
        await replies(ran.told, 1)
        (exit_,) = ran.told.all(RuntimeExit)
        assert exit_.report.signal == "SIGKILL"
    methods = [frame["method"] for pid, frame in frames_taken(program) if pid != record.pid]
    assert methods == ["initialize", "initialized", "fresh"]
    assert ran.supervisor.status.restarts == 1


async def test_lost_link_to_a_living_process_is_not_an_exit(tmp_path: Path) -> None:
    """RUNTIME-15: the turns go on; only the link is another one."""
    async with supervising(install(tmp_path), tmp_path) as ran:
        first = await ran.ready()
        assert ran.ask(first.link, "fake/close")
        second = await ran.ready(2)
        assert (second.link, second.adopted) == (link(1, 2), True)
        (lost,) = ran.told.all(Lost)
        assert lost.link == first.link
        assert ran.told.told.index(lost) < ran.told.told.index(second)
        assert not ran.ask(first.link, "stale")
        assert ran.ask(second.link, "fresh")
        assert await replies(ran.told, 1) == [{"id": 1, "result": {"method": "fresh"}}]
        assert not ran.told.all(RuntimeExit)
        assert len(ran.told.all(RuntimeRecord)) == 1


async def test_process_that_drops_every_link_is_given_up(tmp_path: Path) -> None:
    program = install(tmp_path, Script(closes=100))
    async with supervising(program, tmp_path) as ran:
        exit_ = await ran.told.nth(RuntimeExit)
        assert exit_.cause == "unresponsive"
        assert "links in a row" in exit_.reason


async def test_closed_output_of_a_living_process_ends_it(tmp_path: Path) -> None:
    """WIRE-13: there is no other way to talk to it, and it would hold every thread's lock."""
    async with supervising(install(tmp_path), tmp_path, transport="stdio") as ran:
        up = await ran.ready()
        (record,) = ran.told.all(RuntimeRecord)
        assert ran.ask(up.link, "fake/close")
        exit_ = await ran.told.nth(RuntimeExit)
        assert exit_.cause == "unresponsive"
        assert ran.told.states[:3] == ["starting", "ready", "starting"]
        assert not is_alive(ProcessIdentity(record.pid, record.start_time))
        await ran.ready(2)


async def test_process_that_dies_at_start_is_paused_then_given_up_until_asked(tmp_path: Path) -> None:
    """RUNTIME-08: held, not failed; and the machine is not kept busy with dying processes."""
    program = install(tmp_path, Script(deaths_at_start=5))
    async with supervising(program, tmp_path) as ran:
        await ran.told.until(lambda: ran.supervisor.status.state == "broken")
        status = ran.supervisor.status
        assert starts_of(program) == QUICK.crashes_max == 5
        assert (status.slug, status.pid) == ("codex-keeps-dying", None)
        assert status.reason is not None and "status 3" in status.reason
        exits = ran.told.all(RuntimeExit)
        assert [exit_.cause for exit_ in exits] == ["exited"] * 5
        assert exits[0].report.stderr_tail == ("fake app-server, start 1",)
        assert ran.told.states == ["starting", "backoff"] * 4 + ["starting", "broken"]
        ran.supervisor.retry()
        assert (await ran.ready()).link == link(6)
        assert ran.supervisor.status.slug is None


@pytest.mark.parametrize("answer", ["refuse", "elsewhere"])
async def test_process_that_does_not_accept_us_is_ended(tmp_path: Path, answer: str) -> None:
    async with supervising(install(tmp_path, Script(initialize=answer)), tmp_path) as ran:
        exit_ = await ran.told.nth(RuntimeExit)
        assert exit_.cause == "start-failed"
        assert ("go away" if answer == "refuse" else "/elsewhere") in exit_.reason


async def test_start_that_is_never_answered_is_ended_at_its_deadline(tmp_path: Path) -> None:
    """RUNTIME-09."""
    limits = type(QUICK)(backoff_first_ms=10, backoff_max_ms=50, start_deadline_ms=3_000, stop_deadline_ms=500)
    program = install(tmp_path, Script(silent_starts=1))
    async with supervising(program, tmp_path, limits=limits) as ran:
        assert (await ran.ready()).link == link(2)
        (exit_,) = ran.told.all(RuntimeExit)
        assert exit_.cause == "start-failed"


async def test_unusable_binary_is_told_and_nothing_is_started(tmp_path: Path) -> None:
    """RUNTIME-08: too old a binary is no crash; trying again and again would find the same."""

    async def find() -> CodexBinary:
        await trio.lowlevel.checkpoint()
        raise CodexTooOld("this one is 0.1.0")

    program = install(tmp_path)
    async with supervising(program, tmp_path, find=find) as ran:
        await ran.told.until(lambda: ran.supervisor.status.state == "broken")
        assert ran.supervisor.status.slug == "codex-too-old"
        assert starts_of(program) == 0
        assert not ran.told.all(RuntimeExit)


async def test_restart_asked_for_twice_is_one_restart(tmp_path: Path) -> None:
    """RUNTIME-12: the second one may come at any moment before the new process is ready."""
    program = install(tmp_path)
    async with supervising(program, tmp_path) as ran:
        await ran.ready()
        ran.supervisor.restart()
        ran.supervisor.restart()
        await ran.told.nth(RuntimeExit)
        while len(ran.told.all(LinkUp)) < 2:
            ran.supervisor.restart()
            await trio.lowlevel.checkpoint()
        assert [exit_.cause for exit_ in ran.told.all(RuntimeExit)] == ["restart"]
        assert starts_of(program) == 2
        assert "backoff" not in ran.told.states
        ran.supervisor.restart()  # the control: now it is another one
        await ran.ready(3)
        assert starts_of(program) == 3


async def test_term_that_is_ignored_and_tools_left_behind_do_not_outlive_the_end(tmp_path: Path) -> None:
    """RUNTIME-14."""
    async with supervising(install(tmp_path), tmp_path) as ran:
        up = await ran.ready()
        ran.ask(up.link, "fake/ignore-term")
        ran.ask(up.link, "fake/spawn")
        *_, spawned = await replies(ran.told, 2)
        assert isinstance(spawned, dict)
        tool = identify(spawned["result"]["pid"])
        assert tool is not None
        assert is_alive(tool)
        ran.supervisor.restart()
        exit_ = await ran.told.nth(RuntimeExit)
        assert exit_.report.signal == "SIGKILL"
        assert not is_alive(tool)


async def test_frozen_process_is_ended_and_replaced(tmp_path: Path) -> None:
    """RUNTIME-10: a restart must not wait for a process that answers nothing, not even TERM."""
    async with supervising(install(tmp_path), tmp_path) as ran:
        up = await ran.ready()
        (record,) = ran.told.all(RuntimeRecord)
        assert ran.ask(up.link, "fake/stall")
        stat = Path("/proc", str(record.pid), "stat")
        await until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        ran.supervisor.restart()
        exit_ = await ran.told.nth(RuntimeExit)
        assert (exit_.cause, exit_.report.signal) == ("restart", "SIGKILL")
        await ran.ready(2)


async def test_too_long_a_message_is_refused_and_the_link_lives(tmp_path: Path) -> None:
    """WIRE-05."""
    async with supervising(install(tmp_path), tmp_path) as ran:
        up = await ran.ready()
        with pytest.raises(MessageTooLarge):
            ran.supervisor.send(up.link, b"x" * (MESSAGE_BYTES_MAX + 1))
        assert ran.ask(up.link, "after")
        assert await replies(ran.told, 1) == [{"id": 1, "result": {"method": "after"}}]


async def test_process_that_cannot_be_remembered_is_not_used(tmp_path: Path) -> None:
    """BOOT-10: an unrecorded process would be a second one at the next boot."""
    program = install(tmp_path)
    told = Recorder()
    told.persist_fails = True
    with pytest.RaisesGroup(OSError, flatten_subgroups=True):
        async with supervising(program, tmp_path, told=told):
            await told.until(lambda: "stopped" in told.states)
    assert not set(find_marked("run-1"))
    assert not frames_taken(program)
    assert not told.all(LinkUp)


# --- adoption ---


async def left_alive(program: Path, folder: Path) -> RuntimeRecord:
    """Let a supervisor start a process and leave it; returns its record."""
    async with supervising(program, folder, leave=True, prefix="old") as ran:
        await ran.ready()
    (record,) = ran.told.all(RuntimeRecord)
    return record


async def test_process_that_was_left_is_adopted(tmp_path: Path) -> None:
    """BOOT-02: no second process, and the same runtime: its sessions are still attached to it."""
    program = install(tmp_path)
    record = await left_alive(program, tmp_path)
    assert is_alive(ProcessIdentity(record.pid, record.start_time))
    async with supervising(program, tmp_path, record=record) as ran:
        up = await ran.ready()
        assert up.adopted
        assert up.link.runtime_id == record.runtime_id
        assert not ran.told.all(RuntimeRecord)
        assert ran.supervisor.status.adopted
        assert ran.ask(up.link, "hello")
        await replies(ran.told, 1)
        ran.supervisor.restart()
        (exit_,) = [await ran.told.nth(RuntimeExit)]
        assert (exit_.runtime_id, exit_.cause, exit_.report.code) == (record.runtime_id, "restart", None)
        assert exit_.report.stderr_tail == ("fake app-server, start 1",)
        assert not (await ran.ready(2)).adopted
    assert starts_of(program) == 2


async def test_adopted_process_that_dies_is_noticed(tmp_path: Path) -> None:
    program = install(tmp_path)
    record = await left_alive(program, tmp_path)
    async with supervising(program, tmp_path, record=record) as ran:
        await ran.ready()
        os.kill(record.pid, signal.SIGKILL)
        exit_ = await ran.told.nth(RuntimeExit)
        assert (exit_.cause, exit_.reason) == ("exited", "ended")
        await ran.ready(2)


async def test_recorded_process_that_is_dead_is_told_once_before_another_is_started(tmp_path: Path) -> None:
    """BOOT-01: the sessions of the old process are settled first."""
    program = install(tmp_path)
    record = await left_alive(program, tmp_path)
    os.kill(record.pid, signal.SIGKILL)
    await until(lambda: not is_alive(ProcessIdentity(record.pid, record.start_time)))
    async with supervising(program, tmp_path, record=record) as ran:
        up = await ran.ready()
        (exit_,) = ran.told.all(RuntimeExit)
        assert (exit_.runtime_id, exit_.cause) == (record.runtime_id, "gone")
        assert ran.told.told.index(exit_) < ran.told.told.index(up)
        assert up.link == link(1)
        assert "backoff" not in ran.told.states


async def test_stranger_with_the_recorded_number_is_let_alone(tmp_path: Path) -> None:
    """BOOT-11: the number was given to somebody else; here even at the same instant, but with nothing of ours."""
    me = identify(os.getpid())
    assert me is not None
    record = RuntimeRecord(
        runtime_id=RuntimeId("old-1"),
        pid=me.pid,
        start_time=me.start_time,
        transport="unix",
        socket=str(tmp_path / "codex.sock"),
        codex_home=str(tmp_path / "home"),
        codex_version="9.9.9",
        codex_path="codex",
        started_at_ms=1,
    )
    async with supervising(install(tmp_path), tmp_path, record=record) as ran:
        assert (await ran.ready()).link == link(1)
        (exit_,) = ran.told.all(RuntimeExit)
        assert exit_.cause == "gone"


async def test_process_for_another_home_is_ended_not_adopted(tmp_path: Path) -> None:
    program = install(tmp_path)
    record = await left_alive(program, tmp_path)
    other = msgspec.structs.replace(record, codex_home=str(tmp_path / "other"))
    async with supervising(program, tmp_path, record=other) as ran:
        assert not (await ran.ready()).adopted
        (exit_,) = ran.told.all(RuntimeExit)
        assert exit_.cause == "not-adoptable"
        assert not is_alive(ProcessIdentity(record.pid, record.start_time))


async def test_living_process_whose_socket_is_gone_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BOOT-10: it is ours and cannot be reached by anybody; it is ended before another is started."""
    monkeypatch.setattr("termald.codex.runtime._RECONNECT_DEADLINE_S", 0.5)
    program = install(tmp_path)
    record = await left_alive(program, tmp_path)
    (tmp_path / "codex.sock").unlink()
    async with supervising(program, tmp_path, record=record) as ran:
        assert not (await ran.ready()).adopted
        (exit_,) = ran.told.all(RuntimeExit)
        assert (exit_.runtime_id, exit_.cause) == (record.runtime_id, "unresponsive")
        assert "nobody listens" in exit_.reason
        assert not is_alive(ProcessIdentity(record.pid, record.start_time))


async def test_unrecorded_process_on_our_socket_is_ended_first(tmp_path: Path) -> None:
    """BOOT-10: the daemon died between the start of the process and its record. Never two."""
    program = install(tmp_path)
    record = await left_alive(program, tmp_path)
    async with supervising(program, tmp_path, record=None) as ran:
        assert not (await ran.ready()).adopted
        assert not is_alive(ProcessIdentity(record.pid, record.start_time))
        assert not ran.told.all(RuntimeExit)


async def test_frozen_process_of_an_earlier_daemon_is_replaced_when_asked(tmp_path: Path) -> None:
    program = install(tmp_path)
    record = await left_alive(program, tmp_path)
    os.kill(record.pid, signal.SIGSTOP)
    async with supervising(program, tmp_path, record=record) as ran:
        await ran.told.until(lambda: ran.supervisor.status.adopted)
        ran.supervisor.restart()
        exit_ = await ran.told.nth(RuntimeExit)
        assert (exit_.runtime_id, exit_.cause) == (record.runtime_id, "restart")
        assert not (await ran.ready()).adopted


async def test_cancelled_supervisor_ends_a_process_on_pipes_and_leaves_one_on_a_socket(tmp_path: Path) -> None:
    """A crash of the daemon: what can be adopted is worth more alive; what cannot would hold the locks for nobody."""
    for transport in ("stdio", "unix"):
        folder = tmp_path / transport
        folder.mkdir()
        told = Recorder()
        with trio.CancelScope() as scope:
            async with supervising(install(folder), folder, transport=transport, told=told, leave=True) as ran:
                await ran.ready()
                scope.cancel()
                await trio.sleep_forever()
        (record,) = told.all(RuntimeRecord)
        process = ProcessIdentity(record.pid, record.start_time)
        assert is_alive(process) == (transport == "unix")
        os.killpg(record.pid, signal.SIGKILL) if transport == "unix" else None
