"""What becomes of a thread that Codex has: one decision, from facts alone.

Who decides when: a scan (or `thread/started`) tells that a thread is there; whoever holds the state of *now* puts the
facts beside it and asks `decide`. A scan's page may be seconds old when it is taken, so nothing is decided while it is
read (DISC-05, DISC-06).

The order is the policy, and what is asked earlier wins:

1. **owned** by a session: refreshed, and taken out of the ignore set if it stands there;
2. **ignored**: skipped, for as long as the entry stands, whatever else is true of it;
3. **another thread's work** (sub-agent, review, attached side thread), or ephemeral: linked to its parent, ignored with
   it, never a session;
4. **told of only** (`thread/started`), not stored: a candidate, of which nothing is remembered;
5. **minted by us** and unowned: left to its setup while that is open; else ignored if it is empty, offered as an orphan
   if it is not;
6. **holding nothing yet** (no rollout, no message): a candidate;
7. else **imported**.

3 comes before 5 although a tag of ours would say more than a source: we never mint a sub-agent's thread, so a tag on
one was inherited. What breaks first if the order is touched: 2 before 1 makes an owned session lose its thread at the
next boot; 7 before 2 brings killed sessions back.
"""

from collections.abc import Iterable
from typing import ClassVar, Final, Literal, assert_never

import msgspec

from discovery.source import read_source
from state.records import IgnoredThread, IntentRecord, KnownThread, SessionId, ThreadClass, ThreadId
from state.tags import parse_tag

Outcome = Literal["refresh", "skip", "child", "ignore", "orphan", "import"]

# A row in whole seconds is rounded down, so that a thread may seem a second older than its intent.
SUSPECT_EARLY_MS: Final = 1_000
# Codex dates a thread by its mint, which follows the intent by the pace of setups and their deadline: minutes at most.
SUSPECT_LATE_MS: Final = 10 * 60 * 1000


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Base of verdicts. `reason` is for people: it is shown beside the thread."""

    reason: str


class Refresh(Verdict, frozen=True, kw_only=True):
    """A session owns it: bring title, preview and count up to date. `unignore`: an ignore entry stands against I9 and
    goes in the same commit."""

    outcome: ClassVar[Literal["refresh"]] = "refresh"
    session: SessionId
    unignore: bool


class Skip(Verdict, frozen=True, kw_only=True):
    """It is in the ignore set; that it was seen is all there is to remember."""

    outcome: ClassVar[Literal["skip"]] = "skip"


class Candidate(Verdict, frozen=True, kw_only=True):
    """Not now: a later scan, or the setup that minted it, decides. Nothing is remembered of it."""

    outcome: ClassVar[Literal["skip"]] = "skip"


class LinkChild(Verdict, frozen=True, kw_only=True):
    """Another thread's work. `parent` is None where nothing names it; `session` is the one that owns the parent."""

    outcome: ClassVar[Literal["child"]] = "child"
    parent: ThreadId | None
    session: SessionId | None


class IgnoreIt(Verdict, frozen=True, kw_only=True):
    """Put it into the ignore set, with this reason."""

    outcome: ClassVar[Literal["ignore"]] = "ignore"


class Orphan(Verdict, frozen=True, kw_only=True):
    """Minted by us, nobody's, and not empty: listed, for the user to claim or ignore. Never imported."""

    outcome: ClassVar[Literal["orphan"]] = "orphan"


class Import(Verdict, frozen=True, kw_only=True):
    """Somebody's work: becomes a detached `discovered` session."""

    outcome: ClassVar[Literal["import"]] = "import"


AnyVerdict = Refresh | Skip | Candidate | LinkChild | IgnoreIt | Orphan | Import


class ThreadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All that the decision depends on, as of now.

    `thread` is what was seen; its `tag` is None only where the source could not tell (see `suspects`).
    `host_id` is ours: a tag of another host is not of our making.
    `owner` is the session, not killed, that claims the thread. `intent` is ours by the thread's tag or by its id.
    `setup_open`: the setup of that intent, or of a suspect, still waits for its reply.
    `parent_*` are about the thread that `parent_of` names.
    `stored`: a row or a file of Codex's tells of it; a notice alone does not.
    """

    thread: KnownThread
    host_id: str
    owner: SessionId | None = None
    ignored: IgnoredThread | None = None
    intent: IntentRecord | None = None
    suspects: tuple[IntentRecord, ...] = ()
    setup_open: bool = False
    parent_owner: SessionId | None = None
    parent_ignored: bool = False
    ephemeral: bool = False
    stored: bool = True


def decide(facts: ThreadFacts) -> AnyVerdict:
    """Return what becomes of the thread. The same facts give the same verdict, and none raises (I9, DISC-01 to -13)."""
    if facts.owner is not None:
        reason = f"session {facts.owner!r} owns it"
        return Refresh(session=facts.owner, unignore=facts.ignored is not None, reason=reason)
    if facts.ignored is not None:
        return Skip(reason=f"ignored: {facts.ignored.reason}")
    if facts.ephemeral or is_child(facts.thread):
        return _child(facts)
    if not facts.stored:
        return Candidate(reason="told of, but not stored by Codex yet")
    return _minted(facts) or _found(facts.thread)


def is_child(thread: KnownThread) -> bool:
    """Say whether the thread is another thread's work rather than a conversation of somebody's."""
    return thread.parent_thread_id is not None or read_source(thread.source).subagent


def parent_of(thread: KnownThread) -> ThreadId | None:
    """Return the thread for which this one works, if its row or its source names it."""
    named = thread.parent_thread_id or read_source(thread.source).parent
    return ThreadId(named) if named else None


def suspects(thread: KnownThread, intents: Iterable[IntentRecord]) -> tuple[IntentRecord, ...]:
    """Return those of the unfinished intents that may have minted a thread whose source keeps no tags.

    With one suspect or several the thread is offered, never bound: which intent it belongs to is not guessed (DISC-10).
    A thread whose source keeps tags has none: an untagged thread there is certainly not ours.
    """
    if thread.tag is not None:
        return ()
    return tuple(intent for intent in intents if _may_have_minted(intent, thread))


def as_known(thread: KnownThread, verdict: AnyVerdict) -> KnownThread | None:
    """Return the row to remember after the verdict, or None where nothing is to be remembered.

    The session of an import is not known here: its id is minted by whoever carries the verdict out.
    """
    match verdict:
        case Refresh(session=session):
            return _row(thread, "owned", verdict, session)
        case Skip() | IgnoreIt():
            return _row(thread, "ignored", verdict, None)
        case LinkChild(session=session, parent=parent):
            linked = msgspec.structs.replace(thread, parent_thread_id=parent)
            return _row(linked, "child", verdict, session)
        case Orphan():
            return _row(thread, "orphan", verdict, None)
        case Import():
            return _row(thread, "discovered", verdict, None)
        case Candidate():
            return None
        case _ as never:
            assert_never(never)


def _child(facts: ThreadFacts) -> AnyVerdict:
    parent = parent_of(facts.thread)
    if facts.parent_ignored:
        return IgnoreIt(reason=f"works for thread {parent}, which is ignored")
    if parent is None:
        reason = "ephemeral" if facts.ephemeral else "works for a thread that is not named"
    else:
        reason = f"works for thread {parent}"
    return LinkChild(parent=parent, session=facts.parent_owner, reason=reason)


def _minted(facts: ThreadFacts) -> AnyVerdict | None:
    """The verdict on a thread of our making; None if it is not, or is not ours to decide any more."""
    if facts.intent is not None:
        return _of_intent(facts, facts.intent)
    tag = parse_tag(facts.thread.tag)
    # Another host's tag: a second termald on this home, or this one before its state was lost. Which of the two cannot
    # be told, and hiding work is worse than listing it twice: it is imported like any other front-end's thread.
    if tag is not None and tag.host_id == facts.host_id:
        return Orphan(reason=f"minted for session {tag.session_id!r}, of which there is no record")
    if facts.suspects and facts.setup_open:
        return Candidate(reason="may be of a setup that is still open; the reply to it decides")
    if facts.suspects:
        sessions = ", ".join(sorted({repr(intent.session_id) for intent in facts.suspects}))
        return Orphan(reason=f"untagged, and may have been minted for {sessions}; which is not guessed")
    return None


def _of_intent(facts: ThreadFacts, intent: IntentRecord) -> AnyVerdict | None:
    whose = f"minted for session {intent.session_id!r}"
    if intent.thread_id not in {None, facts.thread.thread_id}:
        # A request that was written twice, or a copy that kept the tag: either way the intent has its one thread (I2).
        return _left_over(facts, f"{whose} beside {intent.thread_id}")
    match intent.state:
        case "open" if facts.setup_open:
            return Candidate(reason=f"{whose}, whose setup is still open; the reply to it decides")
        case "open" | "discarded":
            return _left_over(facts, f"{whose}, which no longer waits for it")
        case "claimed":
            # It was a session's own thread and is not ignored: let go with its history, or un-ignored by the user's
            # word after a kill. Either way it is work, and DISC-13 imports it.
            return Orphan(reason=f"{whose} and let go; empty") if _is_empty(facts.thread) else None
        case "ignored" | "orphan":
            # The entry of an ignored one is gone by the user's word alone (I9), so it is not put back.
            return Orphan(reason=f"{whose}; for you to claim or to ignore")
        case _ as never:
            assert_never(never)


def _left_over(facts: ThreadFacts, why: str) -> AnyVerdict:
    if _is_empty(facts.thread):
        return IgnoreIt(reason=f"{why}; empty")
    return Orphan(reason=why)


def _is_empty(thread: KnownThread) -> bool:
    # An unknown count is not an empty thread: what may hold somebody's words is never ignored on the quiet.
    return thread.message_count == 0


def _found(thread: KnownThread) -> AnyVerdict:
    if thread.rollout_path is None:
        return Candidate(reason="its rollout is missing: it could not be resumed")
    if _is_empty(thread):
        return Candidate(reason="holds no message yet")
    return Import(reason=f"found in {thread.home}" + (", archived" if thread.archived else ""))


def _may_have_minted(intent: IntentRecord, thread: KnownThread) -> bool:
    unfinished = intent.thread_id is None and intent.state in {"open", "orphan"}
    late_ms = thread.created_at_ms - intent.created_at_ms
    return unfinished and intent.cwd == thread.cwd and -SUSPECT_EARLY_MS <= late_ms <= SUSPECT_LATE_MS


def _row(thread: KnownThread, cls: ThreadClass, verdict: Verdict, session: SessionId | None) -> KnownThread:
    return msgspec.structs.replace(thread, cls=cls, reason=verdict.reason, session_id=session)
