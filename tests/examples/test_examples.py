"""The examples of the documentation, as they stand there, against the whole daemon and the real Codex."""

import runpy
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
import trio
from support.daemon import Daemon, open_daemon

from termald.client.requests import Request
from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
DEADLINE_S = 90


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    model = ScriptedModel()
    async with open_server(model) as url, open_daemon(tmp_path, model, url) as daemon:
        yield daemon


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable if name.endswith(".py") else "sh", str(EXAMPLES / name), *arguments]


def environment(daemon: Daemon) -> dict[str, str]:
    """With `termald` on the path, as it is once it is installed."""
    return daemon.environment | {
        "PATH": f"{Path(sys.executable).parent}:{daemon.environment['PATH']}",
        "TMPDIR": str(daemon.folder),
    }


async def run(daemon: Daemon, name: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    with trio.fail_after(DEADLINE_S):
        return await trio.run_process(
            command(name, *arguments),
            env=environment(daemon),
            cwd=daemon.cwd,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )


@pytest.mark.real
async def test_ten_lines(daemon: Daemon) -> None:
    done = await run(daemon, "ten_lines.py")
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == "You said: What is in this folder?\n2 messages so far\n"
    lines = (EXAMPLES / "ten_lines.py").read_text().splitlines()
    assert len([line for line in lines if line and not line.startswith('"""')]) <= 10


@pytest.mark.real
async def test_five_agents_side_by_side(daemon: Daemon) -> None:
    prompts = [f"@say begun {number}\n@hold all\n@say agent {number} is done" for number in range(5)]
    async with trio.open_nursery() as nursery:
        done: list[subprocess.CompletedProcess[bytes]] = []

        async def side_by_side() -> None:
            done.append(await run(daemon, "side_by_side.py", *prompts))

        nursery.start_soon(side_by_side)
        with trio.fail_after(DEADLINE_S):
            await daemon.model.wait_held("all", count=5)  # at the same time
        daemon.model.release("all")
    assert done[0].returncode == 0, done[0].stderr.decode()
    shown = done[0].stdout.decode()
    assert all(f"agent {number} is done" in shown for number in range(5))
    assert shown.count("normal") == 5


@pytest.mark.real
async def test_an_approval_bot_decides_by_its_policy_and_leaves_the_rest(daemon: Daemon) -> None:
    async with trio.open_nursery() as nursery:
        done: list[subprocess.CompletedProcess[bytes]] = []

        async def bot() -> None:
            done.append(await run(daemon, "approval_bot.py", "3"))

        nursery.start_soon(bot)
        await daemon.create("reads", prompt={"input": "@shell escalate=true ls\n@say I looked"})
        await daemon.create("breaks", prompt={"input": "@shell rm -rf kept\n@say without it"})
        await daemon.create("writes", prompt={"input": "@shell touch new\n@say wrote"})
        (read,) = await daemon.wait_done("reads")
        (broke,) = await daemon.wait_done("breaks")  # refused, the turn goes on without
    assert done[0].returncode == 0, done[0].stderr.decode()
    assert (read["state"], broke["state"]) == ("normal", "normal")
    (open_one,) = (await daemon.get("/api/requests"))["data"]
    assert open_one["sessionId"] == "writes"
    assert not (daemon.cwd / "new").exists()


@pytest.mark.parametrize(
    ("shell", "verdict"),
    [
        ("ls -l", True),
        ("git status", True),
        ("git push", None),
        ("git", None),
        ("ls; make", None),
        ("ls $(make)", None),
        ("cat a > b", None),
        ("rm x", False),
        ("ls; rm x", False),
        ("make", None),
        ("'unfinished", None),
        ("", None),
    ],
)
def test_the_bots_policy(shell: str, verdict: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An example is copied: a hole in its policy would be copied too."""
    monkeypatch.setattr(anyio, "run", lambda *_arguments: None)
    policy = runpy.run_path(str(EXAMPLES / "approval_bot.py"))["policy"]
    for text in (shell, f'/bin/bash -lc "{shell}"' if "$" not in shell else shell):
        request = Request(id="r", session_id="s", kind="command", params={"command": text})
        assert policy(request) is verdict
    assert policy(Request(id="r", session_id="s", kind="fileChange")) is None


@pytest.mark.real
@pytest.mark.parametrize("name", ["after_a_crash.py", "after_a_crash.sh"])
async def test_a_job_goes_on_after_its_program_and_the_daemon_crashed(name: str, daemon: Daemon) -> None:
    prompt = "@say begun\n@hold gate\n@say and ended"
    first = await trio.lowlevel.open_process(
        command(name, "job", prompt),
        env=environment(daemon),
        cwd=daemon.cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with trio.fail_after(DEADLINE_S):
        await daemon.model.wait_held("gate")
    await daemon.wait_event(lambda event: event["kind"] == "item/delta", what="text")
    first.kill()
    await first.wait()
    await daemon.end(signal.SIGKILL)
    await daemon.start()
    daemon.model.release("gate")
    again = await run(daemon, name, "job", prompt)
    assert again.returncode == 0, again.stderr.decode()
    assert again.stdout.decode() == "begun\nand ended\n"
    assert len(daemon.model.calls) == 1


def test_every_example_is_run_here_and_told_of() -> None:
    tested = Path(__file__).read_text()
    page = (EXAMPLES / "README.md").read_text()
    for example in EXAMPLES.glob("*.*"):
        if example.suffix != ".md":
            assert f'"{example.name}"' in tested
            assert f"({example.name})" in page
