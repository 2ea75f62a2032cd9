"""Claiming, parking, binding: one prompt, one thread, and none of either lost."""

import pytest
from msgspec.structs import replace
from support.story import Story

from state.records import CodexAttachment, IgnoredThread, KnownThread, RuntimeId, ThreadId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.limits import Limits


@pytest.fixture
def story() -> Story:
    story = Story()
    story.up()
    story.create()
    return story


def test_setup_01_fifty_prompts_during_one_setup_make_one_thread_and_run_in_order(story: Story) -> None:
    prompts = [f"p{number:02}" for number in range(50)]
    for prompt in prompts:
        story.prompt(prompt)
    assert story.count(fx.OpenFresh) == 1
    assert story.count(fx.StartTurn) == 0
    story.opened()
    for number, prompt in enumerate(prompts):
        story.run_turn(f"t{number}", prompt)
    ran = [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]
    assert ran == prompts
    assert set(story.deliveries().values()) == {"done"}
    assert story.count(fx.OpenFresh) == 1
    assert len(story.events("turn/done")) == 50


def test_setup_01_the_intent_is_synced_before_the_start_is_written(story: Story) -> None:
    story.prompt("p")
    changes, synced = story.store.commits[-1]
    assert synced
    (intent,) = changes.intents
    op = story.last(fx.OpenFresh).op
    assert isinstance(op, fx.OpenFresh)
    assert intent.tag == op.tag
    assert intent.state == "open"


def test_setup_02_replies_in_the_other_order_bind_each_its_own(story: Story) -> None:
    story.create("x")
    story.prompt("p")
    first = story.last(fx.OpenFresh)
    story.prompt("q", "x")
    second = story.last(fx.OpenFresh)
    story.opened(second, "TX")
    story.opened(first, "TS")
    assert (story.session("s").thread_id, story.session("x").thread_id) == ("TS", "TX")


def test_setup_03_a_hint_of_the_thread_binds_nothing_and_starts_no_turn(story: Story) -> None:
    story.prompt("p")
    op = story.last(fx.OpenFresh).op
    assert isinstance(op, fx.OpenFresh)
    story.do(_hint(story, "T", op.tag))
    story.prompt("q")
    assert story.session().thread_id is None
    assert story.count(fx.StartTurn) == 0
    story.opened()
    assert story.session().thread_id == "T"
    assert story.count(fx.OpenFresh) == 1
    assert story.store.ignored == {}


def test_setup_03_a_resume_in_flight_parks_though_its_thread_is_routed() -> None:
    story = Story()
    story.up()
    story.create(thread="T")
    story.prompt("p")
    story.prompt("q")
    assert story.count(fx.OpenKnown) == 1
    assert ThreadId("T") in story.state.routes  # the route stands: only the setup keeps the turn back
    assert story.count(fx.StartTurn) == 0
    story.opened()
    assert story.count(fx.StartTurn) == 1


@pytest.mark.parametrize("end", ["stop", "close", "kill"])
def test_setup_05_a_reply_after_the_session_went_on_is_disposed_of(story: Story, end: str) -> None:
    story.prompt("p")
    start = story.last(fx.OpenFresh)
    getattr(story, end)()
    before = story.session()
    story.opened(start)
    assert story.store.ignored[ThreadId("T")].reason == "minted by a dead attachment"
    assert story.session() == before
    assert story.count(fx.StartTurn) == 0
    left = [s.op.what for s in story.sent if isinstance(s.op, fx.DisposeThread)]
    assert left == ["end_tools"]
    story.done(story.last(fx.DisposeThread))
    assert isinstance(story.last(fx.DisposeThread).op, fx.DisposeThread)


def test_setup_05_control_after_a_stop_the_next_prompt_opens_exactly_one_setup(story: Story) -> None:
    story.prompt("p")
    start = story.last(fx.OpenFresh)
    story.stop()
    story.prompt("q")
    assert story.count(fx.OpenFresh) == 2
    story.opened(start, "T1")
    story.opened(story.last(fx.OpenFresh), "T2")
    assert story.session().thread_id == "T2"
    ran = [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]
    assert ran == ["p"]


