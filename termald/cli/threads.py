"""`termald threads`, `discover`, `ignored`, `unignore`, `phantoms`, `models`: what Codex has, and what becomes of
it."""

import time
from collections.abc import Iterable
from typing import Final

import rich_click as click
from click.exceptions import Exit as Exited
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from termald.cli.asking import Json, asking_command, daemon_of, not_there_yet, one_meant, rows_of
from termald.cli.exits import Exit
from termald.cli.invocation import Invocation
from termald.cli.rows import print_rows
from termald.cli.status import plain
from termald.client.errors import Refused
from termald.client.http import Client

SCAN_SILENCE_S: Final = 120.0
"""How long a scan may get no further before it is no longer waited for. A whole one may take minutes: 100,000 threads
take some 20 s, and more beside other work."""
_LOOK_PAUSE_S: Final = 0.1


@asking_command("threads")
@click.option(
    "--class",
    "class_",
    type=click.Choice(("owned", "ignored", "orphan", "child", "discovered")),
    help="Only those of this class.",
)
@click.option("-n", "--limit", type=click.IntRange(1), help="The first N.")
def threads(invocation: Invocation, class_: str | None, limit: int | None) -> None:
    """List the threads that Codex has, each with what it is here."""
    with daemon_of(invocation) as client:
        found = rows_of(client, "/api/threads", limit, **{"class": class_})
    if invocation.as_json:
        invocation.print_json({"threads": found})
        return
    rows = (
        (each["threadId"], each["class"], each["sessionId"] or "", each["title"] or each["preview"], _why(each))
        for each in found
    )
    print_rows(("thread", "class", "session", "title", "why"), rows, "Codex has no threads that are known here")


def _why(thread: Json) -> str:
    # The column beside it has the session, at a width that can be read.
    return "" if thread["class"] == "owned" else str(thread["reason"])


@asking_command("discover")
@click.option("--no-wait", is_flag=True, help="Begin the scan and do not wait for its end.")
def discover(invocation: Invocation, no_wait: bool) -> None:
    """Look for threads that Codex has, now."""
    with daemon_of(invocation) as client:
        before = client.get("/api/discovery", Json)
        answer = client.post("/api/discovery/scan", Json)
        if not no_wait:
            answer = _scanned(invocation, client, before)
    if invocation.as_json:
        invocation.print_json(answer)
    elif no_wait:
        click.echo("a scan has begun")
    else:
        report = answer["report"]
        homes = report.get("homes", report) if isinstance(report, dict) else report
        print_rows((), [(answer["status"], answer["reason"] or f"ended {answer['finishedAt']}"), *_homes(homes)])
    if answer.get("status") == "failed":
        raise Exited(Exit.FAILURE)


