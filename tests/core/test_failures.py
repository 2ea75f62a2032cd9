"""What a failure means to a user, by status first, then by variant, then by text; and nothing secret in it."""

import msgspec
import pytest

from termald.core import failures
from termald.core.inputs import LimitWindow, TurnFailure


@pytest.mark.parametrize(
    ("failure", "state", "kind", "provider"),
    [
        (TurnFailure(message="m", http_status=401), "error", "internal_error", "authentication"),
        (TurnFailure(message="m", http_status=403), "error", "internal_error", "authentication"),
        (TurnFailure(message="m", http_status=429), "error", "internal_error", "rate_limit"),
        (TurnFailure(message="m", http_status=500), "error", "internal_error", "internal_server_error"),
        (TurnFailure(message="m", http_status=503), "error", "internal_error", "server_overloaded"),
        (TurnFailure(message="m", variant="usageLimitExceeded"), "error", "billing_error", "out_of_tokens"),
        (TurnFailure(message="m", variant="serverOverloaded"), "error", "internal_error", "server_overloaded"),
        (
            TurnFailure(message="m", variant="unauthorized", http_status=500),
            "error",
            "internal_error",
            "internal_server_error",
        ),
        (TurnFailure(message="m", variant="contextWindowExceeded"), "error", "context_overflow", None),
        (TurnFailure(message='{"code":"context_length_exceeded"}', variant="other"), "error", "context_overflow", None),
        (
            TurnFailure(message="Incomplete response returned, reason: max_output_tokens", variant="other"),
            "length",
            None,
            None,
        ),
        (TurnFailure(message="m", variant="somethingNew"), "error", "unknown", "unclassified"),
        (
            TurnFailure(message="Quota exceeded. Check your plan.", variant="other"),
            "error",
            "billing_error",
            "out_of_tokens",
        ),
        (TurnFailure(message="m", details="code: insufficient_quota"), "error", "billing_error", "out_of_tokens"),
        (TurnFailure(message="Rate limit reached", variant="other"), "error", "internal_error", "rate_limit"),
        (TurnFailure(message="Your session ended. Please log in again."), "error", "internal_error", "authentication"),
        (TurnFailure(message="Model is at capacity", variant="other"), "error", "internal_error", "server_overloaded"),
        (TurnFailure(message="unexpected status 402 Payment Required: x"), "error", "billing_error", "out_of_tokens"),
        (
            TurnFailure(message="rate limit", variant="usageLimitExceeded", http_status=503),
            "error",
            "internal_error",
            "server_overloaded",
        ),
        (TurnFailure(message="rate limit", variant="usageLimitExceeded"), "error", "billing_error", "out_of_tokens"),
        (TurnFailure(message="m", http_status=418), "error", "unknown", "unclassified"),
        (None, "error", "unknown", None),
    ],
)
def test_what_a_failure_means(failure: TurnFailure | None, state: str, kind: str | None, provider: str | None) -> None:
    ending = failures.classify(failure)
    assert (ending.state, ending.kind) == (state, kind)
    told = None if ending.provider_json is None else msgspec.json.decode(ending.provider_json)["type"]
    assert told == provider


def test_diagnostics_are_bounded_and_free_of_secrets() -> None:
    message = "key sk-12345678abcdef refused " + "x " * 5_000
    ending = failures.classify(
        TurnFailure(message=message, http_status=401, details="Authorization: Bearer abc.def.ghi")
    )
    shown = f"{ending.message} {ending.provider_json}"
    assert len(ending.message or "") == failures.MESSAGE_MAX
    for secret in ("abc.def.ghi", "sk-12345678abcdef"):
        assert secret not in shown


NOW = 1_000_000_000_000


@pytest.mark.parametrize(
    ("words", "after_ms"),
    [
        ("Please try again in 1.5s. Visit", 1_500),
        ("try again in 20ms", 20),
        ("Try again in 2 days, 3 hours and 5 minutes.", ((2 * 24 + 3) * 60 + 5) * 60_000),
        ("try again in 6m0s", 360_000),
        ("try again later", None),
        ("try again in a moment", None),
    ],
)
def test_when_a_limit_ends_is_read_from_the_text(words: str, after_ms: int | None) -> None:
    ending = failures.classify(TurnFailure(message=words, http_status=429), (), NOW)
    assert ending.reset_at_ms == (None if after_ms is None else NOW + after_ms)
    told = msgspec.json.decode(ending.provider_json or "").get("resetAt")
    assert (told is None) is (after_ms is None)


def test_a_limit_that_is_used_up_ends_when_codex_said() -> None:
    spent = TurnFailure(message="You have hit your usage limit. Try again in 5s.", variant="usageLimitExceeded")
    five_hours = LimitWindow(used_percent=100, resets_at_ms=NOW + 5_000_000)
    week = LimitWindow(used_percent=100, resets_at_ms=NOW + 600_000_000)
    other = LimitWindow(used_percent=99, resets_at_ms=NOW + 900_000_000)
    past = LimitWindow(used_percent=100, resets_at_ms=NOW - 1)
    assert failures.classify(spent, (five_hours, other), NOW).reset_at_ms == five_hours.resets_at_ms
    assert failures.classify(spent, (five_hours, week), NOW).reset_at_ms == week.resets_at_ms
    assert failures.classify(spent, (past, other), NOW).reset_at_ms == NOW + 5_000
    lost = TurnFailure(message="try again in 5s", http_status=401)
    assert failures.classify(lost, (five_hours,), NOW).reset_at_ms is None
