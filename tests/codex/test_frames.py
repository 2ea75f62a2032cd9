"""WIRE-01..03, 07..09: whatever bytes arrive, at most the frame that they are is lost."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from termald.codex import frames
from termald.codex.frames import (
    EXCERPT_BYTES,
    Malformed,
    Notification,
    Reply,
    ReplyError,
    ServerRequest,
    decode,
    encode_error,
    encode_notification,
    encode_request,
    encode_response,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
IDS = st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"]))


def text_of(raw: msgspec.Raw | None) -> object:
    return None if raw is None else json.loads(bytes(raw))


@given(st.binary(max_size=300))
def test_no_bytes_make_decode_raise(raw: bytes) -> None:
    decode(raw)


@given(JSON)
def test_no_json_makes_decode_raise(value: object) -> None:
    decode(json.dumps(value).encode())


@given(
    st.dictionaries(
        st.sampled_from(["id", "method", "params", "result", "error", "jsonrpc", "emittedAtMs"]), JSON, max_size=7
    )
)
def test_no_mixture_of_members_makes_decode_raise(value: dict[str, object]) -> None:
    found = decode(json.dumps(value).encode())
    if isinstance(found, Malformed):
        assert len(found.reason) <= EXCERPT_BYTES


@pytest.mark.parametrize("rpc_id", [0, 1, -1, 2**63 - 1, "", "1", "a b"])
def test_ids_keep_their_type(rpc_id: int | str) -> None:
    """REQ-01, WIRE-08: 1 and "1" are two requests, 0 and "" are requests like any other."""
    text = json.dumps(rpc_id).encode()
    asked = decode(b'{"id":%s,"method":"m","params":{}}' % text)
    replied = decode(b'{"id":%s,"result":null}' % text)
    refused = decode(b'{"error":{"code":1,"message":"m"},"id":%s}' % text)
    assert isinstance(asked, ServerRequest)
    assert isinstance(replied, Reply)
    assert isinstance(refused, ReplyError)
    for frame in (asked, replied, refused):
        assert frame.id == rpc_id
        assert type(frame.id) is type(rpc_id)


@pytest.mark.parametrize("rpc_id", ["null", "true", "false", "1.0", "1e0", "[]", "{}", "9223372036854775808"])
def test_what_cannot_be_an_id_is_none(rpc_id: str) -> None:
    """An answer under another id than Codex's own would leave Codex waiting, or answer another request."""
    for tail in ('"result":{}', '"method":"m","params":{}'):
        found = decode(f'{{"id":{rpc_id},{tail}}}'.encode())
        assert isinstance(found, Malformed)
        assert found.id is None


def test_frame_keeps_the_bytes_it_came_as() -> None:
    raw = b'{ "method" : "item/started", "params":{"b":1 , "a":2, "b":3} ,"emittedAtMs":5}'
    found = decode(raw)
    assert isinstance(found, Notification)
    assert found.raw == raw
    assert bytes(found.params) == b'{"b":1 , "a":2, "b":3}'


def test_notification_without_params_has_null() -> None:
    found = decode(b'{"method":"m"}')
    assert isinstance(found, Notification)
    assert bytes(found.params) == b"null"


def test_duplicate_member_is_read_as_its_last() -> None:
    found = decode(b'{"id":1,"result":1,"id":2,"result":2}')
    assert isinstance(found, Reply)
    assert (found.id, text_of(found.result)) == (2, 2)


@pytest.mark.parametrize(
    ("error", "code", "message", "data"),
    [
        ('{"code":-32001,"message":"busy","data":{"a":1}}', -32001, "busy", {"a": 1}),
        ('{"code":-1,"message":"m","data":null}', -1, "m", None),
        ('{"code":"x","message":["m"]}', 0, '{"code":"x","message":["m"]}', None),
        ('"boom"', 0, '"boom"', None),
    ],
)
def test_error_of_any_shape_is_a_refusal_kept_whole(error: str, code: int, message: str, data: object) -> None:
    """WIRE-09: who waits for the reply hears of it, and of nothing that was not said."""
    found = decode(f'{{"error":{error},"id":7}}'.encode())
    assert isinstance(found, ReplyError)
    assert (found.id, found.code, found.message, text_of(found.data)) == (7, code, message, data)


def test_null_error_beside_a_result_is_a_success() -> None:
    assert isinstance(decode(b'{"id":1,"result":{},"error":null}'), Reply)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"Codex 0.163 ready",
        b"\x1b[31mERROR\x1b[0m",
        b"{",
        b"[1]",
        b"\xef\xbb\xbf{}",
        b'{"id":1,"result":"\x00"}',
        b'{"id":1,"result":"\\ud800"}',
        b'{"id":1,"result":01}',
        b'{"id":1,"result":{}} trailing',
        b'{"id":1,"result":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"method":5}',
        b'{"method":null,"id":1}',
        b'{"id":1}',
        b"{}",
    ],
)
def test_what_is_no_frame_is_malformed_with_a_bounded_harmless_excerpt(raw: bytes) -> None:
    """WIRE-02, WIRE-03: banners, escape codes and garbage are skipped; the log must not be their terminal."""
    found = decode(raw)
    assert isinstance(found, Malformed)
    assert found.excerpt.isprintable() or not found.excerpt
    assert len(found.excerpt) <= 6 * EXCERPT_BYTES


def test_bad_utf8_below_the_members_is_left_to_the_payload() -> None:
    """WIRE-03: the frame is known, so that its request can be failed rather than waited for."""
    found = decode(b'{"id":1,"result":{"a":"\xff"}}')
    assert isinstance(found, Reply)
    assert bytes(found.result) == b'{"a":"\xff"}'


def test_unreadable_reply_still_names_its_call() -> None:
    """WIRE-03: a reply with a lone surrogate fails its request at once instead of at its deadline."""
    found = decode(b'{"id":41,"result":{"preview":"\\ud83d"}}')
    assert isinstance(found, Malformed)
    assert found.id == 41


@pytest.mark.parametrize(
    "head", [b'{"method":"m","params":{"id":41,"result":', b'{"thread":{"id":41,"result":', b'{"id":true,"result":']
)
def test_id_of_something_else_is_not_taken_for_the_replys(head: bytes) -> None:
    assert frames.reply_id(head) is None


@given(IDS, JSON)
def test_what_is_encoded_is_decoded(rpc_id: int | str, value: object) -> None:
    asked = decode(encode_request(rpc_id, "m", value))
    assert isinstance(asked, ServerRequest)
    assert (asked.id, asked.method, text_of(asked.params)) == (rpc_id, "m", value)
    replied = decode(encode_response(rpc_id, value))
    assert isinstance(replied, Reply)
    assert (replied.id, text_of(replied.result)) == (rpc_id, value)
    refused = decode(encode_error(rpc_id, -32601, "no"))
    assert isinstance(refused, ReplyError)
    assert (refused.id, refused.code, refused.message) == (rpc_id, -32601, "no")


def test_answer_goes_out_under_the_id_as_it_was_written() -> None:
    assert encode_response(msgspec.Raw(b'"a\\u0000"'), {}) == b'{"id":"a\\u0000","result":{}}'
    assert encode_notification("initialized") == b'{"method":"initialized"}'
