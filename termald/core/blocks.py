"""Blocks: one attempt of the model each, bracketed by `block/start` and either `block/stop` or `block/reset`.

An attempt begins with the first thing that it says and ends with its token count, with a retry, or with the turn.
`block/reset` takes back the items that it names and no others, and closes the block as well; what was complete stays.
"""

from msgspec.structs import replace

from termald.core import log
from termald.core.model import Session
from termald.core.work import Work


def begin(work: Work, session: Session) -> Session:
    """The model says something: a block is open from here on."""
    active = session.turn
    assert active is not None
    if active.block_open:
        return session
    active = replace(active, block=active.block + 1, block_open=True)
    log.block(work, session, active.id, "start", active.block)
    return work.put(replace(session, turn=active))


def end(work: Work, session: Session) -> Session:
    """The attempt is over; nothing of it is taken back."""
    active = session.turn
    assert active is not None
    if not active.block_open:
        return session
    log.block(work, session, active.id, "stop", active.block)
    return closed(work, session)


def closed(work: Work, session: Session) -> Session:
    """The block was closed, by whatever was told."""
    assert session.turn is not None
    return work.put(replace(session, turn=replace(session.turn, block_open=False)))
