"""What the supervision relies on, measured on the real binary: the installed one, and a second one where there is one.

Offline: the model is a script in this process. `docs/codex.md` names each of these rules.
"""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from support.codex_process import codex_binaries
from support.refusals import refusal_of
from support.supervising import Came, Lost, Supervised, payload, supervising
from support.waiting import until
from trio_websocket import ConnectionClosed

from state.records import LinkId, RuntimeRecord
from termald.codex import handshake
from termald.codex.binary import read_version
from termald.codex.control_socket import ControlSocketLink, connect_control_socket, socket_address
from termald.codex.errors import LinkClosed
from termald.codex.frames import Notification, Reply, decode, encode_request
from termald.codex.handshake import shake_hands, unwanted
from termald.codex.hooks import LinkUp, RuntimeExit
from termald.codex.identity import MARK_NAME, ProcessIdentity, family_of, find_marked, identify, is_alive
from termald.codex.link import MESSAGE_BYTES_MAX
from termald.codex.process import CodexProcess, Launch, Transport, spawn
from termald.codex.protocol import methods
from termald.limits import CodexLimits
from termald.scripted_model.config import write_codex_home
from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server

pytestmark = pytest.mark.real

BINARIES = codex_binaries()
LIMITS = CodexLimits(backoff_first_ms=10, backoff_max_ms=50)


@pytest.fixture(params=sorted(BINARIES))
def codex(request: pytest.FixtureRequest) -> Path:
    return BINARIES[request.param]


@asynccontextmanager
async def spawned(codex: Path, folder: Path, *, mark: str = "real", **options: Any) -> AsyncIterator[CodexProcess]:
    """The process alone, without a supervisor; ended with its family."""
    (folder / "home").mkdir(exist_ok=True)
    launch = Launch(
        binary=codex,
        transport=options.get("transport", "unix"),
        socket=options.get("socket", folder / "s"),
        stderr_log=folder / "stderr",
        codex_home=folder / "home",
        mark=mark,
        config=("features.shell_snapshot=false",),
    )
    process = await spawn(launch)
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            await process.end(term_s=2, kill_s=2)


@asynccontextmanager
async def linked(socket: Path) -> AsyncIterator[ControlSocketLink]:
    """A raw link, once somebody listens."""
    async with trio.open_nursery() as nursery:
        await until(socket.exists)
        link = await connect_control_socket(nursery, socket)
        try:
            yield link
        finally:
            await link.aclose()


async def ask(link: ControlSocketLink, method: str, params: object) -> Any:
    """Return the whole answer to a request, skipping whatever comes before it."""
    await link.send(encode_request("q", method, params))
    with trio.fail_after(20):
        while True:
            raw = await link.receive()
            assert isinstance(raw, bytes)
            answer = msgspec.json.decode(raw)
            if answer.get("id") == "q" and "method" not in answer:
                return answer


async def begin(link: ControlSocketLink, params: object) -> None:
    """Start a turn and return once it runs: one that is only acknowledged is not active yet."""
    await link.send(encode_request("q", "turn/start", params))
    awaited = {"reply", "turn/started"}
    with trio.fail_after(20):
        while awaited:
            raw = await link.receive()
            assert isinstance(raw, bytes)
            awaited.discard(msgspec.json.decode(raw).get("method", "reply"))