def test_setup_06_a_resume_given_up_keeps_its_thread_claimed_and_not_ignored() -> None:
    story = Story()
    story.up()
    story.create(thread="T0")
    story.prompt("p")
    resume = story.last(fx.OpenKnown)
    story.stop()
    story.opened(resume, "T0")
    assert story.session().thread_id == "T0"
    assert story.store.ignored == {}
    story.prompt("q")
    assert story.count(fx.OpenKnown) == 2
    story.opened(thread="T0")
    ran = [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]
    assert ran == ["p"]


def test_setup_08_a_missing_folder_costs_its_prompt_and_frees_the_slot(story: Story) -> None:
    story.prompt("p")
    start = story.last(fx.OpenFresh)
    story.do(ins.CallUnwritten(at_ms=story.tick(), call=start.call, slug="cwd-missing", message="/work is gone"))
    assert story.stored("p").delivery == "not_delivered"
    assert story.why("p").slug == "cwd-missing"
    assert (story.session().status, story.session().attachment) == ("error", None)
    story.prompt("q")
    assert story.count(fx.OpenFresh) == 2
    story.opened()
    story.run_turn("t1", "q")
    assert story.stored("q").delivery == "done"


def test_setup_09_a_definite_refusal_ends_all_parked_prompts_in_order(story: Story) -> None:
    story.create("x")
    story.prompt("p")
    story.prompt("q")
    innocent = story.session("x")
    story.refuse(story.last(fx.OpenFresh), "other")
    assert story.deliveries() == {"p": "not_delivered", "q": "not_delivered"}
    assert [event["promptId"] for event in story.events("prompt/notDelivered")] == ["p", "q"]
    assert (story.session().status, story.session().attachment) == ("error", None)
    assert story.session("x") == innocent
    story.prompt("r")
    assert story.count(fx.OpenFresh) == 2


def test_setup_10_an_error_of_an_old_setup_leaves_the_new_one_alone(story: Story) -> None:
    story.prompt("p")
    old = story.last(fx.OpenFresh)
    story.stop()
    story.prompt("q")
    new = story.last(fx.OpenFresh)
    before = story.live()
    story.refuse(old, "other")
    assert story.live() == before
    story.opened(new)  # control: the live one's own reply still binds
    assert story.session().thread_id == "T"


def test_setup_11_a_late_reply_of_the_same_attachment_is_adopted(story: Story) -> None:
    story.prompt("p")
    start = story.last(fx.OpenFresh)
    story.unanswered(start)
    assert story.session().status == "error"
    assert story.stored("p").delivery == "queued"
    story.opened(start)
    assert story.session().thread_id == "T"
    assert story.count(fx.OpenFresh) == 1
    story.run_turn("t1", "p")
    assert story.deliveries() == {"p": "done"}


@pytest.mark.parametrize("late_first", [True, False])
def test_setup_12_a_late_reply_after_a_new_claim_is_disposed_of(story: Story, *, late_first: bool) -> None:
    story.prompt("p")
    first = story.last(fx.OpenFresh)
    story.unanswered(first)
    story.prompt("q")
    second = story.last(fx.OpenFresh)
    assert first.call != second.call
    for sent, thread in ((first, "T1"), (second, "T2"))[:: 1 if late_first else -1]:
        story.opened(sent, thread)
    assert story.session().thread_id == "T2"
    assert set(story.store.ignored) == {"T1"}
    ran = [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]
    assert ran == ["p"]


def test_setup_13_an_overload_is_sent_again_under_the_same_stamp(story: Story) -> None:
    story.prompt("p")
    start = story.last(fx.OpenFresh)
    story.refuse(start, "overloaded")
    assert story.armed["retry", str(start.call)].jitter_ms > 0
    story.fire("retry", str(start.call))
    again = story.last(fx.OpenFresh)
    assert again == start
    assert story.count(fx.OpenFresh) == 2
    story.opened(again)
    assert story.session().thread_id == "T"


def test_setup_13_a_reply_without_a_thread_holds_and_its_tag_is_never_imported(story: Story) -> None:
    story.prompt("p")
    start = story.last(fx.OpenFresh)
    assert isinstance(start.op, fx.OpenFresh)
    story.do(ins.ReplyMalformed(at_ms=story.tick(), link=start.link, call=start.call, reason="no thread"))
    assert story.stored("p").delivery == "queued"
    story.prompt("q")
    story.opened(story.last(fx.OpenFresh), "T2")
    story.do(_hint(story, "T1", start.op.tag))
    assert set(story.store.ignored) == {"T1"}