def _scanned(invocation: Invocation, client: Client, before: Json) -> Json:
    """Wait for the end of the scan. On a terminal a bar shows how far it is."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("looking", total=None, told="")
        last, ends = None, time.monotonic() + SCAN_SILENCE_S
        while time.monotonic() < ends:
            now = client.get("/api/discovery", Json)
            if now["status"] != "scanning" and now["finishedAt"] != before["finishedAt"]:
                return now
            if now["report"] != last:
                last, ends = now["report"], time.monotonic() + SCAN_SILENCE_S
            home = _progress(now)
            if home is not None:
                seen, expected = home["seen"], home.get("expected")
                told = f"{seen:,} threads, {home['told']:,} new or changed"
                bar.update(task, description=home["home"], completed=seen, total=expected, told=told)
            time.sleep(_LOOK_PAUSE_S)
    return invocation.fail(Exit.FAILURE, "scan-unfinished", f"the scan got no further for {SCAN_SILENCE_S:.0f} s")


def _progress(now: Json) -> Json | None:
    """How far the scan is, once it has said so."""
    report = now["report"] if now["status"] == "scanning" else None
    home = report[0] if isinstance(report, list) and report else None
    return home if isinstance(home, dict) and "seen" in home else None


def _homes(report: object) -> Iterable[tuple[str, str]]:
    for home in report if isinstance(report, list) else ():
        if isinstance(home, dict):
            yield (
                str(home.get("home", "")),
                ", ".join(
                    f"{name} {plain(value)}"
                    for name, value in home.items()
                    if name != "home" and value not in (None, 0)
                ),
            )


@asking_command("ignored")
def ignored(invocation: Invocation) -> None:
    """List the threads that are never imported, and why."""
    with daemon_of(invocation) as client:
        found = rows_of(client, "/api/ignored-threads")
    if invocation.as_json:
        invocation.print_json({"ignored": found})
        return
    rows = ((each["threadId"], each["reason"], each["ignoredAt"]) for each in found)
    print_rows(("thread", "why", "since"), rows, "no thread is ignored")


@asking_command("unignore")
@click.argument("thread")
def unignore(invocation: Invocation, thread: str) -> None:
    """Let a thread be imported again."""
    with daemon_of(invocation) as client:
        known = [(each["threadId"], "") for each in rows_of(client, "/api/ignored-threads")]
        found = one_meant(invocation, "thread", thread, known)
        entry = client.send("DELETE", f"/api/ignored-threads/{found}", Json)
    if invocation.as_json:
        invocation.print_json(entry)
    else:
        click.echo(f"no longer ignored: {found}; it is found by the next scan: termald discover")


@asking_command("phantoms")
@click.option("--kill", "kill_them", is_flag=True, help="Kill them; without it they are only listed.")
@click.argument("sessions", nargs=-1, metavar="[SESSION...]")
def phantoms(invocation: Invocation, kill_them: bool, sessions: tuple[str, ...]) -> None:
    """List sessions that hold nothing, with the evidence.

    With --kill, those that are listed are killed.
    """
    with daemon_of(invocation) as client:
        try:
            found = rows_of(client, "/api/phantoms")
            known = [(each["sessionId"], each["title"] or "") for each in found]
            if sessions:
                chosen = {one_meant(invocation, "phantom", each, known) for each in sessions}
                found = [each for each in found if each["sessionId"] in chosen]
            ids = [each["sessionId"] for each in found]
            killed = client.post("/api/phantoms/kill", Json, {"ids": ids}) if kill_them and ids else None
        except Refused as error:
            not_there_yet(invocation, error, "tell phantoms")
    if invocation.as_json:
        invocation.print_json({"phantoms": found, "killed": killed})
        return
    rows = [(each["sessionId"], each["title"] or "", each["createdAt"], _evidence(each["evidence"])) for each in found]
    print_rows(("session", "title", "since", "evidence"), rows, "no phantoms")
    if killed is not None:
        for spared in killed["spared"]:
            click.echo(f"spared {spared['sessionId']}: {spared['reason']}", err=True)
        click.echo(f"killed {len(killed['killed'])}", err=True)
    elif rows:
        click.echo("kill them with: termald phantoms --kill", err=True)


def _evidence(evidence: Json) -> str:
    ours, codex = evidence["record"], evidence["codex"]
    undelivered = f", {ours['undelivered']} prompts never delivered" if ours["undelivered"] else ""
    return f"here {ours['messages']} messages, {ours['turns']} turns{undelivered}; in Codex: {codex['reason']}"


@asking_command("models")
def models(invocation: Invocation) -> None:
    """List the models that Codex offers."""
    with daemon_of(invocation) as client:
        try:
            answer = client.get("/api/models", Json)
        except Refused as error:
            not_there_yet(invocation, error, "list models")
    if invocation.as_json:
        invocation.print_json(answer)
        return
    rows = (
        (
            str(each.get("id") or each.get("model")) + (" (default)" if each.get("isDefault") else ""),
            str(each.get("displayName") or ""),
            ", ".join(_effort(effort) for effort in each.get("supportedReasoningEfforts") or ()),
            str(each.get("description") or ""),
        )
        for each in answer.get("data", ())
    )
    print_rows(("model", "name", "efforts", "about"), rows, "Codex offers no models")


def _effort(effort: object) -> str:
    return str(effort.get("reasoningEffort") if isinstance(effort, dict) else effort)
