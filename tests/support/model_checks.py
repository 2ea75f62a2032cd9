"""I1 to I12 in the words of the store, the state and the fake Codex: after every commit, and when all is quiet."""

from collections import Counter
from collections.abc import Iterable

import msgspec
from support.model_codex import Codex, Thread
from support.model_daemon import Daemon

from state.records import DELIVERY_FINAL, PromptRecord, SessionId, SessionRecord, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.model import Call, Session

SETUPS = ("open_fresh", "open_known")


class Checks:
    """The invariants, with what must be remembered to see them."""

    def __init__(self, codex: Codex) -> None:
        self.codex = codex
        self.told = 0
        self.turns: Counter[tuple[str, str, str]] = Counter()
        self.ends: Counter[tuple[str, str]] = Counter()
        self.ignored: set[ThreadId] = set()

    def after_commit(self, daemon: Daemon, batch: list[ins.Input]) -> None:
        """What holds after every batch."""
        self._events(daemon)
        self._ignore_set(daemon, batch)
        _memory_is_what_is_written(daemon)
        for session in daemon.state.sessions.values():
            _one_session(daemon, session)
        _calls(daemon)
        self.codex_agrees(daemon)

    def codex_agrees(self, daemon: Daemon) -> None:
        """What Codex received: nothing runs twice, or out of order; nothing was minted unasked."""
        for prompt, times in self.codex.recorded.items():
            assert times <= 1, f"I5: {prompt} was run {times} times"
        latest: dict[SessionId, int] = {}
        for prompt in self.codex.record_order:
            record = daemon.store.prompts[prompt]
            if record.mode == "steer":
                continue  # it overtakes by nature
            assert latest.get(record.session_id, -1) < record.position, f"I5: {prompt} was overtaken"
            latest[record.session_id] = record.position
        starts = sum(isinstance(sent.op, fx.OpenFresh | fx.ForkThread) for sent in daemon.sent)
        minted = sum(bool(thread.tag) for thread in self.codex.threads.values())
        assert minted <= starts, "I2: more threads were minted than asked for"
        for (runtime, rpc_id), given in self.codex.decisions.items():
            assert len(set(given)) == 1, f"I6: {runtime} {rpc_id} was decided twice: {given}"

    def _events(self, daemon: Daemon) -> None:
        """I11 and I12: the sequence has no gap, a turn begins and ends once, a prompt and a card end once."""
        for event in daemon.store.events[self.told :]:
            self.told += 1
            assert event.seq == self.told, "I11: a gap"
            data = msgspec.json.decode(event.data_json)
            session = str(event.session_id)
            if event.kind in ("turn/started", "turn/done"):
                self.turns[event.kind, session, data["turnId"]] += 1
                assert self.turns[event.kind, session, data["turnId"]] == 1, f"I12: a second {event.kind}"
                assert self.turns["turn/started", session, data["turnId"]] == 1, "I12: ended, never begun"
            elif event.kind in ("request/resolved", "request/expired"):
                self.ends["request", data["requestId"]] += 1
            elif event.kind.removeprefix("prompt/") in ("done", "failed", "cancelled", "notDelivered"):
                self.ends["prompt", data["promptId"]] += 1
        for what, times in self.ends.items():
            assert times == 1, f"I5, I6: {what} ended {times} times"

    def _ignore_set(self, daemon: Daemon, batch: list[ins.Input]) -> None:
        """I9: no entry goes without evidence: somebody's word, or an owner."""
        told = {happened.thread for happened in batch if isinstance(happened, ins.UnignoreThread)}
        named = {happened.thread for happened in batch if isinstance(happened, ins.CreateSession)}
        now = set(daemon.store.ignored)
        owned = {record.thread_id for record in daemon.store.live()}
        assert self.ignored - now <= told | named | owned, "I9: an entry is gone without evidence"
        self.ignored = now


