"""The real `codex app-server`, driven by hand over stdio: what tests compare the daemon with.

It shares no code with termald's own codex room on purpose. It knows the framing (one JSON value a line) and the
handshake, keeps everything that Codex says in the order in which it came, and ends the whole process group. Everything
else is up to the test. `codex_socket` drives the other transport, with the same `CodexConnection`.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import codex_cli_bin  # type: ignore[import-untyped]  # it carries a binary and says nothing of types
import msgspec
import trio

Message = dict[str, Any]

SECOND_BINARY = "TERMALD_TEST_CODEX_BIN_2"
DEADLINE_S = 20.0  # a cold start takes 0.4 s and a turn 0.1 s; the rest is for a busy machine
END_S = 5.0


def codex_binaries() -> dict[str, Path]:
    """Return the binaries to run tests with: the installed one, and that of `TERMALD_TEST_CODEX_BIN_2`.

    Errors: `FileNotFoundError` when that variable names a file that is not there.
    """
    binaries = {"installed": codex_cli_bin.bundled_codex_path()}
    if second := os.environ.get(SECOND_BINARY):
        path = Path(second)
        if not path.is_file():
            raise FileNotFoundError(f"{SECOND_BINARY} names {second}, which is not a file")
        binaries["second"] = path
    return binaries


class CodexRefusal(Exception):  # noqa: N818 - it is an answer of Codex, not a failure of the driver
    """Codex answered a request with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data = error.get("data")


