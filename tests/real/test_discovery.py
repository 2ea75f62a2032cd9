"""What other front-ends do in Codex's home reaches the daemon by itself: once, and without a scan being asked for."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from support.codex_process import codex_binaries, open_codex
from support.codex_socket import SocketConnection
from support.daemon import Daemon, Json, open_daemon
from trio_websocket import wrap_client_stream

from termald.scripted_model.config import write_codex_home
from termald.scripted_model.model import ScriptedModel

pytestmark = pytest.mark.real
CODEX = codex_binaries()["installed"]


@pytest.fixture
async def daemon(model: ScriptedModel, base_url: str, tmp_path: Path) -> AsyncIterator[Daemon]:
    async with open_daemon(tmp_path, model, base_url, TERMALD_DISCOVERY_WATCH_MS="100") as daemon:
        await daemon.wait_ready()
        yield daemon


@contextlib.asynccontextmanager
async def other_client(daemon: Daemon) -> AsyncIterator[SocketConnection]:
    """Another front-end on the daemon's own app-server."""
    async with trio.open_nursery() as nursery:
        stream = await trio.open_unix_socket(str((daemon.runtime_dir / "codex.sock").resolve()))
        websocket = await wrap_client_stream(nursery, stream, "localhost", "/", max_message_size=1 << 26)
        connection = SocketConnection(daemon.home / "other.stderr", stream, websocket)
        nursery.start_soon(connection.read)
        await connection.initialize()
        yield connection
        nursery.cancel_scope.cancel()


async def session_of(daemon: Daemon, thread: str) -> Json | None:
    sessions = (await daemon.get("/api/sessions"))["data"]
    found = [session for session in sessions if session["threadId"] == thread]
    assert len(found) <= 1, "nothing doubles"
    return found[0] if found else None


async def until(daemon: Daemon, thread: str, **fields: Any) -> Json:
    """Wait until the thread's session is so, and return it."""
    last: list[Json | None] = [None]

    async def is_so() -> bool:
        last[0] = await session_of(daemon, thread)
        return last[0] is not None and all(last[0][name] == value for name, value in fields.items())

    with contextlib.suppress(AssertionError):
        await daemon.until(is_so, f"{thread} with {fields}")
        assert last[0] is not None
        return last[0]
    raise AssertionError(f"waited for {fields}; the session is {last[0]}\n{daemon.log.read_text()[-2000:]}")


async def test_what_another_process_does_arrives_by_itself(daemon: Daemon) -> None:
    async with open_codex(CODEX, daemon.home) as other:
        thread = await other.start_thread(daemon.cwd)
        await other.run_turn(thread, "hello from elsewhere")
        found = await until(daemon, thread, messageCount=2)
        assert (found["origin"], found["status"], found["home"]) == ("discovered", "detached", None)
        assert (found["preview"], found["cwd"]) == ("hello from elsewhere", str(daemon.cwd))
        await other.run_turn(thread, "and more")
        await until(daemon, thread, messageCount=4, id=found["id"])
        await other.request("thread/name/set", {"threadId": thread, "name": "A name"})
        await until(daemon, thread, title="A name", id=found["id"])
        await other.request("thread/archive", {"threadId": thread})
        await until(daemon, thread, archived=True, id=found["id"])
        await other.request("thread/unarchive", {"threadId": thread})
        await until(daemon, thread, archived=False, id=found["id"])
    await daemon.prompt(found["id"], "and from here")
    (done,) = await daemon.wait_done(found["id"])
    assert done["state"] == "normal"
    created = [event for event in await daemon.events() if event["kind"] == "session/created"]
    assert [event["sessionId"] for event in created] == [found["id"]]
    told = [event for event in await daemon.events() if event["kind"] == "discovery/imported"]
    assert [(event["count"], event["home"], event["sessions"]) for event in told] == [
        (1, str(daemon.home), [{"sessionId": found["id"], "threadId": thread}])
    ]
    assert (await session_of(daemon, thread) or {})["threadId"] == thread


