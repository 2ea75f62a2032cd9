"""The way from a route to the engine: waits that end, and refusals that become problems."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import trio
from litestar import Request
from litestar.datastructures import State

from state.records import SessionId, Wanted
from state.views import SessionView
from termald.api.problems import FieldError, ProblemError, invalid, refused
from termald.api.settings import ApiSettings
from termald.api.strict import fingerprint
from termald.core.effects import Answer, Refused
from termald.core.inputs import Command, Idempotency, Ticket
from termald.engine import Engine

A = TypeVar("A", bound=Answer)
HttpRequest = Request[Any, Any, State]

_KEY_CHARS_MAX: Final = 255


class Desk:
    """What routes reach of the daemon. `engine` for reads, `ask` for commands."""

    def __init__(self, engine: Engine, settings: ApiSettings) -> None:
        self.engine = engine
        self.settings = settings

    async def ask(self, command: Callable[[Ticket, int], Command], wanted: type[A]) -> A:
        """Put a command to the engine and return its answer.

        Errors: ProblemError with what the core refused; `starting` while the daemon settles what was live before it;
        `no-answer-yet` when the command was taken and its answer is overdue. Being cut, or overdue, does not take the
        command back.
        """
        await self._accepting()
        with trio.move_on_after(self.settings.answer_wait_s):
            answer = await self.engine.ask(command)
            if isinstance(answer, Refused):
                raise refused(answer.problem)
            assert isinstance(answer, wanted), f"the core answered {type(answer).__name__}, not {wanted.__name__}"
            return answer
        detail = f"no answer within {self.settings.answer_wait_s:g} s; the command may still be carried out"
        raise ProblemError("no-answer-yet", detail)

    async def _accepting(self) -> None:
        with trio.move_on_after(self.settings.accepting_wait_s):
            await self.engine.accepting.wait()
            return
        raise ProblemError("starting", "the daemon still settles what was live before its start")

    async def answered_before(self, once: Idempotency | None) -> bool:
        """Tell whether a command was accepted under this key; what it was asked with then, the core compares."""
        if once is None:
            return False
        return bool((await self.engine.store.load(Wanted(keys=frozenset({once.key})))).idempotency)

    async def session(self, session: str) -> SessionView:
        """Return a session as it is committed. Errors: `unknown-session`."""
        found = await self.engine.store.session(SessionId(session))
        if found is None:
            raise ProblemError("unknown-session", f"no session {session!r}")
        return found


async def idempotency(request: HttpRequest, key: str | None) -> Idempotency | None:
    """Return the caller's key with the digest of this request. Errors: `invalid-request` for what is no key."""
    if key is None:
        return None
    if not (0 < len(key) <= _KEY_CHARS_MAX and key.isascii() and key.isprintable()):
        detail = f"Idempotency-Key: must have 1 to {_KEY_CHARS_MAX} printable ASCII characters"
        raise invalid(FieldError(parameter="Idempotency-Key", detail=detail))
    return Idempotency(key=key, fingerprint=fingerprint(request.method, request.scope["path"], await request.body()))
