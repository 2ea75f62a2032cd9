"""`send`, `tail`, `history` and the rest as a person has them: the whole daemon, the real Codex."""

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from support.daemon import Daemon, open_daemon

from termald.cli.exits import Exit
from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server

pytestmark = pytest.mark.real
COMMAND = [sys.executable, "-P", "-m", "termald"]
DEADLINE_S = 60


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    model = ScriptedModel()
    async with open_server(model) as url, open_daemon(tmp_path, model, url) as daemon:
        yield daemon


async def run(daemon: Daemon, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, in a pipe."""
    with trio.fail_after(DEADLINE_S):
        return await trio.run_process(
            [*COMMAND, *arguments],
            env=daemon.environment,
            cwd=daemon.cwd,
            stdin=stdin,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )


async def test_an_answer_goes_to_standard_output_and_all_else_beside_it(daemon: Daemon) -> None:
    made = await run(daemon, "new", "--id", "s1", "--title", "Docs")
    assert made.stdout == b"s1\n"
    sent = await run(daemon, "send", "docs", "@say hello", stdin=b"")
    assert (sent.returncode, sent.stdout) == (Exit.OK, b"hello\n")
    assert b"100 tokens in, 1 out" in sent.stderr
    again = await run(daemon, "send", "s1", "-", stdin=b"@cut times=1\n@say from a pipe")
    assert (again.returncode, again.stdout) == (Exit.OK, b"from a pipe\n")
    told = json.loads((await run(daemon, "send", "s1", "@say x", "--json", "--key", "k")).stdout)
    assert (told["text"], told["done"]["state"]) == ("x", "normal")
    repeated = json.loads((await run(daemon, "send", "s1", "@say x", "--json", "--key", "k")).stdout)
    assert repeated == told
    history = (await run(daemon, "history", "s1")).stdout.decode()
    assert history.count("you\t") == 3
    events = (await run(daemon, "tail", "s1", "--no-follow", "--json", "--kinds", "turn/done")).stdout.splitlines()
    assert [json.loads(each)["kind"] for each in events] == ["turn/done"] * 3


async def test_a_turn_that_fails_has_an_exit_code_of_its_own(daemon: Daemon) -> None:
    await run(daemon, "new", "--id", "s1")
    sent = await run(daemon, "send", "s1", "@fail invalid_prompt")
    assert (sent.returncode, sent.stdout) == (Exit.TURN, b"")
    assert b"the turn ended: error" in sent.stderr


async def test_in_a_pipe_an_approval_waits_for_another_command(daemon: Daemon) -> None:
    await run(daemon, "new", "--id", "s1")
    async with trio.open_nursery() as nursery:
        sent: list[subprocess.CompletedProcess[bytes]] = []

        async def send() -> None:
            sent.append(await run(daemon, "send", "s1", "@shell touch made\n@say made it"))

        nursery.start_soon(send)
        opened = await daemon.wait_event(lambda event: event["kind"] == "request/opened", what="an approval")
        listed = (await run(daemon, "requests")).stdout.decode()
        assert listed.startswith(opened["requestId"])
        assert not (daemon.cwd / "made").exists()
        approved = await run(daemon, "approve", opened["requestId"])
        assert approved.returncode == Exit.OK, approved.stderr
    assert (sent[0].returncode, sent[0].stdout) == (Exit.OK, b"made it\n")
    assert f"termald approve {opened['requestId']}".encode() in sent[0].stderr
    assert (daemon.cwd / "made").exists()


async def test_ctrl_c_leaves_the_turn_running(daemon: Daemon) -> None:
    await run(daemon, "new", "--id", "s1")
    process = await trio.lowlevel.open_process(
        [*COMMAND, "send", "s1", "@hold gate\n@say late"],
        env=daemon.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    await daemon.model.wait_held("gate")
    await daemon.wait_event(lambda event: event["kind"] == "prompt/recorded", what="the prompt")
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert process.stdout is not None
    with trio.fail_after(DEADLINE_S):
        code = await process.wait()
        said = b"".join([piece async for piece in process.stderr])
    await process.stdout.aclose()
    await process.stderr.aclose()
    assert code == Exit.LEFT, said.decode()
    assert b"termald interrupt s1" in said
    assert (await daemon.session("s1"))["status"] == "running"
    daemon.model.release("gate")
    assert (await daemon.wait_done("s1"))[0]["state"] == "normal"


async def test_a_killed_session_is_ignored_until_it_is_not(daemon: Daemon) -> None:
    await run(daemon, "new", "--id", "s1")
    await run(daemon, "send", "s1", "@say x")
    assert (await run(daemon, "kill", "s")).stdout.startswith(b"killed: s1; thread ")
    (thread, reason, _) = (await run(daemon, "ignored")).stdout.decode().split("\t")
    assert reason == "killed"
    assert (await run(daemon, "ls")).stdout == b""
    assert (await run(daemon, "unignore", thread)).returncode == Exit.OK
    assert (await run(daemon, "discover")).returncode == Exit.OK
    assert (await run(daemon, "ls")).stdout.decode().count("\n") == 1


class Terminal:
    """A person at a terminal: what is shown, and what is typed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.shown = ""

    async def wait_for(self, text: str) -> None:
        """Return once it is shown, behind what was waited for before."""
        with trio.fail_after(DEADLINE_S):
            while text not in self.shown:
                await trio.lowlevel.wait_readable(self._descriptor)
                with suppress(OSError):
                    self.shown += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(self._descriptor, 65_536).decode())
        self.shown = self.shown.partition(text)[2]

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._descriptor, text.encode())


