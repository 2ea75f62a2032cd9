"""What one frame is, and how one is written. Pure, and total: no bytes make `decode` raise.

Codex's app-server speaks JSON-RPC without the "jsonrpc" member. A frame has a method (a request if it has an id as
well, else a notification) or it has none (a reply or an error reply). Ids are compared with their type: 1 and "1" are
two, 0 and "" are good ones, and null, true and 1.0 are none at all. Everything below the frame's own members stays
bytes, so that what Codex sent is kept as it was, and a payload that cannot be read costs nobody but itself (I8).
"""

import re
from typing import Final

import msgspec

RpcId = int | str

EXCERPT_BYTES: Final = 200
# Codex's own ids are 64-bit; one beyond that could not be answered with the same value.
_ID_MIN: Final = -(2**63)
_ID_MAX: Final = 2**63 - 1
# A successful reply begins like this. Only there can an id be trusted without reading the whole frame: deeper down an
# "id" is a thread's or an item's.
_REPLY_HEAD: Final = re.compile(rb'\s*\{\s*"id"\s*:\s*(-?\d{1,19}|"(?:[^"\\]|\\.)*")\s*,\s*"result"\s*:')


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what a frame may be. `raw` is the frame as it came, without its line end."""

    raw: bytes


class Reply(Frame, frozen=True, kw_only=True):
    """The result of a request of ours."""

    id: RpcId
    result: msgspec.Raw


class ReplyError(Frame, frozen=True, kw_only=True):
    """The refusal of a request of ours.

    `code` is 0 where Codex gave no whole number; `data` is None where it gave none.
    """

    id: RpcId
    code: int
    message: str
    data: msgspec.Raw | None


class Notification(Frame, frozen=True, kw_only=True):
    """Something that nobody asked for. `params` is `null` where the frame has none."""

    method: str
    params: msgspec.Raw


class ServerRequest(Frame, frozen=True, kw_only=True):
    """Codex asks, and waits for an answer under this id."""

    id: RpcId
    method: str
    params: msgspec.Raw


class Malformed(msgspec.Struct, frozen=True, kw_only=True):
    """Not a frame. `excerpt` is its beginning, escaped and bounded, for a log; `id` the call that it would have
    answered, where that much can be told."""

    reason: str
    excerpt: str
    id: RpcId | None = None


Decoded = Reply | ReplyError | Notification | ServerRequest | Malformed

_ABSENT: Final = msgspec.Raw(b"")
_NULL: Final = msgspec.Raw(b"null")


class _Members(msgspec.Struct, frozen=True):
    """The members that make a frame what it is; of a member given twice the last counts, as in every JSON reader."""

    id: msgspec.Raw = _ABSENT
    method: msgspec.Raw = _ABSENT
    params: msgspec.Raw = _NULL
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


class _Error(msgspec.Struct, frozen=True):
    code: msgspec.Raw = _NULL
    message: msgspec.Raw = _NULL
    data: msgspec.Raw = _NULL


_decode_members = msgspec.json.Decoder(_Members).decode
_decode_error = msgspec.json.Decoder(_Error).decode
_decode_id = msgspec.json.Decoder(RpcId).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_int = msgspec.json.Decoder(int).decode

# What msgspec raises for bytes it does not like: DecodeError and ValidationError are both ValueErrors' kin, a lone
# surrogate or bad UTF-8 is a UnicodeDecodeError, too deep a nesting a RecursionError.
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


def decode(raw: bytes) -> Decoded:
    """Return what the frame is. Never raises; a frame that is none of them is `Malformed`, with the reason."""
    try:
        members = _decode_members(raw)
    except _UNREADABLE as error:
        return malformed(f"not a JSON object: {error}", raw)
    if _is_given(members.method):
        return _decode_call(raw, members)
    return _decode_reply(raw, members)


def malformed(reason: str, raw: bytes) -> Malformed:
    """Return the frame as one that cannot be used, with what can still be said about it."""
    return Malformed(reason=reason[:EXCERPT_BYTES], excerpt=excerpt(raw), id=reply_id(raw))


def excerpt(raw: bytes) -> str:
    """Return the beginning of some bytes, escaped so that no terminal and no log is harmed by it."""
    text = raw[:EXCERPT_BYTES].decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def reply_id(head: bytes) -> RpcId | None:
    """Return the id of the reply that begins with these bytes; None if they are not clearly one's beginning."""
    match = _REPLY_HEAD.match(head)
    return _readable_id(msgspec.Raw(match[1])) if match is not None else None


