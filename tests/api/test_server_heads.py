"""Heads and targets, as pure functions."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from termald.api.heads import check_head, head_end, parse_target
from termald.api.refusals import Refused

HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n"
BYTES_MAX = 1_000


def scan(chunks: list[bytes], bytes_max: int = BYTES_MAX) -> tuple[bytes | None, int]:
    """Feed chunk by chunk, as a connection does; return the head and after how many chunks it, or a refusal, came."""
    buffer = bytearray()
    scanned = 0
    for count, chunk in enumerate(chunks, start=1):
        buffer += chunk
        try:
            end = head_end(buffer, scanned, bytes_max)
        except Refused as refused:
            return b"%d" % refused.refusal.status, count
        if end is not None:
            return bytes(buffer[:end]), count
        scanned = len(buffer)
    return None, len(chunks)


@given(st.lists(st.integers(min_value=1, max_value=len(HEAD) + 7), max_size=8))
def test_a_head_is_found_however_it_is_cut(cuts: list[int]) -> None:
    """TCP keeps no borders; a CR and its LF may come apart."""
    sent = HEAD + b"hello\n\n"
    bounds = [0, *sorted(set(cuts)), len(sent)]
    chunks = [sent[a:b] for a, b in itertools.pairwise(bounds)]
    assert scan(chunks)[0] == HEAD


@given(st.integers(min_value=0, max_value=len(HEAD) - 2))
def test_a_bare_lf_is_refused_as_soon_as_it_comes_and_nowhere_else(position: int) -> None:
    """Wherever it stands in the head; the first byte is refused for not being text."""
    sent = HEAD[:position] + b"\n" + HEAD[position:]
    is_line_end = position > 0 and HEAD[position - 1 : position] == b"\r"
    status, count = scan([bytes([byte]) for byte in sent])
    # Behind a CR it is a line end, and what was the line end becomes the bare one, a byte later.
    assert (status, count) == (b"400", position + (2 if is_line_end else 1))


def test_what_does_not_begin_like_text_is_refused_with_its_first_byte() -> None:
    """TLS to a plain port should not wait for a deadline."""
    assert scan([b"\x16\x03\x01"]) == (b"400", 1)
    assert scan([b"\r\n"]) == (b"400", 1)


def test_the_size_counts_whether_or_not_the_end_has_come() -> None:
    """At the limit it passes; one more does not."""
    assert scan([HEAD], bytes_max=len(HEAD))[0] == HEAD
    assert scan([HEAD], bytes_max=len(HEAD) - 1)[0] == b"431"
    assert scan([HEAD[:-1]], bytes_max=len(HEAD) - 1)[0] is None
    assert scan([HEAD[:-1]], bytes_max=len(HEAD) - 2)[0] == b"431"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["Content-Length: 5", "Transfer-Encoding: chunked"], "both"),
        (["transfer-encoding: chunked", "CONTENT-LENGTH:5"], "both"),
        (["Content-Length: 5", "content-length: 5"], "more than one"),
        (["Content-Length: 5, 5"], "more than one"),
        (["Content-Length: 5", "X: y", "Content-Length: 6"], "more than one"),
        (["X: y", " folded"], "folded"),
        (["X: y", "\tfolded"], "folded"),
        ([" Host: evil.example"], "folded"),
    ],
)
def test_an_ambiguous_head_is_refused(lines: list[str], reason: str) -> None:
    """The control has the same lines, one of them alone."""
    head = "\r\n".join(["POST / HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()
    with pytest.raises(Refused, match=reason) as caught:
        check_head(head)
    assert caught.value.refusal.status == 400
    check_head(HEAD)


def test_chunks_are_an_http_1_1_matter() -> None:
    """An HTTP/1.0 reader in between takes the body for everything until the end."""
    head = b"POST / HTTP/1.%d\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with pytest.raises(Refused, match=r"in HTTP/1\.0"):
        check_head(head % 0)
    check_head(head % 1)


def test_a_target_is_taken_apart() -> None:
    """Decoded for routing, raw for whoever needs it."""
    target = parse_target(b"/a%2Fb%20%C3%A4?x=%20&y")
    assert (target.path, target.raw_path, target.query) == ("/a/b ä", b"/a%2Fb%20%C3%A4", b"x=%20&y")
    assert parse_target(b"/?").query == b""


@pytest.mark.parametrize(
    "target", [b"http://localhost/", b"*", b"localhost:80", b"/%ff", b"/%zz", b"/%2", b"/a#b", b"?x", b"evil"]
)
def test_other_targets_are_refused(target: bytes) -> None:
    """An absolute one could name another host than Host does."""
    with pytest.raises(Refused) as caught:
        parse_target(target)
    assert caught.value.refusal.status == 400
