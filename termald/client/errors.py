"""What can go wrong between a client and the daemon, told apart by what the caller can do about it."""
# ruff: noqa: N818 - members are named for what happened

from pathlib import Path


class ClientError(Exception):
    """Base of all. `slug` is stable and meant for programs; the message is for people and names the way out."""

    slug = "client-error"


class DaemonNotRunning(ClientError):
    """Nobody listens. Start it: `termald serve`."""

    slug = "daemon-not-running"

    def __init__(self, runtime_dir: Path, why: str) -> None:
        super().__init__(f"the daemon is not running ({why}); start it with: termald serve")
        self.runtime_dir = runtime_dir
        self.why = why


class ConnectionFailed(ClientError):
    """The daemon was there, and the connection broke or a deadline passed: whether it acted is not known."""

    slug = "connection-failed"


class BadAnswer(ClientError):
    """What came back is not what the API describes: another program on that address, or another version."""

    slug = "bad-answer"


class Refused(ClientError):
    """The daemon answered with a problem (RFC 9457). Nothing was done unless the slug says otherwise."""

    def __init__(self, *, slug: str, status: int, title: str, detail: str, retryable: bool) -> None:
        super().__init__(f"{title}: {detail}" if detail and detail != title else title)
        self.slug = slug
        self.status = status
        self.title = title
        self.detail = detail
        self.retryable = retryable
