"""A trace played to the core: what Codex said then is read as it stood on the wire, by the code that reads it live.

Our own side is asked again, not replayed: the core decides what it sends, and each answer of Codex's is given to the
request of the same kind that the core has open.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from golden.tape import Line
from support.story import Sent, Story

from state.records import EventRecord, SessionId
from termald.codex.translate.incoming import read
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.model import Purpose

SESSION: Final = SessionId("s")
ANSWERS: Final[dict[str, type[fx.Op]]] = {
    "thread/start": fx.OpenFresh,
    "turn/start": fx.StartTurn,
    "turn/steer": fx.SteerTurn,
    "turn/interrupt": fx.Interrupt,
}
"""What the core sends to be given the answer to this."""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a trace: the story, each frame with the events that it gave, and Codex's own record of the turns."""

    story: Story
    told: Sequence[tuple[str, str, tuple[EventRecord, ...]]]
    record: Sequence[dict[str, Any]]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Every event, decoded, in order."""
        return self.story.events()


class _Player:
    def __init__(self) -> None:
        self.story = Story()
        self.story.up()
        self.story.create()
        self.told: list[tuple[str, str, tuple[EventRecord, ...]]] = []
        self.record: list[dict[str, Any]] = []
        self._asked: dict[int | str, str] = {}
        self._cards: dict[str, str] = {}
        self._answered: set[ins.CallId] = set()

    def prompts_of(self, lines: Iterable[Line]) -> None:
        """The first prompt comes before all else: without one the core opens no thread."""
        first = next(line.message for line in lines if line.message.get("method") == "turn/start")
        self._prompt(first["params"])

    def play(self, line: Line) -> None:
        match line.to:
            case "record":
                self.record = line.message["data"]
            case "codex":
                self._sent(line.message)
            case "us":
                self._heard(line)

    def _sent(self, frame: dict[str, Any]) -> None:
        method, params = frame.get("method"), frame.get("params", {})
        if method is not None and "id" in frame:
            self._asked[frame["id"]] = method
        if method in ("turn/start", "turn/steer") and params["clientUserMessageId"] != "p1":
            self._prompt(params, mode="steer" if method == "turn/steer" else "queue")
        elif method == "turn/interrupt":
            self.story.interrupt()
        elif method is None and "result" in frame:
            self._decide(frame)

    def _prompt(self, params: dict[str, Any], mode: Any = "queue") -> None:
        self.story.prompt(params["clientUserMessageId"], mode=mode)

    def _decide(self, frame: dict[str, Any]) -> None:
        card = next(
            record
            for record in self.story.store.requests.values()
            if record.rpc_id_json == msgspec.json.encode(frame["id"]).decode()
        )
        decision = msgspec.json.encode(frame["result"]["decision"]).decode()
        ticket = self.story.ask(
            lambda t, at: ins.AnswerRequest(
                ticket=t, at_ms=at, session=SESSION, request=card.id, decision_json=decision
            )
        )
        assert isinstance(self.story.answers[ticket], fx.RequestAnswer)

    def _heard(self, line: Line) -> None:
        frame = line.message
        text, what = line.frame, frame.get("method", "")
        if "method" not in frame:
            method = self._asked[frame["id"]]
            if method not in ANSWERS:
                return
            what = f"the answer to {method}"
            text = msgspec.json.encode({**frame, "id": self._open(ANSWERS[method]).call}).decode()
        before = len(self.story.store.events)
        self.story.do(read(self.story.link, text.encode(), self._purpose, self.story.tick()))
        self.told.append((what, line.frame, tuple(self.story.store.events[before:])))

    def _open(self, op: type[fx.Op]) -> Sent:
        sent = next(one for one in self.story.sent if isinstance(one.op, op) and one.call not in self._answered)
        self._answered.add(sent.call)
        return sent

    def _purpose(self, call: ins.CallId) -> Purpose | None:
        found = self.story.state.calls.get(call)
        return None if found is None else found.purpose


def play(lines: Sequence[Line]) -> Played:
    """Play a trace from its beginning to its end."""
    player = _Player()
    player.prompts_of(lines)
    for line in lines:
        player.play(line)
    return Played(story=player.story, told=player.told, record=player.record)
