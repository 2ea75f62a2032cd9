"""What the disk has a part in: accepting, starting, replaying."""

import os
import time
from functools import partial
from pathlib import Path

import apsw
import trio

from bench.figures import Figure, Given, Row, Side, Spread, figures, in_turn, ratio, verdict
from bench.lab import Listener, Served, folder, model, served
from bench.scans import make_home
from state.records import Changes, EventRecord, Seq, SessionId, SessionRecord
from state.store import DATABASE_NAME, open_store

AT_MS = 1_796_032_800_000
BATCH = 10_000
ENDLESS = {"STATE_EVENTS_MAX": "1000000000"}  # settings under which nothing is taken out of the log


async def accept(given: Given) -> Row:
    """Prompts accepted a second, behind a turn that does not end."""
    prompts = given.pick(20, 2_000)
    found: list[Figure] = []
    verdicts = []
    with model() as url:

        async def disk() -> dict[str, float]:
            with folder() as place:
                return {"rate": _syncs(place / "synced", min(prompts, 500))}

        async def daemon(clients: int) -> dict[str, float]:
            with folder() as place:
                async with served(place, url, {"SESSIONS_QUEUE_PROMPTS_MAX": "100000"}) as one:
                    names = [f"s{n}" for n in range(clients)]
                    for name in names:
                        await one.create(name, prompt={"input": "@hold never"})
                    began = time.perf_counter()
                    async with trio.open_nursery() as nursery:
                        for name in names:
                            nursery.start_soon(_prompting, one, name, prompts // clients)
                    return {"rate": prompts // clients * clients / (time.perf_counter() - began)}

        sides: dict[str, Side] = {
            "fdatasync": disk,
            "1 client": partial(daemon, 1),
            "64 clients": partial(daemon, given.pick(4, 64)),
        }
        took = await in_turn(given.rounds, sides)
    found += figures("a second", {side: values["rate"] for side, values in took.items()})
    for side in ("1 client", "64 clients"):
        value = ratio(took[side]["rate"], took["fdatasync"]["rate"])
        verdicts.append(verdict(f"{side} ÷ fdatasync", value, ">=", 0.5, given))
    return Row(
        id="accept",
        measured="prompts answered 202, durable and synced, a second",
        beside="fdatasync of a page a second in the same folder",
        figures=found,
        verdicts=verdicts,
        notes=["one client waits for a sync each; 64 share them, and are bounded by the CPU of both ends"],
    )


def _syncs(path: Path, count: int) -> float:
    handle = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        began = time.perf_counter()
        for _ in range(count):
            os.write(handle, bytes(4_096))
            os.fdatasync(handle)
        return count / (time.perf_counter() - began)
    finally:
        os.close(handle)


async def _prompting(one: Served, name: str, count: int) -> None:
    """Send prompts one after the other on one connection, with as little work as possible."""
    body = b'{"input":"x"}'
    head = f"POST /api/sessions/{name}/prompts HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    async with await trio.open_unix_socket(str(one.socket)) as stream:
        for _ in range(count):
            await stream.send_all(request)
            answer = await stream.receive_some(65_536)
            assert answer.startswith(b"HTTP/1.1 202"), answer


async def boot(given: Given) -> Row:
    """From the start of the process to an answer, and to readiness."""
    found: list[Figure] = []
    verdicts = []
    threads = given.pick(20, 10_000)
    with model() as url, folder() as place:
        home = place / "home"
        home.mkdir()
        make_home(home, threads)

        async def started(sessions: int) -> dict[str, float]:
            with folder() as own:
                await _make_sessions(own / "state", sessions)
                async with served(own, url, {"DISCOVERY_HOMES": str(home)}) as one:
                    return {"answers": one.answering_s, "ready": one.ready_s}

        sides = {f"{count:,} sessions": partial(started, count) for count in given.pick((0, 10), (0, 1_000, 10_000))}
        took = await in_turn(given.rounds, sides)
    for side, values in took.items():
        found += figures("s", {f"{side}, {what}": values[what] for what in ("answers", "ready")})
        verdicts.append(verdict(f"{side}, s to ready", Spread.of(values["ready"]).median, "<=", 1.0, given))
    return Row(
        id="boot",
        measured=f"start of the process to its first answer and to `ready`, {threads:,} threads in a home",
        beside="no sessions",
        figures=found,
        verdicts=verdicts,
        notes=["`ready` waits for Codex's own start; the threads are in a second home: its own Codex makes itself"],
    )


async def _make_sessions(state: Path, count: int) -> None:
    records = [
        SessionRecord(id=SessionId(f"s{n}"), title=f"session {n}", cwd="/src", created_at_ms=AT_MS + n)
        for n in range(count)
    ]
    async with open_store(state) as store:
        for first in range(0, count, BATCH):
            await store.commit(Changes(sessions=tuple(records[first : first + BATCH])), sync=True)


async def replay(given: Given) -> Row:
    """A long log from its beginning, while more is written."""
    count = given.pick(2_000, 200_000, 1_000_000)
    with model() as url, folder() as place:
        await _make_log(place / "state", count)

        async def rows() -> dict[str, float]:
            return {"rate": await trio.to_thread.run_sync(_read_rows, place / "state" / DATABASE_NAME, count)}

        async with served(place, url, ENDLESS) as one:
            await one.first_turns(["live"])

            async def events() -> dict[str, float]:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_writing, one)
                    began = time.perf_counter()
                    async with one.listening("?after=0") as listener:
                        await _replayed(listener, count)
                    took = time.perf_counter() - began
                    nursery.cancel_scope.cancel()
                return {"rate": count / took}

            took = await in_turn(given.rounds, {"apsw": rows, "replay": events})
    value = ratio(took["replay"]["rate"], took["apsw"]["rate"])
    return Row(
        id="replay",
        measured=f"events a second from `?after=0`, {count:,} stored, while a turn streams",
        beside="reading the same rows by apsw",
        figures=figures("events/s", {side: values["rate"] for side, values in took.items()}),
        verdicts=[verdict("replay ÷ apsw", value, ">=", 0.3, given)],
        notes=[] if given.size == "huge" else ["1,000,000 stored with `--soak`"],
    )


async def _make_log(state: Path, count: int) -> None:
    text = "some words of a model "
    async with open_store(state) as store:
        for first in range(1, count + 1, BATCH):
            events = tuple(
                EventRecord(
                    seq=Seq(seq),
                    at_ms=AT_MS,
                    kind="item/delta",
                    session_id=None,
                    turn_id=None,
                    item_id=None,
                    data_json=b'{"seq":%d,"at":"2026-11-30T21:00:00.000Z","kind":"item/delta","sessionId":null,'
                    b'"attachment":null,"turnId":"019a0000-0000-7000-8000-000000000000","itemId":"msg_1",'
                    b'"channel":"text","delta":"%b"}' % (seq, text.encode()),
                )
                for seq in range(first, min(first + BATCH, count + 1))
            )
            await store.commit(Changes(events=events), sync=False)


def _read_rows(path: Path, count: int) -> float:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        began = time.perf_counter()
        found = sum(1 for _ in db.execute("SELECT * FROM events ORDER BY seq LIMIT ?", (count,)))
        assert found == count
        return count / (time.perf_counter() - began)
    finally:
        db.close()


async def _writing(one: Served) -> None:
    while True:
        await one.turns({"live": "@pace 1ms\n@deltas 500"})


async def _replayed(listener: Listener, count: int) -> None:
    await listener.count(b"event: item/delta", count)
