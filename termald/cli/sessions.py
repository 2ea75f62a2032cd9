"""`termald ls`, `new`, `history`, `interrupt`, `stop`, `close`, `kill`: sessions, one call each."""

import itertools
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rich_click as click

from termald.cli.asking import Json, asking_command, daemon_of, rows_of, session_meant
from termald.cli.invocation import Invocation
from termald.cli.rows import print_rows

STATUSES = ("detached", "connecting", "ready", "running", "error", "closed")
ORIGINS = ("created", "discovered", "forked", "external")
session_argument = click.argument("session")
TEXT_MAX = 60
"""Characters of a preview in a list; a pipe gets all of them."""


@asking_command("ls")
@click.option("--status", type=click.Choice(STATUSES), help="Only those of this status.")
@click.option("--origin", type=click.Choice(ORIGINS), help="Only those that came to be this way.")
@click.option("--here", is_flag=True, help="Only those of the current folder.")
@click.option("-n", "--limit", type=click.IntRange(1), help="The newest N.")
def ls(invocation: Invocation, status: str | None, origin: str | None, here: bool, limit: int | None) -> None:
    """List the sessions, newest first."""
    cwd = str(Path.cwd()) if here else None
    with daemon_of(invocation) as client:
        sessions = rows_of(client, "/api/sessions", limit, status=status, origin=origin, cwd=cwd)
    if invocation.as_json:
        invocation.print_json({"sessions": sessions})
    else:
        print_rows(("session", "status", "title", "messages", "folder", "begins"), map(_row, sessions), "no sessions")


def _row(session: Json) -> tuple[str, ...]:
    waiting = session["waitingOn"]
    status = f"{session['status']} (waits: {waiting})" if waiting else str(session["status"])
    queued = f" +{session['queuedPrompts']}" if session["queuedPrompts"] else ""
    return (
        session["id"],
        status + queued,
        session["title"] or "",
        str(session["messageCount"]),
        session["cwd"],
        session["preview"][:TEXT_MAX],
    )


@asking_command("new")
@click.argument("prompt", required=False)
@click.option("--id", "session_id", help="Its id; chosen for you unless told otherwise.")
@click.option("--title", help="A title, by which it can be named.")
@click.option("--cwd", type=click.Path(path_type=Path), default=".", help="Where it works. [default: here]")
@click.option("--model", help="The model.")
@click.option("--effort", help="How hard the model thinks.")
@click.option("--full-access", is_flag=True, help="Never ask before a command or an edit.")
@click.option("--thread", help="Go on in this thread of Codex's.")
def new(
    invocation: Invocation,
    *,
    prompt: str | None,
    session_id: str | None,
    cwd: Path,
    full_access: bool,
    thread: str | None,
    **chosen: str | None,
) -> None:
    """Make a session and print its id.

    With PROMPT it begins at once; `termald tail` shows what comes of it.
    """
    body: dict[str, Any] = {
        "id": session_id,
        "cwd": str(cwd.resolve()),
        "prompt": prompt,
        "runtimeMode": "full-access" if full_access else None,
        "resumeCursor": None if thread is None else {"threadId": thread},
        **chosen,
    }
    with daemon_of(invocation) as client:
        made = client.post("/api/sessions", Json, body, key=f"new-{uuid.uuid4()}")
    if invocation.as_json:
        invocation.print_json(made)
    else:
        click.echo(made["id"])


@asking_command("history")
@session_argument
@click.option("-n", "--limit", type=click.IntRange(1), help="The last N items.")
def history(invocation: Invocation, session: str, limit: int | None) -> None:
    """Print what was said and done in a session."""
    with daemon_of(invocation) as client:
        found = session_meant(invocation, client, session)
        order = "asc" if limit is None else "desc"
        items = rows_of(client, f"/api/sessions/{found}/items", limit, order=order)
        turns = rows_of(client, f"/api/sessions/{found}/turns")
    if limit is not None:
        items.reverse()
    if invocation.as_json:
        invocation.print_json({"session": found, "items": items})
    else:
        print_rows((), lines_of(items, {each["id"]: each for each in turns}), "nothing yet")


