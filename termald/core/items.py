"""Items: opened, told in deltas, completed; the final text wins over its deltas, and nothing is doubled (EVENT-08).

An item that its turn's end left open may still complete: it is stored with its own turn as late and opens nothing again
(EVENT-06).
"""

from msgspec.structs import replace

from state.records import ItemRecord, Seq
from termald.core import blocks, children, log, prompts, setup, steering, turns
from termald.core.inputs import ItemCompleted, ItemDelta, ItemStarted
from termald.core.model import MESSAGES, Session, with_record
from termald.core.work import Work


def started(work: Work, session: Session, notice: ItemStarted) -> None:
    """An item opened."""
    found = turns.at_sign(work, session, notice.turn, "item/started")
    if found is None or found.turn is None:
        return
    if notice.item in found.turn.open_items or notice.item in found.turn.closed_items:
        return  # told twice
    if notice.type != "userMessage":
        found = blocks.begin(work, found)
    assert found.turn is not None
    seq = log.item_started(work, found, notice.turn, notice.item, notice.item_json)
    work.state.items.put(
        (found.id, notice.turn, notice.item),
        ItemRecord(
            id=notice.item,
            session_id=found.id,
            turn_id=notice.turn,
            type=notice.type,
            state="open",
            item_json=notice.item_json,
            first_seq=seq,
        ),
    )
    found = _has_history(found)
    assert found.turn is not None
    active = replace(
        found.turn,
        open_items=(*found.turn.open_items, notice.item),
        output=found.turn.output or notice.type != "userMessage",
    )
    found = work.put(replace(found, turn=active))
    children.learn(work, found, notice)
    _see_prompt(work, found, notice)


def delta(work: Work, session: Session, notice: ItemDelta) -> None:
    """More of an item. After its final text it would only double it."""
    found = turns.at_sign(work, session, notice.turn, "item/delta")
    if found is None or found.turn is None:
        return
    if notice.item in found.turn.closed_items:
        log.late(work, found, "item/delta", turn=notice.turn, item=notice.item, reason="the item is complete")
        return
    log.item_delta(work, found, notice.turn, notice.item, channel=notice.channel, delta=notice.delta)


def completed(work: Work, session: Session, notice: ItemCompleted) -> None:
    """An item is final."""
    if (session.turn is None or session.turn.id != notice.turn) and notice.turn in session.ended:
        _late(work, session, notice)
        return
    found = turns.at_sign(work, session, notice.turn, "item/completed")
    if found is None or found.turn is None:
        return
    if notice.item in found.turn.closed_items:
        log.late(work, found, "item/completed", turn=notice.turn, item=notice.item, reason="the item is complete")
        return
    seq = log.item_completed(work, found, notice.turn, notice.item, notice.item_json)
    _store(work, found, notice, first_seq=seq)
    active = replace(
        found.turn,
        open_items=tuple(item for item in found.turn.open_items if item != notice.item),
        closed_items=(*found.turn.closed_items, notice.item),
        output=found.turn.output or notice.type != "userMessage",
    )
    found = work.put(replace(_count(_has_history(found), notice), turn=active))
    children.learn(work, found, notice)
    _see_prompt(work, found, notice)


def _late(work: Work, session: Session, notice: ItemCompleted) -> None:
    seq = log.item_completed(work, session, notice.turn, notice.item, notice.item_json, late=True)
    _store(work, session, notice, first_seq=seq, late=True)
    work.put(_count(_has_history(session), notice))


def _store(work: Work, session: Session, notice: ItemCompleted, *, first_seq: Seq, late: bool = False) -> None:
    key = (session.id, notice.turn, notice.item)
    before = work.state.items.get(key)
    work.state.items.put(
        key,
        ItemRecord(
            id=notice.item,
            session_id=session.id,
            turn_id=notice.turn,
            type=notice.type,
            state="completed",
            late=late,
            item_json=notice.item_json,
            first_seq=before.first_seq if before is not None else first_seq,
        ),
    )


def _has_history(session: Session) -> Session:
    # An acknowledged turn alone is not history: only with its first item is there something that could be lost.
    return session if session.record.history else with_record(session, history=True)


def _count(session: Session, notice: ItemCompleted) -> Session:
    if notice.type not in MESSAGES:
        return session
    return with_record(session, message_count=session.record.message_count + 1)


def _see_prompt(work: Work, session: Session, notice: ItemStarted | ItemCompleted) -> None:
    """Our id in a user item: the prompt is recorded, and if its answer has not come, this is the turn it belongs to
    (TURN-03)."""
    prompt = notice.prompt
    if prompt is None or prompt not in work.state.prompts:
        return
    record = work.prompt(prompt)
    if record.session_id != session.id:
        return
    if prompt in session.queue:
        # It was held as uncertain, and here it is: it will never be sent again.
        session = setup.lift(session, *setup.AWAIT_A_WORD)
        session = work.put(prompts.without(session, prompt))
        prompts.mark_recorded(work, session, prompt, notice.turn)
        assert session.turn is not None
        turns.join(work, session, session.turn, prompt)
        return
    prompts.mark_recorded(work, session, prompt, notice.turn)
    session = steering.recorded(work, session, prompt)
    if session.outgoing is not None and session.outgoing.prompt == prompt:
        turns.tie(work, session, session.outgoing, notice.turn)
