"""The daemon of the model: the writer's loop over the pure core, with a fake Codex, a store that may fail, and crashes.

What is put is decided at once, or held back until a whole batch is together. A commit that fails takes everything back:
callers are refused, the rest is decided again. A crash comes between batches, or between a commit and any of its
frames.
"""

from collections.abc import Callable
from typing import Any

from support.model_codex import Codex, stamped
from support.story import Sent, Story

from state.errors import StoreFull
from state.records import RuntimeId, SessionId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.limits import Limits
from termald.core.state import State
from termald.core.tables import Cell, Table

Check = Callable[["Daemon", list[ins.Input]], None]


class Daemon(Story):
    """A story whose Codex answers by itself, and whose batches may go wrong."""

    def __init__(self, codex: Codex, limits: Limits, check: Check) -> None:
        super().__init__(limits)
        self.codex = codex
        self.held: list[ins.Input] | None = None
        self.waiting: set[ins.Ticket] = set()
        self.fired: list[ins.Input] = []
        """Timers that came due once, or were armed and forgotten: they may be in the inbox all the same."""
        self.heard: list[ins.Input] = []
        """What was delivered, to be delivered again."""
        self.due: dict[tuple[str, ...], int] = {}
        self.crash_after: int | None = None
        self.failures = 0
        self._check = check

    # --- the inbox ---

    def put(self, happened: ins.Input) -> None:
        """Put an input into the inbox; it is decided at once unless a batch is being held back."""
        if isinstance(happened, ins.Command):
            self.waiting.add(happened.ticket)
        happened = stamped(happened, self.tick())
        if self.held is None:
            self.see_through([happened])
        else:
            self.held.append(happened)

    def flush(self) -> None:
        """Decide the batch that was held back."""
        batch, self.held = self.held, None
        if batch:
            self.see_through(batch)

    def see_through(self, batch: list[ins.Input]) -> None:
        """Decide a batch as the writer does, until it is committed."""
        while batch:
            before = _picture(self.state)
            try:
                decided = self.decide_and_commit(batch)
            except StoreFull:
                self.failures += 1
                _same(before, _picture(self.state))
                batch = self._give_back(batch)
                continue
            self._act(decided, batch)
            return

    def _give_back(self, batch: list[ins.Input]) -> list[ins.Input]:
        for happened in batch:
            if isinstance(happened, ins.Command):
                self.waiting.discard(happened.ticket)
        return [happened for happened in batch if not isinstance(happened, ins.Command)]

    def _act(self, decided: list[fx.Effect], batch: list[ins.Input]) -> None:
        crash, self.crash_after = self.crash_after, None
        for effect in decided if crash is None else decided[:crash]:
            self.carry_out(effect)
        self.check()
        self._check(self, batch)
        if crash is not None:
            self.die()

    def carry_out(self, effect: fx.Effect) -> None:
        """Do what was decided; frames go to the fake Codex."""
        match effect:
            case fx.Send():
                _promised(self, effect)
                self.codex.take(Sent(effect.call, effect.link, effect.op))
            case fx.SendAnswer() | fx.SendRefusal():
                _decided(self, effect)
                self.codex.take(effect)
            case fx.Respond():
                self.waiting.discard(effect.ticket)
            case fx.Arm():
                self.fired.append(effect.timer)
                self.due[effect.key] = self.now + effect.after_ms
            case _:
                pass
        super().carry_out(effect)

    # --- its life ---

    def die(self) -> None:
        """End without a word and start again with what was committed."""
        self.held = None
        self.crash_after = None
        self.store.fail_next = 0
        self.waiting.clear()
        self.timers.clear()
        self.fired.clear()
        self.heard.clear()
        if self.codex.wire is not None:
            self.codex.disconnect()
        for wire in self.codex.gone:  # nobody is left to hear what was on its way
            wire.replies.clear()
            wire.notices.clear()
        self.state = State.boot(self.store.boot(), self.limits)
        self.put(ins.Booted(at_ms=0, alive=self.codex.runtime))

    def connect(self) -> None:
        """Have a link, to the living process or to a new one."""
        adopted = self.codex.runtime is not None
        if not adopted:
            self.codex.spawn()
        self.link = self.codex.connect()
        self.put(ins.LinkUp(at_ms=0, link=self.link, adopted=adopted))

    def lose_link(self) -> None:
        """Lose the link to a process that lives."""
        link = self.link
        self.codex.disconnect()
        self.put(ins.LinkLost(at_ms=0, link=link, reason="reset"))

    def lose_process(self) -> None:
        """See the process end."""
        runtime = self.codex.runtime
        assert runtime is not None
        self.codex.exit()
        self.put(ins.RuntimeExited(at_ms=0, runtime=RuntimeId(runtime), cause="signal 9"))

    def fire(self, *key: str) -> None:
        """Let time pass until a timer comes due, and those that are due before it. It passes for Codex too."""
        until = self.due[key]
        while self.timers and (first := min(self.timers, key=self.due.__getitem__)) and self.due[first] <= until:
            self.codex.catch_up()
            self.now = max(self.now, self.due[first])
            self.put(self.timers.pop(first))

    # --- what people ask ---

    def command(self, make: Callable[[dict[str, Any]], ins.Command]) -> None:
        """Put a command."""
        self.put(make({"ticket": self.ticket(), "at_ms": 0}))

    def known_sessions(self) -> list[SessionId]:
        """Return the sessions that there are, oldest first, killed ones too."""
        return list(self.store.sessions)


def _promised(daemon: Daemon, effect: fx.Send) -> None:
    """A frame leaves only after what it promises is committed."""
    match effect.op:
        case fx.OpenFresh(tag=tag) | fx.ForkThread(tag=tag):
            assert tag in daemon.store.intents, "I2: a thread is minted without an intent"
        case fx.StartTurn(prompt=prompt):
            stored = daemon.store.prompts[prompt.id]
            assert stored.attempts >= prompt.attempts, "I5: a turn is started for a prompt that is not marked sent"
            assert stored.sent_to is not None
        case _:
            pass


def _decided(daemon: Daemon, effect: fx.SendAnswer | fx.SendRefusal) -> None:
    """Nothing is accepted without a recorded decision (I6)."""
    if not isinstance(effect, fx.SendAnswer) or "accept" not in effect.answer_json:
        return
    recorded = [
        record
        for record in daemon.store.requests.values()
        if (record.attachment.runtime_id, record.rpc_id_json) == (effect.link.runtime_id, effect.rpc_id_json)
    ]
    assert any(record.answer_json == effect.answer_json for record in recorded), "I6: accepted without a decision"


def _picture(state: State) -> dict[str, Any]:
    tables = {name: dict(value._rows) for name, value in vars(state).items() if isinstance(value, Table)}
    return tables | {name: value.value for name, value in vars(state).items() if isinstance(value, Cell)}


def _same(before: dict[str, Any], after: dict[str, Any]) -> None:
    """A batch that was not committed leaves nothing behind, except what was loaded for it (SETUP-14)."""
    for name, value in before.items():
        if isinstance(value, dict):
            assert value.items() <= after[name].items(), f"SETUP-14: {name} is not as it was"
        else:
            assert after[name] == value, f"SETUP-14: {name} is not as it was"
