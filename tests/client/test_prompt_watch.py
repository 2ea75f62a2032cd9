"""Which events are a prompt's, and that there is one end: whatever the order in which a daemon may tell it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from termald.client.events import Done, Event, read_event
from termald.client.prompt_watch import PromptWatch
from termald.client.sse import ServerEvent

Told = tuple[str, dict[str, Any]]


def events(*told: Told) -> list[Event]:
    """The events, numbered from 1, of session `s` unless they say otherwise."""
    return [
        read_event(
            ServerEvent(
                id=str(seq),
                kind=kind,
                data=msgspec.json.encode({"seq": seq, "kind": kind, "sessionId": "s", **fields}).decode(),
            )
        )
        for seq, (kind, fields) in enumerate(told, 1)
    ]


def kinds_given(*told: Told) -> tuple[list[str], Done | None]:
    watch = PromptWatch("s", "p")
    found = [event for each in events(*told) for event in watch.feed(each)]
    return [event.kind for event in found], watch.done


def prompt(what: str, turn: str | None = None, of: str = "p", **fields: Any) -> Told:
    return f"prompt/{what}", {"promptId": of, "state": what, **({"turnId": turn} if turn else {}), **fields}


def delta(turn: str, text: str = "x") -> Told:
    return "item/delta", {"turnId": turn, "itemId": "i", "delta": text}


def done(turn: str, state: str = "normal") -> Told:
    return "turn/done", {"turnId": turn, "state": state}


def started(turn: str, of: str | None = None) -> Told:
    return "turn/started", {"turnId": turn, "promptId": of}


def test_another_prompts_turn_is_not_given() -> None:
    kinds, end = kinds_given(
        started("t0", "q"),
        prompt("accepted"),
        delta("t0"),
        prompt("done", "t0", of="q"),
        done("t0"),
        prompt("acked", "t1"),
        started("t1", "p"),
        delta("t1"),
        prompt("done", "t1"),
        done("t1"),
        prompt("accepted", of="r"),
    )
    assert kinds == ["prompt/accepted", "prompt/acked", "turn/started", "item/delta", "prompt/done", "turn/done"]
    assert end is not None
    assert (end.turn_id, end.seq) == ("t1", 10)


def test_a_turn_that_is_heard_of_before_it_is_told_whose_it_is_is_given_whole() -> None:
    kinds, _ = kinds_given(
        prompt("sent"), started("t1"), delta("t1"), prompt("acked", "t1"), prompt("done", "t1"), done("t1")
    )
    assert kinds == ["prompt/sent", "turn/started", "item/delta", "prompt/acked", "prompt/done", "turn/done"]


def test_a_turn_that_ends_while_its_prompt_is_sent_again_is_not_the_end() -> None:
    """Codex died before it was known to have the prompt: its first turn's end would be a lie about the prompt."""
    kinds, end = kinds_given(
        prompt("acked", "t1"),
        started("t1", "p"),
        done("t1", "error"),
        prompt("sent"),
        prompt("acked", "t2"),
        prompt("done", "t2"),
        done("t2"),
    )
    assert kinds.count("turn/done") == 1
    assert end is not None
    assert (end.turn_id, end.state) == ("t2", "normal")


def test_a_prompt_that_ends_without_a_turn_does_not_end_as_its_former_one() -> None:
    """Its turn ended with Codex, it waited to be sent again, and was cancelled: that turn was not."""
    _, end = kinds_given(
        prompt("acked", "t1"), started("t1", "p"), done("t1", "error"), prompt("parked"), prompt("cancelled")
    )
    assert end is not None
    assert (end.turn_id, end.state) == (None, "cancelled")


def test_a_prompt_that_is_found_in_anothers_turn_after_that_has_ended_ends_with_it() -> None:
    """It was to steer that turn, and Codex died before it said that it had: a run that missed it would never end."""
    kinds, end = kinds_given(
        started("t1", "q"),
        prompt("accepted"),
        prompt("sent"),
        done("t1", "error"),
        prompt("recorded", "t1"),
        prompt("failed", "t1"),
    )
    assert kinds == ["prompt/accepted", "prompt/sent", "prompt/recorded", "prompt/failed", "turn/done"]
    assert end is not None
    assert (end.turn_id, end.state) == ("t1", "error")


def test_a_prompt_that_ends_after_its_turn_ends_with_that_turn() -> None:
    kinds, end = kinds_given(prompt("acked", "t1"), done("t1", "error"), prompt("failed", "t1"))
    assert kinds == ["prompt/acked", "prompt/failed", "turn/done"]
    assert end is not None
    assert end.state == "error"


@pytest.mark.parametrize(
    ("what", "state"), [("cancelled", "cancelled"), ("failed", "error"), ("notDelivered", "error"), ("done", "normal")]
)
def test_a_prompt_without_a_turn_has_an_end_of_its_own(what: str, state: str) -> None:
    kinds, end = kinds_given(prompt("accepted"), prompt(what, error={"slug": "interrupted", "message": "why"}))
    assert kinds[-1] == "turn/done"
    assert end is not None
    assert (end.state, end.message, end.turn_id, end.seq) == (state, "why", None, 2)


def test_a_killed_session_ends_the_prompt_once() -> None:
    kinds, end = kinds_given(
        prompt("acked", "t1"), prompt("cancelled", "t1"), done("t1", "cancelled"), ("session/killed", {})
    )
    assert kinds == ["prompt/acked", "prompt/cancelled", "turn/done"]
    kinds, end = kinds_given(prompt("acked", "t1"), ("session/killed", {"status": "closed"}))
    assert kinds == ["prompt/acked", "session/killed", "turn/done"]
    assert end is not None
    assert end.state == "cancelled"


def test_what_a_sub_agent_asks_is_given_and_what_it_says_is_not() -> None:
    kinds, _ = kinds_given(
        prompt("acked", "t1"),
        ("request/opened", {"requestId": "r", "turnId": "child", "threadId": "other"}),
        delta("child"),
    )
    assert kinds == ["prompt/acked", "request/opened"]


def test_another_sessions_events_are_never_given() -> None:
    kinds, _ = kinds_given(prompt("acked", "t1"), ("turn/done", {"turnId": "t1", "state": "normal", "sessionId": "o"}))
    assert kinds == ["prompt/acked"]


NOISE = st.sampled_from(
    [
        delta("t0"),
        started("t0"),
        done("t0"),
        prompt("accepted", of="q"),
        prompt("cancelled", of="q"),
        ("notice", {"slug": "x", "message": "m"}),
        ("codex/raw", {"method": "m"}),
        ("from/the/future", {"turnId": 7}),
    ]
)


@given(noise=st.lists(st.lists(NOISE, max_size=3), min_size=7, max_size=7))
def test_whatever_is_told_between_there_is_one_end_and_it_is_the_last(noise: list[list[Told]]) -> None:
    own = [prompt("accepted"), prompt("sent"), prompt("acked", "t1"), started("t1", "p"), delta("t1"),
           prompt("done", "t1"), done("t1")]  # fmt: skip
    told = [each for mine, others in zip(own, noise, strict=True) for each in (mine, *others)]
    kinds, end = kinds_given(*told)
    assert end is not None
    assert kinds.count("turn/done") == 1
    assert kinds[-1] == "turn/done"
    assert [kind for kind in kinds if kind in dict(own)] == [kind for kind, _ in own]
