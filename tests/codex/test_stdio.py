"""The pipe link: nothing follows a torn line, and everything that arrived is read before the end is told."""

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_one_way_pair, memory_stream_one_way_pair

from termald.codex.errors import LinkClosed, MessageTooLarge
from termald.codex.lines import Oversize
from termald.codex.link import MESSAGE_BYTES_MAX
from termald.codex.stdio import StdioLink


class Pipes:
    """A link whose other side is held by the test."""

    def __init__(self, *, line_bytes_max: int = 100) -> None:
        to_codex, self.input = memory_stream_one_way_pair()
        self.output, from_codex = memory_stream_one_way_pair()
        self.link = StdioLink(to_codex, from_codex, line_bytes_max=line_bytes_max)


async def test_frames_come_out_whole_and_the_end_after_them() -> None:
    """RUNTIME-02: the last word of a dying process is a turn that completed."""
    pipes = Pipes()
    await pipes.output.send_all(b'{"a":1}\r\n{"b"')
    await pipes.output.send_all(b':2}\n{"c"')
    await pipes.output.aclose()
    assert [await pipes.link.receive(), await pipes.link.receive()] == [b'{"a":1}', b'{"b":2}']
    for _ in range(2):
        with pytest.raises(LinkClosed, match="middle of a line of 4 bytes"):
            await pipes.link.receive()


async def test_line_over_the_cap_stands_as_what_it_was() -> None:
    pipes = Pipes(line_bytes_max=10)
    await pipes.output.send_all(b'{"id":3,"result":1}\n{}\n')
    assert await pipes.link.receive() == Oversize(bytes=19, excerpt='{"id":3,"result":1}', id=3)
    assert await pipes.link.receive() == b"{}"


async def test_frame_is_one_line_whatever_raw_json_is_in_it() -> None:
    pipes = Pipes()
    await pipes.link.send(b'{"id":1,\r\n"params":{\n}}')
    assert await pipes.input.receive_some() == b'{"id":1,  "params":{ }}\n'


async def test_too_long_a_message_is_refused_and_the_link_lives() -> None:
    """WIRE-05: one prompt's fault must not cost everybody the connection."""
    pipes = Pipes()
    with pytest.raises(MessageTooLarge, match="16,777,217 bytes"):
        await pipes.link.send(b"x" * (MESSAGE_BYTES_MAX + 1))
    await pipes.link.send(b"{}")
    assert await pipes.input.receive_some() == b"{}\n"


async def test_write_that_is_not_taken_ends_the_link(autojump_clock: MockClock) -> None:
    """WIRE-14, RUNTIME-10: half a line is out, so nothing may follow it."""
    to_codex, never_read = lockstep_stream_one_way_pair()
    _, from_codex = memory_stream_one_way_pair()
    link = StdioLink(to_codex, from_codex)
    with pytest.raises(LinkClosed, match="took no input for 10 s"):
        await link.send(b"{}")
    with pytest.raises(LinkClosed, match="closed its input"):
        await link.send(b"{}")
    # What was torn is all that can still be read; the process sees its input end behind it.
    assert await never_read.receive_some() in (b"{}\n", b"")
    assert await never_read.receive_some() == b""


async def test_cancelled_write_ends_the_link() -> None:
    to_codex, never_read = lockstep_stream_one_way_pair()
    _, from_codex = memory_stream_one_way_pair()
    link = StdioLink(to_codex, from_codex)
    with trio.move_on_after(0):
        await link.send(b"{}")
    with pytest.raises(LinkClosed, match="closed its input"):
        await link.send(b"{}")
    await never_read.aclose()


async def test_closed_input_is_told_as_the_links_end() -> None:
    pipes = Pipes()
    await pipes.input.aclose()
    with pytest.raises(LinkClosed, match="closed its input"):
        await pipes.link.send(b"{}")


async def test_close_is_bounded_and_may_be_repeated() -> None:
    pipes = Pipes()
    await pipes.link.aclose()
    await pipes.link.aclose()
    with pytest.raises(LinkClosed, match="pipe was closed"):
        await pipes.link.receive()