def encode_request(rpc_id: RpcId, method: str, params: object) -> bytes:
    """Return a request of ours.

    `params`: anything msgspec encodes; bytes that are JSON already go in as `msgspec.Raw`.
    """
    return msgspec.json.encode({"id": rpc_id, "method": method, "params": params})


def encode_notification(method: str) -> bytes:
    """Return a notification of ours. The only one there is has no params."""
    return msgspec.json.encode({"method": method})


def encode_response(rpc_id: RpcId | msgspec.Raw, result: object) -> bytes:
    """Return the answer to a request of Codex's, under the very id that it came with."""
    return msgspec.json.encode({"id": rpc_id, "result": result})


def encode_error(rpc_id: RpcId | msgspec.Raw, code: int, message: str) -> bytes:
    """Return the refusal of a request of Codex's."""
    return msgspec.json.encode({"id": rpc_id, "error": {"code": code, "message": message}})


def _decode_call(raw: bytes, members: _Members) -> Decoded:
    method = _readable_text(members.method)
    if method is None:
        return malformed("the method is not a string", raw)
    if not _is_given(members.id):
        return Notification(raw=raw, method=method, params=members.params)
    rpc_id = _readable_id(members.id)
    if rpc_id is None:
        return malformed(f"{method}: no request can be answered under the id {excerpt(bytes(members.id))}", raw)
    return ServerRequest(raw=raw, id=rpc_id, method=method, params=members.params)


def _decode_reply(raw: bytes, members: _Members) -> Decoded:
    rpc_id = _readable_id(members.id) if _is_given(members.id) else None
    if rpc_id is None:
        return malformed("neither a method nor an id that could be ours", raw)
    if _is_given(members.error) and bytes(members.error) != b"null":
        return _refusal(raw, rpc_id, members.error)
    if _is_given(members.result):
        return Reply(raw=raw, id=rpc_id, result=members.result)
    return Malformed(reason="a reply with neither result nor error", excerpt=excerpt(raw), id=rpc_id)


def _refusal(raw: bytes, rpc_id: RpcId, error: msgspec.Raw) -> ReplyError:
    """An error of whatever shape is still a refusal: who waits for the reply must hear of it."""
    try:
        parts = _decode_error(error)
    except _UNREADABLE:
        return ReplyError(raw=raw, id=rpc_id, code=0, message=excerpt(bytes(error)), data=None)
    text = _readable_text(parts.message)
    return ReplyError(
        raw=raw,
        id=rpc_id,
        code=_readable_int(parts.code) or 0,
        message=excerpt(bytes(error)) if text is None else text,
        data=None if bytes(parts.data) == b"null" else parts.data,
    )


def _is_given(member: msgspec.Raw) -> bool:
    return member is not _ABSENT  # the default itself; a look at the bytes would copy a result of 16 MiB


def _readable_text(member: msgspec.Raw) -> str | None:
    try:
        return _decode_text(member)
    except _UNREADABLE:
        return None


def _readable_int(member: msgspec.Raw) -> int | None:
    try:
        return _decode_int(member)
    except _UNREADABLE:
        return None


def _readable_id(member: msgspec.Raw) -> RpcId | None:
    """The id, if it is a string or a whole 64-bit number written as one: 1.0 and true are other values."""
    try:
        rpc_id = _decode_id(member)
    except _UNREADABLE:
        return None
    return rpc_id if isinstance(rpc_id, str) or _ID_MIN <= rpc_id <= _ID_MAX else None