class Answers:
    """Requests over a supervisor's link, and their answers."""

    def __init__(self, ran: Supervised) -> None:
        self._ran = ran
        self._asked = 0

    async def __call__(self, link: LinkId, method: str, **params: Any) -> Any:
        self._asked += 1
        rpc_id = f"test-{self._asked}"
        assert self._ran.supervisor.send(link, encode_request(rpc_id, method, params))

        def answer() -> Any:
            came = (payload(entry) for entry in self._ran.told.all(Came))
            return next((said for said in came if said.get("id") == rpc_id and "method" not in said), None)

        await self._ran.told.until(lambda: answer() is not None)
        return answer()

    async def notice(self, method: str, number: int = 1) -> Any:
        """Return the params of the n-th notification of this method."""

        def found() -> list[Any]:
            return [said for entry in self._ran.told.all(Came) if (said := payload(entry)).get("method") == method]

        await self._ran.told.until(lambda: len(found()) >= number)
        return found()[number - 1]["params"]

    async def resume(self, link: LinkId, thread: str) -> Any:
        """Resume a thread whose first turn has just been started: it is unknown to others for some moments."""
        while True:
            resumed = await self(link, "thread/resume", threadId=thread)
            error = resumed.get("error")
            if error is None or refusal_of(error).refusal != "no_rollout":
                return resumed

    async def turn(self, link: LinkId, cwd: Path, text: str) -> str:
        """Start a thread and a turn on it that says this to the model; returns the thread once the turn is active."""
        settings = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
        started = await self(link, "thread/start", cwd=str(cwd), **settings)
        thread: str = started["result"]["thread"]["id"]
        await self(link, "turn/start", threadId=thread, input=[{"type": "text", "text": text}])
        await self.notice("turn/started")
        return thread


@asynccontextmanager
async def scripted(codex: Path, folder: Path, **options: Any) -> AsyncIterator[tuple[Supervised, Answers]]:
    """A supervised Codex whose model is scripted."""
    async with open_server(ScriptedModel()) as base_url:
        write_codex_home(folder / "home", base_url)
        async with supervising(codex, folder, limits=LIMITS, **options) as ran:
            yield ran, Answers(ran)


def command_of(pid: int) -> bytes:
    """Its command line; nothing if it has just ended."""
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def tool_of(mark: str, leader: int) -> Callable[[], ProcessIdentity | None]:
    """Return a look for `sleep 600`, which carries the mark."""

    def look() -> ProcessIdentity | None:
        for member in find_marked(mark):
            if command_of(member.pid).startswith(b"sleep\x00600") and member.pid != leader:
                return member
        return None

    return look


# --- the handshake ---


@pytest.mark.parametrize("transport", ["unix", "stdio"])
async def test_handshake_tells_who_answers(codex: Path, tmp_path: Path, transport: Transport) -> None:
    async with supervising(codex, tmp_path, transport=transport, limits=LIMITS) as ran:
        info = (await ran.ready()).info
        assert info.version == await read_version(codex)
        assert info.codex_home == str(tmp_path / "home")
    (exit_,) = ran.told.all(RuntimeExit)
    assert (exit_.cause, exit_.report.code) == ("stop", 0)


