"""A turn as it comes, on a terminal or in a pipe.

On a terminal text is shown as it arrives. In a pipe only what is complete is written, so that what Codex takes back
never stands in a file. What is done besides talking is told on standard error.
"""

import sys
from typing import Any

import rich_click as click
from rich.console import Console

from termald.client.events import (
    BlockReset,
    Done,
    Event,
    ItemCompleted,
    ItemDelta,
    ItemStarted,
    Notice,
    Retrying,
    SessionEvent,
    Usage,
)


class Screen:
    """Shows the events of turns. `quiet`: nothing but the answer."""

    def __init__(self, *, silent: bool = False) -> None:
        self.is_interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self._live = sys.stdout.isatty() and not silent
        self._silent = silent
        self._errors = Console(stderr=True, highlight=False, soft_wrap=True)
        self._open: str | None = None
        self._types: dict[str, str] = {}
        self._waiting = False

    def show(self, event: Event) -> None:
        """Show an event, if there is anything to see of it."""
        if self._silent:
            return
        match event:
            case ItemStarted():
                self._types[event.item_id or ""] = str(event.item.get("type", ""))
                self._doing(event.item)
            case ItemDelta() if event.channel == "text" and self._live:
                self._say(event.item_id, event.delta)
            case ItemCompleted() if event.type == "agentMessage" and not event.late:
                self._whole(event)
            case ItemCompleted():
                self._did(event.item)
            case BlockReset():
                self._end_line()
                if self._live:
                    self.note("(what was begun above is taken back)")
            case Retrying():
                self.note(f"Codex tries again (attempt {event.attempt})")
            case Notice():
                self.note(event.message)
            case SessionEvent(kind="session/connecting"):
                self.note("connecting …")
            case SessionEvent(error=error) if error is not None:
                self.note(error.message)

    def note(self, text: str) -> None:
        """A line beside the answer, on standard error."""
        self._end_line()
        self._errors.print(text, style="dim", markup=False)

    def question(self, text: str) -> str:
        """Ask the person for a line; an end of input is an empty one."""
        self._end_line()
        try:
            return input(text)
        except EOFError:
            click.echo()
            return ""

    def end(self, done: Done) -> None:
        """Close a turn: how it ended where that was not well, and what it cost."""
        if self._silent:
            return
        self._end_line()
        if not done.ok:
            self.note(f"the turn ended: {how_it_ended(done)}")
        self.note(told_usage(done.usage))

    def _say(self, item: str | None, text: str) -> None:
        if self._open != item:
            self._end_line()
            self._open = item
        sys.stdout.write(text)
        sys.stdout.flush()

    def _whole(self, event: ItemCompleted) -> None:
        if self._open == event.item_id and self._live:
            self._end_line()
            return
        self._end_line()
        click.echo(str(event.item.get("text", "")))

    def _end_line(self) -> None:
        if self._open is not None:
            self._open = None
            click.echo()

    def _doing(self, item: dict[str, Any]) -> None:
        if item.get("type") == "commandExecution":
            self.note(f"$ {item.get('command', '')}")

    def _did(self, item: dict[str, Any]) -> None:
        kind = item.get("type")
        if kind == "commandExecution" and item.get("exitCode") not in (0, None):
            self.note(f"exit {item['exitCode']}")
        elif kind == "fileChange":
            paths = ", ".join(str(change.get("path")) for change in item.get("changes", ()))
            self.note(f"{item.get('status', 'changed')}: {paths}")


def how_it_ended(done: Done) -> str:
    """Return the end in words: its state, and why."""
    provider = f" ({done.provider_error.type})" if done.provider_error is not None else ""
    return done.state + provider + (f": {done.message}" if done.message else "")


def told_usage(usage: Usage) -> str:
    """Return token counts in a line."""
    cached = f" ({usage.cache_read:,} cached)" if usage.cache_read else ""
    return f"{usage.input:,} tokens in{cached}, {usage.output:,} out"
