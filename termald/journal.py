"""What the log file tells of sessions: one line for each committed event that a person would look for, with its ids.

Made from the events themselves, so that the log and the event stream cannot tell different stories. What was said or
typed is left out: an event's ids and states go into the line, its content does not.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import structlog

from state.records import EventRecord

log = structlog.get_logger()

_TOLD: Final = ("session/", "prompt/", "turn/", "request/", "thread/", "retrying", "late", "notice")
_LEVELS: Final = {
    "session/error": "warning",
    "session/resumeLost": "warning",
    "notice": "warning",
    "retrying": "warning",
    "late": "debug",
    "turn/diff": "debug",
    "turn/plan": "debug",
    "prompt/parked": "debug",
    "prompt/sent": "debug",
    "prompt/acked": "debug",
}


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str | None = None
    attachment: dict[str, Any] | None = None
    turn_id: str | None = None
    request_id: str | None = None
    prompt_id: str | None = None
    thread_id: str | None = None
    status: str | None = None
    state: str | None = None
    error_kind: str | None = None
    slug: str | None = None
    ours: bool | None = None


_decode: Final = msgspec.json.Decoder(_Line).decode


def write(events: Sequence[EventRecord]) -> None:
    """Log what was committed."""
    for event in events:
        if event.kind.startswith(_TOLD):
            getattr(log, _LEVELS.get(event.kind, "info"))(event.kind, seq=event.seq, **_fields(event))


def _fields(event: EventRecord) -> dict[str, object]:
    line = _decode(event.data_json)
    attachment = line.attachment
    fields = {
        "session": line.session_id,
        "attachment": attachment and f"{attachment['runtimeId']}/{attachment['generation']}",
        "turn": line.turn_id,
        "request": line.request_id,
        "prompt": line.prompt_id,
        "thread": line.thread_id,
        "status": line.status,
        "state": line.state,
        "error": line.error_kind,
        "slug": line.slug,
        "ours": line.ours,
    }
    return {name: value for name, value in fields.items() if value is not None}
