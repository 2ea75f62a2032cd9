"""The import policy: its order, its reasons, and what holds for all facts (I9, DISC)."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from scan.facts import HOST, PARENT, SPAWNED, any_facts, facts, ignored, intent, known

from discovery.policy import (
    SUSPECT_LATE_MS,
    AnyVerdict,
    Candidate,
    IgnoreIt,
    Import,
    LinkChild,
    Orphan,
    Refresh,
    Skip,
    ThreadFacts,
    as_known,
    decide,
    suspects,
)
from state.records import IntentState, KnownThread, SessionId, ThreadId
from state.tags import mint_tag

OURS = mint_tag(HOST, SessionId("docs"), 1)
S = SessionId("s")


def test_an_owned_thread_is_refreshed_and_leaves_the_ignore_set() -> None:
    """DISC-01: else a session would lose its thread at the next boot."""
    verdict = decide(facts(owner=S, ignored=ignored()))
    assert isinstance(verdict, Refresh)
    assert (verdict.session, verdict.unignore, verdict.outcome) == (S, True, "refresh")
    assert decide(facts(owner=S)) == Refresh(session=S, unignore=False, reason="session 's' owns it")


def test_an_ignored_thread_is_skipped_whatever_else_is_true_of_it() -> None:
    """DISC-02: else a killed session would be back at the next boot."""
    child = known(source=SPAWNED, tag=OURS)
    for thread in (known(), child, known(tag=OURS, message_count=0)):
        verdict = decide(facts(thread, ignored=ignored(reason="killed"), intent=intent(), parent_owner=S))
        assert verdict == Skip(reason="ignored: killed")


def test_a_found_thread_is_imported() -> None:
    assert decide(facts()) == Import(reason="found in /home/u/.codex")


def test_an_archived_thread_is_imported_and_says_so() -> None:
    assert decide(facts(known(archived=True))) == Import(reason="found in /home/u/.codex, archived")


def test_a_thread_of_unknown_count_is_imported() -> None:
    """A count that could not be read is not a reason to hide somebody's work."""
    assert isinstance(decide(facts(known(message_count=None))), Import)


@pytest.mark.parametrize(
    ("fields", "stored"),
    [({"message_count": 0}, True), ({"rollout_path": None}, True), ({}, False)],
    ids=["no message", "no rollout", "a notice only"],
)
def test_what_could_never_be_resumed_is_only_a_candidate(fields: dict[str, Any], stored: bool) -> None:
    """DISC-08: a session over nothing would be a phantom of our own making."""
    thread = known(**fields)
    verdict = decide(facts(thread, stored=stored))
    assert isinstance(verdict, Candidate)
    assert as_known(thread, verdict) is None


@pytest.mark.parametrize("fields", [{"tag": OURS}, {"tag": None}, {}], ids=["ours", "untagged", "somebody's"])
def test_a_mere_notice_settles_the_fate_of_nobodys_thread(fields: dict[str, Any]) -> None:
    """DISC-07: what is not stored may never be; its setup, or the scan that finds it stored, decides."""
    told = facts(known(**fields), intent=intent(state="discarded"), suspects=(intent(),), stored=False)
    assert isinstance(decide(told), Candidate)
    assert isinstance(decide(msgspec.structs.replace(told, owner=S)), Refresh)
    assert isinstance(decide(msgspec.structs.replace(told, ignored=ignored())), Skip)


# --- another thread's work ---


@pytest.mark.parametrize(
    "fields",
    [
        {"source": SPAWNED},
        {"source": '{"subagent":"review"}', "parent_thread_id": PARENT},
        {"parent_thread_id": PARENT},
    ],
    ids=["spawned", "review", "attached"],
)
def test_another_threads_work_is_linked_to_its_parent(fields: dict[str, Any]) -> None:
    """DISC-11."""
    thread = known(**fields)
    verdict = decide(facts(thread, parent_owner=S))
    assert verdict == LinkChild(parent=ThreadId(PARENT), session=S, reason=f"works for thread {PARENT}")
    row = as_known(thread, verdict)
    assert row is not None
    assert (row.cls, row.session_id, row.parent_thread_id) == ("child", S, PARENT)


def test_a_subagent_of_nobody_in_particular_is_no_session_either() -> None:
    verdict = decide(facts(known(source='{"subagent":"compact"}')))
    assert verdict == LinkChild(parent=None, session=None, reason="works for a thread that is not named")


def test_an_ephemeral_thread_is_no_session() -> None:
    assert decide(facts(ephemeral=True)) == LinkChild(parent=None, session=None, reason="ephemeral")


def test_a_child_is_ignored_with_its_parent() -> None:
    """DISC-11: a killed session's sub-agents are as unwanted as itself."""
    verdict = decide(facts(known(source=SPAWNED), parent_ignored=True))
    assert verdict == IgnoreIt(reason=f"works for thread {PARENT}, which is ignored")


def test_a_subagent_that_carries_our_tag_is_still_a_child() -> None:
    assert isinstance(decide(facts(known(source=SPAWNED, tag=OURS))), LinkChild)


# --- minted by us ---


def test_our_tag_without_any_record_is_an_orphan_in_every_scan() -> None:
    """DISC-09: our own leftovers are never taken for the user's work."""
    verdict = decide(facts(known(tag=OURS)))
    assert verdict == Orphan(reason="minted for session 'docs', of which there is no record")


def test_another_hosts_tag_is_somebody_elses_work() -> None:
    """Else a user who lost the state folder would find his threads hidden by the very tool that made them."""
    assert isinstance(decide(facts(known(tag=mint_tag("host-2", S, 1)))), Import)


