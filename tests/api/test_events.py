"""Events as readers get them, over HTTP and WebSocket: exact, live, and nobody's at another's cost."""

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import trio
import trio_websocket
from support.api_daemon import BEARER, Daemon, Served, served
from support.asgi_apps import RawClient, running, running_on_unix
from support.event_reader import EventReader, reading
from support.problems import problem_of
from support.waiting import until
from trio.testing import MockClock

from state.records import EventRecord, Seq, SessionId
from termald.api.app import build_api
from termald.api.settings import ApiSettings
from termald.client.sse import ServerEvent
from termald.engine import Engine
from termald.hub import EventLog, Frame, Hub
from termald.limits import ServerLimits

TOKEN_HEADER = ((b"authorization", BEARER["Authorization"].encode()),)


def listening(api: Served, path: str, **headers: str) -> AbstractAsyncContextManager[EventReader]:
    return reading(api.server, path, **BEARER, **headers)


def ids(events: list[ServerEvent]) -> list[int]:
    return [int(event.id) for event in events if event.kind not in ("synced", "reset")]


async def sessions_made(client: httpx.AsyncClient, folder: Path, *names: str) -> None:
    for name in names:
        await client.post("/api/sessions", json={"cwd": str(folder), "id": name})


# --- the stream ---


async def test_events_come_live_as_they_are_logged(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> None:
    async with listening(api, "/api/events") as reader:
        assert reader.headers["content-type"] == "text/event-stream"
        assert reader.headers["cache-control"] == "no-store"
        assert reader.headers["x-accel-buffering"] == "no"
        [mark] = await reader.next(1)
        assert (mark.kind, mark.id, json.loads(mark.data)) == ("synced", "0", {"seq": 0, "kind": "synced"})
        await sessions_made(client, tmp_path, "a")
        [event] = await reader.next(1)
        data = json.loads(event.data)
        assert (event.kind, event.id) == ("session/created", "1")
        assert (data["seq"], data["kind"], data["sessionId"], data["attachment"]) == (1, "session/created", "a", None)
        assert data["at"].endswith("Z")


async def test_a_reader_that_comes_back_gets_what_it_missed_and_nothing_twice(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    await sessions_made(client, tmp_path, "a", "b")
    async with listening(api, "/api/events?after=0") as reader:
        before = await reader.until("synced")
    await sessions_made(client, tmp_path, "c", "d")
    last = before[-1].id
    async with listening(api, "/api/events", last_event_id=last) as reader:
        missed = await reader.until("synced")
        await sessions_made(client, tmp_path, "e")
        live = await reader.next(1)
    assert ids(before + missed + live) == [1, 2, 3, 4, 5]


async def test_the_header_wins_over_the_query(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> None:
    """A browser that reconnects repeats the address it began with, and adds where it got to."""
    await sessions_made(client, tmp_path, "a", "b", "c")
    async with listening(api, "/api/events?after=0", last_event_id="2") as reader:
        assert ids(await reader.until("synced")) == [3]
    async with listening(api, "/api/events?after=1", last_event_id="") as reader:
        assert ids(await reader.until("synced")) == [2, 3]


async def test_only_one_session_and_only_the_kinds_that_were_asked_for(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    await sessions_made(client, tmp_path, "a", "b")
    await client.post("/api/sessions/a/prompts", json={"input": "x"})
    await client.post("/api/sessions/b/prompts", json={"input": "x"})

    async def kinds(path: str) -> set[tuple[str, str]]:
        async with listening(api, path) as reader:
            events = (await reader.until("synced"))[:-1]
        return {(json.loads(event.data)["sessionId"], event.kind) for event in events}

    assert {session for session, _ in await kinds("/api/sessions/a/events?after=0")} == {"a"}
    asked = "kinds=prompt/accepted,session/created"
    assert await kinds(f"/api/sessions/a/events?after=0&{asked}") == {
        ("a", "session/created"),
        ("a", "prompt/accepted"),
    }
    assert await kinds("/api/events?after=0&kinds=prompt/accepted&kinds=none") == {
        ("a", "prompt/accepted"),
        ("b", "prompt/accepted"),
    }


@pytest.mark.parametrize(
    ("cursor", "reason"), [("99", "future"), ("x", "malformed"), ("-1", "malformed"), ("1.5", "malformed")]
)
async def test_a_cursor_that_cannot_be_replayed_is_told_where_to_begin(
    api: Served, client: httpx.AsyncClient, tmp_path: Path, cursor: str, reason: str
) -> None:
    await sessions_made(client, tmp_path, "a")
    async with listening(api, f"/api/events?after={cursor}") as reader:
        reset, synced = await reader.next(2)
        assert (reset.kind, synced.kind) == ("reset", "synced")
        told = json.loads(reset.data)
        assert (told["reason"], told["snapshot"], told["lastEventId"], reset.id) == (reason, "/api/state", 1, "1")
        snapshot = (await client.get(told["snapshot"])).json()
        assert snapshot["lastEventId"] == 1
        await sessions_made(client, tmp_path, "b")
        assert ids(await reader.next(1)) == [2]


async def test_a_cursor_from_before_the_log_was_cut_off_gets_one_reset(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    await sessions_made(client, tmp_path, "a", "b", "c")
    await api.daemon.store.cut(2)
    hub = Hub(api.daemon.store, last=Seq(3))  # as after a start: what is kept in memory would still serve it
    for after, kinds in ((1, ["reset", "synced"]), (2, ["session/created", "synced"])):
        with hub.subscribe(after=Seq(after)) as reader:
            frames = list[Frame]()
            while not frames or frames[-1].event != "synced":
                frames += await reader.next_batch()
        assert [frame.event for frame in frames] == kinds
        assert frames[0].id == 3


async def test_a_snapshot_and_the_events_behind_it_leave_nothing_out(
    api: Served, client: httpx.AsyncClient, tmp_path: Path
) -> None:
    """I11, EVENT-16."""
    await sessions_made(client, tmp_path, "a")
    snapshot = (await client.get("/api/state")).json()
    await sessions_made(client, tmp_path, "b")
    async with listening(api, f"/api/events?after={snapshot['lastEventId']}") as reader:
        told = {json.loads(event.data)["sessionId"] for event in (await reader.until("synced"))[:-1]}
    assert told | {session["id"] for session in snapshot["sessions"]} == {"a", "b"}


async def test_a_reader_that_leaves_is_forgotten(api: Served, client: httpx.AsyncClient) -> None:
    async with listening(api, "/api/events") as reader:
        await reader.next(1)
        assert api.daemon.hub.statistics().readers == 1
    await until(lambda: api.daemon.hub.statistics().readers == 0)


async def test_more_streams_than_there_may_be_are_refused(tmp_path: Path) -> None:
    async with (
        served(tmp_path, streams_max=1) as api,
        api.client() as client,
        listening(api, "/api/events") as reader,
    ):
        await reader.next(1)
        problem_of(await client.get("/api/events"), "too-many-streams")
        assert (await client.get("/api/sessions")).status_code == 200


async def test_streams_end_properly_when_the_daemon_does(api: Served, client: httpx.AsyncClient) -> None:
    """A torn stream looks like a crash."""
    async with listening(api, "/api/events") as reader:
        await reader.next(1)
        async with api.server.websocket("/api/events/ws", headers=TOKEN_HEADER) as socket:
            await socket.get_message()
            assert await api.server.drained() < 1.5
            assert await reader.ends()
            with pytest.raises(trio_websocket.ConnectionClosed):
                await socket.get_message()
            assert socket.closed is not None and socket.closed.code == 1001


async def test_streams_end_properly_when_the_hub_closes(api: Served, client: httpx.AsyncClient) -> None:
    async with listening(api, "/api/events") as reader:
        await reader.next(1)
        api.daemon.hub.close()
        assert await reader.ends()


# --- WebSocket ---


async def test_a_websocket_gets_the_same_as_text_frames(api: Served, client: httpx.AsyncClient, tmp_path: Path) -> None:
    await sessions_made(client, tmp_path, "a", "b")
    await client.post("/api/sessions/a/prompts", json={"input": "x"})
    path = "session=a&after=0&kinds=session/created,prompt/accepted"
    async with listening(api, "/api/sessions/a/events?after=0&kinds=session/created,prompt/accepted") as reader:
        wanted = [
            {"id": int(event.id), "event": event.kind, "data": json.loads(event.data)}
            for event in await reader.until("synced")
        ]
    async with api.server.websocket(f"/api/events/ws?{path}", headers=TOKEN_HEADER) as socket:
        assert [json.loads(await socket.get_message()) for _ in wanted] == wanted
        await socket.send_message("what is sent means nothing")
        await client.post("/api/sessions/a/prompts", json={"input": "y"})
        assert json.loads(await socket.get_message())["event"] == "prompt/accepted"
    await until(lambda: api.daemon.hub.statistics().readers == 0)


async def test_a_websocket_to_a_session_that_is_not_there_is_not_opened(api: Served) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(trio_websocket.ConnectionRejected)) as refused:
        async with api.server.websocket("/api/events/ws?session=nobody", headers=TOKEN_HEADER):
            pass
    [rejection] = refused.value.exceptions
    assert isinstance(rejection, trio_websocket.ConnectionRejected)
    assert rejection.status_code == 404
    assert rejection.body is not None
    assert json.loads(rejection.body)["type"] == "urn:termald:problem:unknown-session"


async def test_asking_for_the_websocket_without_an_upgrade_is_told_so(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/events/ws")
    problem_of(response, "upgrade-required")
    assert response.headers["upgrade"] == "websocket"


# --- without a store: time, and readers that do not read ---


class HubAlone:
    """An engine that has a hub and nothing else: what touches more fails loudly."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub


def stream_app(hub: Hub) -> Callable[[Any, Any, Any], Any]:
    engine = cast("Engine", HubAlone(hub))
    return build_api(engine, ApiSettings(token=BEARER["Authorization"].split()[1], protocol_schema="0"))


def flood(first: int, count: int) -> list[EventRecord]:
    data = b'{"seq":%d,"pad":"' + b"x" * 1_000 + b'"}'
    return [
        EventRecord(
            seq=Seq(seq),
            at_ms=0,
            kind="item/delta",
            session_id=SessionId("s"),
            turn_id=None,
            item_id=None,
            data_json=data % seq,
        )
        for seq in range(first, first + count)
    ]


async def test_a_quiet_stream_beats_every_fifteen_seconds(tmp_path: Path, autojump_clock: MockClock) -> None:
    hub = Hub(cast("EventLog", None), last=Seq(0))
    async with running_on_unix(stream_app(hub), tmp_path) as server:
        client = await server.connect()
        async with client.stream:
            await client.send(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"event: synced" in await client.until(b"\n\n\r\n")
            begun = trio.current_time()
            for beat in (15, 30, 45):
                assert b": heartbeat\n\n" in await said(client)
                assert trio.current_time() - begun == pytest.approx(beat)
            await trio.sleep(10)
            hub.publish(flood(1, 1))
            assert b"event: item/delta" in await said(client)
            spoke = trio.current_time()
            assert b": heartbeat\n\n" in await said(client)
            assert trio.current_time() - spoke == pytest.approx(15)


async def said(client: RawClient) -> bytes:
    """What comes next, within the longest silence."""
    with trio.fail_after(20):
        return bytes(await client.stream.receive_some())


async def test_a_quiet_websocket_beats_where_scripts_can_see_it(tmp_path: Path, autojump_clock: MockClock) -> None:
    hub = Hub(cast("EventLog", None), last=Seq(7))
    async with running_on_unix(stream_app(hub), tmp_path) as server, server.websocket("/api/events/ws") as socket:
        assert json.loads(await socket.get_message())["event"] == "synced"
        begun = trio.current_time()
        beat = json.loads(await socket.get_message())
        assert beat == {"id": 7, "event": "heartbeat", "data": {"seq": 7, "kind": "heartbeat"}}
        assert trio.current_time() - begun == pytest.approx(15)


@pytest.mark.parametrize("protocol", ["sse", "websocket"])
async def test_a_reader_that_stops_reading_loses_its_connection_and_slows_nobody(protocol: str) -> None:
    """EVENT-18. Its events stay in the log, for when it comes back."""
    hub = Hub(cast("EventLog", None), last=Seq(0), ring_events=65_536)
    limits = ServerLimits(write_deadline_ms=3_000)
    async with running(stream_app(hub), limits=limits, small_buffers=True) as server:
        stuck = await server.connect(receive_buffer_bytes=4_096)
        async with stuck.stream:
            head = f"Host: localhost\r\nAuthorization: {BEARER['Authorization']}\r\n".encode()
            if protocol == "sse":
                await stuck.send(b"GET /api/events HTTP/1.1\r\n" + head + b"\r\n")
            else:
                upgrade = b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                await stuck.send(b"GET /api/events/ws HTTP/1.1\r\n" + head + upgrade + key + b"\r\n")
            await until(lambda: hub.statistics().readers == 1)
            async with reading(server, "/api/events", **BEARER) as quick:
                await quick.next(1)
                for batch in range(100):
                    hub.publish(flood(batch * 50 + 1, 50))
                    assert ids(await quick.next(50)) == list(range(batch * 50 + 1, batch * 50 + 51))
                await until(lambda: hub.statistics().readers == 1)
                await until(lambda: server.control.statistics().cut_slow_total == 1)  # counted when its connection ends
                hub.publish(flood(5_001, 1))
                assert ids(await quick.next(1)) == [5_001]


async def test_the_daemon_that_tests_use_is_an_engine(api: Served) -> None:
    """mypy holds the double to the protocol that the real engine is written to."""
    engine: Engine = api.daemon
    assert isinstance(engine, Daemon)
