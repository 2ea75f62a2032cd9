"""Facts for the policy, plain and drawn."""

from typing import Any

from hypothesis import strategies as st

from discovery.policy import ThreadFacts
from state.records import IgnoredThread, IntentRecord, KnownThread, SessionId, ThreadId
from state.tags import mint_tag

HOST = "host-1"
PARENT = "01a22e63-6b4b-7c53-b78c-f699a345c7e3"
SPAWNED = '{"subagent":{"thread_spawn":{"parent_thread_id":"' + PARENT + '","depth":1,"agent_path":null}}}'


def known(thread_id: str = "t1", **fields: Any) -> KnownThread:
    """A thread as a scan tells of it: somebody's conversation, with two messages."""
    return KnownThread(
        **{
            "thread_id": ThreadId(thread_id),
            "home": "/home/u/.codex",
            "cls": "discovered",
            "reason": "seen",
            "source": "cli",
            "tag": "",
            "cwd": "/src",
            "rollout_path": f"/home/u/.codex/sessions/2026/11/30/rollout-{thread_id}.jsonl",
            "message_count": 2,
            "created_at_ms": 1_000_000,
            "stamp": "s1",
            **fields,
        }
    )


def facts(thread: KnownThread | None = None, **fields: Any) -> ThreadFacts:
    """Facts about a thread that nobody owns or ignores, unless `fields` say otherwise."""
    return ThreadFacts(thread=thread or known(), host_id=HOST, **fields)


def intent(**fields: Any) -> IntentRecord:
    """An open intent of session `docs`, generation 1."""
    session = SessionId("docs")
    return IntentRecord(
        **{
            "tag": mint_tag(HOST, session, 1),
            "session_id": session,
            "generation": 1,
            "kind": "start",
            "cwd": "/src",
            "created_at_ms": 1_000_000,
            **fields,
        }
    )


def ignored(thread_id: str = "t1", reason: str = "killed") -> IgnoredThread:
    return IgnoredThread(thread_id=ThreadId(thread_id), reason=reason, at_ms=1)


session_ids = st.text(max_size=8).map(SessionId)
sources = st.one_of(
    st.sampled_from(
        ["cli", "vscode", "exec", "unknown", '"vscode"', SPAWNED, '{"subagent":"review"}', '{"custom":"x"}']
    ),
    st.text(max_size=20),
)
tags = st.one_of(
    st.none(),
    st.just(""),
    st.text(max_size=20),
    st.builds(mint_tag, st.sampled_from([HOST, "host-2"]), session_ids, st.integers(0, 9)),
)
threads = st.builds(
    known,
    source=sources,
    tag=tags,
    archived=st.booleans(),
    parent_thread_id=st.sampled_from([None, PARENT]),
    rollout_path=st.sampled_from([None, "/r.jsonl"]),
    message_count=st.sampled_from([None, 0, 1, 7]),
)
intents = st.builds(
    intent,
    state=st.sampled_from(["open", "claimed", "ignored", "discarded", "orphan"]),
    thread_id=st.sampled_from([None, "t1", "t2"]),
    kind=st.sampled_from(["start", "fork"]),
    session_id=session_ids,
)
any_facts = st.builds(
    facts,
    threads,
    owner=st.none() | session_ids,
    ignored=st.none() | st.builds(ignored, reason=st.text(max_size=8)),
    intent=st.none() | intents,
    suspects=st.lists(intents, max_size=2).map(tuple),
    setup_open=st.booleans(),
    parent_owner=st.none() | session_ids,
    parent_ignored=st.booleans(),
    ephemeral=st.booleans(),
    stored=st.booleans(),
)
