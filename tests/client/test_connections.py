"""Connections that break, against the real API: a retry is never a second prompt, and a reader misses nothing."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import trio
from support.api_daemon import LINK, Daemon, served

from state.records import ItemId, ThreadId, TurnId
from termald.client import ConnectionFailed, Refused, Termald, connect
from termald.client.events import Done, ItemDelta, PromptEvent, SessionEvent, Synced
from termald.core.inputs import ItemDelta as CodexDelta
from termald.core.inputs import TurnCompleted
from termald.writer import wall_ms


class Scissors:
    """Cuts the connections of requests that begin with `head`, after the given numbers of bytes, in turn."""

    def __init__(self, head: bytes, *cuts: int) -> None:
        self._head = head
        self._cuts: Iterator[int] = iter(cuts)
        self.used = 0

    def __call__(self, request: bytes) -> int | None:
        if not request.startswith(self._head):
            return None
        found = next(self._cuts, None)
        self.used += found is not None
        return found


@asynccontextmanager
async def cut_proxy(target: Path, cut: Scissors) -> AsyncIterator[str]:
    """A way to the daemon that breaks where a test says: the request arrives, and the answer does not, or a stream
    ends in the middle of an event. Gives its address."""
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, partial(_connection, target, cut), 0, host="127.0.0.1")
        (listener,) = await nursery.start(serve)
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def _connection(target: Path, cut: Scissors, near: trio.SocketStream) -> None:
    left: int | None = None

    async def up() -> None:
        nonlocal left
        with suppress(trio.BrokenResourceError):  # a client that hangs up
            async for piece in near:
                if piece.startswith((b"GET ", b"POST ", b"DELETE ")):  # else it is the rest of a request
                    left = cut(bytes(piece))
                await far.send_all(piece)
        nursery.cancel_scope.cancel()

    async with near, await trio.open_unix_socket(str(target)) as far, trio.open_nursery() as nursery:
        nursery.start_soon(up)
        with suppress(trio.BrokenResourceError):
            async for piece in far:
                await near.send_all(piece[:left])
                if left is not None:
                    left -= len(piece)
                    if left <= 0:
                        break
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def connected(folder: Path, scissors: Scissors, reconnect_s: float = 10) -> AsyncIterator[tuple[Termald, Daemon]]:
    async with (
        served(folder, unix=True) as here,
        cut_proxy(Path(str(here.server.listener.path)), scissors) as url,
        connect(url=url, reconnect_s=reconnect_s) as termald,
    ):
        yield termald, here.daemon


async def test_an_answer_that_is_lost_does_not_make_a_second_prompt(tmp_path: Path) -> None:
    scissors = Scissors(b"POST /api/sessions/s/prompts", 0, 20)
    async with connected(tmp_path, scissors) as (termald, _):
        session = await termald.session("s", cwd=tmp_path)
        run = session.run("only once")
        prompt = await run.submit()
        await run.aclose()
        assert [each.id for each in await session.prompts()] == [prompt]
    assert scissors.used == 2


async def test_an_answer_that_is_lost_does_not_make_a_second_session(tmp_path: Path) -> None:
    async with connected(tmp_path, Scissors(b"POST /api/sessions ", 10)) as (termald, _):
        session = await termald.session(cwd=tmp_path)
        assert [each.id for each in await termald.sessions()] == [session.id]


async def test_what_has_no_key_is_not_repeated(tmp_path: Path) -> None:
    """An interrupt that was carried out and is sent again would end the next turn."""
    scissors = Scissors(b"POST /api/sessions/s/interrupt", 0, 0)
    async with connected(tmp_path, scissors) as (termald, _):
        session = await termald.session("s", cwd=tmp_path)
        with pytest.raises(ConnectionFailed):
            await session.interrupt()
    assert scissors.used == 1


async def test_a_stream_that_is_cut_everywhere_gives_each_event_once(tmp_path: Path) -> None:
    cuts = [300, 700, 1000, 150, 5, 900, 2000, 350, 0, 1500]
    async with connected(tmp_path, Scissors(b"GET /api/events", *cuts)) as (termald, _):
        for number in range(12):
            await termald.session(f"s{number}", cwd=tmp_path)
        seen: list[int] = []
        created: list[str | None] = []
        async with termald.events(after=0) as feed:
            async for event in feed:
                if isinstance(event, Synced):
                    break
                seen.append(event.seq)
                created += [event.session_id] if isinstance(event, SessionEvent) else []
    assert seen == list(range(1, len(seen) + 1))
    assert created == [f"s{number}" for number in range(12)]


async def test_a_run_whose_stream_is_cut_ends_with_its_one_done(tmp_path: Path) -> None:
    scissors = Scissors(b"GET /api/sessions/s/events", 900, 600, 1200, 40, 800)
    async with connected(tmp_path, scissors) as (termald, daemon):
        await daemon.link_up()
        session = await termald.session("s", cwd=tmp_path)
        run = session.run("go")
        await run.submit()
        await daemon.open_thread("t1")
        await daemon.start_turn("t1", "u1")
        where = {"link": LINK, "thread": ThreadId("t1"), "turn": TurnId("u1")}
        for piece in ("a", "b", "c"):
            await daemon.hears(
                CodexDelta(at_ms=wall_ms(), item=ItemId("i"), channel="text", delta=piece, **where)  # type: ignore[arg-type]  # one dict of three types
            )
        await daemon.hears(TurnCompleted(at_ms=wall_ms(), status="failed", **where))  # type: ignore[arg-type]  # as above
        found = [event async for event in run]
    assert scissors.used >= 3
    assert [event.delta for event in found if isinstance(event, ItemDelta)] == ["a", "b", "c"]
    assert [event.kind for event in found if isinstance(event, PromptEvent)][-1] == "prompt/failed"
    assert [event for event in found if isinstance(event, Done)] == [found[-1]]
    assert len({event.seq for event in found}) == len(found)


async def test_a_daemon_that_stays_away_is_an_error_after_the_time_that_was_allowed(tmp_path: Path) -> None:
    async with served(tmp_path, unix=True) as here:
        async with cut_proxy(Path(str(here.server.listener.path)), Scissors(b"none")) as url:
            pass
        async with connect(url=url, reconnect_s=0.05) as termald:
            with pytest.raises(ConnectionFailed):
                await termald.sessions()
            async with termald.events() as feed:
                with pytest.raises(ConnectionFailed):
                    await anext(feed)


async def test_a_session_that_was_killed_meanwhile_ends_the_run(tmp_path: Path) -> None:
    async with connected(tmp_path, Scissors(b"GET /api/sessions/s/events", 1500)) as (termald, _):
        session = await termald.session("s", cwd=tmp_path)
        run = session.run("never runs")
        await run.submit()
        assert (await session.kill()).killed
        done = await run.drain()
        assert (done.state, done.turn_id) == ("cancelled", None)


async def test_a_prompt_that_waits_is_taken_back_and_nothing_else_is_interrupted(tmp_path: Path) -> None:
    async with connected(tmp_path, Scissors(b"none")) as (termald, daemon):
        await daemon.link_up()
        session = await termald.session("s", cwd=tmp_path)
        first, second = session.run("first"), session.run("second")
        await first.submit()
        await daemon.open_thread("t1")
        await daemon.start_turn("t1", "u1")
        await second.submit()
        assert (await second.cancel()).state == "cancelled"
        states = [prompt.state for prompt in await session.prompts()]
        assert states == ["acked", "cancelled"]
        await first.aclose()


async def test_a_refusal_carries_its_slug(tmp_path: Path) -> None:
    async with connected(tmp_path, Scissors(b"none")) as (termald, _):
        session = await termald.session("s", cwd=tmp_path)
        with pytest.raises(Refused) as refusal:
            await session.take_back("no-such-prompt")
        assert (refusal.value.slug, refusal.value.status) == ("unknown-prompt", 404)
        with pytest.raises(Refused) as missing:
            await termald.session(cwd=tmp_path / "missing")
        assert missing.value.slug == "cwd-missing"


async def test_a_session_is_created_once_and_continued_after(tmp_path: Path) -> None:
    async with connected(tmp_path, Scissors(b"none")) as (termald, _):
        first = await termald.session("mine", cwd=tmp_path, title="first")
        again = await termald.session("mine", cwd=tmp_path, title="second")
        assert first.id == again.id
        assert (await again.info()).title == "first"
        assert (await again.update(title="third")).title == "third"
        await again.kill()
        with pytest.raises(Refused) as gone:
            await termald.session("mine", cwd=tmp_path)
        assert gone.value.slug == "session-exists"
