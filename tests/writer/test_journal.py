"""The log tells of each session what a person would look for, with its ids, and nothing that was said."""

import msgspec
import pytest
import structlog
from support.story import Story

from state.records import EventRecord
from termald import journal
from termald.core import inputs as ins


@pytest.fixture
def told() -> list[EventRecord]:
    """All events of a session whose turn asks, is retried, and fails."""
    story = Story()
    story.up()
    story.create()
    story.prompt("a secret of the user's")
    story.opened()
    story.accepted("t1")
    story.turn_started("t1")
    story.item_started("t1", "i")
    story.delta("t1", "i", "a secret of the model's")
    story.request("1")
    failure = ins.TurnFailure(message="the upstream's words")
    story.completed("t1", "failed", failure=failure)
    return story.store.events


def test_lines_carry_the_ids_and_the_states(told: list[EventRecord]) -> None:
    with structlog.testing.capture_logs() as lines:
        journal.write(told)
    by_kind = {line["event"]: line for line in lines}
    opened = by_kind["request/opened"]
    assert (opened["session"], opened["attachment"], opened["turn"]) == ("s", "R1/1", "t1")
    assert opened["request"].startswith("req-")
    assert by_kind["turn/done"]["state"] == "error"
    assert by_kind["prompt/failed"]["log_level"] == "info"
    assert by_kind["prompt/sent"]["log_level"] == "debug"


def test_nothing_that_was_said_is_in_the_log(told: list[EventRecord]) -> None:
    with structlog.testing.capture_logs() as lines:
        journal.write(told)
    text = msgspec.json.encode(lines).decode()
    assert "of the model's" not in text
    assert "upstream's words" not in text
    assert all("delta" not in line["event"] for line in lines)


def test_every_kind_of_event_can_be_told(told: list[EventRecord]) -> None:
    with structlog.testing.capture_logs() as lines:
        journal.write([msgspec.structs.replace(event, kind="session/anything") for event in told])
    assert len(lines) == len(told)