def _memory_is_what_is_written(daemon: Daemon) -> None:
    state, store = daemon.state, daemon.store
    for session in state.sessions.values():
        assert store.sessions[session.id] == session.record, f"{session.id}: memory and store differ"
    for prompt in state.prompts.values():
        assert store.prompts[prompt.id] == prompt, f"{prompt.id}: memory and store differ"
    for request in state.requests.values():
        assert store.requests[request.id] == request, f"{request.id}: memory and store differ"
    for intent in state.intents.values():
        assert store.intents[intent.tag] == intent, "memory and store differ"
    claims = {record.thread_id: record.id for record in store.live() if record.thread_id is not None}
    for thread in state.claims:
        assert claims.get(thread) == state.claims[thread], "I3: the claim index is not the store's"


def _one_session(daemon: Daemon, session: Session) -> None:
    state, record = daemon.state, session.record
    open_calls = [call for call in state.calls.values() if call.session == session.id and not call.tombstone]
    setups = [call for call in open_calls if call.purpose in SETUPS and call.attachment == record.attachment]
    assert len(setups) == (session.setup is not None), f"I1: {session.id} has {len(setups)} setups open"
    starting = [call for call in open_calls if call.purpose == "turn" and _unknown(daemon, call)]
    assert len(starting) <= 1, f"I1: two turns are being started: {starting}"
    if session.turn is not None:
        assert record.active_turn_id == session.turn.id
    if record.killed_at_ms is not None:
        held = (session.queue, session.outgoing, session.steering, session.turn, session.setup, session.waiting)
        assert not any((*held, record.attachment)), f"{session.id} was killed and holds {held}"
        return
    held_prompts = {*session.queue, *(session.turn.prompts if session.turn else ())}
    held_prompts.update(steering.prompt for steering in session.steering)
    if session.outgoing is not None:
        held_prompts.add(session.outgoing.prompt)
    unfinished = {prompt.id for prompt in _prompts(daemon, session.id) if prompt.delivery not in DELIVERY_FINAL}
    assert unfinished == held_prompts, f"I5: {session.id} holds {held_prompts}, unfinished are {unfinished}"
    # While there is no link to a process that lives, what it was doing is not known, and nothing is settled.
    unknown = state.link.value is None and record.attachment is not None
    uncertain = bool(session.queue) and state.prompts[session.queue[0]].delivery != "queued"
    lined_up = session.id in state.setups_waiting.value
    if record.status == "connecting":
        under_way = bool(session.setup or session.reading or session.turn or session.looks or lined_up)
        under_way = under_way or state.shutting_down.value  # nothing is begun any more; the next start settles it
        assert under_way or unknown, f"I7: {session.id} is connecting and nothing is under way"
    if record.status == "running":
        # What was sent before the link was lost may run; it is looked for once its thread is resumed, in its turn.
        looked_for = uncertain and (unknown or lined_up)
        assert session.turn or session.outgoing or looked_for, f"I7: {session.id} is running and nothing runs"
    if record.status == "closed":
        assert not held_prompts, "I5: closed with prompts"
    if record.status in ("detached", "closed"):
        assert session.turn is None, f"I7: {session.id} is {record.status} with a turn"
    for request in state.session_requests(session):
        assert request.session_id == session.id


def _unknown(daemon: Daemon, call: Call) -> bool:
    assert call.prompt is not None
    return daemon.store.prompts[call.prompt].delivery in ("queued", "sent")


def _calls(daemon: Daemon) -> None:
    state = daemon.state
    written = [call for call in state.calls.values() if call.written]
    assert len(written) == state.calls_written.value, "the window is miscounted"
    for call in state.calls.values():
        if state.link.value is not None:
            assert call.link == state.link.value, "a call of a lost link is kept"
    for session_id, record in daemon.store.sessions.items():
        if session_id not in state.sessions and record.killed_at_ms is None:
            assert record.attachment is None, f"{session_id} was forgotten while attached"
            for prompt in _prompts(daemon, session_id):
                assert prompt.delivery in DELIVERY_FINAL, f"I5: {prompt.id} was forgotten"


def _prompts(daemon: Daemon, session: SessionId) -> Iterable[PromptRecord]:
    return (prompt for prompt in daemon.store.prompts.values() if prompt.session_id == session)


# --- when all is quiet ---


