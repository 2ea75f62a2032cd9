"""`termald version`: what is installed here, whether or not a daemon runs."""

import os
import platform
from importlib.metadata import version

import rich_click as click
import trio

from termald.cli.invocation import Invocation, json_option, pass_invocation, settings_options, tells_failures
from termald.cli.rows import print_rows
from termald.codex.binary import find_codex
from termald.codex.errors import CodexFault


@click.command("version", cls=click.RichCommand)
@settings_options("codex-bin")
@json_option
@pass_invocation
@tells_failures
def command(invocation: Invocation) -> None:
    """Print the versions of termald and Codex."""
    wanted = invocation.settings().settings.codex.bin
    codex: dict[str, str | None] = {"version": None, "path": None, "problem": None}
    try:
        found = trio.run(find_codex, wanted, os.environ.get("PATH", ""))
        codex |= {"version": found.version, "path": str(found.path)}
    except CodexFault as error:
        # Not a failure of this command: it says what is here, and that nothing is here is an answer.
        codex["problem"] = str(error)
    if invocation.as_json:
        invocation.print_json({"termald": version("termald"), "python": platform.python_version(), "codex": codex})
        return
    told = codex["problem"] or f"{codex['version']} ({codex['path']})"
    rows = (("termald", version("termald")), ("codex", told), ("python", platform.python_version()))
    print_rows(("what", "version"), rows)