def take_terminal() -> None:
    """Make standard input the terminal that Ctrl-C comes from."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


async def at_terminal(daemon: Daemon, act: Callable[[Terminal], Awaitable[None]], *arguments: str) -> int:
    """Run a command at a terminal of its own; `act` is the person. Return its exit code."""
    mine, theirs = pty.openpty()
    process = await trio.lowlevel.open_process(
        [*COMMAND, *arguments],
        env=daemon.environment | {"TERM": "xterm"},
        cwd=daemon.cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    try:
        await act(Terminal(mine))
        with trio.fail_after(DEADLINE_S):
            return await process.wait()
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
        os.close(mine)


async def test_a_chat_asks_before_anything_is_done_and_ctrl_c_ends_only_the_turn(daemon: Daemon) -> None:
    async def person(terminal: Terminal) -> None:
        await terminal.wait_for("> ")
        terminal.type("@shell touch made\\\n@say made it\n")
        await terminal.wait_for("allow it? [y]es, [n]o, [l]ater: ")
        assert not (daemon.cwd / "made").exists()
        terminal.type("y\n")
        await terminal.wait_for("made it")
        await terminal.wait_for("> ")
        terminal.type("@say begun\\\n@hold gate\\\n@say never\n")
        await terminal.wait_for("begun")
        await daemon.model.wait_held("gate")
        terminal.type("\x03")
        await terminal.wait_for("the turn ended: cancelled")
        await terminal.wait_for("> ")
        terminal.type("/info\n")
        await terminal.wait_for("ready, ")
        await terminal.wait_for("> ")  # an end of input that is typed before it is asked for is lost
        terminal.type("\x04")
        await terminal.wait_for("go on with: termald chat ")

    assert await at_terminal(daemon, person, "chat") == Exit.OK
    assert (daemon.cwd / "made").exists()


async def test_no_is_the_answer_of_whoever_only_presses_return(daemon: Daemon) -> None:
    await run(daemon, "new", "--id", "s1")

    async def person(terminal: Terminal) -> None:
        await terminal.wait_for("allow it?")
        terminal.type("\n")
        await terminal.wait_for("denied")

    assert await at_terminal(daemon, person, "send", "s1", "@shell touch made\n@say x") == Exit.OK
    assert not (daemon.cwd / "made").exists()


@pytest.mark.parametrize(
    ("options", "more", "colours"),
    [((), {}, True), (("--no-color",), {}, False), ((), {"NO_COLOR": "1"}, False)],
)
def test_colours_are_on_at_a_terminal_and_off_where_they_are_not_wanted(
    options: tuple[str, ...], more: dict[str, str], colours: bool, tmp_path: Path
) -> None:
    """Doctor needs no daemon, and marks what it finds with colours."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH")}
    (tmp_path / "home").mkdir()
    own = {"HOME": str(tmp_path / "home"), "TERM": "xterm-256color", "SHELL": "/bin/sh", **more}
    mine, theirs = pty.openpty()
    command = [*COMMAND, "doctor", "--listen", "127.0.0.1:0", *options]
    process = subprocess.Popen(command, env=kept | own, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # how a terminal ends whose other side is closed
        while piece := os.read(mine, 65_536):
            shown += piece
    os.close(mine)
    process.wait(DEADLINE_S)
    assert b"codex" in shown
    assert (re.search(rb"\x1b\[[0-9;]*3[0-9]m", shown) is not None) is colours
