"""A daemon goes, another comes, and Codex lives: what ran goes on, what waited is answered, nothing is told twice."""

import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import trio
from support.crash_records import read_codex_store
from support.daemon import Daemon, Json

from termald.codex.identity import identify

pytestmark = pytest.mark.real


@pytest.fixture
def leaving(daemon: Daemon) -> Daemon:
    """A daemon whose next start leaves Codex alone at SIGTERM."""
    daemon.environment["TERMALD_CODEX_ON_SHUTDOWN"] = "leave"
    return daemon


async def restart(daemon: Daemon, number: signal.Signals = signal.SIGKILL) -> None:
    status = await daemon.end(number)
    assert status == (0 if number == signal.SIGTERM else -number)
    await daemon.start()
    await daemon.wait_ready()


@contextmanager
def database(daemon: Daemon) -> Iterator[sqlite3.Connection]:
    """The daemon's own database, while it does not run."""
    with closing(sqlite3.connect(daemon.state / "termald.sqlite")) as opened, opened:
        yield opened


async def ends(daemon: Daemon, session: str) -> list[Json]:
    return [event for event in await daemon.events(session=session) if event["kind"] == "turn/done"]


async def test_an_approval_survives_the_daemon_and_its_command_runs_once(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@shell echo once >> ran\n@say done"})
    await daemon.prompt("s", "queued behind it")
    await daemon.wait_event(lambda event: event["kind"] == "request/opened", what="the approval")
    (before,) = (await daemon.get("/api/requests"))["data"]
    await restart(daemon)

    async def is_back() -> bool:
        cards = (await daemon.get("/api/requests"))["data"]
        return [card["id"] for card in cards] == [before["id"]] and cards[0]["attachment"] != before["attachment"]

    await daemon.until(is_back, "the same card under a new attachment")
    answer = await daemon.post(f"/api/sessions/s/requests/{before['id']}", {"decision": "accept"})
    assert answer["status"] == "answered"
    first, second = await daemon.wait_done("s", 2)
    assert (first["state"], second["state"]) == ("normal", "normal")
    assert (daemon.cwd / "ran").read_text() == "once\n"
    events = await daemon.events(session="s")
    assert sum(event["kind"] == "request/opened" for event in events) == 1
    # One model call before the crash or after it each: a resume repeats the last count of a thread.
    calls = [call for call in daemon.model.calls if call.turn_id == first["turnId"]]
    assert first["tokens"]["input"] == 100 * len(calls)


async def test_a_decision_that_was_committed_reaches_codex_across_the_crash(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@shell echo once >> ran\n@say done"})
    opened = await daemon.wait_event(lambda event: event["kind"] == "request/opened", what="the approval")
    codex = (await daemon.get("/api/runtime"))["pid"]
    os.kill(codex, signal.SIGSTOP)  # it reads nothing: the answer dies with the connection, or is read later
    try:
        await daemon.post(f"/api/sessions/s/requests/{opened['requestId']}", {"decision": "accept"})
        await daemon.end(signal.SIGKILL)
    finally:
        os.kill(codex, signal.SIGCONT)
    await daemon.start()
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "normal"
    assert (daemon.cwd / "ran").read_text() == "once\n"


async def test_a_planned_restart_disturbs_no_turn_and_tells_what_was_missed_once(leaving: Daemon) -> None:
    daemon = leaving
    await restart(daemon)  # from here on it leaves Codex
    codex = await daemon.get("/api/runtime")
    await daemon.create("over", prompt={"input": "@say begun\n@hold first\n@say ended meanwhile"})
    await daemon.create("runs", prompt={"input": "@say begun\n@hold second\n@say middle\n@hold third\n@say whole"})
    await daemon.prompt("runs", "queued behind it")
    await daemon.model.wait_held("first")
    await daemon.model.wait_held("second")
    assert await daemon.end(signal.SIGTERM) == 0
    daemon.model.release("first")
    daemon.model.release("second")
    await daemon.model.wait_held("third")
    await daemon.until(lambda: any(p.outcome == "completed" for p in daemon.model.calls), "the turn that ends alone")
    await daemon.start()
    await daemon.wait_ready()
    again = await daemon.get("/api/runtime")
    assert (again["id"], again["pid"], again["adopted"]) == (codex["id"], codex["pid"], True)
    daemon.model.release("third")
    (over,) = await daemon.wait_done("over")
    (runs, behind) = await daemon.wait_done("runs", 2)
    assert [end["state"] for end in (over, runs, behind)] == ["normal"] * 3
    for session, text in (("over", "begun\nended meanwhile"), ("runs", "begun\nmiddle\nwhole")):
        events = await daemon.events(session=session)
        turn = next(event["turnId"] for event in events if event["kind"] == "turn/started")
        told = [
            event["item"]["text"]
            for event in events
            if event["kind"] == "item/completed" and event["item"]["type"] == "agentMessage" and event["turnId"] == turn
        ]
        assert told == [text]
        assert len(await ends(daemon, session)) == len({end["turnId"] for end in await ends(daemon, session)})
    recorded = [item.client_id for item in read_codex_store(daemon.home).items]
    assert len(recorded) == len(set(recorded)) == 3


async def test_an_interrupt_that_was_promised_is_kept_across_the_crash(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@hold forever\n@say never"})
    await daemon.prompt("s", "goes on")
    await daemon.model.wait_held("forever")
    codex = (await daemon.get("/api/runtime"))["pid"]
    os.kill(codex, signal.SIGSTOP)
    try:
        assert (await daemon.call("POST", "/api/sessions/s/interrupt")).status_code == 202
        await daemon.end(signal.SIGKILL)
    finally:
        os.kill(codex, signal.SIGCONT)
    await daemon.start()
    cut, whole = await daemon.wait_done("s", 2)
    assert (cut["state"], whole["state"]) == ("cancelled", "normal")


async def test_a_record_that_names_a_stranger_harms_nobody(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "first"})
    await daemon.wait_done("s")
    await daemon.end(signal.SIGKILL)
    daemon.end_codex()
    stranger = await trio.lowlevel.open_process(["sleep", "600"])
    try:
        identity = identify(stranger.pid)
        assert identity is not None
        with database(daemon) as opened:
            opened.execute("update runtimes set pid = ?, start_time = ?", (stranger.pid, identity.start_time))
        await daemon.start()
        await daemon.prompt("s", "second")
        assert (await daemon.wait_done("s", 2))[-1]["state"] == "normal"
        assert stranger.poll() is None
        runtime = await daemon.get("/api/runtime")
        assert (runtime["adopted"], len(daemon.app_servers())) == (False, 1)
    finally:
        stranger.kill()
        await stranger.wait()


async def test_a_living_process_over_another_home_is_ended_and_its_turn_settled(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@hold forever"})
    await daemon.model.wait_held("forever")
    (codex,) = daemon.app_servers()
    await daemon.end(signal.SIGKILL)
    other = daemon.folder / "other-home"
    other.mkdir()
    (other / "config.toml").write_bytes((daemon.home / "config.toml").read_bytes())
    daemon.environment["CODEX_HOME"] = str(other)
    await daemon.start()
    await daemon.wait_ready()
    runtime = await daemon.get("/api/runtime")
    assert (runtime["codexHome"], runtime["adopted"]) == (str(other), False)
    assert codex not in daemon.app_servers()
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "error"


async def test_what_the_record_says_of_the_version_is_not_believed(daemon: Daemon) -> None:
    version = (await _ready_runtime(daemon))["codexVersion"]
    await daemon.end(signal.SIGKILL)
    with database(daemon) as opened:
        opened.execute("update runtimes set codex_version = '9.9.9'")
    await daemon.start()
    runtime = await _ready_runtime(daemon)
    assert (runtime["adopted"], runtime["codexVersion"]) == (True, version)


async def test_a_second_server_on_our_socket_is_ended_before_ours_starts(daemon: Daemon) -> None:
    await _ready_runtime(daemon)
    await daemon.end(signal.SIGKILL)
    daemon.end_codex()
    binary, socket = daemon.environment["TERMALD_CODEX_BIN"], daemon.runtime_dir / "codex.sock"
    environment = {"PATH": os.environ["PATH"], "HOME": str(daemon.folder), "CODEX_HOME": str(daemon.home)}
    second = await trio.lowlevel.open_process(
        [binary, "app-server", "--listen", f"unix://{socket}"],
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await daemon.until(lambda: second.pid in daemon.app_servers(), "the second server")
        await daemon.start()
        await _ready_runtime(daemon)
        assert await second.wait() is not None
        assert len(daemon.app_servers()) == 1
    finally:
        second.kill()


async def _ready_runtime(daemon: Daemon) -> Json:
    await daemon.wait_ready()
    return await daemon.get("/api/runtime")
