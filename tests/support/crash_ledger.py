"""What the clients of a crash run were promised: kept by the clients themselves, and by nobody who crashes."""

import msgspec


class Promise(msgspec.Struct, kw_only=True):
    """A prompt that somebody asked for. `id` once a 202 was read; until then its fate is the daemon's to say.

    `asked` and `answered` are moments of the ledger's own clock: an answer that came before another was asked for fixes
    the order of the two.
    """

    session: str
    token: str
    """In the text, and in no other: what the model is asked is known by it."""
    text: str
    asked: int
    answered: int | None = None
    id: str | None = None
    refused: str | None = None
    runs_command: bool = False


class Decision(msgspec.Struct, kw_only=True):
    """An answer to an approval that the daemon took, with 200."""

    session: str
    request: str
    token: str
    accepted: bool


class Ledger:
    """Everything that was asked for and what was answered. One trio thread writes it."""

    def __init__(self) -> None:
        self.promises: list[Promise] = []
        self.decisions: list[Decision] = []
        self.sessions: set[str] = set()
        """Made, and not killed as far as anybody was told."""
        self.killed: set[str] = set()
        self.doomed: set[str] = set()
        """A kill was asked for; whether it was heard is known once it was answered."""
        self._moments = 0

    def moment(self) -> int:
        """Return the next moment."""
        self._moments += 1
        return self._moments

    def ask(self, session: str, token: str, text: str, *, runs_command: bool) -> Promise:
        """Note that a prompt is about to be asked for."""
        promise = Promise(session=session, token=token, text=text, asked=self.moment(), runs_command=runs_command)
        self.promises.append(promise)
        return promise

    def keep(self, promise: Promise, prompt_id: str) -> None:
        """Note its 202."""
        promise.id, promise.answered = prompt_id, self.moment()

    def refuse(self, promise: Promise, why: str) -> None:
        """Note that it was refused, so that it must never run."""
        promise.refused, promise.answered = why, self.moment()

    def decided(self, session: str, request: str, token: str, *, accepted: bool) -> None:
        """Note a decision that was taken with 200."""
        self.decisions.append(Decision(session=session, request=request, token=token, accepted=accepted))

    def kill_told(self, session: str) -> None:
        """Note that a kill was answered with success."""
        self.killed.add(session)
        self.sessions.discard(session)

    @property
    def accepted(self) -> list[Promise]:
        """What was promised, in the order of the answers."""
        kept = [promise for promise in self.promises if promise.id is not None]
        return sorted(kept, key=lambda promise: promise.answered or 0)
