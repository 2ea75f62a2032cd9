"""WIRE-01, WIRE-04: lines come out whole however they arrive, and one of any length costs what its length costs."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from termald.codex.lines import LineSplitter, Oversize

LINE = st.binary(max_size=40).filter(lambda line: b"\n" not in line and not line.endswith(b"\r"))


def split(stream: bytes, cuts: Iterable[int], *, line_bytes_max: int = 1_000) -> tuple[list[bytes | Oversize], int]:
    splitter = LineSplitter(line_bytes_max=line_bytes_max)
    lines: list[bytes | Oversize] = []
    start = 0
    for cut in (*sorted(cuts), len(stream)):
        lines += splitter.push(stream[start:cut])
        start = cut
    return lines, splitter.finish()


@given(st.lists(st.tuples(LINE, st.sampled_from([b"\n", b"\r\n"]))), LINE, st.data())
def test_lines_are_the_same_wherever_the_stream_is_cut(
    parts: list[tuple[bytes, bytes]], torn: bytes, data: st.DataObject
) -> None:
    stream = b"".join(line + end for line, end in parts) + torn
    cuts = data.draw(st.sets(st.integers(0, len(stream))))
    expected = [line for line, _ in parts if line], len(torn)
    assert split(stream, cuts) == expected
    assert split(stream, range(len(stream))) == expected


@given(st.binary(max_size=200), st.sets(st.integers(0, 200)))
def test_cap_is_seen_the_same_wherever_the_stream_is_cut(stream: bytes, cuts: set[int]) -> None:
    cuts = {cut for cut in cuts if cut <= len(stream)}
    assert split(stream, cuts, line_bytes_max=8) == split(stream, (), line_bytes_max=8)


def test_line_at_the_cap_passes_and_one_byte_more_does_not() -> None:
    lines, _ = split(b"a" * 8 + b"\r\n" + b"b" * 9 + b"\n" + b"c\n", (), line_bytes_max=8)
    assert lines == [b"a" * 8, Oversize(bytes=9, excerpt="b" * 9, id=None), b"c"]


def test_dropped_reply_names_its_call_and_the_next_line_is_aligned() -> None:
    """WIRE-04: its request fails at once, everybody else goes on."""
    huge = b'{"id":7,"result":"' + b"x" * 5_000 + b'"}\n'
    lines, torn = split(huge + b'{"method":"m"}\n', range(0, 5_000, 64), line_bytes_max=1_000)
    assert torn == 0
    assert lines == [Oversize(bytes=len(huge) - 1, excerpt=huge[:200].decode(), id=7), b'{"method":"m"}']


def test_dropped_line_is_not_kept_in_memory() -> None:
    splitter = LineSplitter(line_bytes_max=1_000)
    for _ in range(1_000):
        splitter.push(b"x" * 1_000)
    assert splitter._pieces == []
    assert splitter.finish() == 1_000_000


def test_line_of_64_mib_in_chunks_of_64_kib_is_copied_once() -> None:
    """Joining at every chunk would copy 32 GiB. Counted, not timed: a noisy machine must not decide."""
    joined = 0

    class Counting(LineSplitter):
        @staticmethod
        def _join(pieces: list[bytes]) -> bytes:
            nonlocal joined
            line = LineSplitter._join(pieces)
            joined += len(line)
            return line

    splitter = Counting(line_bytes_max=64 * 1024 * 1024)
    chunk = b"x" * 65_536
    for _ in range(1_024):
        assert splitter.push(chunk) == []
    (line,) = splitter.push(b"\n")
    assert isinstance(line, bytes)
    assert len(line) == joined == 64 * 1024 * 1024
