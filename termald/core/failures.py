"""What a failure means to a user: Codex's error variants and HTTP statuses turned into `kind` and `providerError`.

By HTTP status first, then by variant, then by text; an unknown one is said to be unclassified, never guessed. When a
limit ends is taken from the account's limits as Codex told them last, or from the text. Diagnostics are bounded and
free of secrets.
"""

import re
from typing import Any, Final

import msgspec

from state.records import TurnRecord, TurnState
from termald.core.inputs import LimitWindow, TurnFailure
from termald.core.log import rfc3339, usage_fields
from termald.redact import redact_text

MESSAGE_MAX: Final = 1_024
"""Characters of an upstream message that are shown: a stack trace or a page of HTML tells no more than its
beginning."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended, in public words. `provider_json` is the `providerError` object as JSON, `provider` its
    type."""

    state: TurnState
    provider: str | None = None
    reset_at_ms: int | None = None
    kind: str | None = None
    message: str | None = None
    provider_json: str | None = None


_BY_STATUS: Final = {
    401: "authentication",
    402: "out_of_tokens",
    403: "authentication",
    429: "rate_limit",
    503: "server_overloaded",
    529: "server_overloaded",
}
_BY_VARIANT: Final = {
    "unauthorized": "authentication",
    "usageLimitExceeded": "out_of_tokens",
    "sessionBudgetExceeded": "out_of_tokens",
    "rateLimitExceeded": "rate_limit",
    "responseTooManyFailedAttempts": "rate_limit",
    "serverOverloaded": "server_overloaded",
    "flexUnavailable": "server_overloaded",
    "policyCapacityUnavailable": "server_overloaded",
    "internalServerError": "internal_server_error",
}
_BY_TEXT: Final = (
    ("out_of_tokens", re.compile(r"usage limit|insufficient_quota|quota exceeded|usage_not_included", re.IGNORECASE)),
    ("rate_limit", re.compile(r"rate limit|rate_limit|too many requests", re.IGNORECASE)),
    (
        "authentication",
        re.compile(r"unauthorized|not logged in|log ?in again|sign in again|token_expired", re.IGNORECASE),
    ),
    ("server_overloaded", re.compile(r"overloaded|at capacity", re.IGNORECASE)),
)
"""For what bears no variant, or `other`: Codex's own words, and those of providers that it passes on."""
_STATUS_IN_TEXT: Final = re.compile(r"^unexpected status (\d{3})\b")
_AGAIN_IN: Final = re.compile(r"try again in ((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?)+)", re.IGNORECASE)
_SPAN: Final = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)(?![a-z])", re.IGNORECASE
)
_SPAN_MS: Final = {"ms": 1, "m": 60_000, "s": 1_000, "h": 3_600_000, "d": 86_400_000}
_LIMITED: Final = frozenset({"out_of_tokens", "rate_limit"})
_FULL_PERCENT: Final = 100
# An answer that was cut at its token limit has no variant of its own (0.163, 0.171), nor has a context that a provider
# refused as too long (0.163): only the text tells.
_CUT_SHORT: Final = "reason: max_output_tokens"
_TOO_LONG: Final = "context_length_exceeded"
_HTTP_ERROR_MIN: Final = 500


def bounded(text: str) -> str:
    """Return the text without secrets, cut to `MESSAGE_MAX` characters."""
    clean = redact_text(text)
    return clean if len(clean) <= MESSAGE_MAX else clean[: MESSAGE_MAX - 1] + "…"


def _provider_type(failure: TurnFailure) -> str:
    found = _by_status(failure.http_status) or _BY_VARIANT.get(failure.variant or "")
    if found is not None:
        return found
    text = f"{failure.message}\n{failure.details or ''}"
    status = _STATUS_IN_TEXT.search(text)
    found = _by_status(int(status.group(1))) if status is not None and failure.http_status is None else None
    return found or next((meaning for meaning, words in _BY_TEXT if words.search(text)), "unclassified")


def _by_status(status: int | None) -> str | None:
    if status is None:
        return None
    return _BY_STATUS.get(status, "internal_server_error" if status >= _HTTP_ERROR_MIN else None)


