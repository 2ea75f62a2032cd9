"""What a client makes of a simulation's log: the same as the records say, and one end for each prompt that it follows.

The client library knows nothing of the daemon; here the two meet, over every order of events that a simulation brings
about.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec
from support.sim_world import World

from state.records import EventRecord, PromptRecord
from termald.client.events import Done, Event, OtherEvent, read_event
from termald.client.prompt_watch import PromptWatch
from termald.client.sse import ServerEvent
from termald.client.turns import TurnAccumulator, committed


def check(world: World) -> None:
    """Hold the client's view of each session that lives against the rows, and follow each of its prompts."""
    told: dict[str, list[Event]] = defaultdict(list)
    for event in world.rows.events:
        if event.session_id is not None:
            told[event.session_id].append(_as_read(event))
    for record in world.rows.live():
        events = told[record.id]
        _items_agree(world, record.id, events)
        _items_agree(world, record.id, list(committed(events)))
        for prompt in world.rows.prompts.values():
            if prompt.session_id == record.id:
                _has_one_end(world, prompt, events)


def _as_read(event: EventRecord) -> Event:
    read = read_event(ServerEvent(id=str(event.seq), kind=event.kind, data=event.data_json.decode()))
    assert not isinstance(read, OtherEvent), f"the client does not know {event.kind}: {event.data_json!r}"
    return read


def _items_agree(world: World, session: str, events: Iterable[Event]) -> None:
    turns: dict[str, TurnAccumulator] = defaultdict(TurnAccumulator)
    for event in events:
        if event.turn_id is not None:
            turns[event.turn_id].feed(event)
    rows = [item for item in world.rows.items.values() if item.session_id == session]
    known = {turn.id for turn in world.rows.turns.values() if turn.session_id == session}
    for item in rows:
        if item.state != "completed" or not item.first_seq:
            continue  # what was read from Codex's own record was never told
        [built] = [each for each in turns[item.turn_id].items if each.id == item.id]
        assert built.completed, f"{item.id} of {session} is complete, and was not heard to be"
        assert built.item == msgspec.json.decode(item.item_json), f"{item.id} of {session} was heard otherwise"
    written = {(item.turn_id, item.id) for item in rows if item.state in ("completed", "incomplete")}
    for turn, built_turn in turns.items():
        if turn in known:  # a turn that was taken back is no history any more
            heard = {(turn, item.id) for item in built_turn.committed_items}
            assert heard <= written, f"{heard - written} of {session} were heard, and are not written"


def _has_one_end(world: World, prompt: PromptRecord, events: Iterable[Event]) -> None:
    watch = PromptWatch(prompt.session_id, prompt.id)
    given = [each for event in events for each in watch.feed(event)]
    ends = [event for event in given if isinstance(event, Done)]
    assert ends == given[-1:], f"{prompt.id} of {prompt.session_id} ended {len(ends)} times in {len(given)} events"
    # A turn that is not yet known to be the prompt's is kept back, as a whole.
    for turn in {event.turn_id for event in given}:
        numbers = [event.seq for event in given[:-1] if event.turn_id == turn]
        assert numbers == sorted(set(numbers)), f"{turn} was given out of its order: {numbers}"
    [done] = ends
    if prompt.delivery != "done":
        assert not done.ok, f"{prompt.id} is {prompt.delivery}, heard: {done.state}"
    if done.turn_id is not None:
        state = {turn.state for turn in world.rows.turns.values() if turn.id == done.turn_id}
        assert state <= {done.state}, f"{done.turn_id} is {state}, heard: {done.state}"
