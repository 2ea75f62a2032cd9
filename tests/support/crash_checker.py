"""Compares what was promised, what the model was asked, what Codex stores, and what the daemon says of it all.

`check` runs when everything has come to rest. It returns what is wrong, in words; nothing, if all is well.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from support.crash_clients import Reader
from support.crash_ledger import Ledger, Promise
from support.crash_records import CodexStore, Row

from termald.scripted_model.model import Call

FINAL = {"done", "failed", "cancelled", "not_delivered"}


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All records at one moment of rest."""

    ledger: Ledger
    calls: Sequence[Call]
    store: CodexStore
    replay: dict[int, bytes]
    """The whole log, by number, as a newcomer is told it."""
    readers: Sequence[Reader]
    sessions: Sequence[Row]
    prompts: Sequence[Row]
    turns: Sequence[Row]
    requests: Sequence[Row]
    ignored: Sequence[Row]
    threads: Sequence[Row]
    """As the API lists them."""
    runtime: str | None
    commands_run: Sequence[str]
    """The tokens that the approved commands wrote, one for each run."""


def check(found: Evidence) -> list[str]:
    """Return everything that is not as it must be."""
    return [
        wrong
        for look in (_promises, _strangers, _order, _model, _turns, _log, _replay, _threads, _requests, _at_rest)
        for wrong in look(found)
    ]


def _promises(found: Evidence) -> Iterator[str]:
    """Each prompt ran exactly once, or ended with a reason."""
    prompts = {row["id"]: row for row in found.prompts}
    recorded = Counter(item.client_id for item in found.store.items)
    asked = {call.prompt for call in found.calls}
    for promise in found.ledger.accepted:
        row = prompts.get(promise.id or "")
        if row is None:
            yield f"{_name(promise)} was promised and is unknown"
            continue
        times, delivery = recorded[promise.id], row["delivery"]
        wrong = {
            "has not ended": delivery not in FINAL,
            "has no reason": delivery in ("failed", "not_delivered") and row["error"] is None,
            "was never put to the model": delivery == "done" and promise.text not in asked,
            "is not recorded exactly once": times > 1 or (delivery == "done" and times == 0),
            "was delivered": delivery == "not_delivered" and times > 0,
        }
        for what in (what for what, is_so in wrong.items() if is_so):
            yield f"{_name(promise)} is {delivery}, {times} times in Codex, and {what}"


def _strangers(found: Evidence) -> Iterator[str]:
    """Nothing ran or stands there that nobody asked for, or that was refused; nothing twice, whoever was told."""
    texts = Counter(item.text for item in found.store.items)
    asked = {call.prompt for call in found.calls}
    for promise in found.ledger.promises:
        if texts[promise.text] > 1:
            yield f"Codex recorded the text of {_name(promise)} {texts[promise.text]} times"
        if promise.refused is not None and (texts[promise.text] or promise.text in asked):
            yield f"{_name(promise)} was refused, and ran"
    known = {promise.text for promise in found.ledger.promises}
    taken = Counter(msgspec.json.decode(row["input_json"])[0]["text"] for row in found.prompts)
    for text, times in taken.items():
        if times > 1 or text not in known:
            yield f"{text!r} was taken {times} times; asked for: {text in known}"


def _order(found: Evidence) -> Iterator[str]:
    """Of two prompts of a session, the one answered before the other was asked for runs first."""
    first_asked: dict[str, int] = {}
    for call in found.calls:
        first_asked.setdefault(call.prompt, call.number)
    for session in {promise.session for promise in found.ledger.promises}:
        ran = [
            promise
            for promise in found.ledger.accepted
            if promise.session == session and promise.text in first_asked and promise.answered is not None
        ]
        for earlier in ran:
            for later in ran:
                in_order = (earlier.answered or 0) < later.asked
                if in_order and first_asked[earlier.text] > first_asked[later.text]:
                    yield f"{_name(later)} ran before {_name(earlier)}"


def _model(found: Evidence) -> Iterator[str]:
    """Nobody but those who asked is heard by the model, and none of them in two turns."""
    known = {promise.text for promise in found.ledger.promises}
    turns: dict[str, set[tuple[str | None, str | None]]] = {}
    for call in found.calls:
        if call.prompt not in known:
            yield f"the model was asked what nobody prompted: {call.prompt!r}"
        turns.setdefault(call.prompt, set()).add((call.thread_id, call.turn_id))
    for text, ran in turns.items():
        if len(ran) > 1:
            yield f"the model was asked {text!r} in {len(ran)} turns: {sorted(map(str, ran))}"
    for token, runs in Counter(found.commands_run).items():
        if runs > 1:
            yield f"the command of {token} ran {runs} times"


def _turns(found: Evidence) -> Iterator[str]:
    """Each turn ended once, in the log and in the table."""
    ends: Counter[tuple[str, str]] = Counter()
    starts: Counter[tuple[str, str]] = Counter()
    for data in found.replay.values():
        event = msgspec.json.decode(data)
        if event["kind"] == "turn/done":
            ends[event["sessionId"], event["turnId"]] += 1
        elif event["kind"] == "turn/started":
            starts[event["sessionId"], event["turnId"]] += 1
    for turn, count in (starts | ends).items():
        if starts[turn] != 1 or ends[turn] != 1:
            yield f"turn {turn} started {starts[turn]} times and ended {ends[turn]} times ({count})"
    for row in found.turns:
        if row["state"] is None:
            yield f"turn {row['id']} of {row['session_id']} has no end"


