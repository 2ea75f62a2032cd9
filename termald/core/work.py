"""One input being decided: the state, the time, the effects so far, and the few ways to touch them.

Every change of a session goes through `put`, so that the claim index and the record's time cannot be forgotten; every
comparison of a stamp goes through `accept`, so that a handler which holds a session from there has been let through
(I4).
"""

from msgspec.structs import replace

from state.records import (
    CodexAttachment,
    Problem,
    PromptId,
    PromptRecord,
    SessionId,
    ThreadId,
)
from termald.core.effects import Answer, Arm, Disarm, Effect, Refused, Respond
from termald.core.inputs import Input, ThreadOpened, Ticket
from termald.core.model import Session
from termald.core.refusals import problem
from termald.core.state import State


class Work:
    """The desk at which one input is decided."""

    __slots__ = ("at_ms", "bound_now", "claimed", "effects", "moved", "state")

    def __init__(self, state: State, at_ms: int) -> None:
        self.state = state
        self.at_ms = at_ms
        self.effects: list[Effect] = []
        self.moved: dict[SessionId, None] = {}
        """Sessions whose queue may go on; `queue` sees to them before the step ends, so that deciding and going on are
        one step."""
        self.claimed: list[ThreadId] = []
        """Children whose parent was learnt in this step; what they asked before is asked now."""
        self.bound_now: list[tuple[SessionId, ThreadOpened]] = []
        """Sessions that were bound in this step; what came early for them is applied before their queue goes on."""

    # --- sessions ---

    def put(self, session: Session, *, touch: bool = True) -> Session:
        """Write the session back and return it as written. `touch` renews `updated_at_ms` when its record changed."""
        state = self.state
        before = state.sessions.get(session.id)
        old = before.record if before is not None else None
        if old is not session.record:
            if old is not None and old.attachment != session.record.attachment:
                # Reads and looks bear the stamp that they were asked under: nobody takes their answers any more.
                session = replace(session, reading=None, looks=0, misses=0)
            if touch:
                session = replace(session, record=replace(session.record, updated_at_ms=self.at_ms))
            held = old.thread_id if old is not None and old.killed_at_ms is None else None
            claim = session.record.thread_id if session.record.killed_at_ms is None else None
            if held != claim:
                if held is not None:
                    state.claims.drop(held)
                if claim is not None:
                    assert state.claims.get(claim) in (None, session.id), "I3: a thread belongs to one session"
                    state.claims.put(claim, session.id)
                    self._forget_hints(claim, session.id)
        state.sessions.put(session.id, session)
        return session

    def _forget_hints(self, thread: ThreadId, owner: SessionId) -> None:
        """Whoever gives up what was being minted lets go of the thread that a hint named; not of one that somebody else
        has claimed meanwhile, and is no longer in memory for (I9)."""
        for tag in self.state.intents:
            intent = self.state.intents[tag]
            if intent.state == "open" and intent.thread_id == thread and intent.session_id != owner:
                self.state.intents.put(tag, replace(intent, thread_id=None))

    def session(self, session: SessionId) -> Session | None:
        """Return a session that was not killed, or None."""
        found = self.state.sessions.get(session)
        return found if found is not None and found.record.killed_at_ms is None else None

    def accept(self, session: SessionId | None, stamp: CodexAttachment | None) -> Session | None:
        """Return the session if `stamp` is its current attachment; None if what bears the stamp came too late.

        The one place where a stamp is compared. Guards I4 (SETUP-10, SETUP-17, RUNTIME-04).
        """
        found = self.session(session) if session is not None else None
        if found is None or stamp is None or found.record.attachment != stamp:
            return None
        return found

    def route(self, thread: ThreadId) -> Session | None:
        """Return the session that the thread's notices belong to now; the route's stamp is compared like any other."""
        route = self.state.routes.get(thread)
        return None if route is None else self.accept(route.session, route.attachment)

    def bound(self, session: Session) -> bool:
        """Return whether turns may be started on the session's thread: it is routed under the session's current
        attachment."""
        thread = session.record.thread_id
        if thread is None or session.record.attachment is None:
            return False
        route = self.state.routes.get(thread)
        return route is not None and route.attachment == session.record.attachment

    # --- prompts ---

    def prompt(self, prompt: PromptId) -> PromptRecord:
        """Return a prompt that has not ended, or ended in this batch."""
        return self.state.prompts[prompt]

    def put_prompt(self, prompt: PromptRecord) -> PromptRecord:
        """Write the prompt back."""
        self.state.prompts.put(prompt.id, prompt)
        return prompt

    # --- what follows in the same step ---

    def move_on(self, session: SessionId) -> None:
        """Something ended that the session's queue may have waited for."""
        self.moved[session] = None

    # --- effects ---

    def do(self, effect: Effect) -> None:
        """Have the effect carried out after the commit."""
        self.effects.append(effect)

    def promise(self) -> None:
        """The batch tells somebody something that must outlive a power cut: commit it with a sync."""
        self.state.promised = True

    def answer(self, ticket: Ticket, answer: Answer) -> None:
        """Answer a caller. What it is told is a promise, whoever decides it: on the disk before it is heard (I10)."""
        if not isinstance(answer, Refused):
            self.promise()
        self.do(Respond(ticket=ticket, answer=answer))

    def refuse(self, ticket: Ticket, slug: str, message: str) -> None:
        """Answer a caller with a refusal."""
        self.answer(ticket, Refused(problem=problem(slug, message)))

    def refuse_with(self, ticket: Ticket, why: Problem) -> None:
        """Answer a caller with a refusal that is at hand."""
        self.answer(ticket, Refused(problem=why))

    def arm(self, key: tuple[str, ...], timer: Input, after_ms: int, *, jitter_ms: int = 0) -> None:
        """Arm a timer; an equal key is replaced."""
        self.do(Arm(key=key, timer=timer, after_ms=after_ms, jitter_ms=jitter_ms))

    def disarm(self, *key: str) -> None:
        """Forget a timer."""
        self.do(Disarm(key=key))
