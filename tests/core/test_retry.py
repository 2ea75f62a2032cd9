"""A retry is the user's word that a held prompt may go out again; it is no evidence of what became of one."""

from support.story import Story

from termald.core import effects as fx
from termald.core import inputs as ins


def test_turn_05_a_retry_does_not_send_again_what_a_living_process_may_hold() -> None:
    """Its turn was acknowledged and is not active yet; sent again, it would run twice. The control, in which it is
    nowhere and held, is `test_turn_05_held_by_policy`."""
    story = Story()
    story.up()
    story.create(on_recovery="hold")
    story.prompt("p1")
    story.opened()
    story.lost()
    story.up(connection=2, adopted=True)
    story.refuse(story.last(fx.OpenKnown), "no_rollout")
    story.ask(lambda t, at: ins.RetrySession(ticket=t, at_ms=at, session=story.session().id))
    assert story.stored("p1").delivery == "sent"
    story.opened(story.last(fx.OpenKnown))
    assert story.count(fx.StartTurn) == 1
    story.turns_read(story.seen("t1", "completed", "p1"))
    assert story.deliveries() == {"p1": "done"}
    assert story.count(fx.StartTurn) == 1