def lines_of(items: list[Json], turns: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the items in lines of who and what, and behind a turn how it ended, if that was not well."""
    for turn, its_items in itertools.groupby(items, lambda item: item["turnId"]):
        for item in its_items:
            yield from told(item)
        end = turns.get(turn, {})
        if end.get("state") not in (None, "normal"):
            yield "ended", str(end["state"]) + (f": {end['message']}" if end["message"] else "")


_WHO = {"userMessage": "you", "agentMessage": "codex", "reasoning": "thinks", "plan": "plan"}


def told(row: Json) -> Iterator[tuple[str, str]]:
    """Yield an item in lines of who and what."""
    item, kind = row["item"] or {}, row["type"]
    mark = {"taken_back": " (taken back)", "incomplete": " (incomplete)", "open": " (running)"}.get(row["state"], "")
    text = _text(item, kind)
    if text or mark:
        yield f"{_WHO.get(kind, kind)}{mark}", text


def _text(item: Json, kind: str) -> str:
    if kind == "userMessage":
        return "\n".join(part.get("text") or f"[{part.get('type')}]" for part in item.get("content", ()))
    if kind == "commandExecution":
        code = item.get("exitCode")
        return f"{item.get('command', '')}{'' if code in (0, None) else f'  (exit {code})'}{_refused(item)}"
    if kind == "fileChange":
        return ", ".join(str(change.get("path")) for change in item.get("changes", ())) + _refused(item)
    if kind == "reasoning":
        return "\n".join(item.get("summary") or ())
    return str(item.get("text") or item.get("tool") or "")


def _refused(item: Json) -> str:
    return "  (denied)" if item.get("status") == "declined" else ""


def _act(invocation: Invocation, session: str, what: str, body: Json | None = None) -> tuple[str, Json]:
    with daemon_of(invocation) as client:
        found = session_meant(invocation, client, session)
        return found, client.post(f"/api/sessions/{found}/{what}", Json, body)


@asking_command("interrupt")
@session_argument
def interrupt(invocation: Invocation, session: str) -> None:
    """Interrupt what runs in a session."""
    found, answer = _act(invocation, session, "interrupt")
    said = f"interrupting {found}" if answer["interrupted"] else f"nothing runs in {found}"
    _tell(invocation, answer, said)


@asking_command("stop")
@session_argument
def stop(invocation: Invocation, session: str) -> None:
    """End what runs in a session and let go of its thread.

    The next prompt goes on.
    """
    found, answer = _act(invocation, session, "stop")
    _tell(invocation, answer, f"stopped {found}")


@asking_command("close")
@session_argument
def close(invocation: Invocation, session: str) -> None:
    """Close a session for good.

    Its thread can be taken over by a new one.
    """
    found, answer = _act(invocation, session, "close")
    thread = answer["threadId"]
    _tell(invocation, answer, f"closed {found}" + (f"; go on with: termald new --thread {thread}" if thread else ""))


@asking_command("kill")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...")
@click.option(
    "--thread",
    type=click.Choice(("ignore", "archive", "delete")),
    help="What becomes of the thread in Codex. [default: ignore, which leaves it as it is]",
)
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
def kill(invocation: Invocation, sessions: tuple[str, ...], thread: str | None, dry_run: bool) -> None:
    """Remove sessions and never import their threads again."""
    killed = []
    with daemon_of(invocation) as client:
        # All are found before the first is killed: a name that is wrong kills nothing.
        for found in [session_meant(invocation, client, each) for each in sessions]:
            body = {"thread": thread, "dryRun": dry_run}
            killed.append(client.post(f"/api/sessions/{found}/kill", Json, body))
    if invocation.as_json:
        invocation.print_json({"killed": killed})
        return
    for answer in killed:
        said = "would be killed" if answer["dryRun"] else "killed"
        ignored = f"; thread {answer['threadId']} is ignored from now on" if answer["ignored"] else ""
        click.echo(f"{said}: {answer['sessionId']}{ignored if not answer['dryRun'] else ''}")


def _tell(invocation: Invocation, answer: Json, said: str) -> None:
    if invocation.as_json:
        invocation.print_json(answer)
    else:
        click.echo(said)
