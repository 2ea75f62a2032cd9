"""`termald fork`, `compact`, `revert`, `retry`: what is done to a session's whole thread, or its queue."""

import uuid

import rich_click as click

from termald.cli.asking import Json, asking_command, daemon_of, one_meant, rows_of, session_meant
from termald.cli.exits import Exit
from termald.cli.invocation import Invocation

session_argument = click.argument("session")


@asking_command("fork")
@session_argument
@click.option("--id", "session_id", help="The new session's id; chosen for you unless told otherwise.")
@click.option("--title", help="The new session's title.")
def fork(invocation: Invocation, session: str, session_id: str | None, title: str | None) -> None:
    """Make a session that goes on from here beside this one.

    Its id is printed.
    """
    with daemon_of(invocation) as client:
        found = session_meant(invocation, client, session)
        body = {"id": session_id, "title": title}
        made = client.post(f"/api/sessions/{found}/fork", Json, body, key=f"fork-{uuid.uuid4()}")
    _tell(invocation, made, made["id"])


@asking_command("compact")
@session_argument
def compact(invocation: Invocation, session: str) -> None:
    """Have Codex summarise what was said, to make room."""
    with daemon_of(invocation) as client:
        found = session_meant(invocation, client, session)
        answer = client.post(f"/api/sessions/{found}/compact", Json)
    _tell(invocation, answer, f"compacting {found}; prompts wait for its end")


@asking_command("revert")
@session_argument
@click.option("-n", "--turns", type=click.IntRange(1), help="The newest N turns. [default: 1]")
@click.option("--before", metavar="TURN", help="This turn and all after it.")
def revert(invocation: Invocation, session: str, turns: int | None, before: str | None) -> None:
    """Take the newest turns of a session back.

    The conversation goes on from before them; files stay as the turns left them.
    """
    if turns is not None and before is not None:
        invocation.fail(Exit.USAGE, "one-of-two", "give --turns or --before, not both")
    with daemon_of(invocation) as client:
        found = session_meant(invocation, client, session)
        if before is None:
            body: Json = {"turns": turns or 1}
        else:
            known = [(each["id"], "") for each in rows_of(client, f"/api/sessions/{found}/turns")]
            body = {"beforeTurnId": one_meant(invocation, "turn", before, known)}
        answer = client.post(f"/api/sessions/{found}/revert", Json, body)
    _tell(invocation, answer, f"taken back in {found}: {_what(body)}; files stay as they are")


def _what(body: Json) -> str:
    if "beforeTurnId" in body:
        return f"turn {body['beforeTurnId']} and all after it"
    return "the newest turn" if body["turns"] == 1 else f"the newest {body['turns']} turns"


@asking_command("retry")
@session_argument
@click.option("--fresh", is_flag=True, help="Give up a thread that is lost, and begin a new one.")
def retry(invocation: Invocation, session: str, fresh: bool) -> None:
    """Let the prompts go on that a session holds back."""
    with daemon_of(invocation) as client:
        found = session_meant(invocation, client, session)
        answer = client.post(f"/api/sessions/{found}/retry", Json, {"fresh": fresh})
    _tell(invocation, answer, f"{found} goes on ({answer['queuedPrompts']} prompts wait)")


def _tell(invocation: Invocation, answer: Json, said: str) -> None:
    if invocation.as_json:
        invocation.print_json(answer)
    else:
        click.echo(said)