class Turn(msgspec.Struct, frozen=True):
    """A turn that is over: what came for its thread from `turn/started` to `turn/completed`, requests included."""

    id: str
    status: str
    error: Message | None
    messages: tuple[Message, ...]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods in the order in which they came."""
        return tuple(message["method"] for message in self.messages)

    def params(self, method: str) -> list[Message]:
        """The params of all messages with this method."""
        return [message["params"] for message in self.messages if message["method"] == method]

    def items(self, kind: str) -> list[Message]:
        """The completed items of this type."""
        return [params["item"] for params in self.params("item/completed") if params["item"]["type"] == kind]

    @property
    def text(self) -> str:
        """The completed messages of the agent, one a line."""
        return "\n".join(item["text"] for item in self.items("agentMessage"))


class CodexConnection:
    """A conversation with an app-server. `messages` is all that it sent by itself (notifications and requests), oldest
    first. How a frame travels is the subclass's: `write` for one way, `_take` and `_close` for the other."""

    def __init__(self, stderr: Path) -> None:
        self.messages: list[Message] = []
        self.version = ""  # such as 0.171.0, once initialized
        self._stderr = stderr
        self._next_id = 0
        self._replies: dict[int | str, Message] = {}
        self._news = trio.Event()
        self._is_closed = False

    async def write(self, frame: bytes) -> None:
        """Send these bytes as one frame, sensible or not."""
        raise NotImplementedError

    async def initialize(self, name: str = "termald-tests") -> None:
        """Shake hands under this name, with the experimental part of the protocol."""
        client = {"name": name, "version": "0"}
        answer = await self.request("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
        self.version = answer["userAgent"].split("/")[1].split(" ")[0]
        await self.notify("initialized")

    def stderr(self) -> str:
        """What it wrote to standard error so far."""
        return self._stderr.read_text(encoding="utf-8", errors="replace")

    async def request(self, method: str, params: Message | None = None, *, deadline_s: float = DEADLINE_S) -> Any:
        """Ask and return the result.

        Errors: `CodexRefusal` with Codex's own code and message; `AssertionError` when there is no answer in time.
        """
        return await self.reply_to(await self.ask(method, params), method, deadline_s=deadline_s)

    async def ask(self, method: str, params: Message | None = None) -> int:
        """Ask, and return the number under which the reply will come."""
        number, self._next_id = self._next_id, self._next_id + 1
        await self.write(msgspec.json.encode({"id": number, "method": method, "params": params or {}}))
        return number

    async def reply_to(self, number: int | str, what: str, *, deadline_s: float = DEADLINE_S) -> Any:
        """Wait for the reply under this number and return the result. `what` was asked, and errors are as `request`."""
        reply: Message = await self._until(lambda: self._replies.pop(number, None), f"the answer to {what}", deadline_s)
        if "error" in reply:
            raise CodexRefusal(reply["error"])
        return reply["result"]

    def has_reply(self, number: int | str) -> bool:
        """Whether the reply under this number is there, for `reply_to` to take."""
        return number in self._replies

    async def notify(self, method: str, params: Message | None = None) -> None:
        """Tell it something."""
        await self.write(msgspec.json.encode({"method": method, "params": params or {}}))

    async def answer(self, request: Message, result: Message) -> None:
        """Answer a request that Codex made."""
        await self.write(msgspec.json.encode({"id": request["id"], "result": result}))

    async def wait_for(
        self,
        method: str,
        where: Callable[[Message], bool] = lambda params: True,
        *,
        since: int = 0,
        deadline_s: float = DEADLINE_S,
    ) -> Message:
        """Return the first message of this method, from `messages[since]` on, whose params fit; wait for it if need be.

        Errors: `AssertionError` that lists what came instead.
        """

        def found() -> Message | None:
            fitting = (m for m in self.messages[since:] if m["method"] == method and where(m["params"]))
            return next(fitting, None)

        return await self._until(found, method, deadline_s)

    async def start_thread(self, cwd: Path, **params: Any) -> str:
        """Start a thread and return its id."""
        result = await self.request("thread/start", {"cwd": str(cwd), **params})
        return str(result["thread"]["id"])

    async def start_turn(self, thread_id: str, text: str, **params: Any) -> str:
        """Start a turn with this text and return its id."""
        spoken = [{"type": "text", "text": text}]
        result = await self.request("turn/start", {"threadId": thread_id, "input": spoken, **params})
        return str(result["turn"]["id"])

    async def finish_turn(self, thread_id: str, turn_id: str, *, deadline_s: float = DEADLINE_S) -> Turn:
        """Wait for the end of this turn."""

        def is_end(params: Message) -> bool:
            return bool(params["threadId"] == thread_id and params["turn"]["id"] == turn_id)

        end = await self.wait_for("turn/completed", is_end, deadline_s=deadline_s)
        starts = (n for n, m in enumerate(self.messages) if m["method"] == "turn/started" and is_end(m["params"]))
        started = next(starts, 0)  # who joined later has not heard it
        own = [m for m in self.messages[started:] if m.get("params", {}).get("threadId") == thread_id]
        own = own[: own.index(end) + 1]
        turn = end["params"]["turn"]
        return Turn(turn_id, turn["status"], turn["error"], tuple(own))

    async def run_turn(self, thread_id: str, text: str, *, deadline_s: float = DEADLINE_S, **params: Any) -> Turn:
        """Start a turn, wait for its end and return it. What Codex asks meanwhile is the caller's to answer."""
        turn_id = await self.start_turn(thread_id, text, **params)
        return await self.finish_turn(thread_id, turn_id, deadline_s=deadline_s)

    def _take(self, frames: Iterable[bytes | str]) -> None:
        for frame in frames:
            message: Message = msgspec.json.decode(frame)
            if "method" in message:
                self.messages.append(message)
            else:
                self._replies[message["id"]] = message
        self._tell()

    def _close(self) -> None:
        self._is_closed = True
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, trio.Event()
        news.set()

    async def _until(self, look: Callable[[], Message | None], what: str, deadline_s: float) -> Message:
        with trio.move_on_after(deadline_s):
            while (found := look()) is None:
                if self._is_closed:
                    break
                await self._news.wait()
            else:
                return found
        why = "Codex closed its output" if self._is_closed else f"nothing in {deadline_s} s"
        heard = "\n".join(message["method"] for message in self.messages[-40:])
        raise AssertionError(f"waited for {what}: {why}. Last heard:\n{heard}\nstderr:\n{self.stderr()[-2000:]}")


class CodexProcess(CodexConnection):
    """An app-server on its pipes, and the one conversation that these allow."""

    def __init__(self, process: trio.Process, stderr: Path) -> None:
        super().__init__(stderr)
        self.process = process
        self._writing = trio.Lock()

    @property
    def pid(self) -> int:
        """The process id, which is the group's too."""
        return self.process.pid

    async def write(self, frame: bytes) -> None:
        assert self.process.stdin is not None
        async with self._writing:
            await self.process.stdin.send_all(frame + b"\n")

    async def read(self) -> None:
        """Take in everything Codex says until it closes its output."""
        assert self.process.stdout is not None
        rest = b""
        async for chunk in self.process.stdout:
            *lines, rest = (rest + chunk).split(b"\n")
            self._take(lines)
        self._close()


@contextlib.asynccontextmanager
async def open_codex(
    binary: Path, home: Path, *, options: Sequence[str] = (), name: str = "termald-tests"
) -> AsyncIterator[CodexProcess]:
    """Run the app-server on this `CODEX_HOME`, in a process group of its own that is gone when the block ends.

    It is initialized by a client of this name, with the experimental part of the protocol.
    `options` go before `app-server` (`-c KEY=VALUE`). Its standard error goes to `app-server.stderr` in the home.
    """
    stderr = home / "app-server.stderr"
    with stderr.open("ab") as errors:
        process = await trio.lowlevel.open_process(
            [str(binary), *options, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=home,
            env={**os.environ, "CODEX_HOME": str(home)},
            start_new_session=True,
        )
    codex = CodexProcess(process, stderr)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(codex.read)
            await codex.initialize(name)
            yield codex
            nursery.cancel_scope.cancel()
    finally:
        await _end(process)


async def _end(process: trio.Process) -> None:
    """Close its input, give it time to leave, kill what is left of the group, and reap it."""
    assert process.stdin is not None
    with trio.CancelScope(shield=True):
        await process.stdin.aclose()
        with trio.move_on_after(END_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_drain, process)
                # Watched without being reaped, so that the group still has its number when it is killed.
                wait = partial(os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                with contextlib.suppress(ChildProcessError):  # a test that awaited its end has reaped it
                    await trio.to_thread.run_sync(wait, abandon_on_cancel=True)
                nursery.cancel_scope.cancel()
        # After a good end too: a tool that Codex started may have outlived it.
        with contextlib.suppress(ProcessLookupError):  # reaped already, and nothing outlived it
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        assert process.stdout is not None
        await process.stdout.aclose()


async def _drain(process: trio.Process) -> None:
    """Read on, or a process that is still talking would never come to its end."""
    assert process.stdout is not None
    async for _ in process.stdout:
        pass
