"""Where Codex's state DB cannot be read, its own list tells the threads: the same ones, and none of ours as somebody
else's."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.codex_process import codex_binaries, open_codex
from support.daemon import Daemon, Json, open_daemon

from termald.scripted_model.model import ScriptedModel

pytestmark = pytest.mark.real
CODEX = codex_binaries()["installed"]


@contextlib.asynccontextmanager
async def unreadable(tmp_path: Path, model: ScriptedModel, base_url: str) -> AsyncIterator[tuple[Daemon, Json]]:
    """A daemon whose Codex runs on, while what lies at its state DB's place is not one. Nothing was scanned before.

    Yields with it the thread of each name: of another program `theirs` and `gone`, which is archived; of ours `kept`,
    `killed`, and `lost`, of which there is no record.
    """
    async with open_daemon(tmp_path, model, base_url, TERMALD_DISCOVERY_ENABLED="false") as daemon:
        await daemon.wait_ready()
        threads: Json = {}
        async with open_codex(CODEX, daemon.home) as other:
            for name in ("theirs", "gone"):
                threads[name] = await other.start_thread(daemon.cwd)
                await other.run_turn(threads[name], f"words of {name}")
            await other.request("thread/archive", {"threadId": threads["gone"]})
        async with open_codex(CODEX, daemon.home, name="termald") as lost:
            host = (await daemon.get("/api/state"))["host"]["id"]
            threads["lost"] = await lost.start_thread(daemon.cwd, threadSource=f"termald:{host}:nobody:1")
            await lost.run_turn(threads["lost"], "words of ours")
        for name in ("kept", "killed"):
            await daemon.create(name, prompt={"input": "mine"})
            await daemon.wait_done(name)
            threads[name] = (await daemon.session(name))["threadId"]
        await daemon.post("/api/sessions/killed/kill", {})
        for path in daemon.home.glob("state_*"):
            path.unlink()
        (daemon.home / "state_5.sqlite").write_bytes(b"no database" * 1000)
        yield daemon, threads


async def scanned(daemon: Daemon) -> Json:
    """Scan, and return the first home's report."""
    last = (await daemon.events())[-1]["seq"]
    await daemon.post("/api/discovery/scan")
    ended = await daemon.wait_event(
        lambda event: event["kind"] == "discovery/finished" and event["seq"] > last, what="the end of a scan"
    )
    report: Json = ended["homes"][0]
    return report


async def test_what_the_state_db_does_not_tell_codex_does(model: ScriptedModel, base_url: str, tmp_path: Path) -> None:
    async with unreadable(tmp_path, model, base_url) as (daemon, threads):
        report = await scanned(daemon)
        assert (report["listed"], report["error"], report["told"]) == (True, None, 5)
        assert "not a database" in report["flaw"]
        sessions = {one["threadId"]: one for one in (await daemon.get("/api/sessions"))["data"]}
        assert set(sessions) == {threads["theirs"], threads["gone"], threads["kept"]}
        theirs = sessions[threads["theirs"]]
        assert (theirs["origin"], theirs["messageCount"], theirs["preview"], theirs["title"], theirs["cwd"]) == (
            "discovered", 2, "words of theirs", "words of theirs", str(daemon.cwd),
        )  # fmt: skip
        assert sessions[threads["kept"]]["origin"] == "created"
        again = await scanned(daemon)
        assert again["told"] == 0 and again["unchanged"] == 5, "only what changed is told again"
        await daemon.prompt(theirs["id"], "and from here")
        assert [done["state"] for done in await daemon.wait_done(theirs["id"])] == ["normal"]


async def test_a_thread_of_ours_that_nobody_remembers_is_no_session_of_somebody_else(
    model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    """The list tells no tag: taken for untagged, what we minted would come back as a stranger's work."""
    async with unreadable(tmp_path, model, base_url) as (daemon, threads):
        found = {one["threadId"]: one for one in await scanned_threads(daemon)}
        assert found[threads["lost"]]["class"] == "orphan"
        assert found[threads["lost"]]["reason"] == "minted for session 'nobody', of which there is no record"
        assert found[threads["theirs"]]["class"] == "owned"


async def scanned_threads(daemon: Daemon) -> list[Json]:
    await scanned(daemon)
    found: list[Json] = (await daemon.get("/api/threads"))["data"]
    return found
