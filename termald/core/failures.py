"""What a failure means to a user: Codex's error variants and HTTP statuses turned into `kind` and `providerError`.

By HTTP status first, then by variant; an unknown one is said to be unclassified, never guessed. Diagnostics are bounded
and free of secrets.
"""

from typing import Any, Final

import msgspec

from state.records import TurnRecord, TurnState
from termald.core.inputs import TurnFailure
from termald.core.log import usage_fields
from termald.redact import redact_text

MESSAGE_MAX: Final = 1_024
"""Characters of an upstream message that are shown: a stack trace or a page of HTML tells no more than its
beginning."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ended, in public words. `provider_json` is the `providerError` object as JSON."""

    state: TurnState
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
    if failure.http_status is not None:
        if failure.http_status in _BY_STATUS:
            return _BY_STATUS[failure.http_status]
        if failure.http_status >= _HTTP_ERROR_MIN:
            return "internal_server_error"
    return _BY_VARIANT.get(failure.variant or "", "unclassified")


def classify(failure: TurnFailure | None) -> Ending:
    """Return what a failed turn ends as."""
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
    return Ending(state="error", kind=kind, message=message, provider_json=_provider_json(provider, failure))


def _provider_json(provider: str, failure: TurnFailure) -> str:
    diagnostics: dict[str, Any] = {"message": bounded(failure.message)}
    if failure.http_status is not None:
        diagnostics["httpStatus"] = failure.http_status
    if failure.variant is not None:
        diagnostics["codexErrorInfo"] = failure.variant
    if failure.details:
        diagnostics["details"] = bounded(failure.details)
    return msgspec.json.encode({"type": provider, "diagnostics": diagnostics}).decode()


EMPTY: Final = Ending(
    state="error",
    kind="internal_error",
    message="the model gave an empty answer",
    provider_json=msgspec.json.encode({"type": "empty_response"}).decode(),
)


def exited(cause: str) -> Ending:
    """Return what a turn ends as whose process is gone."""
    return Ending(state="error", kind="internal_error", message=bounded(f"Codex exited: {cause}"))


def reason(failure: TurnFailure) -> dict[str, Any]:
    """Return why an attempt failed, for `retrying`."""
    return {
        "message": bounded(failure.message),
        "providerError": msgspec.Raw(_provider_json(_provider_type(failure), failure).encode()),
    }


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