def reset_at(provider: str, failure: TurnFailure, limits: tuple[LimitWindow, ...], at_ms: int) -> int | None:
    """Return when the limit ends that was met: where one of the account's is used up, its end; otherwise what the text
    says."""
    if provider not in _LIMITED:
        return None
    used_up = [one.resets_at_ms for one in limits if one.used_percent >= _FULL_PERCENT and one.resets_at_ms > at_ms]
    if used_up:
        return max(used_up)
    again = _AGAIN_IN.search(f"{failure.message}\n{failure.details or ''}")
    if again is None:
        return None
    spans = _SPAN.findall(again.group(1).lower())
    return at_ms + round(sum(float(many) * _unit_ms(unit) for many, unit in spans)) if spans else None


def _unit_ms(unit: str) -> int:
    return _SPAN_MS["ms" if unit in ("ms", "millisecond", "milliseconds") else unit[0]]


def classify(failure: TurnFailure | None, limits: tuple[LimitWindow, ...] = (), at_ms: int = 0) -> Ending:
    """Return what a failed turn ends as, at this time and under the account's limits as they were told."""
    if failure is None:
        return Ending(state="error", kind="unknown", message="the turn failed and Codex gave no reason")
    message = bounded(failure.message)
    if failure.variant in (None, "other") and _CUT_SHORT in failure.message:
        return Ending(state="length", message=message)
    if failure.variant == "contextWindowExceeded" or _TOO_LONG in failure.message:
        return Ending(state="error", kind="context_overflow", message=message)
    provider = _provider_type(failure)
    kind = {"out_of_tokens": "billing_error"}.get(
        provider, "internal_error" if provider != "unclassified" else "unknown"
    )
    reset_at_ms = reset_at(provider, failure, limits, at_ms)
    return Ending(
        state="error",
        kind=kind,
        message=message,
        provider=provider,
        reset_at_ms=reset_at_ms,
        provider_json=_provider_json(provider, failure, reset_at_ms),
    )


def _provider_json(provider: str, failure: TurnFailure, reset_at_ms: int | None = None) -> str:
    diagnostics: dict[str, Any] = {"message": bounded(failure.message)}
    if failure.http_status is not None:
        diagnostics["httpStatus"] = failure.http_status
    if failure.variant is not None:
        diagnostics["codexErrorInfo"] = failure.variant
    if failure.details:
        diagnostics["details"] = bounded(failure.details)
    reset = {} if reset_at_ms is None else {"resetAt": rfc3339(reset_at_ms)}
    return msgspec.json.encode({"type": provider, **reset, "diagnostics": diagnostics}).decode()


EMPTY: Final = Ending(
    state="error",
    kind="internal_error",
    message="the model gave an empty answer",
    provider="empty_response",
    provider_json=msgspec.json.encode({"type": "empty_response"}).decode(),
)


def exited(cause: str) -> Ending:
    """Return what a turn ends as whose process is gone."""
    return Ending(state="error", kind="internal_error", message=bounded(f"Codex exited: {cause}"))


def reason(failure: TurnFailure, limits: tuple[LimitWindow, ...] = (), at_ms: int = 0) -> dict[str, Any]:
    """Return why an attempt failed, for `retrying`."""
    provider = _provider_type(failure)
    told = _provider_json(provider, failure, reset_at(provider, failure, limits, at_ms))
    return {"message": bounded(failure.message), "providerError": msgspec.Raw(told.encode())}


def done_fields(turn: TurnRecord, ending: Ending) -> dict[str, Any]:
    """Return the fields of `turn/done`."""
    fields: dict[str, Any] = {"state": turn.state}
    if ending.kind is not None:
        fields["errorKind"] = ending.kind  # `kind` is the event's own
    if ending.message is not None:
        fields["message"] = ending.message
    if ending.provider_json is not None:
        fields["providerError"] = msgspec.Raw(ending.provider_json.encode())
    fields["tokens"] = {"input": turn.usage.input, "output": turn.usage.output}
    fields["usage"] = usage_fields(turn.usage)
    if turn.reconciled:
        fields["reconciled"] = True
    return fields
