"""The client library: what a program needs to speak to a running termald, and nothing of the daemon itself.

Lives here: `connect` and what it gives (`termald`, `session`, `run`, `requests`; `blocking` without `await`), events as
values (`events`), a turn put together from them (`turns`), which events are a prompt's (`prompt_watch`, pure), streams
over reconnects (`link`, `feed`, `stream`, `sse`), plain calls (`http`), where the daemon is and how to start it
(`folders`, `locate`, `start`), its answers (`models`), and what can go wrong (`errors`). May import: httpx, anyio,
msgspec, platformdirs, the standard library; nothing else of termald, so that it can be used, and one day shipped,
alone.
Keeps: a run ends with exactly one `Done`; a prompt that is sent again is never a second one; nothing is answered but by
the caller's code; a daemon that is not running is one error of its own, and every other refusal carries the daemon's
slug and words; what a newer daemon adds breaks nothing.
Begin at `termald.py`. Not here: settings, printing (`termald.cli`).
"""

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from termald.client.errors import BadAnswer, ClientError, ConnectionFailed, DaemonNotRunning, Refused
    from termald.client.events import Done, Event
    from termald.client.requests import Request
    from termald.client.run import Run
    from termald.client.session import Session
    from termald.client.termald import Termald, connect
    from termald.client.turns import TurnAccumulator, committed

__all__ = [
    "BadAnswer",
    "ClientError",
    "ConnectionFailed",
    "DaemonNotRunning",
    "Done",
    "Event",
    "Refused",
    "Request",
    "Run",
    "Session",
    "Termald",
    "TurnAccumulator",
    "committed",
    "connect",
]

# Loaded when they are asked for: the command line needs `errors` at every start, and httpx only to ask the daemon.
_HOMES: Final = {
    **dict.fromkeys(("BadAnswer", "ClientError", "ConnectionFailed", "DaemonNotRunning", "Refused"), "errors"),
    **dict.fromkeys(("Done", "Event"), "events"),
    **dict.fromkeys(("Termald", "connect"), "termald"),
    **dict.fromkeys(("TurnAccumulator", "committed"), "turns"),
    "Request": "requests",
    "Run": "run",
    "Session": "session",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
