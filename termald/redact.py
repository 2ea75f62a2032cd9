"""Taking secrets out of what is shown: log lines, diagnostics, error messages. Pure.

By name (what stands under `Authorization`, `token`, `api_key`) and by shape (`sk-…`, bearer tokens, JSON web tokens).
It errs on the side of hiding, with one exception: numbers stay, since tokens are also counted.
"""

import re
from collections.abc import Mapping
from typing import Final

HIDDEN: Final = "[redacted]"
DEPTH_MAX: Final = 8  # deeper than any frame of Codex's that is logged; a value that contains itself ends here

# The whole name, or its last word: `access_token`, `x-api-key`, `OPENAI_API_KEY`, but not `tokens` or `token_usage`.
_SECRET_NAME: Final = re.compile(
    r"(?:.*[_.-])?(?:authorization|cookie|token|secret|password|passwd|api[_-]?key|credentials?)", re.IGNORECASE
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# One pass each; the group that stays is the first, what follows it is hidden.
_SHAPES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # `Authorization: Basic dXNlcjpwYXNz`, also as JSON, a shell word or a Python dict; to the end of the value.
        r"(authorization[\"']?\s*[:=]\s*[\"']?)(?!\[redacted\])[^\"'\r\n,;}]+",
        r"((?:set-)?cookie[\"']?\s*:\s*[\"']?)(?!\[redacted\])[^\"'\r\n}]+",
        r"(\bbearer\s+)(?!\[redacted\])[A-Za-z0-9._~+/=-]{6,}",
        # `api_key=…`, `"access_token": "…"`, `--token …`, `?token=…`.
        r"((?:token|secret|password|passwd|api[_-]?key)[\"']?\s*[:=]\s*[\"']?)(?!\[redacted\])[^\s\"'&,;})\]]{6,}",
        r"(--[a-z-]*(?:token|secret|password|api-key)[\s=]+)(?!\[redacted\])\S+",
        # user:password in an address.
        r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)(?!\[redacted\])[^\s@/]+(?=@)",
        # Keys with a maker's mark: OpenAI and those who copied it, GitHub, Slack, AWS, Google.
        r"()\bsk-[A-Za-z0-9_-]{8,}",
        r"()\bgh[a-z]_[A-Za-z0-9]{16,}",
        r"()\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"()\bxox[a-z]-[A-Za-z0-9-]{8,}",
        r"()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"()\bAIza[A-Za-z0-9_-]{30,}",
        r"()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*",
    )
)


def redact_text(text: str) -> str:
    """Return `text` with `[redacted]` in place of what looks like a secret. Doing it twice changes nothing more."""
    for shape in _SHAPES:
        text = shape.sub(rf"\g<1>{HIDDEN}", text)
    return text


def redact(value: object, depth: int = 0) -> object:
    """Return `value` with the secrets in its texts and under telling names hidden; what holds others is copied."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes | bytearray):
        return redact_text(bytes(value).decode(errors="replace"))
    if depth >= DEPTH_MAX:
        return value if isinstance(value, int | float | None) else HIDDEN
    if isinstance(value, Mapping):
        return {key: _under(key, each, depth) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(each, depth + 1) for each in value]
    return value


def _under(name: object, value: object, depth: int) -> object:
    if is_secret_name(name) and not isinstance(value, int | float | None):
        return HIDDEN
    return redact(value, depth + 1)


def is_secret_name(name: object) -> bool:
    """Say whether what stands under this name is hidden whatever it looks like."""
    return isinstance(name, str) and _SECRET_NAME.fullmatch(_CAMEL.sub("_", name)) is not None