async def test_what_another_client_of_the_same_process_does_arrives_by_itself(daemon: Daemon) -> None:
    async with other_client(daemon) as other:
        thread = await other.start_thread(daemon.cwd)
        await other.run_turn(thread, "hello from beside")
        found = await until(daemon, thread, messageCount=2)
        assert found["origin"] == "discovered"
        await other.request("thread/name/set", {"threadId": thread, "name": "A name"})
        await until(daemon, thread, title="A name")
        await other.request("thread/archive", {"threadId": thread})
        await until(daemon, thread, archived=True)
        await other.request("thread/unarchive", {"threadId": thread})
        await until(daemon, thread, archived=False)
        await other.request("thread/delete", {"threadId": thread})
        lost = await until(daemon, thread, status="error")
        assert (lost["id"], lost["lastError"]["slug"]) == (found["id"], "resume-lost")


async def test_a_dry_run_tells_what_a_scan_would_do_and_does_none_of_it(
    model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    async with open_daemon(tmp_path, model, base_url, TERMALD_DISCOVERY_ENABLED="false") as daemon:
        await daemon.create("ours", prompt={"input": "mine"})
        await daemon.wait_done("ours")
        async with open_codex(CODEX, daemon.home) as other:
            thread = await other.start_thread(daemon.cwd)
            await other.run_turn(thread, "theirs")
        report = (await daemon.post("/api/discovery/scan", {"dryRun": True}))["report"]
        assert [home["wouldBe"] for home in report] == [{"refresh": 1, "import": 1}]
        assert (await daemon.get("/api/threads"))["data"] == []
        assert await session_of(daemon, thread) is None
        await daemon.post("/api/discovery/scan")  # control
        await until(daemon, thread, messageCount=2)


async def test_a_foreign_home_is_read_and_its_trouble_is_its_own(
    model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    foreign, broken = tmp_path / "foreign", tmp_path / "broken"
    write_codex_home(foreign, base_url)
    (tmp_path / "elsewhere").mkdir()
    async with open_codex(CODEX, foreign) as other:
        thread = await other.start_thread(tmp_path / "elsewhere")
        await other.run_turn(thread, "in another home")
    broken.mkdir()
    (broken / "state_5.sqlite").write_bytes(b"no database" * 1000)
    (tmp_path / "d").mkdir()
    homes = f"{foreign},{broken}"
    async with open_daemon(tmp_path / "d", model, base_url, TERMALD_DISCOVERY_HOMES=homes) as daemon:
        found = await until(daemon, thread, messageCount=2, home=str(foreign))
        refused = await daemon.call("POST", f"/api/sessions/{found['id']}/prompts", {"input": "no"})
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:termald:problem:foreign-home")
        assert str(foreign) in refused.json()["detail"]
        for history in ("turns", "items"):
            unread = await daemon.call("GET", f"/api/sessions/{found['id']}/{history}")
            assert (unread.status_code, unread.json()["type"]) == (409, "urn:termald:problem:foreign-home")

        async def is_told() -> bool:
            discovery = await daemon.get("/api/discovery")
            return bool(discovery["status"] == "failed" and str(broken) in discovery["reason"])

        await daemon.until(is_told, "the trouble of the broken home")
        assert (await daemon.call("GET", "/api/ready")).json()["parts"]["discovery"]["state"] == "failed"
        await daemon.create("ours", prompt={"input": "goes on"})
        assert (await daemon.wait_done("ours"))[0]["state"] == "normal"


async def test_a_found_sessions_history_is_read_through_codex_before_and_after_its_first_prompt(daemon: Daemon) -> None:
    async with open_codex(CODEX, daemon.home) as other:
        thread = await other.start_thread(daemon.cwd)
        for text in ("one", "two", "three"):
            await other.run_turn(thread, text)
        # The other process holds the thread: a read needs no writer's lock, and begins nothing.
        found = await until(daemon, thread, messageCount=6)
        path = f"/api/sessions/{found['id']}"
        assert await texts(daemon, path) == ["one", "two", "three"]
        assert (await session_of(daemon, thread) or {})["status"] == "detached"
    await daemon.prompt(found["id"], "four")
    await daemon.wait_done(found["id"])
    assert await texts(daemon, path) == ["one", "two", "three", "four"]
    turns = (await daemon.get(f"{path}/turns"))["data"]
    assert [(turn["ours"], turn["state"]) for turn in turns] == [(True, "normal"), *[(False, "normal")] * 3]
    assert turns[0]["usage"]["totalTokens"] > 0
    one = (await daemon.get(f"{path}/items?turnId={turns[-1]['id']}"))["data"]
    assert [item["type"] for item in one] == ["userMessage", "agentMessage"]


async def texts(daemon: Daemon, path: str) -> list[str]:
    """What the user said, read in pages of three items."""
    said, cursor = [], ""
    while True:
        page = await daemon.get(f"{path}/items?limit=3{cursor}")
        said += [item["item"]["content"][0]["text"] for item in page["data"] if item["type"] == "userMessage"]
        if page["nextCursor"] is None:
            return said
        cursor = f"&cursor={page['nextCursor']}"


async def test_a_rollout_that_is_torn_or_gone_is_its_sessions_trouble_alone(daemon: Daemon) -> None:
    threads = []
    async with open_codex(CODEX, daemon.home) as other:
        for text in ("whole", "torn", "gone", "junk"):
            threads.append(await other.start_thread(daemon.cwd))
            await other.run_turn(threads[-1], text)
    whole, torn, gone, junk = threads
    rollouts = {thread: next(daemon.home.rglob(f"rollout-*{thread}.jsonl")) for thread in threads}
    for thread in threads:
        await until(daemon, thread, messageCount=2)
    with rollouts[torn].open("ab") as file:
        file.write(b'{"timestamp":"2026-11-30T10:00:00.000Z","type":"event_msg","payl')
    rollouts[junk].write_bytes(b"\x00\xff no rollout\n" * 10)
    rollouts[gone].unlink()
    await daemon.post("/api/discovery/scan")
    lost = await until(daemon, gone, status="error")
    assert lost["lastError"]["slug"] == "rollout-missing"
    for thread in (whole, torn):
        session = await until(daemon, thread, messageCount=2, status="detached")
        assert await texts(daemon, f"/api/sessions/{session['id']}") == ["whole" if thread == whole else "torn"]
    broken = await until(daemon, junk, messageCount=2)
    answer = await daemon.call("GET", f"/api/sessions/{broken['id']}/items")
    assert answer.status_code in (200, 502), answer.text
    (home,) = (await daemon.get("/api/discovery"))["report"]
    assert home["error"] is None
    assert {one["example"] for one in home["uncounted"]} <= {gone, junk}


async def test_a_phantom_is_offered_with_evidence_and_what_was_said_in_is_not(daemon: Daemon) -> None:
    await daemon.create("phantom")
    await daemon.create("full", prompt={"input": "something"})
    await daemon.wait_done("full")
    await daemon.create("taken-back")
    (shown, other) = sorted((await daemon.get("/api/phantoms"))["data"], key=lambda one: one["sessionId"])
    assert (shown["sessionId"], other["sessionId"]) == ("phantom", "taken-back")
    assert shown["evidence"]["codex"]["thread"] == "none"
    await daemon.prompt("taken-back", "it lives")
    killed = await daemon.post("/api/phantoms/kill")
    assert killed["killed"] == ["phantom"]
    assert (await daemon.call("GET", "/api/sessions/phantom")).status_code == 404
    assert (await daemon.wait_done("taken-back"))[0]["state"] == "normal"


async def test_a_thread_that_another_process_writes_is_busy_elsewhere_until_that_ends(daemon: Daemon) -> None:
    async with open_codex(CODEX, daemon.home) as other:
        thread = await other.start_thread(daemon.cwd)
        await other.run_turn(thread, "mine")
        found = await until(daemon, thread, messageCount=2)
        (shown,) = (await daemon.get("/api/threads"))["data"]
        assert (shown["busyElsewhere"], shown["class"]) == (True, "owned")
        refused = await daemon.call("POST", f"/api/sessions/{found['id']}/prompts", {"input": "no"})
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:termald:problem:active-elsewhere")
        assert f"process {other.pid}" in refused.json()["detail"]
    await daemon.prompt(found["id"], "now it goes")
    assert (await daemon.wait_done(found["id"]))[0]["state"] == "normal"
    (shown,) = (await daemon.get("/api/threads"))["data"]
    assert (shown["busyElsewhere"], shown["threadId"]) == (False, thread)


async def test_a_state_db_that_the_environment_moved_is_found(
    model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    async with open_daemon(tmp_path, model, base_url, CODEX_SQLITE_HOME=str(moved)) as daemon:
        await daemon.create("s", prompt={"input": "hello"})
        await daemon.wait_done("s")
        await daemon.post("/api/discovery/scan")

        async def is_known() -> bool:
            return [one["sessionId"] for one in (await daemon.get("/api/threads"))["data"]] == ["s"]

        await daemon.until(is_known, "the thread")
        (home,) = (await daemon.get("/api/discovery"))["report"]
        assert Path(home["stateFile"]).parent == moved
        assert list(daemon.home.glob("state_*.sqlite")) == []


async def test_a_killed_found_session_comes_back_by_the_users_word_alone(daemon: Daemon) -> None:
    """DISC-13."""
    async with open_codex(CODEX, daemon.home) as other:
        thread = await other.start_thread(daemon.cwd)
        await other.run_turn(thread, "found")
        found = await until(daemon, thread, messageCount=2)
        await daemon.post(f"/api/sessions/{found['id']}/kill")
        await other.run_turn(thread, "more")  # the state DB changes, and a scan sees the thread

        async def is_seen() -> bool:
            (entry,) = (await daemon.get("/api/ignored-threads"))["data"]
            return entry["lastSeenAt"] is not None

        await daemon.until(is_seen, "a scan that meets the ignored thread")
        assert await session_of(daemon, thread) is None
    assert (await daemon.call("DELETE", f"/api/ignored-threads/{thread}")).status_code == 200
    back = await until(daemon, thread, messageCount=4)
    assert back["id"] != found["id"]
    assert (await daemon.get("/api/ignored-threads"))["data"] == []


async def test_the_items_of_a_thread_that_an_older_codex_wrote_are_read_by_its_turns(daemon: Daemon) -> None:
    async with open_codex(CODEX, daemon.home) as other:
        thread = await other.start_thread(daemon.cwd, historyMode="legacy")
        for number in range(22):
            await other.run_turn(thread, f"say {number}")
        found = await until(daemon, thread, messageCount=44)
        read = await other.request("thread/read", {"threadId": thread, "includeTurns": True})
    path = f"/api/sessions/{found['id']}/items"
    recorded = [(turn["id"], item["id"]) for turn in read["thread"]["turns"] for item in turn["items"]]
    assert len(recorded) == 44

    async def paged(limit: int, **query: str) -> list[tuple[str, str]]:
        rows: list[tuple[str, str]] = []
        cursor: str | None = ""
        while cursor is not None:
            filters = "".join(f"&{name}={value}" for name, value in query.items())
            page = await daemon.get(f"{path}?limit={limit}{filters}" + (f"&cursor={cursor}" if cursor else ""))
            assert len(page["data"]) <= limit
            rows += [(item["turnId"], item["id"]) for item in page["data"]]
            cursor = page["nextCursor"]
        return rows

    assert await paged(500) == recorded
    assert await paged(7) == recorded
    assert await paged(11, order="desc") == recorded[::-1]
    assert await paged(5, turnId=recorded[3][0]) == recorded[2:4]
