"""What Codex knows of its account: models, login, rate limits. Each is Codex's own answer and its age, `ageMs`.

Cached, and asked for by one caller at a time: whoever comes meanwhile gets the same answer.
"""

from typing import Annotated, Any, Final

import msgspec
import trio
from litestar import get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from termald.api.commands import Desk
from termald.api.problems import documented
from termald.codex.translate.questions import Subject, question
from termald.core.effects import CodexAnswer
from termald.core.inputs import AskCodex

Said = dict[str, Any]
FRESH_S: Final = 60.0
"""How long an answer is given again. Models and logins change by hand, limits by minutes; a page that polls costs Codex
one read a minute."""

Fresh = Annotated[bool, QueryParameter(name="fresh", description="Ask Codex again, however young the answer is")]
_RESPONSES: Final = documented(
    "invalid-request",
    "starting",
    "no-answer-yet",
    "runtime-unavailable",
    "runtime-exited",
    "link-lost",
    "codex-refused",
    "codex-unanswered",
    "codex-overloaded",
)


class Notebook:
    """The last answer to each question, and which process gave it."""

    def __init__(self) -> None:
        self._answers: dict[Subject, tuple[float, str | None, bytes]] = {}
        self._asking: dict[Subject, trio.Lock] = {}

    async def read(self, desk: Desk, subject: Subject, *, fresh: bool) -> Said:
        """Return the answer, younger than `FRESH_S` unless nobody else was asking. Whoever comes while it is asked for
        gets the same one."""
        waited = trio.current_time()
        async with self._asking.setdefault(subject, trio.Lock()):
            found = self._answers.get(subject)
            runtime = desk.engine.runtime.id
            oldest = waited if fresh else waited - FRESH_S
            if found is None or found[0] < oldest or found[1] != runtime:
                method, params_json = question(subject)
                answer = await desk.ask(
                    lambda ticket, at_ms: AskCodex(ticket=ticket, at_ms=at_ms, method=method, params_json=params_json),
                    CodexAnswer,
                )
                found = (trio.current_time(), runtime, answer.result_json.encode())
                self._answers[subject] = found
        said = msgspec.json.decode(found[2], type=dict[str, Any])
        return {**said, "ageMs": round((trio.current_time() - found[0]) * 1000)}


@get("/api/models", responses=_RESPONSES)
async def models(desk: NamedDependency[Desk], notebook: NamedDependency[Notebook], fresh: Fresh = False) -> Said:
    """Return the models that Codex offers."""
    return await notebook.read(desk, "models", fresh=fresh)


@get("/api/account", responses=_RESPONSES)
async def account(desk: NamedDependency[Desk], notebook: NamedDependency[Notebook], fresh: Fresh = False) -> Said:
    """Return who Codex is logged in as, if anybody; `state` is `auth_required` where nobody is and somebody must be."""
    said = await notebook.read(desk, "account", fresh=fresh)
    lacks = said.get("account") is None and said.get("requiresOpenaiAuth") is True
    return {**said, "state": "auth_required" if lacks else "ready"}


@get("/api/rate-limits", responses=_RESPONSES)
async def rate_limits(desk: NamedDependency[Desk], notebook: NamedDependency[Notebook], fresh: Fresh = False) -> Said:
    """Return how much of the account's limits is used."""
    return await notebook.read(desk, "rateLimits", fresh=fresh)


HANDLERS: Final = (models, account, rate_limits)
