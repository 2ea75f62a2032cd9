"""`termald doctor`: what is well and what is not, and the way out."""

import os
import sys
from collections.abc import Iterator

import rich_click as click
from click.exceptions import Exit as Exited
from rich.console import Console
from rich.text import Text

from termald.cli.asking import no_color_option
from termald.cli.checkup import codex, machine, state
from termald.cli.checkup.findings import Finding
from termald.cli.exits import Exit
from termald.cli.invocation import (
    EVERYTHING,
    Invocation,
    json_option,
    pass_invocation,
    settings_options,
    tells_failures,
)
from termald.settings import Settings

_MARKS = {"ok": ("✔", "green"), "note": ("•", "yellow"), "problem": ("✘", "bold red")}


@click.command("doctor", cls=click.RichCommand)
@click.option("--fix", is_flag=True, help="Mend what is safe to mend: modes, and what a daemon that is gone left.")
@settings_options(*EVERYTHING)
@no_color_option
@json_option
@pass_invocation
@tells_failures
def command(invocation: Invocation, fix: bool) -> None:
    """Look for what is wrong, and say what helps.

    It changes nothing without --fix, and never ends a process. The exit code is 1 where a problem stays.
    """
    settings = invocation.settings().settings
    findings = _examined(invocation, settings)
    mended = [each for each in findings if fix and each.fix is not None]
    for each in mended:
        assert each.fix is not None
        each.fix()
    if mended:
        findings = _examined(invocation, settings)
    if invocation.as_json:
        invocation.print_json(
            {"findings": [_document(each) for each in findings], "fixed": [each.says for each in mended]}
        )
    else:
        _print(findings, mended)
    if any(each.level == "problem" for each in findings):
        raise Exited(Exit.FAILURE)


def _examined(invocation: Invocation, settings: Settings) -> list[Finding]:
    """All findings; on a terminal it is told meanwhile how far it is, for a login shell may take its time."""
    if invocation.as_json or not sys.stderr.isatty():
        return list(examine(settings))
    findings: list[Finding] = []
    with Console(stderr=True).status("looking …") as status:
        for each in examine(settings):
            findings.append(each)
            status.update(f"looking … ({len(findings)} so far, last: {each.what})")
    return findings


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield everything that was looked at."""
    daemon = state.running_pid(settings)
    yield from codex.look(settings, os.environ)
    yield from state.look(settings, daemon)
    yield from machine.look(settings, daemon)


def _document(finding: Finding) -> dict[str, object]:
    return {
        "what": finding.what,
        "level": finding.level,
        "says": finding.says,
        "help": finding.help,
        "canFix": finding.fix is not None,
    }


def _print(findings: list[Finding], mended: list[Finding]) -> None:
    if not sys.stdout.isatty():
        for each in findings:
            click.echo("\t".join((each.level, each.what, each.says, each.help or "")))
        return
    console = Console(highlight=False, soft_wrap=True)
    for each in mended:
        console.print(Text(f"mended: {each.says}", style="green"))
    for each in findings:
        mark, style = _MARKS[each.level]
        console.print(Text.assemble((f"{mark} ", style), (f"{each.what}: ", "bold"), each.says))
        if each.help is not None:
            fixable = "   (termald doctor --fix does it)" if each.fix is not None else ""
            console.print(Text(f"    {each.help}{fixable}", style="dim"))
