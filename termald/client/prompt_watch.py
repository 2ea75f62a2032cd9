"""Which of a session's events belong to one prompt, and when it is over. Pure.

A prompt ends once (`prompt/done|failed|cancelled|notDelivered`), and a turn ends once (`turn/done`, behind the ends of
its prompts). Neither alone is the end of a run:

- a turn may end while its prompt goes on: Codex died before it was known to have the prompt, and it is sent again;
- a prompt may end without a turn: cancelled in the queue, refused by Codex, its session killed;
- a turn's first events may come before it is told whose turn it is: they are kept until it is.

So the end is the prompt's end together with its turn's, where it had one, and there is exactly one.
"""

from typing import Final

from termald.client.events import (
    Done,
    Event,
    PromptEvent,
    RequestEvent,
    SessionEvent,
    TurnStarted,
)

KEPT_EVENTS_MAX: Final = 10_000
"""Of turns that are nobody's yet: whose a turn is, is known within one exchange with Codex."""
_STATES: Final = {"prompt/done": "normal", "prompt/cancelled": "cancelled"}


class PromptWatch:
    """Feed it the session's events in their order; it returns those of the prompt. `done` is its end, once it has one.

    `session_id`, `prompt_id`: whose they are.
    """

    def __init__(self, session_id: str, prompt_id: str) -> None:
        self.session_id = session_id
        self.prompt_id = prompt_id
        self.turn_id: str | None = None
        self.done: Done | None = None
        self._begun = False
        self._end: PromptEvent | None = None
        self._ends: dict[str, Done] = {}
        self._kept: dict[str, list[Event]] = {}

    def feed(self, event: Event) -> list[Event]:
        """Return the events that are the prompt's, the last of them `done`; nothing after it."""
        if self.done is not None or event.session_id != self.session_id:
            return []
        if isinstance(event, PromptEvent):
            return self._prompt(event) if event.prompt_id == self.prompt_id else []
        if isinstance(event, SessionEvent):
            return self._session(event)
        if isinstance(event, TurnStarted) and event.prompt_id == self.prompt_id:
            return [*self._bind(event.turn_id), event]
        if not self._begun:
            return []
        if event.turn_id is None:
            return [event]
        if event.turn_id != self.turn_id:
            return self._of_another_turn(event)
        return self._turn_done(event) if isinstance(event, Done) else [event]

    def end_unseen(self, state: str, message: str | None = None, seq: int = 0) -> Done:
        """Make an end from what the daemon's records say, where its events cannot."""
        self.done = Done(
            seq=seq,
            kind="turn/done",
            session_id=self.session_id,
            turn_id=self.turn_id,
            state=state,
            message=message,
        )
        return self.done

    def _prompt(self, event: PromptEvent) -> list[Event]:
        self._begun = True
        bound = self._bind(event.turn_id) if event.turn_id is not None else []
        found = [*bound, event]
        if not event.is_end:
            return found
        self._end = event
        if event.turn_id is None:
            found.append(self._without_turn(event))
        elif event.turn_id in self._ends:
            found.append(self._finish(self._ends[event.turn_id]))
        return found

    def _session(self, event: SessionEvent) -> list[Event]:
        if not self._begun:
            return []
        if event.kind != "session/killed":
            return [event]
        return [event, self.end_unseen("cancelled", "the session was killed", event.seq)]

    def _bind(self, turn: str | None) -> list[Event]:
        """It is known whose turn this is: give what was kept of it."""
        self._begun = True
        if turn is None or turn == self.turn_id:
            return []
        self.turn_id = turn
        found: list[Event] = []
        for event in self._kept.pop(turn, ()):
            found += self._turn_done(event) if isinstance(event, Done) else [event]
        return found

    def _of_another_turn(self, event: Event) -> list[Event]:
        if isinstance(event, Done) and event.turn_id is not None:
            # A prompt that joined another's turn may be found in it only after the turn has ended with its process.
            self._ends[event.turn_id] = event
        if isinstance(event, RequestEvent) and self.turn_id is not None and event.turn_id not in self._kept:
            return [event]  # a sub-agent's turn is not ours, and what it asks is asked of us
        if isinstance(event, TurnStarted) and event.prompt_id is None:
            self._kept[event.turn_id or ""] = []
        kept = self._kept.get(event.turn_id or "")
        if kept is not None and len(kept) < KEPT_EVENTS_MAX:
            kept.append(event)
        return []

    def _turn_done(self, event: Done) -> list[Event]:
        assert event.turn_id is not None
        self._ends[event.turn_id] = event
        if self._end is None or self._end.turn_id != event.turn_id:
            return []  # the prompt goes on: its end will say with which turn
        return [self._finish(event)]

    def _finish(self, event: Done) -> Done:
        self.done = event
        return event

    def _without_turn(self, event: PromptEvent) -> Done:
        message = event.error.message if event.error is not None else None
        # It may have had one that ended without it, before it was to be sent again: this is not that turn's end.
        self.turn_id = None
        return self.end_unseen(_STATES.get(event.kind, "error"), message, event.seq)
