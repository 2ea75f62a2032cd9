"""How Codex is reached: what termald's links and its supervision of the process take for granted.

The rest of it is measured through termald's own links, in `codex/test_real_codex`.
"""

import base64
import contextlib
import struct
import zlib
from pathlib import Path

import msgspec
import pytest
import trio
from facts.lab import SocketLab, heard, meaning, refusal, resume
from support.codex_process import CodexConnection, CodexRefusal, Message
from support.scripted_lab import Lab

from termald.codex.link import MESSAGE_BYTES_MAX

pytestmark = pytest.mark.real


async def test_each_connection_shakes_hands_for_itself_and_none_needs_another(lab: SocketLab) -> None:
    """`codex.handshake`, `codex.runtime`: a new link to a living process begins with `initialize`, whatever other links
    there were."""
    one, two = await lab.codex.connect(), await lab.codex.connect(introduced=False)
    assert (await refusal(two, "thread/loaded/list")).message == "Not initialized"
    await two.initialize()
    again = await refusal(two, "initialize", clientInfo={"name": "again", "version": "0"})
    assert again.message == "Already initialized"
    thread = await one.start_thread(lab.cwd)
    await one.vanish()
    assert (await two.request("thread/loaded/list"))["data"] == [thread]


async def test_nonsense_is_passed_over_and_what_follows_is_answered(lab: SocketLab, piped: Lab) -> None:
    """`codex.frames`: a frame that Codex cannot read costs nobody but itself. Ids come back as they were sent."""
    nothing: Message = {"data": [], "nextCursor": None}
    for codex in (await lab.codex.connect(), piped.codex):
        for nonsense in (b"garbage", b"[]", b'{"id":1}', b'{"method":"no/such"}', b'{"id":7,"result":{}}'):
            await codex.write(nonsense)
        await codex.write(msgspec.json.encode({"id": "text", "method": "thread/loaded/list", "params": {}}))
        assert await codex.reply_to("text", "thread/loaded/list") == nothing
        assert await codex.request("thread/loaded/list") == nothing


async def test_what_codex_says_may_be_longer_than_what_it_takes(lab: SocketLab) -> None:
    """`codex.control_socket`: 16 MiB is what Codex takes. It says whatever it has, in one message: a thread with images
    in it is read as one of any length (72 MB was seen), which must not cost the connection."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    image = {"type": "image", "url": f"data:image/png;base64,{base64.b64encode(_picture(6_500_000)).decode()}"}
    for _ in range(2):
        turn = await codex.request("turn/start", {"threadId": thread, "input": [image]})
        await codex.finish_turn(thread, turn["turn"]["id"])
    listed = await codex.request("thread/turns/list", {"threadId": thread, "itemsView": "full", "limit": 20})
    assert len(msgspec.json.encode(listed)) > MESSAGE_BYTES_MAX


def _picture(size: int) -> bytes:
    """Return a PNG of one pixel with a comment of so many bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel, comment = zlib.compress(b"\0\xff\0\0"), b"comment\0" + b"A" * size
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*each) for each in ((b"IHDR", head), (b"tEXt", comment), (b"IDAT", pixel), (b"IEND", b""))
    )


async def test_a_reader_that_stalls_is_kept_and_loses_nothing(lab: SocketLab) -> None:
    """`codex.control_socket`, `codex.connection`: Codex keeps what is not read, in its own memory; nobody else waits.

    A slow daemon therefore loses no link; it is the daemon's own queues that bound what it falls behind.
    """
    stalled, other = await lab.codex.connect(), await lab.codex.connect()
    thread = await stalled.start_thread(lab.cwd)
    turn = await stalled.start_turn(thread, "@hold gate\n@deltas 1500 size=2000")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    await resume(other, thread)
    stalled.stall()
    had = len(stalled.messages)
    lab.model.release("gate")
    assert (await other.finish_turn(thread, turn)).status == "completed"
    # 3 MB, of which a socket holds 0.2 MB. One message was on its way into the reader's hands.
    assert len(stalled.messages) <= had + 1
    stalled.go_on()
    assert len((await stalled.finish_turn(thread, turn)).params("item/agentMessage/delta")) == 1500
    assert not stalled.closed.is_set()


async def test_term_in_a_turn_drains_and_the_second_term_ends(lab: SocketLab) -> None:
    """`codex.process`: one TERM may not be enough. `codex.translate.replies`: refused by it is not executed; it still
    takes connections, so that reaching it does not mean that it can be used."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.start_turn(thread, "@say one\n@hold gate")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    lab.codex.process.terminate()
    await _drains(codex, lab.cwd)
    newcomer = await lab.codex.connect()
    for asker in (codex, newcomer):
        for method in ("thread/start", "thread/resume", "turn/start"):
            params = {"threadId": thread, "cwd": str(lab.cwd), "input": [{"type": "text", "text": "x"}]}
            refused = await refusal(asker, method, **params)
            assert (refused.code, refused.message) == (-32600, "Server is draining; retry after reconnecting")
            assert refused.data == {"reason": "serverShuttingDown"}
            assert meaning(refused).refusal == "overloaded"
        assert thread in (await asker.request("thread/loaded/list"))["data"]
    assert lab.codex.process.poll() is None
    lab.codex.process.terminate()
    with trio.fail_after(30):
        assert await lab.codex.process.wait() == 0
        await codex.closed.wait()
    assert not lab.codex.socket.is_symlink()
    assert "turn/completed" not in heard(codex, thread)


async def test_a_draining_process_ends_with_its_last_turn(lab: SocketLab) -> None:
    """`codex.supervisor`: left alone it goes by itself, with status 0, and takes its socket along."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.start_turn(thread, "@hold gate\n@say two")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    lab.codex.process.terminate()
    await _drains(codex, lab.cwd)
    assert lab.codex.process.poll() is None
    lab.model.release("gate")
    with trio.fail_after(30):
        assert await lab.codex.process.wait() == 0
    assert not lab.codex.socket.is_symlink()


async def _drains(codex: CodexConnection, cwd: Path) -> None:
    """Wait until the signal has been taken."""
    with trio.fail_after(30), contextlib.suppress(CodexRefusal):
        while True:
            await codex.start_thread(cwd)
