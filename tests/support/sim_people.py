"""People who use the daemon of a simulation: at random, all at once, and without mercy; and one who only streams."""

from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Final

import msgspec
import trio
from support.sim_world import DaemonGone, World

from state.records import DELIVERY_FINAL, IgnoredThread, RequestId, ThreadId
from termald.core import inputs as ins
from termald.core.effects import Refused

X: Final = "x"
"""The innocent: nothing is ever done to it by intent."""
X_SAYS: Final = "@pace 20ms\n@deltas 12"

SAYINGS: Final = (
    "hello",
    "@deltas 4",
    "@say one\n@message\n@say two",
    "@reasoning hm\n@say so",
    "@say I look\n@shell ls\n@say I looked",
    "@shell one\n@and\n@shell two\n@say both",
    "@ask Which? | a | b\n@say as you like",
    "@wait 15s\n@say slowly",
    "@wait 50s\n@say very slowly",
    "@pace 300ms\n@deltas 20",
    "@fail 500",
    "@fail 429",
    "@fail 401 times=1\n@say after all",
    "@say part\n@cut times=1\n@say and the rest",
    "@empty",
)
MORE_SAYINGS: Final = (
    *SAYINGS,
    "@say I write\n@patch add made.txt hello\n@say I wrote",
    "@patch add a b\n@and\n@patch add c d",
)
"""As `SAYINGS`, where people come in by HTTP; the seeds that were kept before stay what they were."""
MODES: Final = ("queue",) * 8 + ("steer",) * 2 + ("replace", "reject")


