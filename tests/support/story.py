"""A daemon's core told as a story: inputs go in, frames come out, and every promise is checked on the way.

Each `do` is one batch: decided, committed to a store in memory, and carried out into plain lists. What Codex says is
said with short words (`opened`, `accepted`, `turn_started`, ...), so that a test reads like the catalogue of races.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from support.memory_store import MemoryStore

from state.records import (
    CodexAttachment,
    Host,
    ItemId,
    LinkId,
    Problem,
    PromptId,
    PromptRecord,
    RuntimeId,
    Seq,
    SessionId,
    SessionRecord,
    ThreadId,
    TurnId,
    Wanted,
)
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.limits import Limits
from termald.core.model import Session
from termald.core.state import State
from termald.core.step import step
from termald.core.wanted import wanted
from termald.intake import consequences

HOST = Host(id="host", epoch=1)
REFUSALS: dict[str, tuple[int, str]] = {
    "overloaded": (-32001, "Server overloaded; retry later."),
    "no_rollout": (-32600, "no rollout found for thread id T"),
    "thread_not_found": (-32600, "thread not found: T"),
    "active_writer": (-32600, "thread T already has an active writer"),
    "archived": (-32600, "session T is archived. Run `codex unarchive T` to unarchive it first."),
    "provider_missing": (-32600, "failed to load configuration: Model provider `x` not found"),
    "no_active_turn": (-32600, "no active turn to interrupt"),
    "turn_mismatch": (-32600, "expected active turn id a but found b"),
    "input_too_large": (-32602, "Input exceeds the maximum length of 1048576 characters."),
    "other": (-32600, "something new"),
}


class Sent(msgspec.Struct, frozen=True):
    """A request that was written."""

    call: ins.CallId
    link: LinkId
    op: fx.Op


class Story:
    """One daemon and one Codex, in the hands of a test."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.store = MemoryStore(HOST)
        self.state = State(HOST, Seq(1), self.limits)
        self.now = 1_000_000
        self.sent: list[Sent] = []
        self.answered_requests: list[fx.SendAnswer | fx.SendRefusal] = []
        self.answers: dict[ins.Ticket, fx.Answer] = {}
        self.timers: dict[tuple[str, ...], ins.Input] = {}
        self.armed: dict[tuple[str, ...], fx.Arm] = {}
        self.restarts = 0
        self.link = LinkId(runtime_id=RuntimeId("R1"), connection=1)
        self._tickets = 0
        self._ids = 0

    # --- the engine ---

    def do(self, *happened: ins.Input) -> list[fx.Effect]:
        """Decide one batch, commit it, and carry its effects out."""
        decided = self.decide_and_commit(happened)
        for effect in decided:
            self.carry_out(effect)
        self.check()
        return decided

    def decide_and_commit(self, happened: Sequence[ins.Input]) -> list[fx.Effect]:
        """Decide one batch and commit it, or leave everything as it was."""
        names = wanted(self.state, happened)
        if names:
            self.state.load(self.store.load_now(names))
        try:
            decided = [effect for one in happened for effect in self._decide(one)]
            self.store.commit_now(self.state.changes(), sync=self.state.promised)
        except Exception:
            self.state.undo()
            raise
        self.state.keep()
        self._check_promises(decided)
        return decided

    def _check_promises(self, decided: Sequence[fx.Effect]) -> None:
        """What somebody was told, and what Codex is asked to mint, must outlive a power cut (I10, I2); so must
        that a prompt was sent, or it would be sent twice (I5)."""
        changes, synced = self.store.commits[-1]
        intents = {intent.tag for intent in changes.intents}
        prompts = {prompt.id for prompt in changes.prompts}
        for effect in decided:
            match effect:
                case fx.Respond():
                    told = not isinstance(effect.answer, fx.Refused)
                case fx.Send(op=fx.OpenFresh() as op):
                    told = op.tag in intents
                case fx.Send(op=fx.StartTurn() | fx.SteerTurn() as op):
                    told = op.prompt.id in prompts
                case _:
                    continue
            assert synced or not changes or not told, f"not synced before {effect}"

    def _decide(self, happened: ins.Input) -> list[fx.Effect]:
        # As the writer does: what discovery sees is decided one thread at a time, on the state of now.
        effects = [] if isinstance(happened, ins.ThreadsSeen) else step(self.state, happened)
        if isinstance(happened, ins.ThreadsSeen | ins.ThreadStarted):
            for each in consequences(self.state, happened, self.new_session):
                effects += step(self.state, each)
        return effects

    def new_session(self) -> SessionId:
        """Return the id of a session that discovery may import."""
        self._ids += 1
        return SessionId(f"found-{self._ids}")

    def carry_out(self, effect: fx.Effect) -> None:
        """Do what was decided, after its commit."""
        match effect:
            case fx.Send():
                self.sent.append(Sent(effect.call, effect.link, effect.op))
            case fx.SendAnswer() | fx.SendRefusal():
                self.answered_requests.append(effect)
            case fx.Respond():
                assert effect.ticket not in self.answers, "a caller is answered once"
                self.answers[effect.ticket] = effect.answer
            case fx.Arm():
                self.timers[effect.key] = effect.timer
                self.armed[effect.key] = effect
            case fx.Disarm():
                self.timers.pop(effect.key, None)
            case fx.RestartProcess():
                self.restarts += 1

    def fire(self, *key: str) -> None:
        """Let an armed timer come due."""
        assert key in self.timers, f"{key} is not armed"
        timer = self.timers.pop(key)
        self.now += self.armed[key].after_ms
        self.do(replace(timer, at_ms=self.now))

    def check(self) -> None:
        """The invariants that hold after every batch."""
        state = self.state
        setups = [session for session in state.sessions.values() if session.setup is not None]
        assert state.setups_open.value == len(setups) <= self.limits.setups_max
        assert state.calls_written.value <= self.limits.calls_max
        for thread in state.routes:
            route = state.routes[thread]
            session = state.sessions[route.session]
            assert session.record.thread_id == thread, "I3: the route is the claim's"
        for session in state.sessions.values():
            waiting = [state.prompts[prompt].position for prompt in session.queue]
            assert waiting == sorted(waiting), "I5: prompts wait in order"

    def reboot(self, alive: str | None = None) -> None:
        """The daemon dies and starts again with what was committed; `alive` names the process that outlived it."""
        self.state = State.boot(self.store.boot(), self.limits)
        self.timers.clear()
        self.do(ins.Booted(at_ms=self.tick(), alive=None if alive is None else RuntimeId(alive)))

    # --- what people ask ---

    def tick(self) -> int:
        """Return the next moment."""
        self.now += 1
        return self.now

    def ticket(self) -> ins.Ticket:
        """Return a fresh ticket."""
        self._tickets += 1
        return ins.Ticket(self._tickets)

    def ask(self, make: Callable[[ins.Ticket, int], ins.Command]) -> ins.Ticket:
        """Put a command and return its ticket."""
        ticket = self.ticket()
        self.do(make(ticket, self.tick()))
        return ticket

    def create(self, session: str = "s", *, thread: str | None = None, **settings: Any) -> ins.Ticket:
        """Create a session."""
        return self.ask(
            lambda ticket, at: ins.CreateSession(
                ticket=ticket,
                at_ms=at,
                session=SessionId(session),
                settings=ins.SessionSettings(cwd="/work", **settings),
                thread=None if thread is None else ThreadId(thread),
            )
        )

    def new_prompt(self, text: str, mode: Any = "queue") -> ins.NewPrompt:
        """Return a prompt whose id is its text."""
        return ins.NewPrompt(id=PromptId(text), input_json=f'[{{"type":"text","text":"{text}"}}]', mode=mode)

    def prompt(self, text: str, session: str = "s", mode: Any = "queue") -> ins.Ticket:
        """Prompt a session."""
        new = self.new_prompt(text, mode)
        return self.ask(lambda t, at: ins.SubmitPrompt(ticket=t, at_ms=at, session=SessionId(session), prompt=new))

    def interrupt(self, session: str = "s") -> ins.Ticket:
        """Interrupt a session."""
        return self.ask(lambda t, at: ins.InterruptSession(ticket=t, at_ms=at, session=SessionId(session)))

    def stop(self, session: str = "s") -> ins.Ticket:
        """Stop a session."""
        return self.ask(lambda t, at: ins.StopSession(ticket=t, at_ms=at, session=SessionId(session)))

    def close(self, session: str = "s") -> ins.Ticket:
        """Close a session."""
        return self.ask(lambda t, at: ins.CloseSession(ticket=t, at_ms=at, session=SessionId(session)))

    def kill(self, session: str = "s", wanted: Any = "ignore") -> ins.Ticket:
        """Kill a session."""
        return self.ask(lambda t, at: ins.KillSession(ticket=t, at_ms=at, session=SessionId(session), wanted=wanted))

    def refusal(self, ticket: ins.Ticket) -> str:
        """Return the slug that a command was refused with."""
        answer = self.answers[ticket]
        assert isinstance(answer, fx.Refused), answer
        return answer.problem.slug

    # --- what Codex does ---

    def up(self, runtime: str = "R1", connection: int = 1, *, adopted: bool = False) -> None:
        """A link comes up."""
        self.link = LinkId(runtime_id=RuntimeId(runtime), connection=connection)
        self.do(ins.LinkUp(at_ms=self.tick(), link=self.link, adopted=adopted))

    def lost(self) -> None:
        """The link goes down, the process lives."""
        self.do(ins.LinkLost(at_ms=self.tick(), link=self.link, reason="reset"))

    def exited(self, runtime: str = "R1") -> None:
        """The process dies."""
        self.do(ins.RuntimeExited(at_ms=self.tick(), runtime=RuntimeId(runtime), cause="signal 9"))

    def last(self, op: type[fx.Op]) -> Sent:
        """Return the newest written request of this kind."""
        written = [sent for sent in self.sent if isinstance(sent.op, op)]
        assert written, f"no {op.__name__} was written"
        return written[-1]

    def count(self, op: type[fx.Op]) -> int:
        """Return how many of this kind were written."""
        return sum(isinstance(sent.op, op) for sent in self.sent)

    def opened(
        self, sent: Sent | None = None, thread: str = "T", status: Any = "idle", turns: tuple[ins.SeenTurn, ...] = ()
    ) -> None:
        """Answer a start or a resume."""
        call = sent or next(s for s in reversed(self.sent) if isinstance(s.op, fx.OpenFresh | fx.OpenKnown))
        self.do(self.opened_input(call, thread, status, turns))

    def opened_input(
        self, sent: Sent, thread: str = "T", status: Any = "idle", turns: tuple[ins.SeenTurn, ...] = ()
    ) -> ins.ThreadOpened:
        """Return the reply to a start or a resume, to be delivered by hand."""
        return ins.ThreadOpened(
            at_ms=self.tick(), link=sent.link, call=sent.call, thread=ThreadId(thread), status=status, turns=turns
        )

    def accepted(self, turn: str, sent: Sent | None = None) -> None:
        """Answer a `turn/start`."""
        call = sent or self.last(fx.StartTurn)
        self.do(ins.TurnAccepted(at_ms=self.tick(), link=call.link, call=call.call, turn=TurnId(turn)))

    def done(self, sent: Sent) -> None:
        """Acknowledge a call."""
        self.do(ins.CallDone(at_ms=self.tick(), link=sent.link, call=sent.call, result_json="{}"))

    def refuse(self, sent: Sent, refusal: Any, active_turn: str | None = None) -> None:
        """Refuse a call in Codex's words."""
        code, message = REFUSALS[refusal]
        self.do(
            ins.CallRefused(
                at_ms=self.tick(),
                link=sent.link,
                call=sent.call,
                code=code,
                message=message,
                refusal=refusal,
                active_turn=None if active_turn is None else TurnId(active_turn),
            )
        )

    def unanswered(self, sent: Sent) -> None:
        """Let a call's deadline pass."""
        self.fire("call", str(sent.call))

    def turns_read(self, *turns: ins.SeenTurn, sent: Sent | None = None) -> None:
        """Answer a read of the thread's turns."""
        call = sent or self.last(fx.ReadTurns)
        self.do(ins.TurnsRead(at_ms=self.tick(), link=call.link, call=call.call, turns=turns))

    def seen(self, turn: str, status: Any, *prompts: str) -> ins.SeenTurn:
        """Return a turn as Codex's record tells it."""
        found = tuple(PromptId(prompt) for prompt in prompts)
        return ins.SeenTurn(turn=TurnId(turn), status=status, prompts=found, user_items=len(found))

    def turn_started(self, turn: str, thread: str = "T") -> None:
        """`turn/started`."""
        self.do(ins.TurnStarted(at_ms=self.tick(), link=self.link, thread=ThreadId(thread), turn=TurnId(turn)))

    def user_item(self, turn: str, prompt: str, thread: str = "T") -> None:
        """The user's message, with our id."""
        self.item(turn, f"u-{prompt}", "userMessage", thread, prompt)

    def item(
        self, turn: str, item: str, type_: str = "agentMessage", thread: str = "T", prompt: str | None = None
    ) -> None:
        """An item that opens and completes."""
        self.item_started(turn, item, type_, thread, prompt)
        self.item_completed(turn, item, type_, thread, prompt)

    def item_started(
        self, turn: str, item: str, type_: str = "agentMessage", thread: str = "T", prompt: str | None = None
    ) -> None:
        """`item/started`."""
        self.do(ins.ItemStarted(**self._item(turn, item, type_, thread, prompt)))

    def item_completed(
        self, turn: str, item: str, type_: str = "agentMessage", thread: str = "T", prompt: str | None = None
    ) -> None:
        """`item/completed`."""
        self.do(self.item_input(turn, item, type_, thread, prompt))

    def item_input(
        self, turn: str, item: str, type_: str = "agentMessage", thread: str = "T", prompt: str | None = None
    ) -> ins.ItemCompleted:
        """Return `item/completed`, to be delivered by hand."""
        return ins.ItemCompleted(**self._item(turn, item, type_, thread, prompt))

    def _item(self, turn: str, item: str, type_: str, thread: str, prompt: str | None) -> dict[str, Any]:
        return {
            "at_ms": self.tick(),
            "link": self.link,
            "thread": ThreadId(thread),
            "turn": TurnId(turn),
            "item": ItemId(item),
            "type": type_,
            "item_json": f'{{"id":"{item}","type":"{type_}"}}',
            "prompt": None if prompt is None else PromptId(prompt),
        }

    def delta(self, turn: str, item: str, text: str, thread: str = "T") -> None:
        """`item/agentMessage/delta`."""
        self.do(
            ins.ItemDelta(
                at_ms=self.tick(),
                link=self.link,
                thread=ThreadId(thread),
                turn=TurnId(turn),
                item=ItemId(item),
                channel="text",
                delta=text,
            )
        )

    def completed_and_read(self, turn: str, *prompts: str, status: Any = "completed") -> None:
        """`turn/completed` of a turn that was not heard whole: what was missed of it is read."""
        self.completed(turn, status)
        self.turns_read(self.seen(turn, status, *prompts))

    def completed(
        self, turn: str, status: Any = "completed", thread: str = "T", failure: ins.TurnFailure | None = None
    ) -> None:
        """`turn/completed`."""
        self.do(
            ins.TurnCompleted(
                at_ms=self.tick(),
                link=self.link,
                thread=ThreadId(thread),
                turn=TurnId(turn),
                status=status,
                failure=failure,
            )
        )

    def request(self, rpc_id: str, turn: str = "t1", thread: str = "T", link: LinkId | None = None) -> None:
        """Codex asks for a command's approval."""
        self.do(
            ins.RequestArrived(
                at_ms=self.tick(),
                link=link or self.link,
                rpc_id_json=rpc_id,
                method="item/commandExecution/requestApproval",
                kind="command",
                thread=ThreadId(thread),
                turn=TurnId(turn),
                item=ItemId("i"),
                params_json="{}",
                decisions=('"accept"', '"decline"'),
                decline_json='{"decision":"decline"}',
            )
        )

    def run_turn(self, turn: str, prompt: str, status: Any = "completed") -> None:
        """Answer, run and end the turn of the prompt that was written last."""
        self.accepted(turn)
        self.turn_started(turn)
        self.user_item(turn, prompt)
        self.item(turn, f"a-{prompt}")
        self.completed(turn, status)

    # --- what there is ---

    def session(self, session: str = "s") -> SessionRecord:
        """Return the session's committed record."""
        return self.store.sessions[SessionId(session)]

    def live(self, session: str = "s") -> Session:
        """Return the session in memory."""
        found = self.state.sessions.get(SessionId(session))
        assert found is not None, f"{session} is not in memory"
        return found

    def stored(self, prompt: str) -> PromptRecord:
        """Return the prompt's committed record."""
        return self.store.prompts[PromptId(prompt)]

    def deliveries(self) -> dict[str, str]:
        """Return the delivery of every prompt."""
        return {str(prompt.id): prompt.delivery for prompt in self.store.prompts.values()}

    def why(self, prompt: str) -> Problem:
        """Return why a prompt ended as it did."""
        error = self.stored(prompt).error
        assert error is not None
        return error

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events of these kinds, or all."""
        decoded = [msgspec.json.decode(event.data_json) for event in self.store.events]
        return [event for event in decoded if not kinds or event["kind"] in kinds]

    def kinds(self, session: str = "s") -> list[str]:
        """Return the kinds of a session's events."""
        return [event["kind"] for event in self.events() if event["sessionId"] == session]

    def attachment(self, session: str = "s") -> CodexAttachment:
        """Return the session's current attachment."""
        attachment = self.session(session).attachment
        assert attachment is not None
        return attachment

    def load(self, session: str) -> None:
        """Bring a session into memory, as a batch that names it does."""
        self.state.load(self.store.load_now(Wanted(sessions=frozenset({SessionId(session)}))))


def running_story() -> Story:
    """A session bound to T whose turn t1, of its prompt p1, runs and has the prompt on record."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.turn_started("t1")
    story.user_item("t1", "p1")
    return story