@pytest.mark.parametrize("thread", [known(tag=OURS), known(tag=None), known(tag=OURS, message_count=0)])
def test_while_the_setup_is_open_its_reply_decides(thread: KnownThread) -> None:
    """DISC-06: with a tag and without, T is never imported beside the session that is about to bind it."""
    of_tag = facts(thread, intent=intent() if thread.tag else None, suspects=(intent(),), setup_open=True)
    assert isinstance(decide(of_tag), Candidate)
    closed = msgspec.structs.replace(of_tag, setup_open=False)
    assert not isinstance(decide(closed), Candidate), "control: it is the open setup that holds it back"


@pytest.mark.parametrize("state", ["open", "discarded"])
def test_a_thread_that_no_setup_waits_for_is_ignored_if_it_is_empty(state: IntentState) -> None:
    """SETUP-05, SETUP-12, BOOT-09."""
    assert isinstance(decide(facts(known(tag=OURS, message_count=0), intent=intent(state=state))), IgnoreIt)


@pytest.mark.parametrize("count", [None, 1])
@pytest.mark.parametrize("state", ["open", "discarded", "ignored", "orphan"])
def test_a_thread_with_words_in_it_is_offered_and_never_ignored_on_the_quiet(
    state: IntentState, count: int | None
) -> None:
    assert isinstance(decide(facts(known(tag=OURS, message_count=count), intent=intent(state=state))), Orphan)


def test_a_second_thread_of_one_intent_is_a_leftover() -> None:
    """SETUP-13: a start that was written twice mints two threads with one tag; only one is the session's."""
    second = intent(state="claimed", thread_id="t0")
    assert isinstance(decide(facts(known(tag=OURS), intent=second)), Orphan)
    assert isinstance(decide(facts(known(tag=OURS, message_count=0), intent=second)), IgnoreIt)


def test_a_killed_sessions_thread_comes_back_only_by_the_users_word() -> None:
    """DISC-13: its entry is gone, so the user took it out; what it holds is work."""
    once_claimed = facts(known(tag=OURS), intent=intent(state="claimed", thread_id="t1"))
    assert isinstance(decide(once_claimed), Import)
    assert isinstance(decide(msgspec.structs.replace(once_claimed, ignored=ignored())), Skip)


# --- a source that keeps no tags ---


def test_two_possible_mints_are_not_guessed() -> None:
    """DISC-10: two timed-out intents in one folder, two threads without a tag: both are orphans."""
    first, second = intent(), intent(tag="x", session_id="b", created_at_ms=1_000_500)
    thread = known(tag=None, created_at_ms=1_001_000)
    found = suspects(thread, [first, second, intent(cwd="/other"), intent(state="claimed"), intent(thread_id="t9")])
    assert found == (first, second)
    verdict = decide(facts(thread, suspects=found))
    assert verdict == Orphan(reason="untagged, and may have been minted for 'b', 'docs'; which is not guessed")


@pytest.mark.parametrize(
    ("tag", "created_at_ms"),
    [("", 1_000_000), (OURS, 1_000_000), (None, 990_000), (None, 1_000_001 + SUSPECT_LATE_MS)],
    ids=["source keeps tags", "tagged", "older than the intent", "long after it"],
)
def test_a_thread_that_cannot_be_ours_is_not_suspected(tag: str | None, created_at_ms: int) -> None:
    assert suspects(known(tag=tag, created_at_ms=created_at_ms), [intent()]) == ()


# --- what holds for all facts ---


@given(any_facts)
def test_an_ignored_thread_is_never_imported_and_an_owned_one_never_ignored(case: ThreadFacts) -> None:
    """I9."""
    verdict = decide(case)
    if case.owner is not None:
        assert isinstance(verdict, Refresh)
        assert verdict.unignore == (case.ignored is not None)
    elif case.ignored is not None:
        assert isinstance(verdict, Skip)
    if isinstance(verdict, Import):
        assert case.owner is None
        assert case.ignored is None


@given(any_facts)
def test_our_own_leftovers_are_never_imported(case: ThreadFacts) -> None:
    """I2: what we minted becomes a session by its setup, or by the user's word after it was one."""
    if isinstance(decide(case), Import):
        assert case.intent is None or case.intent.state == "claimed"
        assert not (case.intent is None and (case.thread.tag or "").startswith(f"termald:{HOST}:") and _is_tag(case))


@given(any_facts)
def test_the_verdict_is_a_function_of_the_facts_and_has_a_reason(case: ThreadFacts) -> None:
    verdict = decide(case)
    assert decide(msgspec.json.decode(msgspec.json.encode(case), type=ThreadFacts)) == verdict
    assert verdict.reason
    assert verdict.outcome in {"refresh", "skip", "child", "ignore", "orphan", "import"}


@given(any_facts)
def test_only_what_is_kept_is_remembered_and_its_class_is_the_verdicts(case: ThreadFacts) -> None:
    verdict: AnyVerdict = decide(case)
    row = as_known(case.thread, verdict)
    classes = {"refresh": "owned", "skip": "ignored", "child": "child", "ignore": "ignored", "orphan": "orphan"}
    if isinstance(verdict, Candidate):
        assert row is None
    else:
        assert row is not None
        assert row.cls == classes.get(verdict.outcome, "discovered")
        assert row.reason == verdict.reason
        assert row.stamp == case.thread.stamp


def _is_tag(case: ThreadFacts) -> bool:
    return (case.thread.tag or "").rsplit(":", 1)[-1].isdigit()
