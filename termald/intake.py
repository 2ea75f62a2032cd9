"""A scan's page, decided on the state of now: the import policy's facts are put together inside the batch that carries
its verdicts out.

The policy is `discovery.policy` and pure; so is this. Between the two rooms because neither may know the other:
discovery knows no sessions in memory, the core knows no policy.
"""

from collections.abc import Callable, Iterator
from typing import Final

from discovery.policy import ThreadFacts, as_known, decide, parent_of, suspects
from state.records import IgnoredThread, IntentRecord, KnownThread, Loaded, SessionId, SessionRecord, ThreadId
from termald.core.inputs import ThreadDecided, ThreadsSeen, ThreadStarted
from termald.core.state import State

LAST_SEEN_MS: Final = 24 * 60 * 60 * 1000
"""How old `last_seen_ms` of an ignored thread may grow while the thread is there: one write a day for each."""


def decisions(
    state: State, seen: ThreadsSeen | ThreadStarted, new_session_id: Callable[[], SessionId]
) -> Iterator[ThreadDecided]:
    """Yield a verdict for each thread, one at a time, so that each is decided on what the one before it changed."""
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


def to_be_told_again(loaded: Loaded, *, foreign: bool, at_ms: int) -> frozenset[ThreadId]:
    """Return the threads that must be decided again though nothing of them has changed in Codex, because what they are
    here is not what was decided of them last. `loaded` is what the database holds of them now."""
    owners = {one.session.thread_id: one.session for one in loaded.bundles if one.session.killed_at_ms is None}
    ignored = {entry.thread_id: entry for entry in loaded.ignored}
    return frozenset(
        thread.thread_id
        for thread in loaded.threads
        if _is_stale(thread, owners.get(thread.thread_id), ignored.get(thread.thread_id), foreign=foreign, at_ms=at_ms)
    )


def _is_stale(
    thread: KnownThread, owner: SessionRecord | None, entry: IgnoredThread | None, *, foreign: bool, at_ms: int
) -> bool:
    if owner is not None:
        # What was a foreign home may be the one that Codex runs in now, and the other way round.
        return entry is not None or (owner.home is not None) != foreign
    if entry is not None:
        return thread.cls != "ignored" or at_ms - (entry.last_seen_ms or 0) > LAST_SEEN_MS
    # Let go by its session, or un-ignored by its user.
    return thread.cls in ("owned", "discovered", "ignored")


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