async def test_unwanted_notifications_are_not_sent(
    codex: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex accepts names that it does not know, so that a list made for another release does no harm."""

    async def heard(socket: Path) -> set[str]:
        """What is said to a new connection until it has asked a few times; the control shows that this is long
        enough."""
        async with linked(socket) as link:
            _, early = await shake_hands(link, "0")
            frames = [decode(raw) for raw in early if isinstance(raw, bytes)]
            for rpc_id in range(20):
                await link.send(encode_request(rpc_id, "thread/list", {}))
                while not (frames and isinstance(frames[-1], Reply) and frames[-1].id == rpc_id):
                    raw = await link.receive()
                    assert isinstance(raw, bytes)
                    frames.append(decode(raw))
            return {frame.method for frame in frames if isinstance(frame, Notification)}

    async with spawned(codex, tmp_path):
        assert not await heard(tmp_path / "s") & set(unwanted())
        monkeypatch.setattr(handshake, "UNWANTED", (("no/such/method", ""),))
        assert "remoteControl/status/changed" in await heard(tmp_path / "s")  # the control


# --- the socket ---


async def test_socket_is_private_and_a_second_server_refuses(codex: Path, tmp_path: Path) -> None:
    async with spawned(codex, tmp_path) as first, linked(tmp_path / "s") as link:
        address = socket_address(tmp_path / "s")
        assert stat.S_IMODE(address.stat().st_mode) == 0o600
        assert stat.S_IMODE(address.parent.stat().st_mode) == 0o700
        second_folder = tmp_path / "second"
        second_folder.mkdir()
        async with spawned(codex, second_folder, socket=tmp_path / "s") as second:
            with trio.fail_after(30):
                await second.wait()
            assert second.report().code == 1
            assert any("already in use" in line for line in second.report().stderr_tail)
        assert is_alive(first.identity)
        await shake_hands(link, "0")


async def test_socket_of_a_killed_server_is_replaced(codex: Path, tmp_path: Path) -> None:
    async with spawned(codex, tmp_path) as process:
        await until((tmp_path / "s").exists)
        os.kill(process.identity.pid, signal.SIGKILL)
        await process.wait()
        assert (tmp_path / "s").exists()
    async with supervising(codex, tmp_path, limits=LIMITS) as ran:
        await ran.ready()


async def test_runtime_folder_may_be_deep(codex: Path, tmp_path: Path) -> None:
    """Codex binds elsewhere and leaves a link, which may be longer than a socket's address."""
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    async with supervising(codex, deep, limits=LIMITS) as ran:
        await ran.ready()


async def test_message_of_16_mib_passes_and_one_byte_more_costs_the_connection(codex: Path, tmp_path: Path) -> None:
    """WIRE-05: so it is refused here, before it is written."""
    empty = encode_request("q", "thread/name/set", {"threadId": "", "name": ""})
    pad = MESSAGE_BYTES_MAX - len(empty)
    async with spawned(codex, tmp_path):
        async with linked(tmp_path / "s") as link:
            await shake_hands(link, "0")
            refused = await ask(link, "thread/name/set", {"threadId": "", "name": "x" * pad})
            assert "thread id" in refused["error"]["message"]
        async with linked(tmp_path / "s") as link:
            await shake_hands(link, "0")
            longer = encode_request("q", "thread/name/set", {"threadId": "", "name": "x" * (pad + 1)}).decode()
            assert len(longer) == MESSAGE_BYTES_MAX + 1
            with pytest.raises((LinkClosed, ConnectionClosed)):
                await link._connection.send_message(longer)  # past our own check
                await ask(link, "thread/loaded/list", {})


async def test_stopped_process_is_told_and_is_ready_again_when_it_goes_on(codex: Path, tmp_path: Path) -> None:
    """RUNTIME-11: it answers a ping by itself, and while it is stopped nothing else tells of it."""
    limits = msgspec.structs.replace(LIMITS, silence_ms=300)
    async with supervising(codex, tmp_path, limits=limits) as ran:
        await ran.ready()
        (record,) = ran.told.all(RuntimeRecord)
        os.kill(record.pid, signal.SIGSTOP)
        try:
            await ran.told.until(lambda: "answered nothing" in (ran.supervisor.status.reason or ""))
        finally:
            os.kill(record.pid, signal.SIGCONT)
        await ran.told.until(lambda: ran.supervisor.status.state == "ready")
        assert not ran.told.all(Lost)
        assert not ran.told.all(RuntimeExit)


async def test_broken_standard_error_kills_it_at_its_start(codex: Path, tmp_path: Path) -> None:
    """Why it writes to a file where it is to outlive us."""
    (tmp_path / "home").mkdir()
    read, write = os.pipe()
    os.close(read)
    process = await trio.lowlevel.open_process(
        [codex, "app-server", "--listen", f"unix://{tmp_path}/s"],
        stderr=write,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "CODEX_HOME": str(tmp_path / "home")},
    )
    os.close(write)
    with trio.fail_after(30):
        assert await process.wait() == 101


# --- its end ---


