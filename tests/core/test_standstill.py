"""A queue stands still on an exhausted quota or a lost login: it keeps its prompts, says why, and goes on."""

import pytest
from msgspec.structs import replace
from support.story import Story, running_story

from state.records import PromptId, SessionId, ThreadId, TurnId
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.log import rfc3339

QUOTA = ins.TurnFailure(message="You have hit your usage limit.", variant="usageLimitExceeded")
LOGIN = ins.TurnFailure(message="not you", http_status=401)
BUSY = ins.TurnFailure(message="busy", variant="serverOverloaded")


@pytest.fixture
def story() -> Story:
    """A session whose turn t1 runs, with two prompts behind it."""
    story = running_story()
    story.prompt("p2")
    story.prompt("p3")
    return story


def fail(story: Story, failure: ins.TurnFailure, turn: str = "t1") -> None:
    story.completed(turn, "failed", failure=failure)


def limits(story: Story, resets_at_ms: int, used_percent: int = 100) -> None:
    window = ins.LimitWindow(used_percent=used_percent, resets_at_ms=resets_at_ms)
    at, method = story.tick(), "account/rateLimits/updated"
    story.do(ins.RawNotice(at_ms=at, link=story.link, method=method, params_json="{}", limits=(window,)))


def retry(story: Story) -> ins.Ticket:
    return story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=SessionId("s")))


def take_back(story: Story, prompt: PromptId) -> None:
    name = SessionId("s")
    story.ask(lambda t, at: ins.TakeBackPrompt(ticket=t, at_ms=at, session=name, prompt=prompt))


def ran(story: Story) -> list[str]:
    return [sent.op.prompt.id for sent in story.sent if isinstance(sent.op, fx.StartTurn)]


@pytest.mark.parametrize(("failure", "slug"), [(QUOTA, "quota-exhausted"), (LOGIN, "auth-required")])
def test_what_waits_is_kept_and_the_session_says_why(story: Story, failure: ins.TurnFailure, slug: str) -> None:
    fail(story, failure)
    assert ran(story) == ["p1"]
    assert story.deliveries() == {"p1": "failed", "p2": "queued", "p3": "queued"}
    why = story.session().last_error
    assert why is not None
    assert (why.slug, story.session().paused, story.session().status) == (slug, True, "error")
    (event,) = story.events("session/error")
    assert event["error"]["slug"] == slug


def test_another_failure_holds_nothing_up(story: Story) -> None:
    fail(story, BUSY)
    assert ran(story) == ["p1", "p2"]


def test_a_retry_says_too_when_the_limit_ends(story: Story) -> None:
    busy = ins.TurnFailure(message="Reconnecting... 1/2", details="Rate limit reached. Please try again in 2s.")
    at, thread, turn = story.tick(), ThreadId("T"), TurnId("t1")
    story.do(ins.TurnErrored(at_ms=at, link=story.link, thread=thread, turn=turn, failure=busy, will_retry=True))
    (event,) = story.events("retrying")
    assert event["reason"]["providerError"]["type"] == "rate_limit"
    assert event["reason"]["providerError"]["resetAt"] == rfc3339(at + 2_000)


def test_it_goes_on_at_the_reset(story: Story) -> None:
    until = story.now + 3_600_000
    limits(story, until)
    fail(story, QUOTA)
    why = story.session().last_error
    assert why is not None
    assert why.reset_at_ms == until
    (done,) = story.events("turn/done")
    (error,) = story.events("session/error")
    assert done["providerError"]["resetAt"] == error["error"]["resetAt"]
    story.fire("limit", "s")
    assert story.now >= until
    assert ran(story) == ["p1", "p2"]
    story.run_turn("t2", "p2")
    story.run_turn("t3", "p3")
    assert story.session().last_error is None


def test_it_goes_on_at_the_reset_after_a_restart_of_the_daemon(story: Story) -> None:
    until = story.now + 3_600_000
    limits(story, until)
    fail(story, QUOTA)
    story.reboot()
    story.up("R2")
    assert ran(story) == ["p1"]
    story.fire("limit", "s")
    assert story.now >= until
    assert story.count(fx.OpenKnown) == 1


def test_a_lost_link_changes_nothing_about_it(story: Story) -> None:
    limits(story, story.now + 3_600_000)
    fail(story, QUOTA)
    story.lost()
    story.up(connection=2, adopted=True)
    if story.count(fx.OpenKnown):
        story.opened(story.last(fx.OpenKnown))
    why = story.session().last_error
    assert why is not None
    assert (why.slug, story.session().paused) == ("quota-exhausted", True)
    assert ran(story) == ["p1"]
    story.fire("limit", "s")  # control
    assert ran(story) == ["p1", "p2"]


@pytest.mark.parametrize("how", ["retry", "prompt"])
def test_it_goes_on_at_request_and_the_reset_changes_nothing_then(story: Story, how: str) -> None:
    limits(story, story.now + 3_600_000)
    fail(story, QUOTA)
    if how == "retry":
        retry(story)
    else:
        story.prompt("p4")
    assert ran(story) == ["p1", "p2"]
    story.run_turn("t2", "p2")
    story.stop()
    before = story.session()
    assert before.paused
    story.fire("limit", "s")
    assert story.session() == before


def test_an_older_reset_does_not_end_a_newer_wait(story: Story) -> None:
    limits(story, story.now + 1_000)
    fail(story, QUOTA)
    older = story.timers["limit", "s"]
    retry(story)
    story.accepted("t2")
    story.turn_started("t2")
    story.user_item("t2", "p2")
    limits(story, story.now + 9_000_000)
    fail(story, QUOTA, "t2")
    story.do(older)
    assert ran(story) == ["p1", "p2"]
    story.fire("limit", "s")  # control
    assert ran(story) == ["p1", "p2", "p3"]


def test_with_nothing_behind_it_there_is_nothing_to_hold(story: Story) -> None:
    for prompt in story.live().queue:
        take_back(story, prompt)
    fail(story, LOGIN)
    why = story.session().last_error
    assert why is not None
    assert (why.slug, story.session().paused, story.session().status) == ("auth-required", False, "ready")
    story.prompt("p4")
    assert ran(story) == ["p1", "p4"]


@pytest.mark.parametrize("end", ["stop", "close", "kill"])
def test_a_reset_brings_nobody_back(story: Story, end: str) -> None:
    limits(story, story.now + 3_600_000)
    fail(story, QUOTA)
    timer = story.timers["limit", "s"]
    getattr(story, end)()
    if end != "kill":
        story.done(story.last(fx.EndTools))
    before = story.store.sessions[SessionId("s")]
    sent = len(story.sent)
    story.do(replace(timer, at_ms=story.now + 4_000_000))
    assert story.store.sessions[SessionId("s")] == before
    assert len(story.sent) == sent
    assert ran(story) == ["p1"]
