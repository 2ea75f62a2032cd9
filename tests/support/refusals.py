"""What termald takes a refusal of the real Codex for."""

from typing import Any

import msgspec

from state.records import LinkId, RuntimeId
from termald.codex import frames
from termald.codex.translate import replies
from termald.core.inputs import CallRefused


def refusal_of(error: dict[str, Any]) -> CallRefused:
    """Translate the `error` member of an answer, as it came."""
    frame = frames.decode(msgspec.json.encode({"id": 1, "error": error}))
    assert isinstance(frame, frames.ReplyError)
    return replies.refusal(LinkId(runtime_id=RuntimeId("r"), connection=1), frame, 0)