class People:
    """Everybody but X. What they do is drawn from `dice`."""

    def __init__(
        self, world: World, dice: Random, *, restarts: bool = True, sayings: tuple[str, ...] = SAYINGS
    ) -> None:
        self.world = world
        self._sayings = sayings
        self.dice = dice
        self.sessions: list[str] = []
        self.promised: list[str] = []
        """Prompts of which a caller was told that they are accepted."""
        self._made = 0
        self._asked = 0
        deeds: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (4, self.create),
            (30, self.prompt),
            (8, self.interrupt),
            (5, self.stop),
            (2, self.close),
            (2, self.kill),
            (4, self.retry),
            (4, self.take_back),
            (14, self.answer),
            (1 if restarts else 0, self.restart),
            (3, self.scan),
            (2, self.ignore_or_not),
        ]
        self._weights = [weight for weight, _ in deeds]
        self._deeds = [deed for _, deed in deeds]

    async def act(self, seconds: float, pause_s: float) -> None:
        """Do something every now and then, for so long, without waiting for what came of it."""
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                while True:
                    (deed,) = self.dice.choices(self._deeds, self._weights)
                    nursery.start_soon(self._try, deed)
                    await trio.sleep(self.dice.expovariate(1 / pause_s))

    async def _try(self, deed: Callable[[], Awaitable[None]]) -> None:
        try:
            await deed()
        except DaemonGone:
            return  # whoever asked does not know what became of it; the checks do

    def _session(self) -> str | None:
        return self.dice.choice(self.sessions) if self.sessions else None

    # --- what they do ---

    async def create(self) -> None:
        self._made += 1
        name = f"s{self._made}"
        lost = self.dice.choice(("fail", "fail", "fresh"))
        recovery = self.dice.choice(("resend", "resend", "hold"))
        said = self.dice.choice(self._sayings) if self.dice.random() < 0.7 else None
        self.sessions.append(name)
        await self.world.create(name, prompt=said, on_resume_lost=lost, on_recovery=recovery)

    async def prompt(self) -> None:
        session = self._session()
        if session is None:
            await self.create()
            return
        self._asked += 1
        name, text, mode = f"p{self._asked}", self.dice.choice(self._sayings), self.dice.choice(MODES)
        for _ in range(2):
            try:
                answer = await self.world.prompt(session, text, id_=name, mode=mode)
            except DaemonGone:
                await trio.sleep(1.0)  # and once more, under the same key
                continue
            if not isinstance(answer, Refused):
                self.promised.append(name)
            return

    async def interrupt(self) -> None:
        await self._about(ins.InterruptSession)

    async def stop(self) -> None:
        await self._about(ins.StopSession)

    async def close(self) -> None:
        await self._about(ins.CloseSession)

    async def kill(self) -> None:
        await self._about(ins.KillSession)

    async def retry(self) -> None:
        await self._about(ins.RetrySession)

    async def _about(self, kind: type[ins.Command]) -> None:
        session = self._session()
        if session is not None:
            await self.world.command(kind, session)

    async def take_back(self) -> None:
        waiting = [prompt for prompt in self.world.rows.prompts.values() if prompt.delivery not in DELIVERY_FINAL]
        if waiting:
            prompt = self.dice.choice(waiting)
            await self.world.command(ins.TakeBackPrompt, prompt.session_id, prompt=prompt.id)

    async def answer(self) -> None:
        """Answer something, as it was offered."""
        open_ones = [request for request in self.world.rows.requests.values() if request.status == "open"]
        if open_ones:
            await self._answer(self.dice.choice(open_ones).id)

    async def _answer(self, request_id: RequestId) -> None:
        request = self.world.rows.requests[request_id]
        fields: dict[str, str] = {}
        if request.kind == "userInput":
            questions = msgspec.json.decode(request.params_json)["questions"]
            answers = {question["id"]: {"answers": ["a"]} for question in questions}
            fields["answers_json"] = msgspec.json.encode(answers).decode()
        else:
            fields["decision_json"] = self.dice.choice(request.decisions)
        await self.world.command(ins.AnswerRequest, request.session_id, request=request.id, **fields)

    async def restart(self) -> None:
        await self.world.ask(lambda ticket, at_ms: ins.RestartRuntime(ticket=ticket, at_ms=at_ms))

    async def scan(self) -> None:
        if self.world.daemon is not None:
            self.world.daemon.scan_now()

    async def ignore_or_not(self) -> None:
        """Take something out of the ignore set, or put something into it that a front-end of somebody else's made."""
        ignored = list(self.world.rows.ignored)
        if ignored and self.dice.random() < 0.5:
            thread = self.dice.choice(ignored)
            await self.world.ask(lambda ticket, at_ms: ins.UnignoreThread(ticket=ticket, at_ms=at_ms, thread=thread))
            return
        strangers = [row.id for row in self.world.home.threads.values() if row.tag is None]
        if strangers:
            entry = IgnoredThread(
                thread_id=ThreadId(self.dice.choice(strangers)), reason="by hand", at_ms=self.world.now_ms()
            )
            await self.world.ask(lambda ticket, at_ms: ins.IgnoreThread(ticket=ticket, at_ms=at_ms, entry=entry))

    # --- what they do in the end ---

    async def settle(self) -> None:
        """Decide whatever waits for a decision, so that nothing is held up by them any more."""
        daemon = self.world.daemon
        if daemon is not None and daemon.runtime.status == "broken":
            await self.restart()
        for request in list(self.world.rows.requests.values()):
            if request.status == "open":
                await self._answer(request.id)
        for record in list(self.world.rows.live()):
            if record.status != "closed" and (record.paused or record.resume_lost or record.status == "error"):
                lost = record.resume_lost
                await self.world.command(ins.RetrySession, record.id, fresh=lost)


async def stream(world: World, turns: int) -> None:
    """Be X: say something, wait for its end, and again."""
    await _persist(world, lambda: world.create(X))
    for number in range(turns):
        await _persist(world, partial(world.prompt, X, X_SAYS, id_=f"x-{number}"))
        await world.until(partial(_is_over, world, f"x-{number}"), "X's turn", within_s=3_000.0)
        await trio.sleep(1.0)


def _is_over(world: World, prompt: str) -> bool:
    return world.rows.prompts[world.id_of(prompt)].delivery in DELIVERY_FINAL


async def _persist(world: World, ask: Callable[[], Awaitable[object]]) -> None:
    """Ask again where nobody answered, or nothing could be kept, as a client with an idempotency key does."""
    while True:
        try:
            if not isinstance(await ask(), Refused):
                return
        except DaemonGone:
            await world.until(lambda: world.daemon is not None, "a daemon", within_s=3_000.0)
        await trio.sleep(0.5)
