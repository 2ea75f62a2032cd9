"""What the commands share that ask the running daemon: finding it, finding the session that was meant, and telling a
daemon that cannot do something yet from one that refuses."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeVar

import rich_click as click

from termald.cli.exits import Exit
from termald.cli.invocation import (
    PLACES,
    Invocation,
    json_option,
    pass_invocation,
    settings_options,
    tells_failures,
)
from termald.client.errors import Refused
from termald.client.http import Client

C = TypeVar("C", bound=Callable[..., Any])
Json = dict[str, Any]
PAGE_ROWS: Final = 500
NAMED_MAX: Final = 5
_LISTINGS: Final = {
    "session": "ls",
    "request": "requests",
    "thread": "ignored",
    "phantom": "phantoms",
    "turn": "history --json",
}


def _note_no_color(_context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        # What rich and everything that we start go by (no-color.org).
        os.environ["NO_COLOR"] = "1"


no_color_option = click.option(
    "--no-color",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_note_no_color,
    help="No colours; as NO_COLOR=1.",
)


def asking_command(name: str) -> Callable[[C], click.Command]:
    """Make a command that asks the daemon: the options of all of them, and failures in words. The function is given the
    invocation first."""

    def decorate(function: C) -> click.Command:
        command = pass_invocation(tells_failures(function))
        command = settings_options(*PLACES)(json_option(no_color_option(command)))
        made: click.Command = click.command(name, cls=click.RichCommand)(command)
        return made

    return decorate


@contextmanager
def daemon_of(invocation: Invocation) -> Iterator[Client]:
    """Connect to the running daemon. Errors: `daemon-not-running`."""
    settings = invocation.settings().settings
    with Client.find(settings.runtime.dir, settings.state.dir) as client:
        yield client


def rows_of(client: Client, path: str, limit: int | None = None, **query: str | None) -> list[Json]:
    """Return all rows of a list, or the first `limit`."""
    asked: dict[str, Any] = {name: value for name, value in query.items() if value is not None}
    rows: list[Json] = []
    while True:
        size = PAGE_ROWS if limit is None else min(PAGE_ROWS, limit - len(rows))
        page = client.get(path, Json, **asked, limit=size)
        rows.extend(page["data"])
        if page.get("nextCursor") is None or (limit is not None and len(rows) >= limit):
            return rows
        asked["cursor"] = page["nextCursor"]


def session_meant(invocation: Invocation, client: Client, text: str) -> str:
    """Return the id of the one session that a person means: its id, a beginning of it, or its title.

    The command fails where there is none, or where there are several: then it names them.
    """
    sessions = rows_of(client, "/api/sessions")
    return one_meant(invocation, "session", text, [(each["id"], each["title"] or "") for each in sessions])


def one_meant(invocation: Invocation, what: str, text: str, known: list[tuple[str, str]]) -> str:
    """Return the one id of `known` (id, title) that `text` says."""
    if any(text == found for found, _ in known):
        return text
    titled = [found for found, title in known if text and title.casefold() == text.casefold()]
    begun = [found for found, _ in known if text and found.startswith(text)]
    for found in (titled, begun):
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(found[:NAMED_MAX]) + (", …" if len(found) > NAMED_MAX else "")
            invocation.fail(Exit.FAILURE, f"ambiguous-{what}", f"{text!r} may be any of {several}; say more of it")
    listing = _LISTINGS[what]
    return invocation.fail(
        Exit.FAILURE, f"unknown-{what}", f"there is no {what} {text!r}; `termald {listing}` lists them"
    )


def not_there_yet(invocation: Invocation, error: Refused, what: str) -> NoReturn:
    """Say that this daemon has no such thing, if that is what it answered; else raise the refusal."""
    if error.slug not in ("not-found", "method-not-allowed"):
        raise error
    invocation.fail(
        Exit.FAILURE, "not-supported", f"the daemon that runs here cannot {what} yet; a newer termald may be able to"
    )
