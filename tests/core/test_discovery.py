"""What a scan or a notice tells of threads reaches their sessions: once, on the state of now, and never the other way
round."""

from typing import Any

import pytest
from msgspec.structs import replace
from support.story import Story

from state.records import KnownThread, SessionId, SessionRecord, ThreadId, Tokens, TurnId
from state.views import Standing
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.intake import LAST_SEEN_MS, is_settled

T = ThreadId("T")


def known(thread: str = "T", **fields: Any) -> KnownThread:
    """A thread of somebody's, with two messages."""
    return KnownThread(
        **{
            "thread_id": ThreadId(thread),
            "home": "/h",
            "cls": "discovered",
            "reason": "seen",
            "title": "as found",
            "source": "cli",
            "tag": "",
            "rollout_path": f"/h/sessions/{thread}.jsonl",
            "message_count": 2,
            "created_at_ms": 5,
            "updated_at_ms": 6,
            "stamp": "s1",
            **fields,
        }
    )


def seen(story: Story, *threads: KnownThread, foreign: bool = False) -> None:
    story.do(ins.ThreadsSeen(at_ms=story.tick(), home=threads[0].home, threads=threads, foreign=foreign))


def told(story: Story, notice: type[ins.ThreadNotice], thread: str = "T", **fields: Any) -> None:
    story.do(notice(at_ms=story.tick(), link=story.link, thread=ThreadId(thread), **fields))


def again(story: Story, *, foreign: bool = False) -> bool:
    """Whether a scan that finds T unchanged tells it all the same."""
    known = story.store.threads[T]
    owner = next((record for record in story.store.live() if record.thread_id == T), None)
    entry = story.store.ignored.get(T)
    standing = Standing(
        thread_id=T,
        stamp=known.stamp,
        cls=known.cls,
        owner=None if owner is None else owner.id,
        owner_home=None if owner is None else owner.home,
        ignored=entry is not None,
        last_seen_ms=None if entry is None else entry.last_seen_ms,
    )
    return not is_settled(standing, foreign=foreign, at_ms=story.now)


@pytest.fixture
def story() -> Story:
    """A session was imported for T; it is not in memory."""
    story = Story()
    story.up()
    seen(story, known())
    assert not story.state.sessions
    return story


def only(story: Story) -> SessionRecord:
    (record,) = story.store.live()
    return record


# --- told elsewhere ---


def test_a_rename_an_archive_and_an_unarchive_made_elsewhere_reach_a_session_that_sleeps(story: Story) -> None:
    told(story, ins.ThreadRenamed, name="by another front-end")
    told(story, ins.ThreadGone, how="archived")
    assert (only(story).title, only(story).archived) == ("by another front-end", True)
    told(story, ins.ThreadUnarchived)
    assert (only(story).archived, only(story).status) == (False, "detached")
    changed = [event["changed"] for event in story.events("session/updated")]
    assert changed == [["title"], ["archived"], ["archived"]]


def test_a_notice_that_says_what_is_known_writes_nothing(story: Story) -> None:
    told(story, ins.ThreadRenamed, name="as found")
    told(story, ins.ThreadUnarchived)
    assert story.events("session/updated") == []
    told(story, ins.ThreadRenamed, name="new")  # control
    assert len(story.events("session/updated")) == 1


def test_a_notice_about_nobodys_thread_makes_no_session(story: Story) -> None:
    told(story, ins.ThreadRenamed, thread="X", name="n")
    told(story, ins.ThreadGone, thread="X", how="deleted")
    assert [record.thread_id for record in story.store.live()] == [T]


def test_a_thread_deleted_elsewhere_is_a_visible_loss_and_never_a_fresh_thread_on_the_quiet(story: Story) -> None:
    told(story, ins.ThreadGone, how="deleted")
    record = only(story)
    assert (record.status, record.resume_lost, record.thread_id) == ("error", True, T)
    assert record.last_error is not None and record.last_error.slug == "resume-lost"
    assert [event["choices"] for event in story.events("session/resumeLost")] == [["retry", "fresh", "close"]]
    written = len(story.sent)
    story.prompt("p", session=record.id)
    assert len(story.sent) == written, "a lost thread needs a word of its own"


def test_an_archived_thread_that_is_bound_says_so(story: Story) -> None:
    name = only(story).id
    story.prompt("p", session=name)
    story.opened()
    story.run_turn("t", "p")
    told(story, ins.ThreadGone, how="archived")
    assert story.session(name).archived
    told(story, ins.ThreadUnarchived)
    assert not story.session(name).archived


