"""Take, decide, commit, act: nothing is seen before it is committed, and nothing that was said is lost."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
import trio
from support.memory_store import MemoryStore
from trio.testing import MockClock

from state.errors import StoreFull, StoreRefused
from state.records import Changes, EventRecord, Host, LinkId, Loaded, PromptId, RuntimeId, Seq, SessionId, Wanted
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core import step as core_step
from termald.core.state import State
from termald.timers import Timers
from termald.writer import Frame, Writer

LINK = LinkId(runtime_id=RuntimeId("R1"), connection=1)


class SlowStore:
    """A store in memory whose commits are seen, may be held, and may fail."""

    def __init__(self) -> None:
        self.inner = MemoryStore(Host(id="h", epoch=1))
        self.seen: list[str] = []
        self.errors: list[Exception] = []
        self.gate: trio.Event | None = None

    async def load(self, wanted: Wanted) -> Loaded:
        await trio.lowlevel.checkpoint()
        return await self.inner.load(wanted)

    async def commit(self, changes: Changes, *, sync: bool) -> None:
        if self.gate is not None:
            await self.gate.wait()
        await trio.lowlevel.checkpoint()
        if self.errors:
            raise self.errors.pop(0)
        await self.inner.commit(changes, sync=sync)
        self.seen.append("synced" if sync else "committed")


class Bench:
    """A writer between a store and lists."""

    def __init__(self) -> None:
        self.store = SlowStore()
        self.published: list[EventRecord] = []
        self.sent: list[Frame] = []
        self.writer = Writer(
            State(Host(id="h", epoch=1), Seq(1)),
            self.store,
            publish=self._publish,
            send=self._send,
            restart=lambda: self.store.seen.append("restart"),
            new_session_id=lambda: SessionId("new"),
            timers=lambda fire: Timers(fire, lambda: 7, Random(1)),
            now_ms=lambda: 7,
        )

    def _publish(self, events: Sequence[EventRecord]) -> None:
        self.store.seen.append("published")
        self.published += events

    def _send(self, frame: Frame) -> None:
        self.store.seen.append("sent")
        self.sent.append(frame)

    async def create(self, session: str = "s", prompt: str | None = "p") -> fx.Answer:
        new = None if prompt is None else ins.NewPrompt(id=PromptId(prompt), input_json="[]")
        settings = ins.SessionSettings(cwd="/work")
        name = SessionId(session)
        return await self.writer.ask(
            lambda t, at: ins.CreateSession(ticket=t, at_ms=at, session=name, settings=settings, prompt=new)
        )


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_promise_is_synced_before_anything_of_it_is_seen(bench: Bench, nursery: trio.Nursery) -> None:
    nursery.start_soon(bench.writer.run)
    bench.writer.put(ins.LinkUp(at_ms=1, link=LINK, adopted=False))
    await bench.writer.settled()
    bench.store.seen.clear()
    bench.store.gate = trio.Event()
    answers: list[fx.Answer] = []

    async def create() -> None:
        answers.append(await bench.create())

    nursery.start_soon(create)
    await trio.testing.wait_all_tasks_blocked()
    assert bench.store.seen == []
    assert answers == []
    bench.store.gate.set()
    await bench.writer.settled()
    assert bench.store.seen == ["synced", "published", "sent"]
    assert isinstance(bench.sent[0], fx.Send)


async def test_a_batch_of_streamed_text_alone_is_not_synced(bench: Bench, nursery: trio.Nursery) -> None:
    nursery.start_soon(bench.writer.run)
    bench.writer.put(ins.LinkUp(at_ms=1, link=LINK, adopted=False))
    bench.writer.put(ins.RawNotice(at_ms=1, link=LINK, method="warning", params_json="{}"))
    await bench.writer.settled()
    assert "synced" not in bench.store.seen
    assert [event.kind for event in bench.published] == ["codex/raw"]


async def test_many_commands_at_once_are_committed_as_one(bench: Bench, nursery: trio.Nursery) -> None:
    async with trio.open_nursery() as callers:
        for number in range(50):
            callers.start_soon(bench.create, f"s{number}", None)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(bench.writer.run)
    assert bench.store.seen.count("synced") == 1
    assert len(bench.store.inner.sessions) == 50


async def test_a_failed_commit_tells_callers_and_decides_the_rest_again(
    bench: Bench, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    nursery.start_soon(bench.writer.run)
    bench.writer.put(ins.LinkUp(at_ms=1, link=LINK, adopted=False))
    await bench.writer.settled()
    bench.store.errors = [StoreFull("no space"), StoreFull("no space")]
    bench.writer.put(ins.RawNotice(at_ms=1, link=LINK, method="warning", params_json="{}"))
    answer = await bench.create()
    assert isinstance(answer, fx.Refused)
    assert answer.problem.slug == "store-unavailable"
    assert answer.problem.retryable
    await bench.writer.settled()
    assert [event.kind for event in bench.published] == ["codex/raw"]
    assert [event.seq for event in bench.published] == [1]
    assert bench.writer.statistics().commit_failures == 2
    assert isinstance(await bench.create(), fx.SessionAnswer)  # control: done once when asked again
    seqs = [event.seq for event in bench.published]
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.parametrize("fault", ["raises", "refused by the schema"])
async def test_an_input_that_cannot_be_handled_is_set_aside_alone(
    bench: Bench, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    real = core_step.HANDLERS[ins.CreateSession]

    def handler(work: Any, command: ins.CreateSession) -> None:
        if command.session == "bad" and fault == "raises":
            real(work, command)
            raise RuntimeError("a mistake of ours")
        real(work, command)

    handlers: dict[Any, Any] = dict[Any, Any](core_step.HANDLERS)
    monkeypatch.setattr(core_step, "HANDLERS", handlers | {ins.CreateSession: handler})
    answers: dict[str, fx.Answer] = {}

    async def create(name: str) -> None:
        answers[name] = await bench.create(name, None)

    if fault == "refused by the schema":
        real_commit = bench.store.inner.commit

        async def commit(changes: Changes, *, sync: bool) -> None:
            if any(record.id == "bad" for record in changes.sessions):
                raise StoreRefused("a rule of the schema")
            await real_commit(changes, sync=sync)

        monkeypatch.setattr(bench.store.inner, "commit", commit)
    async with trio.open_nursery() as callers:
        for name in ("before", "bad", "after"):
            callers.start_soon(create, name)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(bench.writer.run)
    assert set(bench.store.inner.sessions) == {"before", "after"}
    assert isinstance(answers["bad"], fx.Refused)
    assert answers["bad"].problem.slug == "internal"
    assert isinstance(answers["after"], fx.SessionAnswer)
    assert bench.writer.statistics().set_aside == 1
    seqs = [event.seq for event in bench.published]
    assert seqs == list(range(1, len(seqs) + 1))


async def test_a_caller_that_leaves_does_not_take_its_command_back(bench: Bench, nursery: trio.Nursery) -> None:
    with trio.move_on_after(0):
        await bench.create()
    nursery.start_soon(bench.writer.run)
    await bench.writer.settled()
    assert set(bench.store.inner.sessions) == {"s"}


async def test_a_closed_writer_refuses_and_answers_those_that_wait(bench: Bench, nursery: trio.Nursery) -> None:
    answers: list[fx.Answer] = []

    async def create() -> None:
        answers.append(await bench.create())

    nursery.start_soon(create)
    await trio.testing.wait_all_tasks_blocked()
    bench.writer.close("stopping")
    await trio.testing.wait_all_tasks_blocked()
    late = await bench.create("late")
    assert [answer.problem.slug for answer in (*answers, late) if isinstance(answer, fx.Refused)] == [
        "runtime-unavailable",
        "runtime-unavailable",
    ]


async def test_a_commit_under_way_is_not_cut(bench: Bench) -> None:
    bench.store.gate = trio.Event()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            inner.start_soon(bench.writer.run)
            inner.start_soon(bench.create)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            bench.store.gate.set()
    assert set(bench.store.inner.sessions) == {"s"}
    assert [event.kind for event in bench.published] == ["session/created", "prompt/accepted"]
