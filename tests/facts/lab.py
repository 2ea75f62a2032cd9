"""A real Codex on a control socket, the model that it asks, and the requests that termald makes of it, by hand."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.codex_process import CodexConnection, CodexRefusal, Message
from support.codex_socket import CodexServer, open_codex_socket
from support.refusals import refusal_of
from support.waiting import until

from termald.core.inputs import CallRefused
from termald.scripted_model.config import write_codex_home
from termald.scripted_model.model import ScriptedModel

UNKNOWN = "01900000-0000-7000-8000-000000000000"
FREE = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
USAGE = "thread/tokenUsage/updated"


class SocketLab(msgspec.Struct, frozen=True):
    """Codex, the model that it asks, its home, and an empty folder for its threads to work in."""

    codex: CodexServer
    model: ScriptedModel
    binary: Path
    home: Path
    cwd: Path

    def another(self) -> AbstractAsyncContextManager[CodexServer]:
        """Run one more process on this home, on a socket of its own, whether the first one lives or not."""
        return open_codex_socket(self.binary, self.home, socket=self.home / "another.sock")

    async def kill(self) -> None:
        """SIGKILL, as the kernel does it when memory is short."""
        self.codex.process.kill()
        await self.codex.process.wait()


@contextlib.asynccontextmanager
async def open_socket_lab(binary: Path, model: ScriptedModel, base_url: str, folder: Path) -> AsyncIterator[SocketLab]:
    """Run this Codex against the model at `base_url`, with its home and its work under `folder`."""
    cwd = folder / "work"
    cwd.mkdir()
    home = folder / "codex-home"
    write_codex_home(home, base_url)
    async with open_codex_socket(binary, home) as codex:
        yield SocketLab(codex, model, binary, home, cwd)


# --- what termald asks ---


async def refusal(codex: CodexConnection, method: str, **params: Any) -> CodexRefusal:
    """Ask what is to be refused, and return the refusal."""
    with pytest.raises(CodexRefusal) as refused:
        await codex.request(method, params)
    return refused.value


def meaning(refused: CodexRefusal) -> CallRefused:
    """Return what termald takes a refusal for."""
    return refusal_of({"code": refused.code, "message": refused.message, "data": refused.data})


async def resume(codex: CodexConnection, thread: str, **params: Any) -> Message:
    """Subscribe to a thread as termald does, and return the thread."""
    result = await codex.request("thread/resume", {"threadId": thread, "excludeTurns": True, **params})
    found: Message = result["thread"]
    return found


async def newest_turns(codex: CodexConnection, thread: str) -> list[Message]:
    """Read a thread's turns as termald does to settle what is uncertain: newest first, items included."""
    params = {"threadId": thread, "itemsView": "full", "limit": 20, "sortDirection": "desc"}
    turns: list[Message] = (await codex.request("thread/turns/list", params))["data"]
    return turns


def prompts(turn: Message) -> list[str | None]:
    """The ids that clients gave to the user's messages of a turn."""
    return [item["clientId"] for item in turn["items"] if item["type"] == "userMessage"]


async def idle(codex: CodexConnection, thread: str) -> None:
    """Wait until the thread says that nothing runs in it, without subscribing to it."""
    since = len(codex.messages)
    status = (await codex.request("thread/read", {"threadId": thread}))["thread"]["status"]["type"]
    if status == "active":
        became = {"threadId": thread, "status": {"type": "idle"}}
        await codex.wait_for("thread/status/changed", lambda params: params == became, since=since)


# --- what is heard ---


async def mark(codex: CodexConnection, thread: str, *others: CodexConnection) -> None:
    """Make Codex tell all of them something, so that what it had told before is there: absence can be asserted now."""
    since = [len(connection.messages) for connection in (codex, *others)]
    name = f"mark {sum(since)}"
    await codex.request("thread/name/set", {"threadId": thread, "name": name})
    for connection, seen in zip((codex, *others), since, strict=True):
        await connection.wait_for("thread/name/updated", lambda params: params["threadName"] == name, since=seen)


def heard(codex: CodexConnection, thread: str, *, since: int = 0) -> list[str]:
    """The methods of what came about a thread."""
    return [message["method"] for message in codex.messages[since:] if message["params"].get("threadId") == thread]


def in_turn(methods: list[str]) -> list[str]:
    """Those methods that only a subscriber of the thread hears: what a turn says, and what it asks."""
    return [method for method in methods if method.startswith(("turn/", "item/"))]


def items_told(codex: CodexConnection, kind: str, *, since: int = 0) -> list[tuple[str, str | None]]:
    """Which items of this type were told, as (`started` or `completed`, their status)."""
    told = (message for message in codex.messages[since:] if message["method"] in ("item/started", "item/completed"))
    items = ((message["method"].removeprefix("item/"), message["params"]["item"]) for message in told)
    return [(how, item.get("status")) for how, item in items if item["type"] == kind]


# --- the tools that Codex runs ---


async def written_pid(path: Path) -> int:
    """Return the process id that a command writes to this file."""
    text = partial(path.read_text, encoding="ascii")
    await until(lambda: path.exists() and text().endswith("\n"))
    return int(text())


def is_running(pid: int) -> bool:
    """Whether this process runs, remains that nobody reaped not counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
