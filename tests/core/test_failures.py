"""What a failure means to a user, by status first, then by variant, then by text; and nothing secret in it."""

import msgspec
import pytest

from termald.core import failures
from termald.core.inputs import TurnFailure


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