async def test_term_ends_an_idle_process_and_removes_the_socket(codex: Path, tmp_path: Path) -> None:
    async with spawned(codex, tmp_path) as process:
        async with linked(tmp_path / "s") as link:  # before it listens, a TERM is the death of any program
            await shake_hands(link, "0")
        os.kill(process.identity.pid, signal.SIGTERM)
        with trio.fail_after(30):
            await process.wait()
        assert process.report().code == 0
        assert not (tmp_path / "s").is_symlink()


async def test_first_term_only_drains_where_a_turn_runs_and_the_end_ends_it_with_its_tools(
    codex: Path, tmp_path: Path
) -> None:
    """RUNTIME-13, BOOT-12: it stays, answers reads, refuses new work; its tools are in sessions of their own."""
    async with scripted(codex, tmp_path) as (ran, asked):
        up = await ran.ready()
        (record,) = ran.told.all(RuntimeRecord)
        await asked.turn(up.link, tmp_path, "@shell sleep 600 & sleep 600")
        look = tool_of(record.runtime_id, record.pid)
        await until(lambda: look() is not None)
        tool = look()
        assert tool is not None
        assert os.getsid(tool.pid) != record.pid
        os.kill(record.pid, signal.SIGTERM)
        refused = await asked(up.link, "thread/start", cwd=str(tmp_path))
        while "error" not in refused:  # the signal may not have been taken yet
            refused = await asked(up.link, "thread/start", cwd=str(tmp_path))
        assert refused["error"]["data"] == {"reason": "serverShuttingDown"}
        assert "result" in await asked(up.link, "thread/loaded/list")
        assert is_alive(ProcessIdentity(record.pid, record.start_time))
        ran.supervisor.restart()
        exit_ = await ran.told.nth(RuntimeExit)
        assert (exit_.cause, exit_.left_behind) == ("restart", ())
        assert not set(find_marked(record.runtime_id))
        await ran.ready(2)


async def test_tools_of_a_killed_process_are_ended(codex: Path, tmp_path: Path) -> None:
    """RUNTIME-14: SIGKILL gives Codex no chance to end them, and they would hold the user's files."""
    async with scripted(codex, tmp_path) as (ran, asked):
        up = await ran.ready()
        (record,) = ran.told.all(RuntimeRecord)
        await asked.turn(up.link, tmp_path, "@shell sleep 600 & sleep 600")
        look = tool_of(record.runtime_id, record.pid)
        await until(lambda: look() is not None)
        tool = look()
        assert tool is not None
        os.kill(record.pid, signal.SIGKILL)
        exit_ = await ran.told.nth(RuntimeExit)
        assert (exit_.cause, exit_.report.signal, exit_.left_behind) == ("exited", "SIGKILL", ())
        assert not is_alive(tool)
        await ran.ready(2)
        assert len(ran.told.all(RuntimeExit)) == 1


async def test_mcp_servers_of_a_killed_process_are_ended(codex: Path, tmp_path: Path) -> None:
    """They have a cleared environment, and no mark in it; but they stay in Codex's session, in groups of their own."""
    stubborn = tmp_path / "mcp"
    stubborn.write_text("#!/bin/sh\ntrap '' HUP TERM\nwhile :; do sleep 1; done\n")
    stubborn.chmod(0o755)
    async with open_server(ScriptedModel()) as base_url:
        config = write_codex_home(tmp_path / "home", base_url)
        with config.open("a") as file:
            file.write(f'\n[mcp_servers.stubborn]\ncommand = "{stubborn}"\n')
        async with supervising(codex, tmp_path, limits=LIMITS) as ran:
            up = await ran.ready()
            (record,) = ran.told.all(RuntimeRecord)
            await Answers(ran)(up.link, "thread/start", cwd=str(tmp_path))

            def servers() -> set[int]:
                family = family_of(ProcessIdentity(record.pid, record.start_time), record.runtime_id)
                return {member.pid for member in family if os.fsencode(stubborn) in command_of(member.pid).split(b"\0")}

            await until(lambda: bool(servers()))
            server = min(servers())  # a child that it has just forked looks the same
            assert server not in {member.pid for member in find_marked(record.runtime_id)}
            assert os.getsid(server) == record.pid
            found = identify(server)
            assert found is not None
            os.kill(record.pid, signal.SIGKILL)
            exit_ = await ran.told.nth(RuntimeExit)
            assert exit_.left_behind == ()
            assert not is_alive(found)


