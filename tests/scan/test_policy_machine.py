"""The policy over time: kills, claims, the user's words and scans in any order, on a model that keeps nothing but I9.

The model carries verdicts out as the daemon does: an import makes a session, a kill ignores its thread, an owned thread
leaves the ignore set. Pages are read at one moment and decided at a later one.
"""

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from scan.facts import HOST, PARENT, SPAWNED, facts, ignored, intent, known

from discovery.policy import IgnoreIt, Import, Orphan, Refresh, as_known, decide, parent_of
from state.records import IgnoredThread, IntentRecord, KnownThread, SessionId, ThreadId
from state.tags import mint_tag

OURS = mint_tag(HOST, SessionId("minted"), 1)
CODEX = {
    thread.thread_id: thread
    for thread in (
        known("plain"),
        known("archived", archived=True),
        known("minted", tag=OURS),
        known("minted-twice", tag=OURS, message_count=0),
        known("unrecorded", tag=mint_tag(HOST, SessionId("lost"), 1)),
        known("child", source=SPAWNED.replace(PARENT, "plain")),
        known("empty", message_count=0),
    )
}
thread_ids = st.sampled_from(sorted(CODEX))


class Ignoring(RuleBasedStateMachine):
    """What a daemon would do with the verdicts, and nothing more."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[ThreadId, SessionId] = {}
        self.ignored: dict[ThreadId, IgnoredThread] = {}
        self.known: dict[ThreadId, KnownThread] = {}
        self.intent: IntentRecord = intent(tag=OURS, session_id="minted")
        self.page: tuple[ThreadId, ...] = ()
        self.unwanted: set[ThreadId] = set()
        self.born = 0

    @rule(threads=st.lists(thread_ids, unique=True, max_size=len(CODEX)))
    def read_a_page(self, threads: list[ThreadId]) -> None:
        self.page = tuple(threads)

    @rule()
    def decide_the_page(self) -> None:
        for thread in self.page:
            self.take(thread)

    @precondition(lambda self: self.page)
    @rule()
    def decide_the_page_twice(self) -> None:
        self.decide_the_page()
        once = self.snapshot()
        self.decide_the_page()
        assert self.snapshot() == once, "a second look at the same page changed something"

    @rule(thread=thread_ids)
    def kill(self, thread: ThreadId) -> None:
        if self.owners.pop(thread, None) is not None:
            self.ignored[thread] = ignored(thread)
            self.unwanted.add(thread)

    @rule(thread=thread_ids)
    def ignore_by_word(self, thread: ThreadId) -> None:
        if thread not in self.owners:
            self.ignored[thread] = ignored(thread, "by the user's word")
            self.unwanted.add(thread)

    @rule(thread=thread_ids)
    def unignore_by_word(self, thread: ThreadId) -> None:
        self.ignored.pop(thread, None)
        self.unwanted.discard(thread)

    @rule(thread=thread_ids)
    def claim_by_word(self, thread: ThreadId) -> None:
        if thread not in self.owners:
            self.own(thread)
            self.ignored.pop(thread, None)
            self.unwanted.discard(thread)

    @precondition(lambda self: self.intent.state == "open" and not {"minted"} & (self.owners.keys() | self.unwanted))
    @rule()
    def the_reply_binds(self) -> None:
        self.own(ThreadId("minted"))
        self.close_intent()

    @precondition(lambda self: self.intent.state == "open")
    @rule()
    def the_setup_is_given_up(self) -> None:
        self.intent = msgspec.structs.replace(self.intent, state="discarded")

    @rule()
    def old_data_says_both(self) -> None:
        """DISC-01: a state from before the invariant was kept."""
        for thread in self.owners:
            self.ignored[thread] = ignored(thread, "old data")
        self.page = tuple(self.owners)
        self.decide_the_page()

    @invariant()
    def owned_and_ignored_never_meet(self) -> None:
        assert not self.owners.keys() & self.ignored.keys()

    @invariant()
    def what_is_unwanted_stays_away(self) -> None:
        assert self.unwanted <= self.ignored.keys()
        assert not self.unwanted & self.owners.keys()

    @invariant()
    def no_session_over_nothing_or_over_anothers_work_is_imported(self) -> None:
        imported = {thread for thread, session in self.owners.items() if session.startswith("imported")}
        assert not imported & {"empty", "child", "minted-twice", "unrecorded"}

    def take(self, thread_id: ThreadId) -> None:
        thread = CODEX[thread_id]
        parent = parent_of(thread)
        verdict = decide(
            facts(
                thread,
                owner=self.owners.get(thread_id),
                ignored=self.ignored.get(thread_id),
                intent=self.intent if thread.tag == OURS else None,
                setup_open=self.intent.state == "open",
                parent_owner=self.owners.get(parent) if parent else None,
                parent_ignored=parent in self.ignored,
            )
        )
        row = as_known(thread, verdict)
        if isinstance(verdict, Refresh) and verdict.unignore:
            del self.ignored[thread_id]
        elif isinstance(verdict, IgnoreIt):
            self.ignored[thread_id] = ignored(thread_id, verdict.reason)
        elif isinstance(verdict, Import):
            row = msgspec.structs.replace(row, session_id=self.own(thread_id, "imported")) if row else None
        elif isinstance(verdict, Orphan):
            assert thread_id not in self.owners
        if row is not None:
            self.known[thread_id] = row

    def own(self, thread: ThreadId, how: str = "claimed") -> SessionId:
        assert thread not in self.owners
        self.born += 1
        self.owners[thread] = SessionId(f"{how}-{self.born}")
        if thread == "minted" and self.intent.state != "open":
            self.close_intent()
        return self.owners[thread]

    def close_intent(self) -> None:
        self.intent = msgspec.structs.replace(self.intent, state="claimed", thread_id=ThreadId("minted"))

    def snapshot(self) -> tuple[object, ...]:
        return dict(self.owners), dict(self.ignored), self.intent


TestIgnoring = Ignoring.TestCase
TestIgnoring.settings = settings(max_examples=150, stateful_step_count=30)
