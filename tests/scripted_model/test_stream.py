"""What a model call becomes: the actions of the endpoint, and the events on the stream."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from termald.scripted_model.events import BATCH_BYTES, sse
from termald.scripted_model.plan import Say
from termald.scripted_model.script import parse_script
from termald.scripted_model.stream import (
    Action,
    Begin,
    Block,
    Drop,
    Finish,
    Opening,
    Pause,
    Refuse,
    Send,
    actions,
    default_usage,
)
from termald.scripted_model.tools import ToolNotOfferedError, Tools

OPENING = Opening("resp_1", "scripted", 1_000)
SHELL = Tools.read([{"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {}}}}])


def answer(prompt: str, *, attempt: int = 1, step: int = 0, tools: Tools = SHELL) -> list[Action]:
    return list(actions(parse_script(prompt).calls[step], tools, OPENING, attempt))


def events(acts: list[Action]) -> list[dict[str, Any]]:
    """The events of an answer, each with its name checked against its type."""
    read = []
    body = b"".join(act.data for act in acts if isinstance(act, Send)).decode()
    for block in body.split("\n\n")[:-1]:
        head, data = block.split("\ndata: ", 1)
        event = json.loads(data)
        assert head == f"event: {event['type']}"
        read.append(event)
    return read


def kinds(acts: list[Action]) -> list[str]:
    return [type(act).__name__ for act in acts]


def test_a_message_has_the_events_of_the_public_api_in_their_order() -> None:
    told = events(answer("@say one two"))
    assert [event["type"] for event in told] == [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event["sequence_number"] for event in told] == list(range(9))
    assert told[7]["item"]["content"][0]["text"] == "one two"
    assert told[8]["response"]["output"] == [told[7]["item"]]
    assert told[8]["response"]["created_at"] == 1_000


def test_items_of_one_answer_have_ids_and_places_of_their_own() -> None:
    told = events(answer("@reasoning why\n@say one\n@message\n@say two\n@shell ls"))
    done = [event for event in told if event["type"] == "response.output_item.done"]
    assert [(event["output_index"], event["item"]["type"]) for event in done] == [
        (0, "reasoning"),
        (1, "message"),
        (2, "message"),
        (3, "function_call"),
    ]
    assert len({event["item"]["id"] for event in done}) == 4
    deltas = [event for event in told if event["type"].endswith("_text.delta")]
    assert [event["output_index"] for event in deltas] == [0, 1, 2]


def test_usage_is_what_the_script_says_or_what_was_said() -> None:
    stated = events(answer("@usage input=9 cached=4 output=2 reasoning=1\n@say a b c"))[-1]["response"]["usage"]
    assert stated == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 11,
    }
    usage = default_usage(parse_script("@reasoning a b\n@say c d e").calls[0])
    assert (usage.input, usage.output, usage.reasoning) == (100, 5, 2)


def test_an_answer_is_opened_by_its_first_output_and_not_by_a_pause_before_it() -> None:
    assert kinds(answer("@hold gate\n@wait 5ms\n@say x")) == [
        *("Block", "Pause", "Begin"),
        *("Send",) * 4,
        "Finish",
    ]
    assert kinds(answer("@open\n@hold gate\n@say x"))[:3] == ["Begin", "Send", "Block"]


def test_a_refusal_can_be_held_and_comes_without_a_stream() -> None:
    assert answer("@hold gate\n@header x-a b\n@fail 429 retry-after=3 message=no type=t code=c resets-in=60") == [
        Block("gate"),
        Refuse(
            429,
            (("x-a", "b"), ("retry-after", "3")),
            b'{"error":{"message":"no","code":"c","type":"t","resets_in_seconds":60,"resets_at":1060}}',
        ),
    ]


def test_headers_come_with_whichever_answer() -> None:
    assert answer("@header x-a b\n@say x")[0] == Begin((("x-a", "b"),))


def test_a_failure_by_its_code_is_an_event_and_leaves_the_message_open() -> None:
    acts = answer("@say half\n@fail server_error message=broken")
    told = events(acts)
    assert told[-1]["type"] == "response.failed"
    assert told[-1]["response"]["error"] == {"message": "broken", "code": "server_error"}
    assert "response.output_item.done" not in [event["type"] for event in told]
    assert acts[-1] == Finish("failed")


def test_attempts_are_used_up_one_failure_after_the_other() -> None:
    script = "@fail 500 times=2\n@cut times=1\n@say whole"
    assert [answer(script, attempt=n)[-1] for n in (1, 2)] == [
        Refuse(500, (), b'{"error":{"message":"scripted failure: 500","code":null}}'),
    ] * 2
    assert answer(script, attempt=3)[-1] == Drop()
    assert answer(script, attempt=4)[-1] == Finish("completed")


def test_a_cut_says_that_it_is_one() -> None:
    assert kinds(answer("@say half\n@cut")) == ["Begin", "Send", "Send", "Send", "Drop"]
    assert answer("@say half\n@cut clean")[-1] == Finish("cutClean")
    assert "response.completed" not in [event["type"] for event in events(answer("@say half\n@cut clean"))]


def test_an_incomplete_answer_says_why() -> None:
    acts = answer("@say half\n@incomplete content_filter")
    last = events(acts)[-1]
    assert (last["type"], last["response"]["incomplete_details"]) == (
        "response.incomplete",
        {"reason": "content_filter"},
    )
    assert acts[-1] == Finish("incomplete")


def test_an_empty_answer_is_completed_without_output() -> None:
    told = events(answer("@empty"))
    assert [event["type"] for event in told] == ["response.created", "response.completed"]
    assert told[-1]["response"]["output"] == []


def test_a_pace_puts_a_pause_before_each_piece() -> None:
    acts = answer("@pace 20ms\n@say a b")
    assert [act for act in acts if isinstance(act, Pause)] == [Pause(20.0)] * 2
    assert kinds(acts)[:6] == ["Begin", "Send", "Pause", "Send", "Send", "Pause"]


def test_an_empty_line_of_text_is_an_empty_message() -> None:
    told = events(answer("@pace 20ms\n@say"))
    assert [event["item"]["content"][0]["text"] for event in told if event["type"] == "response.output_item.done"] == [
        ""
    ]


def test_many_deltas_come_in_few_writes_and_all_of_them() -> None:
    acts = answer("@deltas 10000 size=8")
    sends = [act.data for act in acts if isinstance(act, Send)]
    assert len(sends) < 100
    assert max(len(data) for data in sends[:-1]) < BATCH_BYTES + 1_000
    assert sum(event["type"] == "response.output_text.delta" for event in events(acts)) == 10_000


def test_a_tool_that_is_not_offered_is_found_out_before_anything_is_said() -> None:
    with pytest.raises(ToolNotOfferedError, match="does not offer a shell tool; it offers no tool"):
        actions(parse_script("@say first\n@shell ls").calls[0], Tools.read([]), OPENING, 1)


def test_raw_data_of_several_lines_stays_one_event() -> None:
    assert sse("x", b"a\nb") == b"event: x\ndata: a\ndata: b\n\n"
    assert answer("@raw some.event not json")[2] == Send(b"event: some.event\ndata: not json\n\n")


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=50))
def test_any_text_survives_the_stream(pieces: list[str]) -> None:
    call = parse_script("@say x").calls[0]
    call = type(call)((Say(tuple(pieces)),))
    told = events(list(actions(call, SHELL, OPENING, 1)))
    assert [event["delta"] for event in told if event["type"] == "response.output_text.delta"] == pieces
    assert told[-1]["response"]["output"][0]["content"][0]["text"] == "".join(pieces)