def test_setup_14_a_failed_commit_shows_nothing_and_is_done_once_when_asked_again(story: Story) -> None:
    story.store.fail_next = 1
    with pytest.raises(Exception, match="no space"):
        story.prompt("p")
    assert story.count(fx.OpenFresh) == 0
    assert story.answers.keys() == {1}
    story.prompt("p")
    assert story.count(fx.OpenFresh) == 1
    assert [event["seq"] for event in story.events()] == list(range(1, len(story.events()) + 1))


def test_setup_15_a_binding_that_cannot_be_committed_is_decided_again(story: Story) -> None:
    story.prompt("p")
    reply = story.opened_input(story.last(fx.OpenFresh))
    story.store.fail_next = 1
    with pytest.raises(Exception, match="no space"):
        story.do(reply)
    assert story.count(fx.StartTurn) == 0
    story.do(reply)
    assert story.session().thread_id == "T"
    assert story.count(fx.StartTurn) == 1


def test_setup_17_a_reply_of_an_old_attachment_leaves_the_bound_thread_alone(story: Story) -> None:
    story.prompt("p")
    old = story.last(fx.OpenFresh)
    story.stop()
    story.prompt("q")
    story.opened(story.last(fx.OpenFresh), "TB")
    story.accepted("t1")
    before = story.live()
    story.opened(old, "TA")
    assert story.live() == before
    assert set(story.store.ignored) == {"TA"}
    story.turn_started("t1", "TB")  # control: the live thread's own news still counts
    assert story.live().turn is not None


def test_setup_19_generations_only_grow_across_attaches_and_reboots(story: Story) -> None:
    seen = []
    for number in range(3):
        story.prompt(f"p{number}")
        op = next(s for s in reversed(story.sent) if isinstance(s.op, fx.OpenFresh | fx.OpenKnown)).op
        assert isinstance(op, fx.SessionOp)
        seen.append(op.attachment.generation)
        story.reboot()
        story.up(f"R{number + 2}")
    assert seen == sorted(set(seen))


def test_setup_20_an_empty_thread_that_is_gone_is_replaced_without_a_word_of_loss(story: Story) -> None:
    story.prompt("p")
    story.opened(thread="T0")
    story.interrupt()
    story.refuse(story.last(fx.StartTurn), "other")
    story.stop()
    for call in [s for s in story.sent if isinstance(s.op, fx.EndTools)]:
        story.done(call)
    story.prompt("q")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert set(story.store.ignored) == {"T0"}
    assert story.count(fx.OpenFresh) == 2
    story.opened(thread="T1")
    assert story.session().thread_id == "T1"
    assert story.events("session/resumeLost") == []


def test_setup_21_a_thread_with_history_that_is_gone_is_a_visible_loss() -> None:
    story = Story()
    story.up()
    story.create(thread="T0")
    story.prompt("p")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    story.prompt("q")
    assert story.session().resume_lost
    assert (story.session().status, story.session().attachment) == ("error", None)
    assert story.session().thread_id == "T0"
    assert story.deliveries() == {"p": "queued", "q": "queued"}
    assert (story.count(fx.OpenFresh), story.count(fx.OpenKnown)) == (0, 1)
    story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=story.session().id, fresh=True))
    story.opened(story.last(fx.OpenFresh), "T1")
    assert story.session().thread_id == "T1"
    assert story.store.ignored == {}


def test_setup_21_choice_retry_resumes_again() -> None:
    story = Story()
    story.up()
    story.create(thread="T0")
    story.prompt("p")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=story.session().id))
    assert story.count(fx.OpenKnown) == 2
    story.opened(thread="T0")
    assert story.count(fx.StartTurn) == 1


def test_setup_21_fresh_by_policy() -> None:
    story = Story()
    story.up()
    story.create(thread="T0", on_resume_lost="fresh")
    story.prompt("p")
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    assert story.count(fx.OpenFresh) == 1
    assert story.store.ignored == {}


