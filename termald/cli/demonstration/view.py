"""How the demonstration is shown: a table that lives on a terminal, lines in a pipe, nothing with `--json`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import rich_click as click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from termald.cli.demonstration.claims import Claim, Outcome
from termald.cli.demonstration.watch import Progress


class View(Protocol):
    """What the story tells while it goes on."""

    def step(self, text: str) -> None:
        """Say what is done now."""

    def proven(self, claim: Claim) -> None:
        """Say what has just been checked."""


class Silent:
    """Shows nothing: the outcome is the one document."""

    def step(self, text: str) -> None:
        """Nothing."""

    def proven(self, claim: Claim) -> None:
        """Nothing."""


class Lines:
    """A line for each step and claim."""

    def step(self, text: str) -> None:
        """One line."""
        click.echo(f"… {text}")

    def proven(self, claim: Claim) -> None:
        """One line."""
        click.echo(claim_line(claim))


class Screen:
    """Steps and claims above, and below them a table of the sessions that follows their events."""

    def __init__(self, console: Console, sessions: Mapping[str, Progress]) -> None:
        self._sessions = sessions
        self._said: list[Text] = []
        self._live = Live(get_renderable=self._draw, console=console, refresh_per_second=10, transient=False)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Draw while the block runs; the last picture stays."""
        with self._live:
            yield

    def step(self, text: str) -> None:
        """Above the table, and in it from the next picture on."""
        self._said.append(Text(f"… {text}", style="dim"))

    def proven(self, claim: Claim) -> None:
        """As `step`."""
        self._said.append(Text(claim_line(claim), style="green" if claim.holds else "bold red"))

    def _draw(self) -> RenderableType:
        return Group(*self._said, self._table())

    def _table(self) -> Table:
        table = Table("session", "thread", "status", "events", "deltas", "says", box=None, pad_edge=False)
        for progress in self._sessions.values():
            table.add_row(
                progress.title,
                (progress.thread_id or "")[-12:],
                Text(progress.doing, style="green" if progress.turns else "yellow"),
                str(progress.events),
                str(progress.deltas),
                Text(progress.tail.replace("\n", " "), style="cyan"),
            )
        return table


def claim_line(claim: Claim) -> str:
    """Return the claim with its mark, and with the evidence where that is worth reading."""
    return f"{'✔' if claim.holds else '✘'} {claim.claim} ({claim.evidence})"


def closing_lines(outcome: Outcome) -> Iterator[str]:
    """Yield what is said at the end, for people."""
    if outcome.failure is not None:
        yield f"✘ the demonstration ended early: {outcome.failure}"
    held = sum(claim.holds for claim in outcome.claims)
    yield f"{held} of {len(outcome.claims)} claims hold; {outcome.seconds:.1f} s"
    if outcome.folder is not None:
        yield f"kept: {outcome.folder}"
