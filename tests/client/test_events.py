"""Events as values: what is known is typed, and what a newer daemon says breaks nothing."""

import json
from typing import Any

import msgspec
import pytest

from termald.client.events import Done, Event, ItemDelta, OtherEvent, PromptEvent, SessionEvent, read_event
from termald.client.sse import ServerEvent


def told(kind: str, seq: str = "7", **fields: Any) -> Event:
    return read_event(ServerEvent(id=seq, kind=kind, data=json.dumps({"seq": 7, "kind": kind, **fields})))


def test_a_known_kind_is_typed() -> None:
    event = told("turn/done", sessionId="s", turnId="t", state="error", providerError={"type": "rate_limit", "x": 1})
    assert isinstance(event, Done)
    assert not event.ok
    assert event.provider_error is not None
    assert event.provider_error.type == "rate_limit"
    assert isinstance(told("item/delta", delta="x"), ItemDelta)
    assert isinstance(told("prompt/somethingNew", promptId="p"), PromptEvent)
    assert isinstance(told("session/ready", status="a status of the future", newField={}), SessionEvent)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("brand/new", {"sessionId": "s", "turnId": "t", "deep": [1]}),
        ("item/delta", {"sessionId": "s", "turnId": "t", "delta": {"now": "an object"}}),
        ("prompt/accepted", {"sessionId": "s", "turnId": "t"}),
    ],
)
def test_what_is_not_known_keeps_all_that_was_said(kind: str, fields: dict[str, Any]) -> None:
    event = told(kind, **fields)
    assert isinstance(event, OtherEvent)
    assert (event.seq, event.kind, event.session_id, event.turn_id) == (7, kind, "s", "t")
    assert fields.items() <= event.fields.items()


def test_the_streams_own_number_is_taken_where_the_event_has_none() -> None:
    event = read_event(ServerEvent(id="12", kind="x", data='{"sessionId": 5, "turnId": []}'))
    assert (event.seq, event.session_id, event.turn_id) == (12, None, None)


def test_events_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        told("item/delta", delta="x").seq = 3  # type: ignore[misc]  # the point


def test_what_is_not_json_is_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        read_event(ServerEvent(id="1", kind="turn/done", data="{"))
