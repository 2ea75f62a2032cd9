"""The clients of a crash run: they prompt, interrupt, decide, stop, kill and read events, and never give up.

A client whose request was not answered asks again under the same idempotency key, as one would that cannot know whether
the daemon heard it before it died.
"""

import contextlib
import itertools
from random import Random
from typing import Final

import httpx
import msgspec
import trio
from support.crash_ledger import Ledger, Promise
from support.daemon import Daemon, Json

ASK_AGAIN_S: Final = 0.02
PATIENCE_S: Final = 60.0
"""No request goes unanswered for longer, restarts of the daemon included."""
SESSIONS_MAX: Final = 6

_KINDS: Final = ("say", "say", "stream", "hold", "hold", "shell")


class Client:
    """One client that does this and that until it is told to rest."""

    def __init__(self, name: str, daemon: Daemon, ledger: Ledger, random: Random) -> None:
        self._name = name
        self._daemon = daemon
        self._ledger = ledger
        self._random = random
        self._numbers = itertools.count(1)
        self.ran_into: dict[int, int] = {}
        """How often each status was answered."""

    async def live(self, resting: trio.Event) -> None:
        """Act until `resting`; what was begun is seen through."""
        while not resting.is_set():
            await self._act()
            with trio.move_on_after(self._random.uniform(0, 0.15)):
                await resting.wait()

    async def _act(self) -> None:
        alive = sorted(self._ledger.sessions - self._ledger.doomed)
        if len(alive) < 2 or (len(alive) < SESSIONS_MAX and self._random.random() < 0.2):
            await self._create()
            return
        session = self._random.choice(alive)
        roll = self._random.random()
        if roll < 0.68:
            await self._prompt(session)
        elif roll < 0.84:
            await self._call("POST", f"/api/sessions/{session}/interrupt")
        elif roll < 0.89:
            await self._call("POST", f"/api/sessions/{session}/stop")
        elif roll < 0.94:
            await self._kill(session)
        else:
            await self._take_back(session)

    async def _create(self) -> None:
        session = f"{self._name}-{next(self._numbers)}"
        body: Json = {"id": session, "cwd": str(self._daemon.cwd)}
        if self._random.random() < 0.2:
            body["onRecovery"] = "hold"
        promise = None
        if self._random.random() < 0.7:
            promise = self._new_prompt(session)
            body["prompt"] = {"input": promise.text}
        answer = await self._call("POST", "/api/sessions", body, key=session)
        assert answer.status_code == 201, answer.text
        if promise is not None:
            self._ledger.keep(promise, answer.json()["prompt"]["id"])
        self._ledger.sessions.add(session)

    async def _prompt(self, session: str) -> None:
        promise = self._new_prompt(session)
        answer = await self._call(
            "POST", f"/api/sessions/{session}/prompts", {"input": promise.text}, key=promise.token
        )
        if answer.status_code == 202:
            self._ledger.keep(promise, answer.json()["prompt"]["id"])
        else:
            self._ledger.refuse(promise, answer.text)
            assert session in self._ledger.doomed, answer.text

    def _new_prompt(self, session: str) -> Promise:
        token = f"{self._name}x{next(self._numbers)}x"
        kind = self._random.choice(_KINDS)
        script = {
            "say": f"@say {token}",
            "stream": f"@pace 5ms\n@deltas {self._random.randint(2, 40)}\n@say {token}",
            "hold": f"@say begun\n@hold {token}\n@say {token}",
            "shell": f"@shell echo {token} >> ran\n@say {token}",
        }[kind]
        return self._ledger.ask(session, token, script, runs_command=kind == "shell")

    async def _kill(self, session: str) -> None:
        if self._random.random() < 0.4:
            return
        self._ledger.doomed.add(session)
        answer = await self._call("POST", f"/api/sessions/{session}/kill", {})
        assert answer.status_code == 200, answer.text
        assert answer.json()["killed"] is True
        self._ledger.kill_told(session)

    async def _take_back(self, session: str) -> None:
        waiting = [promise for promise in self._ledger.accepted if promise.session == session]
        if waiting:
            await self._call("DELETE", f"/api/sessions/{session}/prompts/{waiting[-1].id}")

    async def _call(self, method: str, path: str, body: Json | None = None, key: str | None = None) -> httpx.Response:
        answer = await persist(self._daemon, method, path, body, key)
        self.ran_into[answer.status_code] = self.ran_into.get(answer.status_code, 0) + 1
        return answer


