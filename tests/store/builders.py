"""Records with what a test does not care about filled in, and strategies that fill in everything."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from state.records import (
    Changes,
    CodexAttachment,
    DisposalRecord,
    EventRecord,
    IdempotencyRecord,
    IgnoredThread,
    IntentRecord,
    ItemId,
    ItemRecord,
    KnownThread,
    PromptId,
    PromptRecord,
    Record,
    RequestId,
    RequestRecord,
    RuntimeId,
    RuntimeRecord,
    Seq,
    SessionId,
    SessionRecord,
    ThreadClass,
    ThreadId,
    TurnId,
    TurnRecord,
    Wanted,
)
from state.schema import migrate, released_steps, tune_writer
from state.store import Store, open_store
from state.worker import STATEMENTS_CACHED

R = TypeVar("R", bound=Record)

ATTACHMENT = CodexAttachment(runtime_id=RuntimeId("r1"), generation=1)


@asynccontextmanager
async def store_with(folder: Path, *batches: Changes) -> AsyncIterator[Store]:
    """Open the store in `folder` after committing `batches`."""
    async with open_store(folder) as store:
        for batch in batches:
            await store.commit(batch, sync=False)
        yield store


def memory_database() -> apsw.Connection:
    """Return a connection that is tuned and migrated as the store's own, on a database in memory."""
    db = apsw.Connection(":memory:", statementcachesize=STATEMENTS_CACHED)
    tune_writer(db)
    migrate(db, released_steps())
    return db


def batch_of(*sessions: SessionRecord) -> Changes:
    return Changes(sessions=sessions)


def session(name: str, **fields: Any) -> SessionRecord:
    return SessionRecord(id=SessionId(name), **fields)


def prompt(name: str, of: str, position: int, **fields: Any) -> PromptRecord:
    return PromptRecord(id=PromptId(name), session_id=SessionId(of), position=position, input_json="[]", **fields)


def turn(name: str, of: str, started_at_ms: int, **fields: Any) -> TurnRecord:
    return TurnRecord(
        id=TurnId(name),
        session_id=SessionId(of),
        thread_id=ThreadId("t-" + of),
        ours=True,
        started_at_ms=started_at_ms,
        **fields,
    )


def request(name: str, of: str, opened_at_ms: int, **fields: Any) -> RequestRecord:
    return RequestRecord(
        id=RequestId(name),
        session_id=SessionId(of),
        attachment=ATTACHMENT,
        rpc_id_json="0",
        method="item/commandExecution/requestApproval",
        kind="command",
        thread_id=ThreadId("t-" + of),
        turn_id=None,
        item_id=None,
        params_json="{}",
        opened_at_ms=opened_at_ms,
        **fields,
    )


def item(name: str, of: str, first_seq: int, **fields: Any) -> ItemRecord:
    known = {"type": "agentMessage", "state": "completed", "item_json": "{}", "turn_id": TurnId("t1")}
    return ItemRecord(id=ItemId(name), session_id=SessionId(of), first_seq=Seq(first_seq), **(known | fields))


def wanted(*sessions: str, threads: Iterable[str] = ()) -> Wanted:
    return Wanted(sessions=frozenset(map(SessionId, sessions)), threads=frozenset(map(ThreadId, threads)))


def ignored(thread: str, **fields: Any) -> IgnoredThread:
    return IgnoredThread(**{"thread_id": ThreadId(thread), "reason": "asked", "at_ms": 1, **fields})


def thread(name: str, cls: ThreadClass, **fields: Any) -> KnownThread:
    return KnownThread(thread_id=ThreadId(name), home="/home/u/.codex", cls=cls, reason="seen", **fields)


def event(seq: int, kind: str = "item/delta", of: str | None = None) -> EventRecord:
    return EventRecord(
        seq=Seq(seq),
        at_ms=1_000 + seq,
        kind=kind,
        session_id=None if of is None else SessionId(of),
        turn_id=None if of is None else TurnId("t1"),
        item_id=None if of is None else ItemId("i1"),
        data_json=b'{"seq":%d}' % seq,
    )


def runtime(name: str, started_at_ms: int = 1, **fields: Any) -> RuntimeRecord:
    return RuntimeRecord(
        runtime_id=RuntimeId(name),
        pid=4711,
        start_time="12345",
        transport="unix",
        socket="/run/codex.sock",
        codex_home="/home/u/.codex",
        codex_version="0.171.0",
        codex_path="/usr/bin/codex",
        started_at_ms=started_at_ms,
        **fields,
    )


_S1 = session("s1", thread_id=ThreadId("T1"), status="running", attachment=ATTACHMENT, generation=1)
EVERYTHING: Final = Changes(
    sessions=(_S1,),
    prompts=(prompt("p1", "s1", 7),),
    turns=(turn("t1", "s1", 10),),
    items=(item("i1", "s1", 1, state="open"),),
    requests=(request("q1", "s1", 11),),
    intents=(
        IntentRecord(tag="tag1", session_id=SessionId("s1"), generation=1, kind="start", cwd="/w", created_at_ms=5),
    ),
    ignored=(ignored("T2"),),
    threads=(KnownThread(thread_id=ThreadId("T1"), home="/h", cls="owned", reason="claimed"),),
    disposals=(DisposalRecord(thread_id=ThreadId("T2"), session_id=None, wanted="archive"),),
    idempotency=(IdempotencyRecord(key="k1", fingerprint="f", answer_json="{}", at_ms=1),),
    events=(event(1, of="s1"), event(2)),
    runtime=runtime("r1"),
)
"""One of each: session `s1` owns `T1` and has something open of every kind, `T2` is ignored and to be archived."""

# Everything a JSON string can hold: NUL and the ends of Unicode, but no lone surrogate, which UTF-8 cannot hold either.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INTEGERS = st.integers(-(2**63), 2**63 - 1)


def records(record: type[R]) -> st.SearchStrategy[R]:
    """Draw every field of a record from all that its type allows."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    return st.builds(record, **{field.name: _values(field.type) for field in info.fields})


def _values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.UnionType(types=types):
            return st.one_of(*map(_values, types))
        case inspect.NoneType():
            return st.none()
        case inspect.StrType():
            return TEXTS
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return INTEGERS
        case inspect.BytesType():
            return st.binary(max_size=20)
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.VarTupleType(item_type=item):
            return st.lists(_values(item), max_size=3).map(tuple)
        case inspect.StructType(cls=nested):
            return records(nested)
        case _:
            raise AssertionError(f"no strategy for {kind}: give it one, and look at how `state.rows` keeps it")


def changed(record: R, **fields: Any) -> R:
    return msgspec.structs.replace(record, **fields)