def at_rest(daemon: Daemon) -> None:
    """What holds when Codex has said everything, every timer has fired, and a link is up."""
    assert not daemon.waiting, f"callers {daemon.waiting} were never answered"
    state = daemon.state
    assert (state.setups_open.value, state.setups_waiting.value) == (0, ()), "I1: a setup is left open"
    assert (state.calls_written.value, state.calls_waiting.value) == (0, ()), "a call is left open"
    for record in daemon.store.live():
        _rests(daemon, record)
    for disposal in daemon.store.disposals.values():
        assert disposal.done, f"the disposal of {disposal.thread_id} is left undone"
    for thread in daemon.codex.threads.values():
        turn = thread.running
        # What was written to a connection that was lost with its answer may begin a turn that nobody knows of.
        known = turn is not None and _is_known(daemon, turn.id)
        unseen = thread.id in daemon.store.ignored and turn is not None and turn.began_by_us and known
        assert not unseen or thread.id in daemon.codex.not_interrupted, f"STOP-15: {turn} runs on unseen"


def _is_known(daemon: Daemon, turn: TurnId) -> bool:
    told = any(turn in key for key in daemon.store.turns)
    return told or any(disposal.turn_id == turn for disposal in daemon.store.disposals.values())


def _rests(daemon: Daemon, record: SessionRecord) -> None:
    thread = daemon.codex.threads.get(record.thread_id) if record.thread_id is not None else None
    running = thread is not None and thread.running is not None
    assert record.status != "connecting", f"I7: {record.id} connects for ever"
    assert record.ending is None, f"{record.id} ends for ever"
    if record.status == "running":
        assert running, f"I7: {record.id} is running, and Codex runs nothing"
    told = record.last_error is not None or record.status == "detached"
    held = (record.paused and told) or record.resume_lost or running
    for prompt in _prompts(daemon, record.id):
        assert prompt.delivery in DELIVERY_FINAL or held, f"I5: {prompt.id} is {prompt.delivery} and nobody sees why"


def at_the_end(daemon: Daemon) -> None:
    """What holds when, beside that, every turn has ended and what is stored was scanned."""
    for prompt in daemon.store.prompts.values():
        _told_truly(daemon, prompt)
    for turn in daemon.store.turns.values():
        assert turn.state is not None, f"I12: {turn.id} of {turn.session_id} never ended"
    for request in daemon.store.requests.values():
        assert request.status in ("resolved", "expired"), f"I6: {request.id} is still {request.status}"
    for thread in daemon.codex.threads.values():
        if thread.tag:
            _one_fate(daemon, thread)


def _told_truly(daemon: Daemon, prompt: PromptRecord) -> None:
    """I5: what its sender was told is what happened."""
    ran = daemon.codex.recorded[prompt.id]
    if prompt.delivery == "done":
        assert ran == 1 or prompt.id in daemon.codex.forgotten, f"I5: {prompt.id} is said to be done and never ran"
    elif prompt.delivery == "not_delivered" or prompt.attempts == 0:
        assert ran == 0, f"I5: {prompt.id} is said not to have been delivered, and ran"
    elif prompt.error is not None and prompt.error.slug in ("turn-refused", "input-too-large", "taken-back"):
        assert ran == 0, f"I5: {prompt.id} is said to be refused, and ran"


def _one_fate(daemon: Daemon, thread: Thread) -> None:
    """I2: claimed, ignored, offered as an orphan, let go with its history by a user's word, or empty and unknown."""
    owners = [record for record in daemon.store.live() if record.thread_id == thread.id]
    known = daemon.store.threads.get(thread.id)
    intent = daemon.store.intents[thread.tag]
    fates = {
        "claimed": bool(owners),
        "ignored": thread.id in daemon.store.ignored,
        "orphan": known is not None and known.cls == "orphan" and not owners,
    }
    assert sum(fates.values()) <= 1, f"I2: {thread.id} has {fates}"
    if not any(fates.values()):
        assert not thread.stored, f"I2: {thread.id} holds something and has no fate"
    if owners and owners[0].origin == "discovered":
        assert intent.state == "claimed", f"I2: {thread.id} was minted for nobody and imported as somebody's work"
