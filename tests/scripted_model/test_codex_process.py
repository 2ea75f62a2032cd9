"""The driver that other tests compare the daemon with: it hears all, in order, and leaves nothing behind."""

import signal
from pathlib import Path

import pytest
import trio
from support.codex_process import SECOND_BINARY, CodexRefusal, codex_binaries, open_codex
from support.scripted_lab import Lab

from termald.scripted_model.config import write_codex_home
from termald.scripted_model.model import ScriptedModel

pytestmark = pytest.mark.real


def members(group: int) -> list[int]:
    """The processes of this group that are still there and not merely unreaped."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_a_refusal_keeps_codexs_own_words(lab: Lab) -> None:
    with pytest.raises(CodexRefusal, match="thread not found") as refused:
        await lab.codex.start_turn("01900000-0000-7000-8000-000000000000", "hello")
    assert refused.value.code == -32600


async def test_messages_of_two_threads_are_told_apart(lab: Lab) -> None:
    one, two = await lab.thread(), await lab.thread()
    slow = await lab.codex.start_turn(one, "@hold gate\n@say one")
    fast = await lab.codex.run_turn(two, "@say two")
    lab.model.release("gate")
    assert (fast.text, (await lab.codex.finish_turn(one, slow)).text) == ("two", "one")


async def test_waiting_for_what_never_comes_tells_what_came(lab: Lab) -> None:
    with pytest.raises(AssertionError, match=r"waited for turn/started: nothing in 0\.05 s"):
        await lab.codex.wait_for("turn/started", deadline_s=0.05)


async def test_a_process_that_dies_is_said_to_have_closed_its_output(
    codex_binary: Path, base_url: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    write_codex_home(home, base_url)
    async with open_codex(codex_binary, home) as codex:
        codex.process.kill()
        with pytest.raises(AssertionError, match="Codex closed its output"):
            await codex.wait_for("turn/started")
        assert await codex.process.wait() == -signal.SIGKILL


async def test_the_block_leaves_no_process_behind(
    codex_binary: Path, model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    """Not even a tool that was running: the next test would compete with it."""
    home, cwd = tmp_path / "home", tmp_path / "work"
    cwd.mkdir()
    write_codex_home(home, base_url)
    async with open_codex(codex_binary, home) as codex:
        assert members(codex.pid)
        thread = await codex.start_thread(cwd, approvalPolicy="never", sandbox="danger-full-access")
        await codex.start_turn(thread, "@shell wait=250ms echo $$ > pid; exec sleep 600\n@hold gate")
        with trio.fail_after(30):
            await model.wait_held("gate")
        tool = int((cwd / "pid").read_text())
        assert is_alive(tool)
    assert members(codex.pid) == []
    with trio.fail_after(30):
        while is_alive(tool):  # noqa: ASYNC110 - the end of a stranger's child cannot be waited for otherwise
            await trio.sleep(0.01)


def test_a_second_binary_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence would mean that only one version was tested, and nobody would know."""
    monkeypatch.setenv(SECOND_BINARY, "/nowhere/codex")
    with pytest.raises(FileNotFoundError, match="/nowhere/codex"):
        codex_binaries()
