"""A Responses request, read: who asks, what the user said, how far the turn has come, which tools are offered.

Reads what Codex 0.163 and 0.171 send and any other client of the Responses API: identification is taken from Codex's
`client_metadata` where it is there. Unknown fields and item types are passed over, since this is somebody else's
protocol and it grows.
"""

import re
from typing import Any

import msgspec

from termald.scripted_model.tools import Tools

# Codex speaks to the model in the user's role too. Such a message is one element of these kinds and nothing else.
_CONTEXT_TAGS = (
    "environment_context",
    "user_instructions",
    "turn_aborted",
    "user_shell_command",
    "subagent_notification",
    "skill",
)
_CONTEXT = re.compile(rf"\s*<({'|'.join(_CONTEXT_TAGS)})>.*</\1>\s*", re.DOTALL)
_AGENTS_FILE = "# AGENTS.md instructions"

_TOOL_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_TOOL_OUTPUTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


class BadRequestError(ValueError):
    """The body is not a Responses request; the message says what is missing."""


class ModelRequest(msgspec.Struct, frozen=True):
    """What one model call asks.

    `user_texts` is everything the user said in this history, oldest first, without what Codex adds in the user's name;
    `images` counts the images of the last one. `tool_calls` and `tool_outputs` are those since the last user text.
    `kind` is Codex's own word (`turn`, `compaction`, …).
    """

    model: str
    user_texts: tuple[str, ...]
    images: int
    tool_calls: int
    tool_outputs: tuple[str, ...]
    developer_texts: tuple[str, ...]
    tools: Tools
    thread_id: str | None
    turn_id: str | None
    kind: str | None
    effort: str | None
    service_tier: str | None
    output_schema: dict[str, Any] | None

    @property
    def prompt(self) -> str:
        """The last thing the user said; empty when nothing was."""
        return self.user_texts[-1] if self.user_texts else ""


class _Reasoning(msgspec.Struct):
    effort: str | None = None


class _Format(msgspec.Struct):
    type: str | None = None
    schema: dict[str, Any] | None = None


class _Text(msgspec.Struct):
    format: _Format | None = None


class _Body(msgspec.Struct):
    model: str
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None
    stream: bool = False
    reasoning: _Reasoning | None = None
    text: _Text | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    client_metadata: dict[str, Any] | None = None


class _TurnMetadata(msgspec.Struct):
    request_kind: str | None = None


_decoder = msgspec.json.Decoder(_Body)


def read_request(body: bytes) -> ModelRequest:
    """Return the request in this body.

    Errors: `BadRequestError` when it is not JSON, `model` or `input` is missing or of another type, or no stream is
    wanted.
    """
    try:
        parsed = _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise BadRequestError(f"not a Responses request: {error}") from error
    if not parsed.stream:
        raise BadRequestError("this endpoint answers as a stream and in no other way; ask with `stream: true`")
    items = [{"role": "user", "content": parsed.input}] if isinstance(parsed.input, str) else parsed.input
    user_texts, images, since_prompt = _user_texts(items)
    metadata = parsed.client_metadata or {}
    return ModelRequest(
        model=parsed.model,
        user_texts=tuple(user_texts),
        images=images,
        tool_calls=sum(item.get("type") in _TOOL_CALLS for item in since_prompt),
        tool_outputs=tuple(_plain(item.get("output")) for item in since_prompt if item.get("type") in _TOOL_OUTPUTS),
        developer_texts=_developer_texts(parsed.instructions, items),
        tools=Tools.read(parsed.tools or []),
        thread_id=_text_or_none(metadata.get("thread_id")) or parsed.prompt_cache_key,
        turn_id=_text_or_none(metadata.get("turn_id")),
        kind=_request_kind(metadata),
        effort=parsed.reasoning.effort if parsed.reasoning else None,
        service_tier=parsed.service_tier,
        output_schema=parsed.text.format.schema if parsed.text and parsed.text.format else None,
    )


def _user_texts(items: list[dict[str, Any]]) -> tuple[list[str], int, list[dict[str, Any]]]:
    """Return the user's own texts, the number of images in the last one, and the items after it."""
    texts: list[str] = []
    images, after = 0, 0
    for index, item in enumerate(items):
        if item.get("role") != "user":
            continue
        text = _plain(item.get("content"))
        if _CONTEXT.fullmatch(text) or text.startswith(_AGENTS_FILE):
            continue
        texts.append(text)
        images, after = _images(item.get("content")), index + 1
    return texts, images, items[after:]


def _developer_texts(instructions: str | None, items: list[dict[str, Any]]) -> tuple[str, ...]:
    said = [_plain(item.get("content")) for item in items if item.get("role") in ("developer", "system")]
    return (*([instructions] if instructions else []), *said)


def _plain(content: object) -> str:
    """Return the text of a content field, which may be a string or a list of typed parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _images(content: object) -> int:
    if not isinstance(content, list):
        return 0
    return sum(isinstance(part, dict) and part.get("type") == "input_image" for part in content)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _request_kind(metadata: dict[str, Any]) -> str | None:
    raw = metadata.get("x-codex-turn-metadata")
    if not isinstance(raw, str):
        return None
    try:
        return msgspec.json.decode(raw, type=_TurnMetadata).request_kind
    except msgspec.DecodeError:
        return None  # a header that grew into something else says nothing about the request itself
