"""A sub-agent's thread is told from a conversation, in either spelling and any order of keys (DISC-11)."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scan.facts import PARENT, SPAWNED

from discovery.source import Source, read_source

IN_OTHER_ORDER = json.dumps(
    {"subagent": {"thread_spawn": {"agent_role": None, "depth": 3, "parent_thread_id": PARENT}}}, indent=2
)
OVER_THE_WIRE = json.dumps({"subAgent": {"thread_spawn": {"depth": 1, "parent_thread_id": PARENT}}})


@pytest.mark.parametrize(
    "text", [SPAWNED, IN_OTHER_ORDER, OVER_THE_WIRE, OVER_THE_WIRE.replace("subAgent", "sub_agent")]
)
def test_a_spawned_thread_names_its_parent(text: str) -> None:
    source = read_source(text)
    assert (source.subagent, source.parent) == (True, PARENT)


@pytest.mark.parametrize("text", ['{"subagent":"review"}', '{"subAgent":"compact"}', '{"subagent":{"other":"x"}}'])
def test_other_subagents_are_told_even_without_a_parent(text: str) -> None:
    source = read_source(text)
    assert (source.subagent, source.parent) == (True, None)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("cli", "cli"),
        ('"vscode"', "vscode"),
        ('{"custom":"atlas"}', "custom"),
        ('{"parent_thread_id":"x"}', "parent_thread_id"),
        ("subagent", "subagent"),
        ("", ""),
        ("{torn", "{torn"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_a_conversation_is_nobodys_child(text: str, kind: str) -> None:
    assert read_source(text) == Source(kind=kind)


@given(st.text())
@example("\ud800")
@example('{"subagent":{"a":{"b":{"c":{"d":{"parent_thread_id":"too deep"}}}}}}')
@example('{"subagent":{"thread_spawn":{"parent_thread_id":7}}}')
def test_no_text_raises(text: str) -> None:
    assert read_source(text).parent is None
