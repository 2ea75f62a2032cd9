"""What the application is told by whoever builds it. Nothing here is read from anywhere."""

import importlib.metadata
import platform
import sys
from typing import Final

import msgspec

CAPABILITIES: Final = (
    "events.sse",
    "events.websocket",
    "prompts.queue",
    "prompts.reject",
    "prompts.replace",
    "prompts.steer",
    "requests.answer",
    "sessions.archive",
    "sessions.compact",
    "sessions.fork",
    "sessions.resumeCursor",
    "sessions.retry",
    "sessions.review",
    "threads.discovery",
    "threads.ignore",
    "threads.kill",
)
"""What a client may count on, by name; one that is not here answers 404 or 422."""


def _platform() -> str:
    return f"{sys.platform}-{platform.machine()}"


class ApiSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`token`: what TCP callers must show. Times in seconds, the others as they are named."""

    token: str
    protocol_schema: str
    """The Codex version whose schema the protocol types were generated from."""
    label: str = msgspec.field(default_factory=platform.node)
    platform: str = msgspec.field(default_factory=_platform)
    version: str = msgspec.field(default_factory=lambda: importlib.metadata.version("termald"))
    capabilities: tuple[str, ...] = CAPABILITIES
    heartbeat_s: float = 15.0
    """The longest silence on an event stream; proxies and browsers give up on one after 30 to 60 s."""
    accepting_wait_s: float = 10.0
    """How long a command waits for a daemon that is still settling what was live before it; then it is 503."""
    answer_wait_s: float = 120.0
    """How long a command is waited for. The core bounds its own (a stop takes up to 30 s); this bounds the bounds."""
    store_wait_s: float = 3.0
    """How long readiness waits for a read and a write of one row, which take well below a millisecond. Longer than the
    store waits for another tool that holds the database, so that this is what is told."""
    streams_max: int = 256
    """Event streams at once. Each is a task and a socket; the connection cap is the shell's."""
