"""Requests that may be repeated: the first answer under a key is remembered with what it promised, and given again.

The answer is stored in the same transaction as its promise, so that a crash cannot leave the one without the other.
"""

from typing import Final

import msgspec

from state.records import IdempotencyRecord
from termald.core.effects import Answer, PromptAnswer, SessionAnswer
from termald.core.inputs import Idempotency, Ticket
from termald.core.work import Work

_decode: Final = msgspec.json.Decoder(SessionAnswer | PromptAnswer).decode


def before(work: Work, ticket: Ticket, key: Idempotency | None) -> bool:
    """Answer a repeated request as it was answered first, also after a restart; one of another body is refused
    (SETUP-25)."""
    known = work.state.idempotency.get(key.key) if key is not None else None
    if key is None or known is None:
        return False
    if known.fingerprint != key.fingerprint:
        message = f"idempotency key {key.key!r} was used with another request; a new request needs a new key"
        work.refuse(ticket, "idempotency-mismatch", message)
    else:
        work.answer(ticket, _decode(known.answer_json))
    return True


def give(work: Work, ticket: Ticket, key: Idempotency | None, answer: Answer) -> None:
    """Answer a caller, and remember the answer under its key."""
    if key is not None:
        text = msgspec.json.encode(answer).decode()
        record = IdempotencyRecord(key=key.key, fingerprint=key.fingerprint, answer_json=text, at_ms=work.at_ms)
        work.state.idempotency.put(key.key, record)
    work.answer(ticket, answer)
