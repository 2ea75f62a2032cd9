"""Requests reach a program once, and nothing is answered but by it."""

from pathlib import Path

import pytest
import trio
from support.api_daemon import TOKEN, served

from termald.client import ClientError, connect
from termald.client.requests import Request, no_to, yes_to


async def test_what_waits_and_what_comes_is_given_once_and_stays_open_until_it_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path) as here, connect(url=f"http://127.0.0.1:{here.server.port}", token=TOKEN) as termald:
        daemon = here.daemon
        await daemon.link_up()
        session = await termald.session("s", cwd=tmp_path)
        await session.send("go")
        await daemon.open_thread("t1")
        await daemon.start_turn("t1", "u1")
        await daemon.open_request("t1", "u1", rpc_id_json="1")
        async with termald.requests() as requests:
            first = await anext(requests)
            await daemon.open_request("t1", "u1", rpc_id_json="2")
            second = await anext(requests)
            assert first.id != second.id
            with trio.move_on_after(0.2) as waited:
                await anext(requests)
            assert waited.cancelled_caught
        assert {request.id for request in await termald.open_requests()} == {first.id, second.id}
        assert (await first.accept()).status == "answered"
        assert [request.id for request in await session.requests()] == [second.id]


def request(kind: str, decisions: tuple[object, ...] = (), **params: object) -> Request:
    return Request(id="r", session_id="s", kind=kind, decisions=decisions, params=params)


@pytest.mark.parametrize(
    ("asked", "body"),
    [
        (request("command", ("accept", "decline", "cancel")), {"decision": "decline"}),
        (request("permissions", permissions={"network": True}), {"result": {"permissions": {}}}),
        (request("elicitation"), {"result": {"action": "decline"}}),
        (request("userInput", questions=[{"id": "q"}]), {"answers": {"q": {"answers": []}}}),
    ],
)
def test_a_no_lets_the_turn_go_on(asked: Request, body: object) -> None:
    assert no_to(asked) == body


def test_a_yes_grants_what_was_asked_and_no_more() -> None:
    assert yes_to(request("command", ("accept",))) == {"decision": "accept"}
    granted = yes_to(request("permissions", permissions={"network": True}))
    assert granted["result"]["permissions"] == {"network": True}
    with pytest.raises(ClientError, match="wants answers"):
        yes_to(request("userInput"))


def test_it_says_in_one_line_what_is_asked() -> None:
    assert request("command", command="ls -l").about == "ls -l"
    assert request("command", command=["ls", "-l"]).about == "ls -l"
    assert request("userInput", questions=[{"question": "which?"}]).about == "which?"


async def test_a_request_without_its_connection_says_so() -> None:
    with pytest.raises(ClientError, match="without its connection"):
        await request("command").accept()