@pytest.mark.parametrize(
    ("refusal", "slug"),
    [
        ("active_writer", "active-elsewhere"),
        ("archived", "thread-archived"),
        ("provider_missing", "provider-missing"),
        ("other", "setup-refused"),
    ],
)
def test_setup_22_other_refusals_of_a_resume_keep_claim_and_prompts(refusal: str, slug: str) -> None:
    story = Story()
    story.up()
    story.create(thread="T0")
    story.prompt("p")
    story.refuse(story.last(fx.OpenKnown), refusal)
    error = story.session().last_error
    assert error is not None
    assert error.slug == slug
    assert story.session().thread_id == "T0"
    assert story.stored("p").delivery == "queued"
    assert story.count(fx.OpenFresh) == 0
    story.prompt("q")
    story.opened(thread="T0")
    ran = [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]
    assert ran == ["p"]


def test_setup_24_one_thread_has_one_owner(story: Story) -> None:
    story.create("a", thread="T0")
    ticket = story.create("b", thread="T0")
    assert story.refusal(ticket) == "thread-owned"
    assert "b" not in story.store.sessions


def test_setup_24_a_claim_takes_its_thread_out_of_the_ignore_set(story: Story) -> None:
    entry = IgnoredThread(thread_id=ThreadId("T0"), reason="noise", at_ms=1)
    story.ask(lambda t, at: ins.IgnoreThread(ticket=t, at_ms=at, entry=entry))
    story.create("a", thread="T0")
    assert story.store.ignored == {}
    assert story.kinds("a")[:1] == ["thread/unignored"]


def test_setup_25_the_same_key_gives_the_same_answer_also_after_a_reboot(story: Story) -> None:
    key = ins.Idempotency(key="k", fingerprint="f")

    def send(key: ins.Idempotency, text: str = "p") -> ins.Ticket:
        new = story.new_prompt(text)
        return story.ask(
            lambda t, at: ins.SubmitPrompt(ticket=t, at_ms=at, session=story.session().id, prompt=new, idempotency=key)
        )

    first = send(key)
    second = send(key, "another id")
    story.reboot()
    third = send(key, "yet another")
    assert story.answers[first] == story.answers[second] == story.answers[third]
    assert story.deliveries().keys() == {"p"}
    assert story.refusal(send(replace(key, fingerprint="g"))) == "idempotency-mismatch"


def test_setup_28_what_comes_before_the_resume_is_answered_is_kept_in_order() -> None:
    story = Story()
    story.up()
    story.create(thread="T")
    story.prompt("p")
    story.turn_started("f")
    story.item_started("f", "i1")
    for number in range(200):
        story.delta("f", "i1", str(number))
    assert story.events("item/delta") == []
    story.opened(status="active")
    assert [event["delta"] for event in story.events("item/delta")] == [str(number) for number in range(200)]
    assert story.count(fx.StartTurn) == 0  # the turn that runs is somebody's: ours waits


def test_setup_29_setups_are_paced_and_a_stuck_one_gives_its_place_back() -> None:
    story = Story(Limits(setups_max=2))
    story.up()
    for name in "abc":
        story.create(name)
        story.prompt(f"p{name}", name)
    assert story.count(fx.OpenFresh) == 2
    stuck = story.sent[0]
    story.unanswered(stuck)
    assert story.count(fx.OpenFresh) == 3
    story.opened(story.sent[1], "TB")
    assert story.session("b").thread_id == "TB"


def test_a_thread_that_another_session_owns_is_not_bound(story: Story) -> None:
    story.create("x", thread="T0")
    story.prompt("p")
    story.opened(thread="T0")
    assert story.session("x").thread_id == "T0"
    assert story.session("s").thread_id is None
    assert story.why("p").slug == "thread-owned"


def test_prompts_wait_while_there_is_no_process() -> None:
    story = Story()
    story.create()
    story.prompt("p")
    assert story.sent == []
    assert story.stored("p").delivery == "queued"
    story.up()
    story.opened()
    assert story.session().attachment == CodexAttachment(runtime_id=RuntimeId("R1"), generation=1)
    assert story.count(fx.StartTurn) == 1


def _hint(story: Story, thread: str, tag: str) -> ins.ThreadStarted:

    known = KnownThread(thread_id=ThreadId(thread), home="", cls="discovered", reason="told by thread/started", tag=tag)
    return ins.ThreadStarted(
        at_ms=story.tick(),
        link=story.link,
        thread=ThreadId(thread),
        tag=tag,
        ephemeral=False,
        parent=None,
        known=known,
    )
