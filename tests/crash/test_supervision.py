"""A Codex that does not come up, freezes, or is replaced, seen from outside: a state, prompts that wait, a way back.

What each misbehaviour is and how it is ended stands in `tests/codex/test_supervisor.py`; here is what a user sees.
"""

import os
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from support.daemon import Daemon, Json

pytestmark = pytest.mark.real


async def state(daemon: Daemon, wanted: str) -> Json:
    """Wait for a state of the process, and return all that is said of it."""
    found: list[Json] = []

    async def is_so() -> bool:
        found[:] = [await daemon.get("/api/runtime")]
        return bool(found[0]["status"] == wanted)

    await daemon.until(is_so, f"the process to be {wanted}")
    return found[0]


async def not_ready(daemon: Daemon) -> Json:
    answer = await daemon.call("GET", "/api/ready")
    assert answer.status_code == 503
    return dict(answer.json()["parts"]["runtime"])


@contextmanager
def dying_codex(daemon: Daemon) -> Iterator[None]:
    """Let Codex die at its start: where it is to listen stands a folder. (Over a broken configuration it starts.)"""
    in_the_way = daemon.runtime_dir / "codex.sock" / "in-the-way"
    daemon.runtime_dir.mkdir(mode=0o700, exist_ok=True)
    in_the_way.mkdir(parents=True)
    try:
        yield
    finally:
        in_the_way.rmdir()
        in_the_way.parent.rmdir()


async def test_prompts_are_held_while_codex_dies_at_its_start_and_run_when_it_is_mended(daemon: Daemon) -> None:
    with dying_codex(daemon):
        await daemon.start()
        await daemon.create("s")
        first = await daemon.prompt("s", "first")
        broken = await state(daemon, "broken")
        assert any("codex.sock" in line for line in broken["lastExit"]["stderr"]), broken["lastExit"]
        assert broken["lastExit"]["code"] == 1
        part = await not_ready(daemon)
        assert part["state"] == "broken"
        assert "3 starts in a row" in part["reason"]
        second = await daemon.prompt("s", "second")  # still taken, still held
        listed = (await daemon.get("/api/sessions/s/prompts"))["data"]
        assert [(prompt["id"], prompt["state"]) for prompt in listed] == [(first, "queued"), (second, "queued")]
    assert (await daemon.call("POST", "/api/runtime/restart")).status_code == 202
    ends = await daemon.wait_done("s", 2)
    assert [end["state"] for end in ends] == ["normal", "normal"]
    assert [call.prompt for call in daemon.model.calls] == ["first", "second"]


async def test_held_prompts_survive_the_daemon_as_well(daemon: Daemon) -> None:
    with dying_codex(daemon):
        await daemon.start()
        await daemon.create("s")
        await daemon.prompt("s", "first")
        await state(daemon, "broken")
        await daemon.end(signal.SIGKILL)
    await daemon.start()
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "normal"


async def test_a_codex_that_freezes_for_a_while_is_told_and_loses_no_turn(daemon: Daemon) -> None:
    daemon.environment["TERMALD_CODEX_SILENCE_MS"] = "300"
    await daemon.start()
    await daemon.create("s", prompt={"input": "@say begun\n@hold release\n@say whole"})
    await daemon.model.wait_held("release")
    codex = (await daemon.get("/api/runtime"))["pid"]
    os.kill(codex, signal.SIGSTOP)
    try:
        held = await daemon.prompt("s", "second")
        interrupted = await daemon.call("POST", "/api/sessions/s/interrupt")
        assert interrupted.status_code == 202

        async def is_told() -> bool:
            part = (await daemon.call("GET", "/api/ready")).json()["parts"]["runtime"]
            return part["state"] == "starting" and "answered nothing" in part["reason"]

        await daemon.until(is_told, "the freeze to be told")
    finally:
        os.kill(codex, signal.SIGCONT)
    await daemon.wait_ready()
    cut, whole = await daemon.wait_done("s", 2)
    assert (cut["state"], whole["state"]) == ("cancelled", "normal")
    assert (await daemon.get(f"/api/sessions/s/prompts/{held}"))["state"] == "done"
    assert (await daemon.get("/api/runtime"))["pid"] == codex


async def test_a_binary_that_is_replaced_is_used_from_the_next_start_on(daemon: Daemon) -> None:
    entry, other = daemon.folder / "codex", daemon.folder / "newer"
    real = Path(daemon.environment["TERMALD_CODEX_BIN"])
    place(entry, real)
    daemon.environment["TERMALD_CODEX_BIN"] = str(entry)
    await daemon.start()
    await daemon.create("s", prompt={"input": "@hold release\n@say whole"})
    await daemon.model.wait_held("release")
    before = (await daemon.get("/api/runtime"))["pid"]
    shutil.copy2(real, other)
    place(entry, other)
    await daemon.end(signal.SIGKILL)
    await daemon.start()  # adopts the old one, whose turn goes on
    daemon.model.release("release")
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "normal"
    assert (await daemon.get("/api/runtime"))["pid"] == before
    assert (await daemon.call("POST", "/api/runtime/restart")).status_code == 202
    await daemon.prompt("s", "second")
    assert (await daemon.wait_done("s", 2))[-1]["state"] == "normal"
    assert runs((await daemon.get("/api/runtime"))["pid"]) == other


def place(entry: Path, binary: Path) -> None:
    """Let `entry` lead to this binary, at one stroke, as a package manager does."""
    new = entry.with_name("codex.new")
    new.symlink_to(binary)
    new.replace(entry)


def runs(pid: int) -> Path:
    return Path(f"/proc/{pid}/exe").readlink()


async def test_a_daemon_without_descriptors_says_nothing_wrong_and_goes_on_with_some(daemon: Daemon) -> None:
    await daemon.start()
    await daemon.wait_ready()
    await daemon.create("s", prompt={"input": "@hold release\n@say whole"})
    await daemon.model.wait_held("release")
    assert daemon.process is not None
    pid = daemon.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    async with daemon.client() as connected:
        assert (await connected.get("/api/ready")).status_code == 200
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, hard))  # what is open stays open; nothing more can be
        try:
            daemon.model.release("release")
            with pytest.raises(httpx.TransportError):
                async with daemon.client() as client:
                    await client.get("/api/health", timeout=0.5)
            # Codex dies, and another cannot be started: it needs a pipe, a file, a look at the process table.
            os.kill(daemon.app_servers()[0], signal.SIGKILL)
            await daemon.until(lambda: daemon.app_servers() == [], "the end of Codex")

            async def is_told() -> bool:
                answer = await connected.get("/api/ready")
                parts = answer.json()["parts"]
                return (answer.status_code, parts["store"]["state"]) == (503, "ready") and bool(
                    parts["runtime"]["reason"]
                )

            await daemon.until(is_told, "whoever is connected to be told")
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    await daemon.prompt("s", "second")
    ends = await daemon.wait_done("s", 2)
    assert ends[-1]["state"] == "normal"
    assert daemon.process.poll() is None
