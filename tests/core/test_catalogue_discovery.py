"""DISC: pages of scans and notices beside everything else, decided on the state of now."""

import pytest
from msgspec.structs import replace
from support.story import Story

from state.records import IgnoredThread, KnownThread, SessionId, ThreadId
from termald.core import effects as fx
from termald.core import inputs as ins


@pytest.fixture
def story() -> Story:
    story = Story()
    story.up()
    story.create()
    return story


def known(thread: str, tag: str = "", count: int | None = 2) -> KnownThread:
    return KnownThread(
        thread_id=ThreadId(thread),
        home="/home",
        cls="discovered",
        reason="seen",
        cwd="/work",
        tag=tag,
        rollout_path=f"/home/{thread}" if count else None,
        message_count=count,
        created_at_ms=1,
    )


def page(story: Story, *threads: KnownThread) -> ins.ThreadsSeen:
    return ins.ThreadsSeen(at_ms=story.tick(), home="/home", threads=threads)


def told(story: Story, thread: str, tag: str | None = None) -> ins.ThreadStarted:
    return ins.ThreadStarted(
        at_ms=story.tick(),
        link=story.link,
        thread=ThreadId(thread),
        tag=tag,
        ephemeral=False,
        parent=None,
        known=replace(known(thread, tag or "", None), home=""),
    )


def ignore(story: Story, thread: str) -> ins.Ticket:
    entry = IgnoredThread(thread_id=ThreadId(thread), reason="noise", at_ms=1)
    return story.ask(lambda t, at: ins.IgnoreThread(ticket=t, at_ms=at, entry=entry))


def unignore(story: Story, thread: str) -> ins.Ticket:
    return story.ask(lambda t, at: ins.UnignoreThread(ticket=t, at_ms=at, thread=ThreadId(thread)))


def found(story: Story) -> list[str | None]:
    return [record.thread_id for record in story.store.live() if record.origin == "discovered"]


def bound(story: Story) -> None:
    story.prompt("p1")
    story.opened()
    story.run_turn("t1", "p1")


def test_disc_01_an_owned_thread_is_not_ignored_by_word(story: Story) -> None:
    bound(story)
    assert story.refusal(ignore(story, "T")) == "thread-owned"
    assert story.store.ignored == {}


def test_disc_01_a_thread_that_was_ignored_before_its_answer_is_its_sessions(story: Story) -> None:
    story.prompt("p1")
    ignore(story, "T")
    story.opened()
    assert story.session().thread_id == "T"
    assert story.store.ignored == {}


def test_disc_01_a_scan_of_an_owned_thread_makes_no_second_session(story: Story) -> None:
    bound(story)
    story.do(page(story, known("T")))
    story.do(page(story, known("T")))
    assert found(story) == []
    assert story.store.threads[ThreadId("T")].cls == "owned"


def test_disc_02_scans_that_lack_an_ignored_thread_keep_its_entry(story: Story) -> None:
    ignore(story, "T0")
    story.do(page(story, known("T1")))
    story.do(page(story))
    assert "T0" in story.store.ignored
    story.do(page(story, known("T0")))
    assert found(story) == ["T1"]


def test_disc_03_a_scan_of_nothing_drops_nothing(story: Story) -> None:
    bound(story)
    ignore(story, "T0")
    story.do(page(story))
    assert story.session().thread_id == "T"
    assert "T0" in story.store.ignored
    assert found(story) == []


@pytest.mark.parametrize("together", [True, False])
def test_disc_05_a_page_that_saw_the_thread_before_a_kill_brings_nothing_back(story: Story, *, together: bool) -> None:
    bound(story)
    seen = page(story, known("T"))
    kill = ins.KillSession(ticket=ins.Ticket(90), at_ms=story.tick(), session=story.session().id)
    for batch in [(kill, seen)] if together else [(kill,), (seen,)]:
        story.do(*batch)
    assert story.store.ignored.keys() == {"T"}
    assert found(story) == []


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_disc_06_a_scan_sees_the_thread_before_the_answer_to_its_setup(
    story: Story, *, tagged: bool, together: bool
) -> None:
    """Also of a source that keeps no tags: it may be ours, and is left to the answer."""
    story.prompt("p1")
    start = story.last(fx.OpenFresh)
    assert isinstance(start.op, fx.OpenFresh)
    created = story.store.intents[start.op.tag].created_at_ms
    thread = replace(known("T", start.op.tag if tagged else ""), created_at_ms=created)
    seen = page(story, thread if tagged else replace(thread, tag=None))
    reply = story.opened_input(start)
    for batch in [(seen, reply)] if together else [(seen,), (reply,)]:
        story.do(*batch)
    assert found(story) == []
    assert story.session().thread_id == "T"
    assert story.store.ignored == {}