# --- life after us ---


async def test_process_and_its_turn_survive_the_daemon_and_are_adopted(codex: Path, tmp_path: Path) -> None:
    """BOOT-02: killed without a word, as by the kernel. The turn goes on and its end is heard over the new link."""
    async with open_server(ScriptedModel()) as base_url:
        write_codex_home(tmp_path / "home", base_url)
        daemon = await trio.lowlevel.open_process(
            [sys.executable, "-m", "support.daemon_that_dies", str(codex), str(tmp_path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        assert daemon.stdout is not None
        record = msgspec.json.decode(await daemon.stdout.receive_some(), type=RuntimeRecord)
        async with linked(Path(record.socket or "")) as link:
            await shake_hands(link, "0")
            started = await ask(link, "thread/start", {"cwd": str(tmp_path)})
            thread = started["result"]["thread"]["id"]
            words = [{"type": "text", "text": "@wait 4s\n@say survived"}]
            await begin(link, {"threadId": thread, "input": words})
        daemon.kill()
        await daemon.wait()
        await daemon.stdout.aclose()
        async with supervising(codex, tmp_path, record=record, limits=LIMITS) as ran:
            up = await ran.ready()
            assert (up.adopted, up.link.runtime_id) == (True, record.runtime_id)
            asked = Answers(ran)
            resumed = await asked.resume(up.link, thread)
            assert "error" not in resumed, resumed
            assert resumed["result"]["thread"]["status"]["type"] == "active"
            done = await asked.notice("turn/completed")
            assert (done["threadId"], done["turn"]["status"]) == (thread, "completed")
        (exit_,) = ran.told.all(RuntimeExit)
        assert exit_.cause == "stop"
        assert identify(record.pid) is None or not is_alive(ProcessIdentity(record.pid, record.start_time))


async def test_mark_is_in_its_environment(codex: Path, tmp_path: Path) -> None:
    async with spawned(codex, tmp_path, mark="some-runtime") as process:
        # The kernel lets its parent go on some moments before the new environment can be read.
        await until(lambda: process.identity in set(find_marked("some-runtime")))
        assert MARK_NAME == "TERMALD_RUNTIME"


# --- what it says ---


async def test_all_that_a_turn_says_is_read_by_the_generated_types(codex: Path, tmp_path: Path) -> None:
    """The types come from one release and read another: nothing of a whole turn with a tool may be refused."""
    async with scripted(codex, tmp_path) as (ran, asked):
        up = await ran.ready()
        await asked.turn(up.link, tmp_path, "@reasoning thinking\n@shell echo hi\n@say done")
        await asked.notice("turn/completed")
        frames = [decode(came.raw) for came in ran.told.all(Came) if isinstance(came.raw, bytes)]
        read = set()
        for frame in frames:
            if isinstance(frame, Notification) and frame.method in methods.SERVER_NOTIFICATIONS:
                msgspec.json.decode(frame.params, type=methods.SERVER_NOTIFICATIONS[frame.method])
                read.add(frame.method)
        assert read >= {"thread/started", "turn/started", "item/started", "item/completed", "turn/completed"}
        replies = [frame for frame in frames if isinstance(frame, Reply)]
        kinds = [methods.CLIENT_REQUESTS[method][1] for method in ("thread/start", "turn/start")]
        for reply, kind in zip(replies, kinds, strict=True):
            assert kind is not None
            msgspec.json.decode(reply.result, type=kind)
    assert not ran.told.all(Lost)
    assert len(ran.told.all(LinkUp)) == 1
