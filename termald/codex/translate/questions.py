"""Reads of Codex's that touch no session: what is asked for a caller, in Codex's words. The answers are passed on as
they are."""

from typing import Final, Literal

import msgspec

from termald.codex.message import Message
from termald.codex.protocol import types as t

Subject = Literal["models", "account", "rateLimits"]

_QUESTIONS: Final[dict[Subject, tuple[str, Message]]] = {
    "models": ("model/list", t.ModelListParams()),
    "account": ("account/read", t.GetAccountParams()),
    "rateLimits": ("account/rateLimits/read", t.GetAccountRateLimitsParams()),
}


def question(subject: Subject) -> tuple[str, str]:
    """Return method and params (JSON) of the read."""
    method, params = _QUESTIONS[subject]
    return method, msgspec.json.encode(params).decode()
