"""Codex's list of its threads, in and out of its words."""

import json
from typing import Any

import pytest

from state.records import ThreadId
from termald.codex.translate.listing import ListUnreadable, ask_thread, ask_threads, read_tag, read_threads

PARENT = "01a22e63-6b4b-7c53-b78c-f699a345c7e3"
THREAD: dict[str, Any] = {
    "id": "T", "status": {"type": "notLoaded"}, "originator": "codex_cli", "source": "cli", "name": None,
    "preview": "hello", "cwd": "/w", "createdAt": 10, "updatedAt": 20, "path": "/h/sessions/r.jsonl",
    "model": "m", "modelProvider": "p", "threadSource": None,
}  # fmt: skip


def listed(**fields: Any) -> Any:
    told, _ = read_threads(json.dumps({"data": [{**THREAD, **fields}]}), "/h", "termald", archived=False)
    return told[0] if told else None


def test_every_filter_is_named() -> None:
    """Defaults hide the threads of other providers, of sub-agents and of programs, and have Codex mend its state DB."""
    method, params_json = ask_threads("c", 7, archived=True)
    params = json.loads(params_json)
    assert method == "thread/list"
    assert {name: params[name] for name in ("archived", "cursor", "limit", "modelProviders", "useStateDbOnly")} == {
        "archived": True, "cursor": "c", "limit": 7, "modelProviders": [], "useStateDbOnly": True,
    }  # fmt: skip
    assert {"cli", "vscode", "exec", "appServer", "subAgent", "unknown"} <= set(params["sourceKinds"])


def test_a_thread_is_read_with_all_that_is_told_of_it() -> None:
    thread = listed()
    assert (thread.thread_id, thread.home, thread.cls, thread.source) == ("T", "/h", "discovered", "cli")
    assert (thread.preview, thread.cwd, thread.model, thread.model_provider) == ("hello", "/w", "m", "p")
    assert (thread.created_at_ms, thread.updated_at_ms, thread.rollout_path) == (10_000, 20_000, "/h/sessions/r.jsonl")
    assert thread.stamp == listed().stamp != listed(updatedAt=21).stamp


@pytest.mark.parametrize(("originator", "tag"), [("codex_cli", ""), ("termald", None), (None, None)])
def test_only_what_another_program_began_is_known_to_bear_no_tag(originator: str | None, tag: str | None) -> None:
    assert listed(originator=originator).tag == tag


def test_another_threads_work_names_its_parent() -> None:
    source = {"subAgent": {"thread_spawn": {"parent_thread_id": PARENT}}}
    assert (listed(source=source).cls, listed(source=source).parent_thread_id) == ("child", PARENT)
    assert (listed(source={"subAgent": "review"}).cls, listed(source="vscode").cls) == ("child", "discovered")
    assert listed(ephemeral=True) is None


def test_what_is_no_list_is_said_to_be_none() -> None:
    for junk in ("[]", "{", '{"data": [{"id": 7}]}'):
        with pytest.raises(ListUnreadable):
            read_threads(junk, "/h", "termald", archived=False)
        with pytest.raises(ListUnreadable):
            read_tag(junk)


def test_the_tag_is_read_without_the_turns() -> None:
    method, params_json = ask_thread(ThreadId("T"))
    assert (method, json.loads(params_json)) == ("thread/read", {"threadId": "T", "includeTurns": False})
    assert read_tag(json.dumps({"thread": {**THREAD, "threadSource": "termald:h:s:1"}})) == "termald:h:s:1"
    assert read_tag(json.dumps({"thread": THREAD})) is None
