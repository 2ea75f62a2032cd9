"""Server-sent events: the same whatever the pieces, and what the format's own description says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from termald.client import sse
from termald.client.sse import ServerEvent, SseDecoder


def decode(*pieces: bytes) -> list[ServerEvent]:
    decoder = SseDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


FIELD = st.sampled_from(
    ["data: a", "data:", "data:é€", "event: x", "id: 4", "id", ": comment", "retry: 3", "other: y", ""]
)


@settings(deadline=None)
@given(lines=st.lists(st.tuples(FIELD, st.sampled_from(["\n", "\r\n", "\r"])), max_size=20), cuts=st.data())
def test_the_pieces_make_no_difference(lines: list[tuple[str, str]], cuts: st.DataObject) -> None:
    """A network cuts where it likes: within a character, between CR and LF."""
    whole = "".join(field + end for field, end in lines).encode()
    places = sorted(cuts.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    pieces = [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]
    assert decode(*pieces) == decode(whole)
    assert decode(whole) == decode(whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("data: one\ndata: two\n\n", [ServerEvent(id="", kind="message", data="one\ntwo")]),
        ("data\n\ndata\ndata\n\ndata:", [("", "message", ""), ("", "message", "\n")]),
        ("id: 1\ndata: a\n\nid\ndata: b\n\n", [("1", "message", "a"), ("", "message", "b")]),
        ("id: 1\ndata: a\n\nid: x\0y\ndata: b\n\n", [("1", "message", "a"), ("1", "message", "b")]),
        ("event: x\n\ndata: a\n\n", [("", "message", "a")]),
        ("\ufeffdata:  two spaces\n\n", [("", "message", " two spaces")]),
        ("data: unfinished\n", []),
    ],
)
def test_what_the_format_says(text: str, events: list[object]) -> None:
    wanted = [
        event if isinstance(event, ServerEvent) else ServerEvent(id=event[0], kind=event[1], data=event[2])  # type: ignore[index]  # a triple
        for event in events
    ]
    assert decode(text.encode()) == wanted


def test_the_pause_that_the_server_asks_for_is_kept() -> None:
    decoder = SseDecoder()
    decoder.feed(b"retry: 1500\nretry: soon\n\n")
    assert decoder.retry_ms == 1500


def test_an_event_without_an_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "EVENT_BYTES_MAX", 100)
    decoder = SseDecoder()
    with pytest.raises(ValueError, match="larger than 100 bytes"):
        for _ in range(20):
            decoder.feed(b"data: 0123456789\n")
