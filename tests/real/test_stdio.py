"""The other transport: the app-server on our pipes, which ends with the daemon. For binaries without a control
socket."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.daemon import Daemon, open_daemon

from termald.codex.identity import ProcessIdentity, identify, is_alive
from termald.scripted_model.model import ScriptedModel

pytestmark = pytest.mark.real


@pytest.fixture
async def daemon(model: ScriptedModel, base_url: str, tmp_path: Path) -> AsyncIterator[Daemon]:
    async with open_daemon(tmp_path, model, base_url, TERMALD_CODEX_TRANSPORT="stdio") as daemon:
        yield daemon


async def codex_of(daemon: Daemon) -> ProcessIdentity:
    await daemon.wait_ready()
    identity = identify((await daemon.get("/api/runtime"))["pid"])
    assert identity is not None
    return identity


async def test_a_turn_of_many_pieces_comes_whole_over_pipes(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@deltas 500 size=40"})
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "normal"
    assert (await daemon.get("/api/runtime"))["transport"] == "stdio"
    events = await daemon.events(session="s")
    told = "".join(event["delta"] for event in events if event["kind"] == "item/delta")
    items = (await daemon.get("/api/sessions/s/items"))["data"]
    (text,) = [item["item"]["text"] for item in items if item["type"] == "agentMessage"]
    assert told == text
    assert len(text) == 500 * 40


async def test_it_ends_with_the_daemon_however_that_ends(daemon: Daemon) -> None:
    first = await codex_of(daemon)
    assert await daemon.end() == 0
    assert not is_alive(first)
    await daemon.start()
    second = await codex_of(daemon)
    await daemon.end(signal.SIGKILL)
    await daemon.until(lambda: not is_alive(second), "the end of Codex with its pipe")
    await daemon.start()


async def test_what_a_killed_daemon_left_running_is_settled_and_its_queue_goes_on(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@hold forever"})
    await daemon.prompt("s", "then this")
    await daemon.model.wait_held("forever")
    first = await codex_of(daemon)
    await daemon.end(signal.SIGKILL)
    await daemon.until(lambda: not is_alive(first), "the end of Codex with its pipe")
    await daemon.start()
    (cut, whole) = await daemon.wait_done("s", 2)
    assert (cut["state"], whole["state"]) == ("error", "normal")
    second = await codex_of(daemon)
    assert second != first