# --- scans ---


def test_a_scan_brings_title_count_and_archive_up_to_date_and_doubles_nothing(story: Story) -> None:
    seen(story, known(title="renamed", message_count=4, archived=True, stamp="s2", updated_at_ms=9_000_000))
    record = only(story)
    assert (record.title, record.message_count, record.archived, record.updated_at_ms) == (
        "renamed",
        4,
        True,
        9_000_000,
    )
    seen(story, known(title="renamed", message_count=4, archived=True, stamp="s2", updated_at_ms=9_000_000))
    assert len(story.events("session/updated")) == 1
    assert len(story.events("session/created")) == 1


def test_a_rollout_that_is_gone_is_the_sessions_error_and_passes_with_it(story: Story) -> None:
    seen(story, known(rollout_path=None, message_count=None, stamp="gone"), known("U"))
    record = next(one for one in story.store.live() if one.thread_id == T)
    assert record.last_error is not None
    assert (record.status, record.last_error.slug, record.message_count) == ("error", "rollout-missing", 2)
    other = next(one for one in story.store.live() if one.thread_id == "U")
    assert (other.status, other.last_error) == ("detached", None)
    seen(story, known(stamp="s3"))
    record = next(one for one in story.store.live() if one.thread_id == T)
    assert (record.status, record.last_error) == ("detached", None)


def test_an_ignored_thread_that_is_seen_has_its_time_renewed_once_a_day_and_nothing_else(story: Story) -> None:
    story.kill(only(story).id)
    seen(story, known(stamp="s2"))
    entry = story.store.ignored[T]
    assert (entry.reason, entry.last_seen_ms) == ("killed", story.now)
    assert not again(story)
    story.now += LAST_SEEN_MS + 1
    assert again(story)
    assert list(story.store.live()) == []


def test_what_is_not_any_more_what_was_decided_is_told_again_though_unchanged(story: Story) -> None:
    assert not again(story)
    story.kill(only(story).id)
    assert again(story), "killed: it is to become ignored"
    seen(story, known())
    assert not again(story)
    story.ask(lambda ticket, at: ins.UnignoreThread(ticket=ticket, at_ms=at, thread=T))
    assert again(story), "un-ignored"
    seen(story, known())
    assert not again(story)
    assert [record.thread_id for record in story.store.live()] == [T]


# --- several homes ---


def test_a_session_of_a_foreign_home_is_shown_and_cannot_be_prompted() -> None:
    story = Story()
    story.up()
    seen(story, known(home="/other"), foreign=True)
    record = only(story)
    assert record.home == "/other"
    assert story.refusal(story.prompt("p", session=record.id)) == "foreign-home"
    assert story.sent == []
    assert not again(story, foreign=True)
    # The other home becomes the one that Codex runs in: an unchanged thread is told again, and can be prompted.
    assert again(story, foreign=False)
    seen(story, known(home="/other"))
    assert only(story).home is None
    ticket = story.prompt("p", session=record.id)
    assert isinstance(story.answers[ticket], fx.PromptAnswer)


def test_a_copy_in_a_foreign_home_changes_nothing_of_the_thread_here(story: Story) -> None:
    before = only(story)
    seen(story, known(home="/other", title="the copy", message_count=9, stamp="c"), foreign=True)
    assert only(story) == before
    assert story.store.threads[T].home == "/h"


def test_an_open_page_of_before_a_kill_brings_nothing_back(story: Story) -> None:
    """DISC-05."""
    story.kill(only(story).id)
    seen(story, replace(known(), stamp="s9", title="later"))
    assert list(story.store.live()) == []
    assert story.store.ignored[T].reason == "killed"
    assert SessionId("found-2") not in story.store.sessions


def test_the_usage_that_a_resume_repeats_is_no_sign_of_a_turn(story: Story) -> None:
    """Codex tells the last turn's usage right after a resume; of a found thread that turn is unknown here."""
    name = only(story).id
    story.prompt("p", session=name)
    story.opened()
    usage = Tokens(input=1, output=1, total=2)
    told(story, ins.TurnUsage, turn=TurnId("of-yore"), last=usage, total=usage)
    story.run_turn("t", "p")
    assert [(event["turnId"], event["state"]) for event in story.events("turn/done")] == [("t", "normal")]
    assert [event["turnId"] for event in story.events("turn/started")] == ["t"]
