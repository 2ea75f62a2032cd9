"""`termald requests`, `approve`, `deny`, `answer`: what Codex asks, and what a person says to it."""

import json
import sys
from typing import Any

import msgspec
import rich_click as click

from termald.cli.asking import Json, asking_command, daemon_of, one_meant, rows_of, session_meant
from termald.cli.exits import Exit
from termald.cli.invocation import Invocation
from termald.cli.rows import print_rows
from termald.client.http import Client
from termald.client.requests import Request, no_to, yes_to

request_argument = click.argument("request")


@asking_command("requests")
@click.argument("session", required=False)
@click.option(
    "--status",
    type=click.Choice(("open", "answered", "resolved", "expired")),
    default="open",
    show_default=True,
    help="Open ones wait for an answer.",
)
def requests(invocation: Invocation, session: str | None, status: str) -> None:
    """List what waits for an answer: approvals and questions."""
    with daemon_of(invocation) as client:
        path = "/api/requests"
        if session is not None:
            path = f"/api/sessions/{session_meant(invocation, client, session)}/requests"
        found = rows_of(client, path, status=status)
    if invocation.as_json:
        invocation.print_json({"requests": found})
        return
    rows = ((each["id"], each["sessionId"], each["kind"], _request(each).about, choices(each)) for each in found)
    if sys.stdout.isatty() and found and status == "open":
        click.echo("answer with: termald approve REQUEST, termald deny REQUEST, termald answer REQUEST …", err=True)
    print_rows(("request", "session", "kind", "asks for", "decisions"), rows, "nothing waits for an answer")


def _request(card: Json) -> Request:
    return msgspec.convert(card, Request)


def choices(card: Json) -> str:
    """Return what may be said to it, in a line; for people, one that carries more by its name alone."""
    if sys.stdout.isatty():
        return ", ".join(each if isinstance(each, str) else f"{next(iter(each), '')} …" for each in card["decisions"])
    return ", ".join(each if isinstance(each, str) else json.dumps(each) for each in card["decisions"])


def _open(invocation: Invocation, client: Client, text: str) -> Json:
    cards = rows_of(client, "/api/requests")
    found = one_meant(invocation, "request", text, [(each["id"], "") for each in cards])
    return next(each for each in cards if each["id"] == found)


def _say(invocation: Invocation, client: Client, card: Json, body: Json, said: str) -> None:
    answered = client.post(f"/api/sessions/{card['sessionId']}/requests/{card['id']}", Json, body)
    if invocation.as_json:
        invocation.print_json(answered)
    else:
        click.echo(f"{said}: {_request(card).about or card['kind']}")


@asking_command("approve")
@request_argument
@click.option("--decision", help="Another of the offered decisions than `accept`; JSON where it is no word.")
def approve(invocation: Invocation, request: str, decision: str | None) -> None:
    """Allow what a request asks for."""
    with daemon_of(invocation) as client:
        card = _open(invocation, client, request)
        if card["kind"] == "userInput":
            way = f"answer it with: termald answer {card['id']} …"
            invocation.fail(Exit.FAILURE, "wants-answers", f"request {card['id']} is a question; {way}")
        body = yes_to(_request(card)) if decision is None else {"decision": _value(decision)}
        _say(invocation, client, card, body, "approved")


@asking_command("deny")
@request_argument
def deny(invocation: Invocation, request: str) -> None:
    """Refuse what a request asks for."""
    with daemon_of(invocation) as client:
        card = _open(invocation, client, request)
        body = no_to(_request(card))
        ends = "; its turn ends with it" if body == {"decision": "cancel"} else ""
        _say(invocation, client, card, body, f"denied{ends}")


@asking_command("answer")
@request_argument
@click.argument("answers", nargs=-1, required=True, metavar="ANSWER... | ID=ANSWER...")
def answer(invocation: Invocation, request: str, answers: tuple[str, ...]) -> None:
    """Answer a question of Codex's.

    One ANSWER for each question in their order, or ID=ANSWER for each.
    """
    with daemon_of(invocation) as client:
        card = _open(invocation, client, request)
        body = _answers(invocation, card, answers)
        _say(invocation, client, card, body, "answered")


def _answers(invocation: Invocation, card: Json, texts: tuple[str, ...]) -> Json:
    asked = [each["id"] for each in (card["params"] or {}).get("questions", ())]
    if not asked:
        invocation.fail(Exit.FAILURE, "no-question", f"request {card['id']} is no question; approve or deny it")
    named = dict(text.split("=", 1) for text in texts if text.partition("=")[0] in asked)
    if len(named) != len(texts):
        if named or len(texts) != len(asked):
            wanted = ", ".join(f"{each}=…" for each in asked)
            invocation.fail(Exit.USAGE, "wants-answers", f"{len(asked)} answers are wanted: {wanted}")
        named = dict(zip(asked, texts, strict=True))
    return {"answers": {name: {"answers": [text]} for name, text in named.items()}}


def _value(text: str) -> Any:
    """A word as it stands; what looks like JSON, as that."""
    try:
        return json.loads(text)
    except ValueError:
        return text
