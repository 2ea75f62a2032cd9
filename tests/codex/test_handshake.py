"""The first words: what we say, what we do with what comes in between, and when we give up."""

import json
from typing import Any

import pytest
from support.memory_process import MemoryLink
from trio.testing import MockClock

from termald.codex.errors import LinkClosed
from termald.codex.frames import encode_notification, encode_request
from termald.codex.handshake import UNWANTED, HandshakeRefused, ServerInfo, shake_hands, unwanted
from termald.codex.protocol.methods import ALL_SERVER_NOTIFICATIONS, SERVER_NOTIFICATIONS


class Silent(MemoryLink):
    """Answers only what the test has it answer."""

    def __init__(self) -> None:
        super().__init__("/home", answers=False)

    def answer(self, **answer: Any) -> None:
        self.say(json.dumps({"id": "termald/initialize", **answer}).encode())


async def test_we_say_who_we_are_and_what_we_do_not_want_and_that_we_are_done() -> None:
    link = MemoryLink("/home")
    info, early = await shake_hands(link, "1.2.3")
    assert info == ServerInfo(user_agent="termald/9.9.9 (memory)", version="9.9.9", platform="x", codex_home="/home")
    assert early == ()
    initialize, initialized = map(json.loads, link.heard)
    assert initialize["params"]["clientInfo"] == {"name": "termald", "title": "termald", "version": "1.2.3"}
    assert initialize["params"]["capabilities"]["experimentalApi"] is True
    assert initialize["params"]["capabilities"]["optOutNotificationMethods"] == list(unwanted())
    assert initialized == {"method": "initialized"}


async def test_what_comes_before_the_answer_is_kept_in_order() -> None:
    link = Silent()
    frames = [encode_notification("a"), encode_request("termald/initialize", "b", {}), b"garbage"]
    for frame in frames:
        link.say(frame)
    link.answer(result={"codexHome": "/home", "userAgent": "who knows"})
    info, early = await shake_hands(link, "0")
    assert early == tuple(frames)
    assert (info.version, info.user_agent) == ("", "who knows")


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32600, "message": "no"}},
        {"result": []},
        {"result": {"userAgent": 5}},
    ],
)
async def test_refusal_and_nonsense_are_not_asked_again(answer: dict[str, Any]) -> None:
    link = Silent()
    link.answer(**answer)
    with pytest.raises(HandshakeRefused):
        await shake_hands(link, "0")
    assert len(link.heard) == 1


async def test_endless_talk_without_an_answer_is_a_refusal() -> None:
    link = Silent()
    for _ in range(2_000):
        link.say(encode_notification("a"))
    with pytest.raises(HandshakeRefused, match="no answer"):
        await shake_hands(link, "0")


async def test_silence_has_a_deadline(autojump_clock: MockClock) -> None:
    with pytest.raises(LinkClosed, match="10 s"):
        await shake_hands(Silent(), "0")


def test_only_what_nobody_reads_is_unwanted() -> None:
    """What is opted out of is lost for everybody: it must be no part of any session's story, and each has its
    reason."""
    assert set(unwanted()) <= ALL_SERVER_NOTIFICATIONS
    story = {name for name in SERVER_NOTIFICATIONS if name.startswith(("turn/", "item/", "error", "serverRequest/"))}
    assert story
    assert not story & set(unwanted())
    assert not {"thread/started", "thread/status/changed", "thread/closed", "thread/tokenUsage/updated"} & set(
        unwanted()
    )
    assert all(reason for _, reason in UNWANTED)
