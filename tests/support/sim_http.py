"""A world in which everybody comes in by the door: the real API over the daemon, request by request, in the same task.

Only sockets and HTTP's bytes are left out. Prompts get their ids from the daemon; who asks knows them by names of its
own, which are its idempotency keys.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from random import Random
from typing import Any, Final

import msgspec
import trio
from support.sim_store import SimStore
from support.sim_tables import SimTablesStore, Tables
from support.sim_world import DaemonGone, World, open_world

from state.records import BootImage, Problem, PromptId, Seq
from termald.api.app import build_api
from termald.api.asgi import (
    ASGI_VERSION,
    LEAVE_GRACE_S,
    TRANSPORT_EXTENSION,
    ASGIApp,
    ClientDisconnected,
    Message,
    Scope,
    is_disconnect,
)
from termald.api.settings import ApiSettings
from termald.core import inputs as ins
from termald.core.effects import Answer, DoneAnswer, Refused
from termald.daemon import Daemon

UNDECIDED: Final = frozenset({"no-answer-yet", "starting"})
"""Answers after which a caller asks again, under the same key."""


class Said(msgspec.Struct, frozen=True):
    """An answer of the API."""

    status: int
    body: bytes

    @property
    def json(self) -> Any:
        """What it says."""
        return msgspec.json.decode(self.body)


class Heard(msgspec.Struct, frozen=True):
    """An event as a listener got it."""

    seq: Seq
    kind: str
    data: bytes


class HttpWorld(World):
    """As `World`, with an API over its daemon, and tables behind it."""

    def __init__(self, nursery: trio.Nursery, seed: str, **options: Any) -> None:
        super().__init__(nursery, seed, **options)
        self.tables = Tables(self.rows.host)
        self.rows.also = self.tables.write
        self._ids_by_name: dict[str, PromptId] = {}
        self._app: ASGIApp | None = None
        self._leisure = Random(f"leisure {seed}")

    async def dawdle(self, door: str) -> None:
        for _ in range(self._leisure.choice((0, 0, 0, 1, 2, 5))):
            await trio.lowlevel.checkpoint()

    def id_of(self, prompt: str) -> PromptId:
        """Return the id that the daemon gave to a prompt."""
        return self._ids_by_name[prompt]

    def make_store(self, image: BootImage) -> SimStore:
        self.tables.boot(image)
        return SimTablesStore(self.rows, self.troubles, self.dawdle, self.tables)

    def made(self, daemon: Daemon) -> None:
        self._app = build_api(daemon, ApiSettings(token="t" * 43, protocol_schema="0", label="simulated"))

    # --- asking ---

    async def http(self, method: str, path: str, body: object = None, *, key: str | None = None) -> Said:
        """Ask, and return the answer. Errors: `DaemonGone`, as `World.ask`."""
        said: list[Said] = []
        app = self._door()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.until_over, nursery.cancel_scope)
            said.append(await _exchange(app, _scope(method, path, key, body), body))
            nursery.cancel_scope.cancel()
        if not said:
            raise DaemonGone
        return said[0]

    async def ask(self, make: Callable[[ins.Ticket, int], ins.Command]) -> Answer:
        """Ask over HTTP what `make` says; nothing of the answer is kept but whether it refused."""
        command = make(ins.Ticket(0), self.now_ms())
        method, path, body = _request(command)
        once: ins.Idempotency | None = getattr(command, "idempotency", None)
        said = await self.http(method, path, body, key=None if once is None else once.key)
        assert said.status < 500 or said.json["retryable"], f"{method} {path}: {said.body!r}"
        if said.status >= 400:
            slug = said.json["type"].rpartition(":")[2]
            if slug in UNDECIDED:
                raise DaemonGone
            return Refused(problem=Problem(slug=slug, message=said.json["detail"]))
        if isinstance(command, ins.SubmitPrompt):
            self._ids_by_name[command.prompt.id] = PromptId(said.json["prompt"]["id"])
        return DoneAnswer()

    def _door(self) -> ASGIApp:
        if self.daemon is None or self._app is None:
            raise DaemonGone
        return self._app

    # --- listening ---

    @asynccontextmanager
    async def listening(self, path: str = "/api/events") -> AsyncIterator[AsyncIterator[Heard]]:
        """Open an event stream. It ends when the daemon does, and at once where there is no such session. Whoever
        leaves is told to the API as the shell tells it, which then has to end by itself."""
        app = self._door()
        into, out = trio.open_memory_channel[bytes](0)
        left, ended = trio.Event(), trio.Event()

        async def read() -> None:
            with into:
                await _stream(app, _scope("GET", path, None, None), into, left)
            ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.until_over, nursery.cancel_scope)
            nursery.start_soon(read)
            with out:
                async with aclosing(_events(out)) as events:
                    yield events
            left.set()
            with trio.fail_after(LEAVE_GRACE_S):
                await ended.wait()
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_http_world(seed: str = "0", **options: Any) -> AsyncIterator[HttpWorld]:
    """Open a world as `open_world` does, with its door."""
    async with open_world(seed, kind=HttpWorld, **options) as world:
        assert isinstance(world, HttpWorld)
        yield world


async def _stream(app: ASGIApp, scope: Scope, into: trio.MemorySendChannel[bytes], left: trio.Event) -> None:
    status = 0

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)
        assert status in (200, 404), message
        try:
            if status == 200 and message.get("body"):
                await into.send(message["body"])
        except trio.BrokenResourceError as error:
            raise ClientDisconnected from error

    try:
        await app(scope, receive, send)
    except Exception as error:
        if not is_disconnect(error):
            raise


async def _exchange(app: ASGIApp, scope: Scope, body: object) -> Said:
    asked = [{"type": "http.request", "body": b"" if body is None else msgspec.json.encode(body), "more_body": False}]
    status, parts = 0, list[bytes]()

    async def receive() -> Message:
        return asked.pop() if asked else await _never()

    async def send(message: Message) -> None:
        nonlocal status
        await trio.lowlevel.checkpoint()
        if message["type"] == "http.response.start":
            status = message["status"]
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return Said(status=status, body=b"".join(parts))


async def _never() -> Message:
    await trio.sleep_forever()
    raise AssertionError("not reached")


def _scope(method: str, path: str, key: str | None, body: object) -> Scope:
    headers = [(b"host", b"localhost")]
    if body is not None:
        headers.append((b"content-type", b"application/json"))
    if key is not None:
        headers.append((b"idempotency-key", key.encode()))
    address, _, query = path.partition("?")
    return {
        "type": "http",
        "asgi": ASGI_VERSION,
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": address,
        "raw_path": address.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "client": None,
        "server": ("/run/sim/termald.sock", None),
        "state": {},
        "extensions": {TRANSPORT_EXTENSION: {"kind": "unix", "peer_uid": 0}},
    }


async def _events(chunks: trio.MemoryReceiveChannel[bytes]) -> AsyncGenerator[Heard, None]:
    async for chunk in chunks:
        for block in chunk.split(b"\n\n"):
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if line and not line.startswith(b":"))
            if fields:
                yield Heard(seq=Seq(int(fields[b"id"])), kind=fields[b"event"].decode(), data=fields[b"data"])


# --- commands as requests ---


def _request(command: ins.Command) -> tuple[str, str, object]:
    """Return method, path and body."""
    match command:
        case ins.CreateSession(session=session, settings=settings, prompt=prompt):
            body = {
                "id": session,
                "cwd": settings.cwd,
                "onResumeLost": settings.on_resume_lost,
                "onRecovery": settings.on_recovery,
                "prompt": None if prompt is None else _input(prompt),
            }
            return "POST", "/api/sessions", {name: value for name, value in body.items() if value is not None}
        case ins.SubmitPrompt(session=session, prompt=prompt):
            return "POST", f"/api/sessions/{session}/prompts", {"input": _input(prompt), "mode": prompt.mode}
        case ins.TakeBackPrompt(session=session, prompt=taken):
            return "DELETE", f"/api/sessions/{session}/prompts/{taken}", None
        case ins.AnswerRequest(session=session, request=request, decision_json=decision, answers_json=answers):
            said = {"answers": _json(answers)} if decision is None else {"decision": _json(decision)}
            return "POST", f"/api/sessions/{session}/requests/{request}", said
        case ins.RetrySession(session=session, fresh=fresh):
            return "POST", f"/api/sessions/{session}/retry", {"fresh": fresh}
        case ins.IgnoreThread(entry=entry):
            return "PUT", f"/api/ignored-threads/{entry.thread_id}", {"reason": entry.reason}
        case ins.UnignoreThread(thread=thread):
            return "DELETE", f"/api/ignored-threads/{thread}", None
        case ins.RestartRuntime():
            return "POST", "/api/runtime/restart", None
        case _:
            about: Any = command
            return "POST", f"/api/sessions/{about.session}/{_VERBS[type(command)]}", None


_VERBS: Final[dict[type[ins.Command], str]] = {
    ins.InterruptSession: "interrupt",
    ins.StopSession: "stop",
    ins.CloseSession: "close",
    ins.KillSession: "kill",
}


def _input(prompt: ins.NewPrompt) -> Any:
    return msgspec.json.decode(prompt.input_json)


def _json(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
