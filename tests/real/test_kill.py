"""Kill on the real Codex, at every moment of a session's life: committed first, idempotent, and nothing comes back."""

import os
import signal
import sqlite3
from pathlib import Path

import pytest
from support.daemon import Daemon, Json

pytestmark = pytest.mark.real


async def is_gone(daemon: Daemon, session: str, thread: str | None) -> None:
    """The session is gone, its thread is ignored, and a scan does not bring it back."""
    assert (await daemon.call("GET", f"/api/sessions/{session}")).status_code == 404
    ignored = [entry["threadId"] for entry in (await daemon.get("/api/ignored-threads"))["data"]]
    assert (thread in ignored) if thread is not None else True
    last = (await daemon.events())[-1]["seq"]
    await daemon.post("/api/discovery/scan")
    await daemon.wait_event(
        lambda event: event["kind"] == "discovery/finished" and event["seq"] > last, what="the end of a scan"
    )
    sessions = (await daemon.get("/api/sessions"))["data"]
    assert thread not in [one["threadId"] for one in sessions] if thread is not None else True
    assert session not in [one["id"] for one in sessions]
    again = await daemon.post(f"/api/sessions/{session}/kill", {})
    assert (again["killed"], again["threadId"]) == (True, thread)


def archived(daemon: Daemon) -> dict[str, bool]:
    """Return Codex's threads, and whether each is archived."""
    (path,) = daemon.home.glob("state_*.sqlite")
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        return {thread: bool(flag) for thread, flag in database.execute("select id, archived from threads")}


async def test_a_session_that_never_had_a_thread(daemon: Daemon) -> None:
    await daemon.create("ghost")
    dry = await daemon.post("/api/sessions/ghost/kill", {"dryRun": True})
    assert (dry["killed"], dry["dryRun"], dry["ignored"]) == (False, True, False)
    assert (await daemon.session("ghost"))["status"] == "detached"
    assert (await daemon.post("/api/sessions/ghost/kill", {}))["killed"] is True
    await is_gone(daemon, "ghost", None)


async def test_in_the_middle_of_a_turn_whose_tool_runs(daemon: Daemon) -> None:
    marker = daemon.cwd / "pid"
    command = f"echo $$ > {marker}.new && mv {marker}.new {marker} && exec sleep 600"
    await daemon.create("s", runtimeMode="full-access", prompt={"input": f"@shell {command}\n@say done"})
    await daemon.until(marker.exists, "the tool")
    thread = (await daemon.session("s"))["threadId"]
    killed = await daemon.post("/api/sessions/s/kill", {})
    assert (killed["killed"], killed["ignored"]) == (True, True)
    assert set(killed["upstream"]) >= {"interrupt", "unsubscribe"}
    pid = int(marker.read_text())
    await daemon.until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the tool process")
    await is_gone(daemon, "s", thread)


async def test_while_it_waits_for_an_approval(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@shell touch made\n@say done"})
    await daemon.wait_event(lambda event: event["kind"] == "request/opened", what="the approval")
    thread = (await daemon.session("s"))["threadId"]
    await daemon.post("/api/sessions/s/kill", {})
    assert (await daemon.get("/api/requests"))["data"] == []
    await is_gone(daemon, "s", thread)
    assert not (daemon.cwd / "made").exists()


async def test_while_its_thread_is_being_opened(daemon: Daemon) -> None:
    await daemon.wait_ready()
    codex = (await daemon.get("/api/runtime"))["pid"]
    os.kill(codex, signal.SIGSTOP)
    try:
        await daemon.create("s", prompt={"input": "hello"})
        assert (await daemon.session("s"))["status"] == "connecting"
        killed = await daemon.post("/api/sessions/s/kill", {})
        assert (killed["killed"], killed["threadId"]) == (True, None)
    finally:
        os.kill(codex, signal.SIGCONT)
    await daemon.wait_event(lambda event: event["kind"] == "thread/ignored", what="the late thread's fate")
    await is_gone(daemon, "s", None)
    assert (await daemon.get("/api/threads?class=orphan"))["data"] == []
    assert daemon.model.calls == ()


@pytest.mark.parametrize("wanted", ["archive", "delete"])
async def test_its_thread_is_archived_or_deleted_upstream(daemon: Daemon, wanted: str) -> None:
    await daemon.create("s", prompt={"input": "hello"})
    await daemon.wait_done("s")
    thread = (await daemon.session("s"))["threadId"]
    killed = await daemon.post("/api/sessions/s/kill", {"thread": wanted})
    assert killed["upstream"][wanted] == "ok"
    assert archived(daemon) == ({thread: True} if wanted == "archive" else {})
    await is_gone(daemon, "s", thread)


@pytest.mark.parametrize("wanted", ["archive", "delete"])
async def test_what_was_wanted_upstream_is_done_after_a_crash_of_both(daemon: Daemon, wanted: str) -> None:
    """The decision is committed while Codex is deaf; then both die."""
    await daemon.create("s", prompt={"input": "hello"})
    await daemon.wait_done("s")
    await daemon.post("/api/sessions/s/stop")
    thread = (await daemon.session("s"))["threadId"]
    codex = (await daemon.get("/api/runtime"))["pid"]
    os.kill(codex, signal.SIGSTOP)
    async with daemon.client() as client:
        answer = (await client.post("/api/sessions/s/kill", json={"thread": wanted}, timeout=60)).json()
    assert answer["killed"] is True
    assert (answer["upstream"] or {}).get(wanted) != "ok"
    await daemon.end(signal.SIGKILL)
    daemon.end_codex()
    assert archived(daemon) == {thread: False}
    await daemon.start()
    await daemon.wait_ready()
    expected = {thread: True} if wanted == "archive" else {}
    await daemon.until(lambda: archived(daemon) == expected, f"{wanted} after the crash")
    await is_gone(daemon, "s", thread)


async def test_without_a_process(daemon: Daemon) -> None:
    """Codex cannot start: kill works all the same."""
    await daemon.create("s", prompt={"input": "hello"})
    await daemon.wait_done("s")
    thread = (await daemon.session("s"))["threadId"]
    await daemon.end()
    daemon.environment["TERMALD_CODEX_BIN"] = "/bin/false"
    await daemon.start()
    killed: Json = await daemon.post("/api/sessions/s/kill", {})
    assert (killed["killed"], killed["ignored"], killed["upstream"]) == (True, True, None)
    await is_gone(daemon, "s", thread)
