"""I1 to I12 for a whole daemon: what it stored and published, held against what Codex received and did.

`model_checks` says the same of the pure core. Here both ends are looked at over the wire, and over several lives of the
daemon and of Codex.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
from support import sim_clients
from support.scripted_codex_home import ThreadRow
from support.sim_world import World

from state.records import DELIVERY_FINAL, PromptRecord, SessionRecord
from termald.core.model import Session

Json = dict[str, Any]
_ENDS = ("prompt/done", "prompt/failed", "prompt/cancelled", "prompt/notDelivered")


def at_any_time(world: World) -> None:
    """What holds at every moment, in every weather."""
    _log_is_whole(world)
    _prompts_ran_once(world)
    _decided_once(world)
    _no_more_threads_than_asked_for(world)


def at_rest(world: World) -> None:
    """What holds when everybody has said everything, and nobody is held up any more."""
    at_any_time(world)
    _memory_is_what_is_written(world)
    state = _daemon_state(world)
    assert state.setups_open.value == 0, "I1: a setup is left open"
    assert state.calls_written.value == 0, f"calls are left open: {[c.purpose for c in state.calls.values()]}"
    for session in _living(world):
        _rests(world, session)
    for prompt in world.rows.prompts.values():
        assert prompt.delivery in DELIVERY_FINAL, f"I5: {prompt.id} of {prompt.session_id} is {prompt.delivery} still"
        _told_truly(world, prompt)
    for request in world.rows.requests.values():
        assert request.status in ("resolved", "expired"), f"I6: {request.id} is {request.status} still"
    for turn in world.rows.turns.values():
        assert turn.state is not None, f"I12: {turn.id} of {turn.session_id} has no end"
    for item in world.rows.items.values():
        assert item.state != "open" or item.type == "commandExecution", f"EVENT-07: {item.type} {item.id} is left open"
    for disposal in world.rows.disposals.values():
        assert disposal.done, f"the disposal of {disposal.thread_id} is left undone"
    for thread in world.home.threads.values():
        if thread.tag is not None:
            _one_fate(world, thread)
    sim_clients.check(world)


# --- the log ---


def _log_is_whole(world: World) -> None:
    """I11, I12, and one end for each prompt and each card."""
    counts: Counter[tuple[str, str]] = Counter()
    for number, event in enumerate(world.rows.events, start=1):
        assert event.seq == number, f"I11: event {event.seq} stands at {number}"
        data = msgspec.json.decode(event.data_json)
        if event.kind in ("turn/started", "turn/done"):
            counts[event.kind, f"{event.session_id} {event.turn_id}"] += 1
        elif event.kind in _ENDS:
            counts["prompt's end", data["promptId"]] += 1
        elif event.kind in ("request/resolved", "request/expired"):
            counts["request's end", data["requestId"]] += 1
        elif event.kind in ("request/opened", "request/answered", "prompt/accepted"):
            counts[event.kind, data.get("requestId") or data["promptId"]] += 1
    twice = [f"{kind} of {name}" for (kind, name), count in counts.items() if count > 1]
    assert not twice, f"I5, I6, I12: told twice: {twice}"
    for kind, name in counts:
        if kind == "turn/done":
            assert counts["turn/started", name], f"I12: {name} ended and never began"
    for turn in world.rows.turns.values():
        ended = counts["turn/done", f"{turn.session_id} {turn.id}"]
        assert ended == (turn.state is not None), f"I12: {turn.id} has state {turn.state} and {ended} ends"


# --- prompts ---


def _prompts_ran_once(world: World) -> None:
    """I5: nothing runs twice, or before what was accepted earlier."""
    latest: dict[str, tuple[int, str]] = {}
    for turn in sorted(_turns(world), key=lambda turn: turn.began_s):
        for ours in turn.ours:
            prompt = world.rows.prompts.get(ours)
            assert prompt is not None, f"I5: {ours} ran and was never accepted"
            times = len(world.home.recorded(ours))
            assert times == 1, f"I5: {ours} ran {times} times"
            if prompt.mode == "steer":
                continue  # it overtakes by nature
            before, name = latest.get(prompt.session_id, (-1, ""))
            assert before < prompt.position, f"I5: {ours} ran after {name}, which was accepted later"
            latest[prompt.session_id] = (prompt.position, ours)


def _told_truly(world: World, prompt: PromptRecord) -> None:
    """I5: what its sender was told is what happened."""
    ran = len(world.home.recorded(prompt.id))
    if prompt.delivery == "done":
        assert ran == 1, f"I5: {prompt.id} is said to be done, and never ran"
    elif prompt.delivery == "not_delivered" or prompt.attempts == 0:
        assert ran == 0, f"I5: {prompt.id} is said not to have been delivered, and ran"


def _turns(world: World) -> Iterable[Any]:
    return (turn for thread in world.home.threads.values() for turn in thread.turns)


# --- requests ---


def _decided_once(world: World) -> None:
    """I6: one decision for each request, whatever is sent again; none is accepted that nobody decided to."""
    decisions: dict[tuple[int, str], set[str]] = {}
    times: Counter[tuple[int, int, str]] = Counter()
    for entry in world.home.record:
        if entry.way != ">" or not isinstance(entry.what, dict) or "method" in entry.what:
            continue
        rpc_id = msgspec.json.encode(entry.what["id"]).decode()
        said = msgspec.json.encode(entry.what.get("result", "refused")).decode()
        decisions.setdefault((entry.process, rpc_id), set()).add(said)
        times[entry.process, entry.connection, rpc_id] += 1
    for (process, rpc_id), ways in decisions.items():
        assert len(ways) == 1, f"I6: request {rpc_id} of process {process} was decided as {ways}"
        if '"accept' in next(iter(ways)):
            runtime = world.machine.processes[process - 1].mark
            recorded = [
                request
                for request in world.rows.requests.values()
                if request.rpc_id_json == rpc_id and request.attachment.runtime_id == runtime and request.answer_json
            ]
            assert recorded, f"I6: request {rpc_id} of process {process} was accepted, and nobody decided it"


# --- threads ---


def _no_more_threads_than_asked_for(world: World) -> None:
    """I2: each `thread/start` mints one thread at most, and none is minted unasked."""
    minted = sum(thread.tag is not None for thread in world.home.threads.values())
    written = sum(_is_call(entry.what, "thread/start") for entry in world.home.record if entry.way == ">")
    assert minted <= written, f"I2: {minted} threads from {written} requests"
    tags = [thread.tag for thread in world.home.threads.values() if thread.tag is not None]
    assert len(tags) == len(set(tags)), "I2: one intent minted two threads"


def _is_call(what: object, method: str) -> bool:
    return isinstance(what, dict) and what.get("method") == method


def _one_fate(world: World, thread: ThreadRow) -> None:
    """I2: claimed, ignored, offered, or empty and nowhere on record."""
    owners = [record for record in world.rows.live() if record.thread_id == thread.id]
    known = world.rows.threads.get(thread.id)  # type: ignore[call-overload]  # a name from the wire
    fates = {
        "claimed": bool(owners),
        "ignored": thread.id in world.rows.ignored,
        "orphan": not owners and known is not None and known.cls == "orphan",
    }
    assert sum(fates.values()) <= 1, f"I2: {thread.id} has {fates}"
    if not any(fates.values()):
        empty = not any(turn.items for turn in thread.turns)
        assert empty or thread.deleted, f"I2: {thread.id} ({thread.tag}) holds something and has no fate"
    for owner in owners:
        if owner.origin == "discovered":
            intent = world.rows.intents[str(thread.tag)]
            assert intent.state == "claimed", (
                f"I2: {thread.id} was minted for nobody and is imported as somebody's work"
            )


# --- sessions ---


def _living(world: World) -> Iterable[SessionRecord]:
    return world.rows.live()


def _daemon_state(world: World) -> Any:
    assert world.daemon is not None
    return world.daemon._writer.state


def _rests(world: World, record: SessionRecord) -> None:
    """I7: nobody is busy with nothing behind it."""
    assert record.status not in ("connecting", "running"), f"I7: {record.id} is {record.status} still"
    assert record.ending is None, f"{record.id} is ending still"
    assert record.waiting_on is None, f"{record.id} waits on {record.waiting_on} still"
    if record.attachment is not None:
        living = {process.mark for process in world.machine.living}
        assert record.attachment.runtime_id in living, f"I7: {record.id} is attached to a dead process"


def _memory_is_what_is_written(world: World) -> None:
    """What the daemon holds in memory is what it has committed."""
    if world.daemon is None:
        return
    state = world.daemon._writer.state
    for session in state.sessions.values():
        assert world.rows.sessions[session.id] == session.record, f"{session.id}: memory and rows differ"
        _held_once(world, session)
    claims = {record.thread_id: record.id for record in world.rows.live() if record.thread_id is not None}
    for thread in state.claims:
        assert claims.get(thread) == state.claims[thread], "I3: the claims in memory are not those of the rows"


def _held_once(world: World, session: Session) -> None:
    if session.record.killed_at_ms is not None:
        return
    held = [*session.queue, *(session.turn.prompts if session.turn else ())]
    held += [session.outgoing.prompt] if session.outgoing is not None else []
    held += [steering.prompt for steering in session.steering]
    unfinished = [
        prompt.id
        for prompt in world.rows.prompts.values()
        if prompt.session_id == session.id and prompt.delivery not in DELIVERY_FINAL
    ]
    assert sorted(set(held)) == sorted(unfinished), f"I5: {session.id} holds {held}, unfinished are {unfinished}"
