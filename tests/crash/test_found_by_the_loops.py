"""What the crash loops have found, each as the shortest story that shows it.

The loops meet an order of events by chance; here it is said, so that it is met at every run.
"""

from random import Random

import pytest
import trio
from support.story import Story
from trio.testing import MockClock

from state.errors import StoreFull
from state.records import Changes, Host, LinkId, Loaded, RuntimeId, Seq, SessionId, Wanted
from termald.core import effects as fx
from termald.core.inputs import LinkUp, RestartRuntime
from termald.core.state import State
from termald.timers import Timers
from termald.writer import RETRY_LAST_S, Writer


@pytest.fixture
def story() -> Story:
    """A session bound to T whose turn t1 runs."""
    story = Story()
    story.up()
    story.create()
    story.prompt("p1")
    story.opened()
    story.accepted("t1")
    story.turn_started("t1")
    story.user_item("t1", "p1")
    return story


def test_a_stop_that_was_committed_before_the_crash_ends_the_turn_after_it(story: Story) -> None:
    story.stop()
    story.reboot(alive="R1")
    again = story.stop()  # its client heard nothing and asks once more
    story.up(connection=2, adopted=True)
    interrupts = story.count(fx.Interrupt)
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    assert story.count(fx.Interrupt) == interrupts + 1
    story.completed_and_read("t1", "p1", status="interrupted")
    story.done(story.last(fx.EndTools))
    assert isinstance(story.answers[again], fx.SessionAnswer)
    assert (story.session().status, story.session().ending) == ("detached", None)


def test_a_stop_while_the_session_is_attached_anew_still_interrupts_its_turn(story: Story) -> None:
    story.reboot(alive="R1")
    story.up(connection=2, adopted=True)
    ticket = story.stop()
    story.opened(story.last(fx.OpenKnown), status="active")
    story.turns_read(story.seen("t1", "inProgress", "p1"))
    story.completed_and_read("t1", "p1", status="interrupted")
    story.done(story.last(fx.EndTools))
    assert isinstance(story.answers[ticket], fx.SessionAnswer)
    assert story.count(fx.Interrupt) == 1


def test_a_stop_from_before_the_crash_has_its_deadline_after_it(story: Story) -> None:
    story.stop()
    story.reboot(alive=RuntimeId("R1"))
    story.up(connection=2, adopted=True)
    story.fire("ending", "s")  # Codex answers the resume too late
    assert (story.session().status, story.session().ending) == ("detached", None)
    assert [event["state"] for event in story.events("turn/done")] == ["cancelled"]


async def test_who_asks_while_codex_cannot_be_written_down_is_told_at_once(autojump_clock: MockClock) -> None:
    store, state = FullStore(), State(Host(id="h", epoch=1), Seq(1))
    writer = Writer(
        state,
        store,
        publish=lambda events: None,
        send=lambda frame: None,
        restart=lambda: None,
        new_session_id=lambda: SessionId("new"),
        timers=lambda fire: Timers(fire, lambda: 7, Random(1)),
        now_ms=lambda: 7,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        # Codex says something, and it cannot be committed: it is kept, and tried again and again.
        writer.put(LinkUp(at_ms=7, link=LinkId(runtime_id=RuntimeId("R1"), connection=1), adopted=False))
        await store.refused.wait()
        with trio.fail_after(2 * RETRY_LAST_S):
            answer = await writer.ask(lambda ticket, at_ms: RestartRuntime(ticket=ticket, at_ms=at_ms))
        assert isinstance(answer, fx.Refused)
        assert answer.problem.slug == "store-unavailable"
        store.full = False
        await writer.settled()
        assert state.link.value is not None
        nursery.cancel_scope.cancel()


class FullStore:
    """A store that refuses until somebody makes room."""

    def __init__(self) -> None:
        self.full = True
        self.refused = trio.Event()

    async def load(self, wanted: Wanted) -> Loaded:
        await trio.lowlevel.checkpoint()
        return Loaded()

    async def commit(self, changes: Changes, *, sync: bool) -> None:
        await trio.lowlevel.checkpoint()
        if self.full:
            self.refused.set()
            raise StoreFull("writing: disk full")
