"""Queues that stand still because the account cannot go on: its quota is exhausted, or its login is lost.

The prompt that met it has failed with its turn; those behind it would, one after the other. So they are kept, and the
session says why it waits and until when. It goes on at the limit's end where that is known, and at any time when its
user prompts or retries; whichever comes first, the other finds nothing to do.
"""

from typing import Final

from termald.core import failures, log
from termald.core.inputs import LimitOver
from termald.core.model import Session, with_record
from termald.core.refusals import problem
from termald.core.setup import AWAIT_THE_ACCOUNT, hold, is_held_for
from termald.core.work import Work

SLUGS: Final = {"out_of_tokens": "quota-exhausted", "authentication": "auth-required"}
"""What a provider's error says of every prompt that comes after it."""
GRACE_MS: Final = 1_000
"""Codex tells a limit's end in whole seconds."""


def begin(work: Work, session: Session, ending: failures.Ending) -> None:
    """The turn ended so that the next one would too: hold what waits, and say why in any case."""
    slug = SLUGS.get(ending.provider or "")
    if slug is None or session.record.ending is not None:
        return
    why = problem(slug, ending.message or slug, reset_at_ms=ending.reset_at_ms)
    if not session.queue:
        work.put(with_record(session, last_error=why))
        return
    if not session.record.paused:
        hold(work, session, why)
        watch(work, work.state.sessions[session.id])


def watch(work: Work, session: Session) -> None:
    """Wake up when it is over, if that is known; also after a restart."""
    until = _until(session)
    if until is not None:
        timer = LimitOver(at_ms=0, session=session.id, until_ms=until)
        work.arm(("limit", session.id), timer, max(0, until - work.at_ms) + GRACE_MS)


def over(work: Work, timer: LimitOver) -> None:
    """The limit's end has come: let the queue go on, if it still stands still for it."""
    session = work.session(timer.session)
    if session is None or _until(session) != timer.until_ms:
        return
    status = "ready" if work.bound(session) else "detached"
    session = work.put(with_record(session, paused=False, status=status, last_error=None))
    log.session(work, session, "updated", changed=["paused"])
    work.move_on(session.id)


def stands(session: Session) -> bool:
    """Whether its queue is held for the account's sake."""
    return is_held_for(session, AWAIT_THE_ACCOUNT)


def _until(session: Session) -> int | None:
    why = session.record.last_error
    return why.reset_at_ms if stands(session) and why is not None else None