@pytest.mark.parametrize("notice_first", [True, False])
def test_disc_07_a_notice_and_a_scan_of_somebody_elses_thread_make_one_session(
    story: Story, *, notice_first: bool
) -> None:
    inputs = [told(story, "T9"), page(story, known("T9"))]
    for happened in inputs if notice_first else reversed(inputs):
        story.do(happened)
    assert found(story) == ["T9"]


def test_disc_08_a_thread_that_was_only_told_of_is_no_session(story: Story) -> None:
    story.do(told(story, "T9"))
    story.do(page(story, known("T9", count=0)))
    assert found(story) == []
    assert "T9" not in story.store.ignored


def test_disc_09_our_tag_without_a_session_is_an_orphan_at_each_scan_until_its_user_says(story: Story) -> None:
    thread = known("T9", "termald:host:gone:1")
    for _ in range(2):
        story.do(page(story, thread))
        assert story.store.threads[ThreadId("T9")].cls == "orphan"
        assert found(story) == []
    story.create("claimed", thread="T9")
    story.do(page(story, thread))
    assert story.store.threads[ThreadId("T9")].cls == "owned"


def test_disc_10_two_possible_mints_are_both_orphans(story: Story) -> None:
    """Two starts timed out in one folder, and the source keeps no tags: which is whose is not guessed."""
    story.create("x")
    story.prompt("p")
    story.prompt("q", "x")
    threads = []
    for number, sent in enumerate([sent for sent in story.sent if isinstance(sent.op, fx.OpenFresh)]):
        assert isinstance(sent.op, fx.OpenFresh)
        story.unanswered(sent)
        created = story.store.intents[sent.op.tag].created_at_ms
        threads.append(replace(known(f"T{number}"), tag=None, created_at_ms=created))
    story.do(page(story, *threads))
    assert {story.store.threads[thread.thread_id].cls for thread in threads} == {"orphan"}
    assert found(story) == []


def test_disc_12_three_scans_and_half_of_one_make_one_session_per_thread_and_write_nothing(story: Story) -> None:
    threads = [known(f"T{number}") for number in range(4)]
    story.do(page(story, *threads[:2]))
    for _ in range(3):
        story.do(page(story, *threads))
    assert sorted(map(str, found(story))) == ["T0", "T1", "T2", "T3"]
    assert story.sent == []


def test_disc_13_what_is_ignored_no_more_is_imported_once_and_then_ignored_for_good(story: Story) -> None:
    ignore(story, "T9")
    story.do(page(story, known("T9")))
    unignore(story, "T9")
    story.do(page(story, known("T9")))
    story.do(page(story, known("T9")))
    assert found(story) == ["T9"]
    (imported,) = [record.id for record in story.store.live() if record.origin == "discovered"]
    story.kill(imported)
    story.do(page(story, known("T9")))
    assert found(story) == []
    assert "T9" in story.store.ignored


@pytest.mark.parametrize(
    ("refusal", "slug"),
    [
        ("no_rollout", "resume-lost"),
        ("active_writer", "active-elsewhere"),
        ("archived", "thread-archived"),
        ("provider_missing", "provider-missing"),
        ("other", "setup-refused"),
    ],
)
def test_disc_14_a_discovered_sessions_first_prompts_make_one_resume_and_are_held_if_it_fails(
    story: Story, refusal: str, slug: str
) -> None:
    story.do(page(story, known("T9")))
    (session,) = [record.id for record in story.store.live() if record.origin == "discovered"]
    story.prompt("p1", session)
    story.prompt("p2", session)
    assert story.count(fx.OpenKnown) == 1
    story.refuse(story.last(fx.OpenKnown), refusal)
    error = story.session(session).last_error
    assert error is not None
    assert error.slug == slug
    assert story.session(session).thread_id == "T9"
    assert story.deliveries() == {"p1": "queued", "p2": "queued"}
    assert (story.count(fx.OpenKnown), story.count(fx.OpenFresh)) == (1, 0)


def test_setup_24_a_creation_and_an_import_of_one_thread_in_one_batch_leave_one_owner(story: Story) -> None:
    for number, import_first in enumerate((True, False)):
        thread = ThreadId(f"T{number}")
        create = ins.CreateSession(
            ticket=ins.Ticket(90 + number),
            at_ms=story.tick(),
            session=SessionId(f"c{number}"),
            settings=ins.SessionSettings(cwd="/work"),
            thread=thread,
        )
        seen = page(story, known(thread))
        story.do(*((seen, create) if import_first else (create, seen)))
        owners = [record.id for record in story.store.live() if record.thread_id == thread]
        assert len(owners) == 1
        refused = isinstance(story.answers[ins.Ticket(90 + number)], fx.Refused)
        assert refused == import_first
