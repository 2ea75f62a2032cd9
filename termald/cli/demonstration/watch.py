"""What is seen of the daemon's events: every one that was told, and from them how far each session is."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import trio

from termald.cli.demonstration.claims import StoryEnded
from termald.client.errors import ConnectionFailed
from termald.client.http import AsyncClient
from termald.client.sse import ServerEvent

TAIL_CHARACTERS: Final = 60
# Once its item is complete a delta may be folded into it for later readers.
FOLDED: Final = frozenset({"item/delta"})


class Progress:
    """One session, as its events tell it."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.thread_id: str | None = None
        self.doing = "created"
        self.events = 0
        self.deltas = 0
        self.tail = ""
        self.answers: list[str] = []
        self.turns: list[str] = []
        """The state that each turn ended with."""


class Watch:
    """Reads the stream of all events for as long as the daemon lives. One for each daemon process."""

    def __init__(self, sessions: dict[str, Progress]) -> None:
        self.sessions = sessions
        self.seen: dict[int, str] = {}
        """Sequence number to kind."""
        self.is_synced = False
        self._changed = trio.Condition()

    async def follow(self, client: AsyncClient, after: int = 0, *, task_status: trio.TaskStatus[None]) -> None:
        """Read until the daemon closes the stream; `task_status` is told once it is open."""
        try:
            async with client.events(after) as events:
                task_status.started()
                async for event in events:
                    self.note(event)
                    async with self._changed:
                        self._changed.notify_all()
        except ConnectionFailed:
            # The daemon was asked to stop, or died; who waits for an event has a deadline, and then says for what.
            return

    def note(self, event: ServerEvent) -> None:
        """Take an event in. Those without a number are marks of the stream itself."""
        if event.kind == "synced":
            self.is_synced = True
            return
        data: dict[str, Any] = msgspec.json.decode(event.data)
        if "seq" in data:
            self.seen[data["seq"]] = event.kind
        progress = self.sessions.get(data.get("sessionId") or "")
        if progress is not None:
            _advance(progress, event.kind, data)

    async def wait_until(self, holds: Callable[[], bool], what: str, seconds: float) -> None:
        """Return once it holds; looked at after every event. Errors: `StoryEnded`."""
        with trio.move_on_after(seconds):
            async with self._changed:
                while not holds():
                    await self._changed.wait()
            return
        raise StoryEnded(f"waited {seconds:.0f} s for: {what}")


def _advance(progress: Progress, kind: str, data: dict[str, Any]) -> None:
    progress.events += 1
    progress.thread_id = data.get("threadId") or progress.thread_id
    if kind.startswith("session/"):
        progress.doing = data.get("status") or progress.doing
    elif kind == "turn/started":
        progress.doing = "running"
        progress.tail = ""
    elif kind == "item/delta":
        progress.deltas += 1
        progress.tail = (progress.tail + data.get("delta", ""))[-TAIL_CHARACTERS:]
    elif kind == "item/completed" and data.get("item", {}).get("type") == "agentMessage":
        progress.answers.append(data["item"].get("text", ""))
    elif kind == "turn/done":
        progress.turns.append(data.get("state", ""))
        progress.doing = f"done: {data.get('state', '')}"
