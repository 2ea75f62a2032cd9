"""What leaves for Codex leaves in order, to the link it was decided for, and says so where it cannot leave."""

from pathlib import Path

import msgspec
import pytest
import trio

from state.records import CodexAttachment, LinkId, RuntimeId, SessionId, SessionRecord, ThreadId, TurnId
from termald.codex.errors import CodexFault
from termald.core import effects as fx
from termald.core.inputs import CallId, CallUnwritten, Input
from termald.outbox import Outbox

LINK = LinkId(runtime_id=RuntimeId("R1"), connection=1)
STAMP = CodexAttachment(runtime_id=RuntimeId("R1"), generation=1)


class TooLarge(CodexFault):
    slug = "message-too-large"


class Wire:
    def __init__(self) -> None:
        self.frames: list[tuple[LinkId, dict[str, object]]] = []
        self.too_large = False

    def send(self, link: LinkId, frame: bytes) -> bool:
        if self.too_large:
            raise TooLarge("larger than the socket takes")
        self.frames.append((link, msgspec.json.decode(frame)))
        return True


def opening(call: int, cwd: str) -> fx.Send:
    record = SessionRecord(id=SessionId("s"), cwd=cwd)
    return fx.Send(link=LINK, call=CallId(call), op=fx.OpenFresh(attachment=STAMP, session=record, tag="tag"))


def interrupt(call: int) -> fx.Send:
    op = fx.Interrupt(attachment=STAMP, thread=ThreadId("T"), turn=TurnId("t"))
    return fx.Send(link=LINK, call=CallId(call), op=op)


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def told() -> list[Input]:
    return []


@pytest.fixture
async def outbox(wire: Wire, told: list[Input], nursery: trio.Nursery) -> Outbox:
    outbox = Outbox(wire, told.append, lambda: 5)
    nursery.start_soon(outbox.run)
    return outbox


async def test_a_slow_look_at_a_folder_does_not_let_later_frames_pass(
    outbox: Outbox, wire: Wire, tmp_path: Path
) -> None:
    outbox.send(opening(1, str(tmp_path)))
    outbox.send(interrupt(2))
    outbox.send(fx.SendAnswer(link=LINK, rpc_id_json='"0"', form="decision", answer_json='"accept"'))
    outbox.send(fx.SendRefusal(link=LINK, rpc_id_json="0", message="no"))
    with trio.fail_after(30):
        while len(wire.frames) < 4:
            await trio.lowlevel.checkpoint()
    frames = [frame for _, frame in wire.frames]
    assert [frame.get("method") for frame in frames] == ["thread/start", "turn/interrupt", None, None]
    assert frames[2] == {"id": "0", "result": {"decision": "accept"}}
    assert frames[3]["id"] == 0
    params = frames[0]["params"]
    assert isinstance(params, dict)
    assert (params["cwd"], params["threadSource"]) == (str(tmp_path), "tag")


async def test_a_folder_that_is_gone_is_told_and_nothing_is_written(
    outbox: Outbox, wire: Wire, told: list[Input], tmp_path: Path
) -> None:
    outbox.send(opening(1, str(tmp_path / "gone")))
    outbox.send(interrupt(2))
    with trio.fail_after(30):
        while not wire.frames:
            await trio.lowlevel.checkpoint()
    (unwritten,) = told
    assert isinstance(unwritten, CallUnwritten)
    assert (unwritten.call, unwritten.slug) == (1, "cwd-missing")
    assert [frame["method"] for _, frame in wire.frames] == ["turn/interrupt"]


async def test_a_frame_that_is_too_large_is_told(outbox: Outbox, wire: Wire, told: list[Input]) -> None:
    wire.too_large = True
    outbox.send(interrupt(3))
    with trio.fail_after(30):
        while not told:
            await trio.lowlevel.checkpoint()
    (unwritten,) = told
    assert isinstance(unwritten, CallUnwritten)
    assert (unwritten.call, unwritten.slug) == (3, "input-too-large")
