"""Finding the daemon, and what its refusals and failures become."""

import json
import socket
from pathlib import Path

import pytest
from support.canned_daemon import Canned, canned_daemon

from termald.client.errors import BadAnswer, ClientError, ConnectionFailed, DaemonNotRunning, Refused
from termald.client.http import AsyncClient, Client
from termald.client.models import Session
from termald.client.sse import ServerEvent

SESSION = {"id": "s1", "status": "ready", "threadId": "t1", "somethingNew": [1]}


def test_the_unix_socket_is_taken_and_needs_no_token(tmp_path: Path) -> None:
    answers = {"GET /api/sessions/s1": Canned(200, SESSION)}
    with canned_daemon(answers, tmp_path) as daemon, Client.find(tmp_path, tmp_path / "no-state") as client:
        assert client.get("/api/sessions/s1", Session) == Session(id="s1", status="ready", thread_id="t1")
    assert "Authorization" not in daemon.asked[0].headers


def test_tcp_is_taken_where_there_is_no_socket_and_brings_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    answers = {"GET /api/sessions/s1": Canned(200, SESSION)}
    with canned_daemon(answers, tmp_path, unix=False) as daemon, Client.find(tmp_path, tmp_path) as client:
        client.get("/api/sessions/s1", Session)
    assert daemon.asked[0].headers["Authorization"] == "Bearer abc"


@pytest.mark.parametrize("token", [None, "", " \n"])
def test_tcp_without_a_token_is_an_error_of_its_own(tmp_path: Path, token: str | None) -> None:
    """Asking without one would be answered 401, which says nothing about the file."""
    if token is not None:
        (tmp_path / "token").write_text(token)
    with canned_daemon({}, tmp_path, unix=False), pytest.raises(ClientError, match="token"):
        Client.find(tmp_path, tmp_path)


def test_where_there_never_was_a_daemon_it_is_not_running(tmp_path: Path) -> None:
    with pytest.raises(DaemonNotRunning, match="start it with: termald serve"):
        Client.find(tmp_path, tmp_path)


def test_a_file_left_by_a_killed_daemon_proves_nothing(tmp_path: Path) -> None:
    """Its pid may well be alive: it is somebody else's by now."""
    with socket.socket(socket.AF_UNIX) as dead, socket.socket() as closed:
        dead.bind(str(tmp_path / "termald.sock"))
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        document = {"pid": 1, "url": f"http://127.0.0.1:{port}", "socket": str(tmp_path / "termald.sock")}
        (tmp_path / "daemon.json").write_text(json.dumps(document))
        with pytest.raises(DaemonNotRunning, match=r"pid 1 was to listen on .* and nobody answers"):
            Client.find(tmp_path, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}'])
def test_a_torn_file_is_no_daemon(tmp_path: Path, text: str) -> None:
    (tmp_path / "daemon.json").write_text(text)
    with pytest.raises(DaemonNotRunning, match="cannot read"):
        Client.find(tmp_path, tmp_path)


def test_a_refusal_keeps_the_daemons_slug_and_words(tmp_path: Path) -> None:
    problem = {
        "type": "urn:termald:problem:thread-owned",
        "title": "The thread belongs to another session",
        "status": 409,
        "detail": "thread t1 is owned by session s2",
        "retryable": False,
    }
    answers = {"POST /api/sessions": Canned(409, problem, "application/problem+json")}
    with (
        canned_daemon(answers, tmp_path) as daemon,
        Client.find(tmp_path, tmp_path) as client,
        pytest.raises(Refused) as refused,
    ):
        client.post("/api/sessions", Session, {"cwd": "/"}, key="k1")
    assert (refused.value.slug, refused.value.status) == ("thread-owned", 409)
    assert str(refused.value) == "The thread belongs to another session: thread t1 is owned by session s2"
    assert daemon.asked[0].headers["Idempotency-Key"] == "k1"
    assert daemon.asked[0].body == b'{"cwd":"/"}'


@pytest.mark.parametrize(
    "canned", [Canned(200, b"<html>", "text/html"), Canned(200, {"id": 1}), Canned(502, b"gateway", "text/plain")]
)
def test_an_answer_that_is_not_the_apis_is_named_as_that(tmp_path: Path, canned: Canned) -> None:
    with (
        canned_daemon({"GET /api/x": canned}, tmp_path),
        Client.find(tmp_path, tmp_path) as client,
        pytest.raises(BadAnswer, match="GET /api/x was answered"),
    ):
        client.get("/api/x", Session)


def test_a_daemon_that_goes_away_between_two_calls_is_a_failed_connection(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc")
    with canned_daemon({"GET /api/x": Canned(200, SESSION)}, tmp_path, unix=False):
        client = Client.find(tmp_path, tmp_path)
    with client, pytest.raises(ConnectionFailed):
        client.get("/api/x", Session)


EVENTS = b': hello\n\nid: 7\nevent: turn/done\ndata: {"seq":7}\n\nevent: synced\ndata: {}\n\n'


async def test_events_are_read_from_after_an_id_until_the_daemon_ends_the_stream(tmp_path: Path) -> None:
    answers = {"GET /api/sessions/s1/events": Canned(200, EVENTS, "text/event-stream")}
    with canned_daemon(answers, tmp_path) as daemon:
        async with AsyncClient.find(tmp_path, tmp_path) as client, client.events(6, session="s1") as events:
            seen = [event async for event in events]
    assert seen == [
        ServerEvent(id="7", kind="turn/done", data='{"seq":7}'),
        ServerEvent(id="7", kind="synced", data="{}"),
    ]
    assert daemon.asked[0].path == "/api/sessions/s1/events?after=6"


async def test_a_stream_that_is_refused_is_a_refusal(tmp_path: Path) -> None:
    answers = {"GET /api/events": Canned(401, {"type": "urn:termald:problem:unauthorized", "title": "No"})}
    with canned_daemon(answers, tmp_path):
        async with AsyncClient.find(tmp_path, tmp_path) as client:
            with pytest.raises(Refused, match="No"):
                async with client.events():
                    raise AssertionError("the block must not be entered")
