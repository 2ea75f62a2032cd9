"""Prompts: accepted once, ended once, in order (I5).

`queued → sent → acked → recorded → done | failed | cancelled | not_delivered`. Only this module writes a delivery mark;
who may move one is whoever calls it. A prompt past `queued` that waits in a queue again is *uncertain*: it is read
before it is used.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from state.records import DELIVERY_FINAL, Delivery, Problem, PromptId, PromptRecord, TurnId
from termald.core import log
from termald.core.inputs import NewPrompt
from termald.core.model import Session, with_record
from termald.core.work import Work

PREVIEW_MAX: Final = 200
"""Characters of a session's first prompt that lists show; Codex's own preview of a discovered thread may be longer."""


def accept(work: Work, session: Session, new: NewPrompt) -> tuple[Session, PromptRecord]:
    """Put a prompt at the end of the queue. Promised: committed with a sync before its caller hears of it."""
    prompt = work.put_prompt(
        PromptRecord(
            id=new.id,
            session_id=session.id,
            position=session.next_position,
            input_json=new.input_json,
            mode=new.mode,
            model=new.model,
            effort=new.effort,
            service_tier=new.service_tier,
            interaction_mode=new.interaction_mode,
            output_schema_json=new.output_schema_json,
            created_at_ms=work.at_ms,
        )
    )
    parked = session.busy
    session = replace(session, queue=(*session.queue, prompt.id), next_position=session.next_position + 1)
    if not session.record.preview:
        session = with_record(session, preview=_preview(prompt.input_json))
    session = work.put(session)
    log.prompt(work, session, prompt, "accepted")
    if parked:
        log.prompt(work, session, prompt, "parked")
    work.promise()
    return session, prompt


def _preview(input_json: str) -> str:
    texts = [part["text"] for part in msgspec.json.decode(input_json) if part.get("type") == "text"]
    return " ".join(" ".join(texts).split())[:PREVIEW_MAX]


def mark_sent(work: Work, session: Session, prompt: PromptRecord) -> PromptRecord:
    """A `turn/start` is about to be written for it: committed with a sync, so that a crash cannot make it look
    unsent."""
    link = work.state.link.value
    assert link is not None
    prompt = replace(prompt, delivery="sent", attempts=prompt.attempts + 1, turn_id=None, sent_to=link.runtime_id)
    work.put_prompt(prompt)
    log.prompt(work, session, prompt, "sent")
    work.promise()
    return prompt


def mark_acked(work: Work, session: Session, prompt: PromptId, turn: TurnId) -> None:
    """Codex answered with the turn's id; that is not yet that it has the prompt."""
    record = work.prompt(prompt)
    if record.delivery == "sent":
        log.prompt(work, session, work.put_prompt(replace(record, delivery="acked", turn_id=turn)), "acked")


def mark_recorded(work: Work, session: Session, prompt: PromptId, turn: TurnId) -> None:
    """Our id was seen in a user item: from here on it is never sent again."""
    record = work.prompt(prompt)
    if record.delivery in ("queued", "sent", "acked"):
        record = work.put_prompt(replace(record, delivery="recorded", recorded=True, turn_id=turn))
        log.prompt(work, session, record, "recorded")


def insert(work: Work, session: Session, prompt: PromptId) -> Session:
    """Put a prompt back into the queue, at the place that its acceptance gave it."""
    position = work.prompt(prompt).position
    before = tuple(other for other in session.queue if work.prompt(other).position < position)
    return work.put(replace(session, queue=(*before, prompt, *session.queue[len(before) :])))


def reorder(work: Work, session: Session, order: tuple[PromptId, ...]) -> Session:
    """Give the waiting prompts each other's places, so that they stand in this order and all others where they stood.
    `order` names every one of them once."""
    places = sorted(work.prompt(prompt).position for prompt in order)
    for prompt, place in zip(order, places, strict=True):
        work.put_prompt(replace(work.prompt(prompt), position=place))
    return work.put(replace(session, queue=tuple(sorted(session.queue, key=lambda one: work.prompt(one).position))))


def without(session: Session, prompt: PromptId) -> Session:
    """Return the session with the prompt out of its queue, wherever it stood."""
    return replace(session, queue=tuple(other for other in session.queue if other != prompt))


def take_back_unanswered(work: Work, session: Session) -> Session:
    """What was written and not answered has an unknown outcome: it goes back to its place in the queue, past `queued`,
    and is read before it is used."""
    outgoing, steering = session.outgoing, session.steering
    session = work.put(replace(session, outgoing=None, steering=()))
    for prompt in (*((outgoing.prompt,) if outgoing is not None else ()), *(one.prompt for one in steering)):
        session = insert(work, session, prompt)
    return session


def uncertain(work: Work, session: Session) -> tuple[PromptRecord, ...]:
    """Return those at the head of the queue that Codex may have."""
    found = []
    for prompt_id in session.queue:
        prompt = work.prompt(prompt_id)
        if prompt.delivery == "queued":
            break
        found.append(prompt)
    return tuple(found)


def requeue(work: Work, prompt: PromptId) -> None:
    """It is known that Codex does not have it: it may be sent again."""
    work.put_prompt(replace(work.prompt(prompt), delivery="queued", turn_id=None))


def end(work: Work, session: Session, prompt: PromptId, delivery: Delivery, why: Problem | None = None) -> None:
    """End a prompt, once."""
    assert delivery in DELIVERY_FINAL
    record = work.prompt(prompt)
    if record.delivery in DELIVERY_FINAL:
        return
    record = work.put_prompt(replace(record, delivery=delivery, error=why, ended_at_ms=work.at_ms))
    what = "notDelivered" if delivery == "not_delivered" else delivery
    log.prompt(work, session, record, what)


def end_queue(work: Work, session: Session, delivery: Delivery, why: Problem) -> Session:
    """End every waiting prompt, in order, and return the session without them."""
    for prompt in session.queue:
        end(work, session, prompt, delivery, why)
    return work.put(replace(session, queue=()))
