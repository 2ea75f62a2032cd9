"""The transport alone, over a socket pair and on a clock that jumps: deadlines, cuts, and what was read too early."""

import socket

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from termald.api.transport import Transport

DEADLINE_S = 2.0
MORE_THAN_THE_KERNEL_KEEPS = b"x" * 2_000_000


def pair() -> tuple[Transport, trio.SocketStream]:
    ours, theirs = trio.socket.socketpair(socket.AF_UNIX)
    return Transport(trio.SocketStream(ours), write_deadline_s=DEADLINE_S), trio.SocketStream(theirs)


async def test_a_peer_that_does_not_read_is_cut_after_the_deadline(autojump_clock: MockClock) -> None:
    """And it is final: nothing is sent behind a torn write, and the peer sees the end."""
    transport, peer = pair()
    async with peer:
        begun = trio.current_time()
        with pytest.raises(trio.BrokenResourceError, match="did not read for 2"):
            await transport.send_all(MORE_THAN_THE_KERNEL_KEEPS)
        assert trio.current_time() - begun == pytest.approx(DEADLINE_S)
        assert (transport.dead, transport.cut_slow) == (True, True)
        with pytest.raises(trio.BrokenResourceError, match="was cut"):
            await transport.send_all(b"behind it")
        while await peer.receive_some():
            pass


async def test_a_cancelled_write_is_final_too(autojump_clock: MockClock) -> None:
    """But nobody's slowness."""
    transport, peer = pair()
    async with peer:
        with trio.move_on_after(1):
            await transport.send_all(MORE_THAN_THE_KERNEL_KEEPS)
        assert (transport.dead, transport.cut_slow) == (True, False)
        with pytest.raises(trio.BrokenResourceError):
            await transport.send_all(b"behind it")
        while await peer.receive_some():
            pass


async def test_what_was_read_too_early_comes_first() -> None:
    """In order, and in the sizes that are asked for."""
    transport, peer = pair()
    async with transport, peer:
        await peer.send_all(b"one")
        assert await transport.read_ahead()
        await peer.send_all(b"two")
        assert await transport.read_ahead()
        assert bytes(transport.unread) == b"onetwo"
        await peer.send_all(b"three")
        assert await transport.receive_some(4) == b"onet"
        assert await transport.receive_some() == b"wo"
        assert await transport.receive_some() == b"three"
        await peer.send_eof()
        assert not await transport.read_ahead()
        assert await transport.receive_some() == b""


async def test_a_cut_wakes_whoever_reads() -> None:
    """A connection's task must not wait for a peer that was given up."""
    transport, peer = pair()
    async with peer, trio.open_nursery() as nursery:

        async def read() -> None:
            assert not await transport.read_ahead()

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        transport.cut()
        transport.cut()
    with pytest.raises(trio.ClosedResourceError):
        await transport.receive_some()