async def persist(
    daemon: Daemon, method: str, path: str, body: Json | None = None, key: str | None = None
) -> httpx.Response:
    """Ask until somebody answers; "not now" is no answer."""
    headers = {} if key is None else {"Idempotency-Key": key}
    with trio.move_on_after(PATIENCE_S):
        while True:
            with contextlib.suppress(httpx.TransportError):
                async with daemon.client() as client:
                    answer = await client.request(method, path, json=body, headers=headers)
                    if answer.status_code != 503:
                        assert answer.status_code < 500, answer.text
                        return answer
            await trio.sleep(ASK_AGAIN_S)
    raise UnansweredError(f"{method} {path} was not answered within {PATIENCE_S:g} s")


class UnansweredError(Exception):
    """A client waited in vain."""


class Approver:
    """Decides what waits for a decision."""

    def __init__(self, daemon: Daemon, ledger: Ledger, random: Random) -> None:
        self._daemon = daemon
        self._ledger = ledger
        self._random = random

    async def live(self, resting: trio.Event) -> None:
        """Decide now and then until `resting`."""
        while not resting.is_set():
            if self._random.random() < 0.5:
                await self.decide_all()
            with trio.move_on_after(self._random.uniform(0, 0.4)):
                await resting.wait()

    async def decide_all(self) -> None:
        """Decide everything that is open at this moment."""
        for card in (await persist(self._daemon, "GET", "/api/requests?limit=200")).json()["data"]:
            decision = "cancel" if self._random.random() < 0.2 else "accept"
            path = f"/api/sessions/{card['sessionId']}/requests/{card['id']}"
            answer = await persist(self._daemon, "POST", path, {"decision": decision})
            # 409: it was answered, or expired, meanwhile; an answer of ours that was not read may be why.
            if answer.status_code == 200:
                token = next(p.token for p in self._ledger.promises if p.token in card["params"]["command"])
                self._ledger.decided(card["sessionId"], card["id"], token, accepted=decision == "accept")


class Reader:
    """Reads the whole log as it grows; comes back after each loss with the last id that it has seen."""

    def __init__(self, daemon: Daemon, random: Random) -> None:
        self._daemon = daemon
        self._random = random
        self.seen: dict[int, bytes] = {}
        """Each event's data, by its number."""
        self.last = 0
        self.doubled: list[int] = []
        self.skipped: list[tuple[int, int]] = []
        self.resets: list[bytes] = []
        self.heard_at: float | None = None
        """When the first event since `listen_anew` came, on trio's clock."""

    def listen_anew(self) -> None:
        """From here on, take the time of the first event."""
        self.heard_at = None

    async def live(self) -> None:
        """Read, for ever."""
        while True:
            with contextlib.suppress(OSError, trio.BrokenResourceError):
                await self._read()
            await trio.sleep(ASK_AGAIN_S)

    async def _read(self) -> None:
        async with await trio.open_unix_socket(str(self._daemon.runtime_dir / "termald.sock")) as stream:
            head = f"GET /api/events?after=0 HTTP/1.0\r\nLast-Event-ID: {self.last}\r\n\r\n"
            await stream.send_all(head.encode())
            # Now and then it leaves by itself, in the middle of whatever comes.
            patience_s = self._random.choice((0.3, 2.0, 1e6))
            rest = b""
            with trio.move_on_after(patience_s):
                async for piece in stream:
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        if line.startswith(b"data: "):
                            self._take(line.removeprefix(b"data: "))

    def _take(self, data: bytes) -> None:
        event = msgspec.json.decode(data, type=_Head)
        if event.kind == "synced":
            return
        if event.kind == "reset":
            self.resets.append(data)
            return
        if event.seq in self.seen:
            self.doubled.append(event.seq)
        elif event.seq != self.last + 1:
            self.skipped.append((self.last, event.seq))
        if self.heard_at is None:
            self.heard_at = trio.current_time()
        self.seen[event.seq] = data
        self.last = event.seq


class _Head(msgspec.Struct):
    kind: str
    seq: int = 0