def _log(found: Evidence) -> Iterator[str]:
    numbers = list(found.replay)
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"the log is not 1..n: {len(numbers)} events, the last is {numbers[-1:]}"
    ended: Counter[str] = Counter()
    for data in found.replay.values():
        event = msgspec.json.decode(data)
        if event["kind"] in ("prompt/done", "prompt/failed", "prompt/cancelled", "prompt/notDelivered"):
            ended[event["promptId"]] += 1
    for prompt, count in ended.items():
        if count != 1:
            yield f"prompt {prompt} was told to have ended {count} times"


def _replay(found: Evidence) -> Iterator[str]:
    """A newcomer is told what those saw who never left for good."""
    for number, reader in enumerate(found.readers):
        if reader.skipped or reader.doubled or reader.resets:
            yield f"reader {number}: gaps {reader.skipped}, doubles {reader.doubled}, resets {reader.resets}"
        # It may be ahead by now: a scan follows each change of Codex's state DB by itself.
        if reader.last < len(found.replay):
            yield f"reader {number} saw {reader.last} events of {len(found.replay)}"
        changed = [seq for seq, data in found.replay.items() if reader.seen.get(seq) != data]
        if changed:
            yield f"reader {number} was told otherwise: {changed[:5]}"


def _threads(found: Evidence) -> Iterator[str]:
    """Each thread has one fate: owned, ignored, or offered; none was imported, for nobody else works in this home."""
    owned = Counter(row["thread_id"] for row in found.sessions if row["thread_id"] and row["killed_at_ms"] is None)
    ignored = {row["thread_id"] for row in found.ignored}
    classes = {row["threadId"]: row["class"] for row in found.threads}
    for thread, tag in found.store.threads.items():
        fates = (thread in owned) + (thread in ignored) + (classes.get(thread) == "orphan")
        if fates != 1:
            yield f"thread {thread} (tag {tag}) has {fates} fates; it is listed as {classes.get(thread)}"
    for thread in owned.keys() & ignored:
        yield f"thread {thread} is owned and ignored"
    for thread, owners in owned.items():
        if owners > 1:
            yield f"thread {thread} has {owners} owners"
    for row in found.sessions:
        if row["origin"] == "discovered":
            yield f"{row['id']} was imported: a phantom"
    there = {row["id"] for row in found.sessions if row["killed_at_ms"] is None}
    for session in found.ledger.killed & there:
        yield f"{session} was killed and is there"
    for session in found.ledger.sessions - there:
        yield f"{session} was made and is gone"


def _requests(found: Evidence) -> Iterator[str]:
    """Nothing waits; a decision that was taken stands; what was allowed, and went well, ran once."""
    by_id = {row["id"]: row for row in found.requests}
    normal = {(row["session_id"], row["id"]) for row in found.turns if row["state"] == "normal"}
    for row in found.requests:
        if row["status"] == "open" or row["closed_at_ms"] is None:
            yield f"request {row['id']} of {row['session_id']} is {row['status']} and never closed"
    for decision in found.ledger.decisions:
        card = by_id.get(decision.request)
        if card is None:
            yield f"request {decision.request} was answered and is unknown"
            continue
        kept = card["answer_json"] == ('"accept"' if decision.accepted else '"cancel"')
        if not kept:
            yield f"request {decision.request}: {card['answer_json']} is kept, not what was decided"
        ran = found.commands_run.count(decision.token)
        if not decision.accepted and ran:
            yield f"the command of {decision.token} was refused, and ran"
        if decision.accepted and not ran and (card["session_id"], card["turn_id"]) in normal:
            yield f"the command of {decision.token} was allowed, its turn went well, and it did not run"
    decided = {decision.token for decision in found.ledger.decisions}
    answered = [row for row in found.requests if row["answer_json"] == '"accept"']
    for token in set(found.commands_run) - decided:
        # The answer may have been taken and its 200 not read; then the card says so.
        if not any(token in row["params_json"] for row in answered):
            yield f"the command of {token} ran, and nobody allowed it"


def _at_rest(found: Evidence) -> Iterator[str]:
    """Nobody pretends to be live."""
    for row in found.sessions:
        if row["killed_at_ms"] is not None:
            if row["attachment"] is not None:
                yield f"{row['id']} was killed and is attached"
            continue
        if row["status"] in ("running", "connecting"):
            yield f"{row['id']} is {row['status']} when all is quiet"
        if row["active_turn_id"] is not None:
            yield f"{row['id']} has the turn {row['active_turn_id']}"
        attached = None if row["attachment"] is None else msgspec.json.decode(row["attachment"])["runtime_id"]
        if attached is not None and attached != found.runtime:
            yield f"{row['id']} is attached to {attached}; what lives is {found.runtime}"
        if (row["status"] == "ready") != (attached is not None):
            yield f"{row['id']} is {row['status']} and its attachment is {attached}"


def _name(promise: Promise) -> str:
    return f"{promise.session}/{promise.token} ({promise.id})"
