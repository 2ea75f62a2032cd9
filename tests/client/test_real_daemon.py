"""The library as a program uses it: the whole daemon, the real Codex."""

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
import trio
from support.daemon import Daemon, open_daemon

from termald.cli.demonstration.house import House, open_house
from termald.client import DaemonNotRunning, Request, Termald, TurnAccumulator, blocking, connect
from termald.client.events import Done, ItemDelta, SessionEvent
from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server

pytestmark = pytest.mark.real
DEADLINE_S = 60


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    model = ScriptedModel()
    async with open_server(model) as url, open_daemon(tmp_path, model, url) as daemon:
        yield daemon


@pytest.fixture
async def termald(daemon: Daemon) -> AsyncIterator[Termald]:
    with trio.fail_after(DEADLINE_S):
        async with connect(runtime_dir=daemon.runtime_dir, state_dir=daemon.state) as termald:
            yield termald


async def test_a_run_over_a_crash_of_the_daemon_tells_everything_once(daemon: Daemon, termald: Termald) -> None:
    session = await termald.session("s", cwd=daemon.cwd)
    turn, seen = TurnAccumulator(), list[int]()
    async with session.run("@say begun\n@hold gate\n@say whole", key="the job") as run:
        async for event in run:
            seen.append(event.seq)
            turn.feed(event)
            if isinstance(event, ItemDelta) and event.delta.startswith("begun"):
                await daemon.end(signal.SIGKILL)
                await daemon.start()
                daemon.model.release("gate")
    assert seen == sorted(set(seen))
    assert (turn.text, run.done and run.done.ok) == ("begun\nwhole", True)
    # Again with the same key, as a program does that crashed itself: told again, and not run again.
    again = await session.ask("@say begun\n@hold gate\n@say whole", key="the job")
    assert (again.text, again.done) == (turn.text, turn.done)
    assert len(daemon.model.calls) == 1
    finals = [item.item["text"] for item in await session.items() if item.type == "agentMessage"]
    assert finals == [item.item["text"] for item in again.committed_items if item.type == "agentMessage"]


async def test_leaving_early_leaves_the_turn_and_cancel_ends_it(daemon: Daemon, termald: Termald) -> None:
    session = await termald.session("s", cwd=daemon.cwd)
    async for event in session.run("@say one\n@hold gate\n@say two"):
        if isinstance(event, ItemDelta):
            break
    gc.collect()  # an iterator that was only left must not complain, nor end anything
    assert (await session.info()).status == "running"
    done = await session.cancel()
    assert done is not None
    assert done.state == "cancelled"
    assert (await session.info()).status == "ready"
    assert await session.cancel() is None


async def test_an_approval_is_the_callers_alone(daemon: Daemon, termald: Termald) -> None:
    session = await termald.session("s", cwd=daemon.cwd)
    asked: list[str] = []

    async def look_away(request: Request) -> None:
        asked.append(request.about)

    async def accept(request: Request) -> None:
        await request.accept()

    run = session.run("@shell touch made\n@say done", on_request=look_away)
    while not asked:
        await anext(run)
    assert "touch made" in asked[0]
    (request,) = await session.requests()
    assert not (daemon.cwd / "made").exists()
    await accept(request)
    assert (await run.drain()).ok
    assert (daemon.cwd / "made").exists()
    refused = await session.ask("@shell touch never\n@say done", on_request=lambda request: request.decline())
    assert refused.done is not None
    assert (refused.done.state, refused.text) == ("normal", "done")
    assert not (daemon.cwd / "never").exists()


async def test_asyncio_users_have_the_same(daemon: Daemon) -> None:
    def in_a_thread_of_its_own() -> str:
        async def main() -> str:
            async with connect(runtime_dir=daemon.runtime_dir, state_dir=daemon.state) as termald:
                session = await termald.session("s", cwd=daemon.cwd)
                async for event in session.run("@say left early"):
                    if isinstance(event, ItemDelta):
                        break
                return (await session.ask("@say to asyncio")).text

        return anyio.run(main, backend="asyncio")

    assert await trio.to_thread.run_sync(in_a_thread_of_its_own) == "to asyncio"


async def test_a_script_needs_no_await(daemon: Daemon) -> None:
    def script() -> tuple[str, list[bool], bool]:
        with blocking.connect(runtime_dir=daemon.runtime_dir, state_dir=daemon.state) as termald:
            session = termald.session("s", cwd=daemon.cwd)
            ends = [isinstance(event, Done) for event in session.run("@say hello")]
            text = session.ask("@shell touch made\n@say made it", on_request=lambda request: request.accept()).text
            assert [info.id for info in termald.sessions()] == ["s"]
            return text, ends, session.kill().killed

    text, ends, killed = await trio.to_thread.run_sync(script)
    assert text == "made it"
    assert (ends[-1], ends.count(True), killed) == (True, 1, True)
    assert (daemon.cwd / "made").exists()


async def test_a_script_can_change_a_sessions_course(daemon: Daemon) -> None:
    """Fork, revert, steer, take back, and requests as they come: each over the thread that the calls are handed to."""

    def script() -> None:
        with blocking.connect(runtime_dir=daemon.runtime_dir, state_dir=daemon.state) as termald:
            session = termald.session("s", cwd=daemon.cwd)
            session.ask("@say one")
            session.ask("@say two")
            assert session.fork(id="beside").id == "beside"
            assert session.revert(turns=1).status == "ready"
            assert [item.item["text"] for item in session.items() if item.type == "agentMessage"] == ["one"]
            run = session.run("@shell touch made\n@say done")
            run.submit()
            request = next(termald.requests(session_id="s"))
            later = session.send("@say never")
            sooner = session.send("@say never either")
            assert [prompt.id for prompt in session.reorder(sooner.id)] == [sooner.id, later.id]
            assert [session.take_back(prompt.id).state for prompt in (later, sooner)] == ["cancelled"] * 2
            request.decline()
            done = run.drain()
            assert (done.ok, run.done) == (True, done)
            assert not (daemon.cwd / "made").exists()
            assert termald.ready().ready
            again = session.follow(run.prompt_id or "")
            assert again.drain() == done
            session.archive()
            held = session.run("@say back")
            why = next(event.error for event in held if isinstance(event, SessionEvent) and event.error is not None)
            assert why.slug == "thread-archived"
            session.unarchive()  # what waited for that goes on
            assert held.drain().ok
            assert termald.account()["state"] == "ready"

    with trio.fail_after(DEADLINE_S):
        await trio.to_thread.run_sync(script, abandon_on_cancel=True)


def test_connect_says_what_to_start_or_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_house(keep=False) as house:
        house.codex_home.mkdir()
        for name in [name for name in os.environ if name.startswith(("TERMALD_", "CODEX_", "XDG_"))]:
            monkeypatch.delenv(name)
        for name, value in house.environment().items():
            monkeypatch.setenv(name, value)

        async def main() -> int | None:
            with pytest.raises(DaemonNotRunning, match="termald serve"):
                async with connect():
                    pass
            async with connect(start=True) as termald:
                assert (await termald.version()).termald
            async with connect():  # it stays
                return _pid(house)

        pid = anyio.run(main, backend="trio")
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


def _pid(house: House) -> int | None:
    found = subprocess.run(
        [sys.executable, "-m", "termald", "status", "--json"],
        env=house.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(json.loads(found.stdout)["daemon"]["pid"])
