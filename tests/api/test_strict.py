"""Bodies and cursors from anybody: whatever comes, it is read or refused, and the refusal points at what is there."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.records import ItemId as Item
from state.records import RequestId, Seq, SessionId, ThreadId, TurnId
from state.views import Cursor, ItemCursor, RequestCursor, SessionCursor, ThreadCursor, TurnCursor
from termald.api import bodies
from termald.api.cursors import read_cursor, write_cursor
from termald.api.problems import ProblemError
from termald.api.strict import Body, fingerprint, read_body

MODELS: tuple[type[Body], ...] = (
    bodies.CreateSession,
    bodies.PatchSession,
    bodies.SubmitPrompt,
    bodies.AnswerRequest,
    bodies.KillSession,
    bodies.RetrySession,
    bodies.IgnoreThread,
    bodies.Nothing,
)
names = st.sampled_from(
    sorted({field.encode_name for model in MODELS for field in msgspec.structs.fields(model)} | {"type", "text", "a/b"})
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


def resolve(document: Any, pointer: str) -> bool:
    """Whether the pointer leads somewhere, or to a field that is missing from an object that is there."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.removeprefix("#").split("/")[1:]]
    for index, step in enumerate(steps):
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list) and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            return index == len(steps) - 1 and isinstance(document, dict)
    return True


@given(model=st.sampled_from(MODELS), value=st.dictionaries(names, anything, max_size=6) | anything)
def test_any_json_is_read_or_refused_with_pointers_that_lead_somewhere(model: type[Body], value: Any) -> None:
    try:
        body = read_body(json.dumps(value).encode(), model)
    except ProblemError as refusal:
        assert refusal.slug == "invalid-request"
        assert refusal.errors
        for error in refusal.errors:
            assert isinstance(error.pointer, str)
            assert "..." in error.pointer or resolve(value, error.pointer), (value, error)
    else:
        assert isinstance(body, model)


@given(model=st.sampled_from(MODELS), raw=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(model: type[Body], raw: bytes) -> None:
    try:
        read_body(raw, model)
    except ProblemError as refusal:
        assert refusal.slug in ("malformed-body", "invalid-request")


@given(value=st.dictionaries(st.text(max_size=5), anything, max_size=5))
def test_a_fingerprint_is_of_what_is_said_and_not_of_how(value: dict[str, Any]) -> None:
    plain = json.dumps(value).encode()
    other_way = json.dumps(dict(reversed(value.items())), indent=2, ensure_ascii=False).encode()
    assert fingerprint("POST", "/p", plain) == fingerprint("POST", "/p", other_way)
    assert fingerprint("POST", "/p", plain) != fingerprint("POST", "/q", plain)
    assert fingerprint("POST", "/p", plain) != fingerprint("PUT", "/p", plain)
    assert fingerprint("POST", "/p", plain) != fingerprint("POST", "/p", json.dumps({**value, "more": 1}).encode())


cursors: st.SearchStrategy[Cursor] = st.one_of(
    st.builds(SessionCursor, st.integers(0, 2**53), st.text().map(SessionId)),
    st.builds(TurnCursor, st.integers(0, 2**53), st.text().map(TurnId)),
    st.builds(ItemCursor, st.integers(0, 2**53).map(Seq), st.text().map(TurnId), st.text().map(Item)),
    st.builds(RequestCursor, st.integers(0, 2**53), st.text().map(RequestId)),
    st.builds(ThreadCursor, st.text().map(ThreadId)),
)


@given(cursor=cursors, filters=st.lists(st.none() | st.text(), max_size=3))
def test_a_cursor_comes_back_as_it_was_and_only_where_it_belongs(cursor: Cursor, filters: list[str | None]) -> None:
    text = write_cursor(cursor, "list", *filters)
    assert text is not None
    assert read_cursor(text, type(cursor), "list", *filters) == cursor
    for listing, others in (("other", filters), ("list", [*filters, None]), ("list", [*filters, "x"])):
        with pytest.raises(ProblemError, match="another list"):
            read_cursor(text, type(cursor), listing, *others)


@given(text=st.text() | st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"))
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    with pytest.raises(ProblemError, match="invalid-request"):
        read_cursor(text, SessionCursor, "list")


def test_a_list_begins_without_a_cursor_and_ends_without_one() -> None:
    assert read_cursor(None, SessionCursor, "list") is None
    assert write_cursor(None, "list") is None
