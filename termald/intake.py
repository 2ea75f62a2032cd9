"""A scan's page, decided on the state of now: the import policy's facts are put together inside the batch that carries
its verdicts out.

The policy is `discovery.policy` and pure; so is this. Between the two rooms because neither may know the other:
discovery knows no sessions in memory, the core knows no policy.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from discovery.policy import ThreadFacts, as_known, decide, parent_of, suspects
from state.records import IntentRecord, KnownThread, SessionId
from state.views import Standing
from termald.core.inputs import ScanNews, ThreadDecided, ThreadsSeen, ThreadStarted
from termald.core.state import State

LAST_SEEN_MS: Final = 24 * 60 * 60 * 1000
"""How old `last_seen_ms` of an ignored thread may grow while the thread is there: one write a day for each."""


def decisions(
    state: State, seen: ThreadsSeen | ThreadStarted, new_session_id: Callable[[], SessionId]
) -> Iterator[ThreadDecided]:
    """Yield a verdict for each thread, one at a time, so that each is decided on what the one before it changed."""
    if isinstance(seen, ThreadStarted) and seen.link != state.link.value:
        return  # what an ended connection says is of then (RUNTIME-04)
    threads = seen.threads if isinstance(seen, ThreadsSeen) else (seen.known,)
    ephemeral = isinstance(seen, ThreadStarted) and seen.ephemeral
    for thread in threads:
        verdict = decide(_facts(state, thread, ephemeral=ephemeral, stored=isinstance(seen, ThreadsSeen)))
        known = as_known(thread, verdict)
        if known is not None:
            yield ThreadDecided(
                at_ms=seen.at_ms,
                thread=known,
                outcome=verdict.outcome,
                reason=verdict.reason,
                new_session=new_session_id(),
                foreign=isinstance(seen, ThreadsSeen) and seen.foreign,
            )


def consequences(
    state: State, seen: ThreadsSeen | ThreadStarted, new_session_id: Callable[[], SessionId]
) -> Iterator[ThreadDecided | ScanNews]:
    """Yield what is to be stepped through for what was seen, one after the other: each verdict, then the word that the
    page brought sessions, if it did."""
    found = []
    for verdict in decisions(state, seen, new_session_id):
        yield verdict
        thread = verdict.thread.thread_id
        if verdict.outcome == "import" and state.owner(thread) == verdict.new_session:
            found.append({"sessionId": verdict.new_session, "threadId": thread})
    if found and isinstance(seen, ThreadsSeen):
        fields = {"home": seen.home, "count": len(found), "sessions": found}
        yield ScanNews(at_ms=seen.at_ms, kind="imported", fields_json=msgspec.json.encode(fields).decode())


def is_settled(thread: Standing, *, foreign: bool, at_ms: int) -> bool:
    """Say whether a thread need not be decided again while nothing of it changes in Codex: what it is here is what was
    decided of it last."""
    if not thread.stamp:
        return False
    if thread.owner is not None:
        # What was a foreign home may be the one that Codex runs in now, and the other way round.
        return not thread.ignored and (thread.owner_home is not None) == foreign
    if thread.ignored:
        return thread.cls == "ignored" and at_ms - (thread.last_seen_ms or 0) <= LAST_SEEN_MS
    # Of the others, one was let go by its session, or un-ignored by its user.
    return thread.cls in ("orphan", "child")


def _facts(state: State, thread: KnownThread, *, ephemeral: bool, stored: bool) -> ThreadFacts:
    intent = state.intents.get(thread.tag) if thread.tag is not None else None
    open_intents = tuple(state.intents[tag] for tag in state.intents)
    suspected = suspects(thread, open_intents)
    parent = parent_of(thread)
    return ThreadFacts(
        thread=thread,
        host_id=state.host.id,
        owner=state.owner(thread.thread_id),
        ignored=state.ignored.get(thread.thread_id),
        intent=intent,
        suspects=suspected,
        setup_open=any(_is_open(state, one) for one in ((intent,) if intent is not None else suspected)),
        parent_owner=state.owner(parent) if parent is not None else None,
        parent_ignored=parent is not None and parent in state.ignored,
        ephemeral=ephemeral,
        stored=stored,
    )


def _is_open(state: State, intent: IntentRecord) -> bool:
    session = state.sessions.get(intent.session_id)
    setup = session.setup if session is not None else None
    return setup is not None and setup.tag == intent.tag
