"""`termald demo`: the main job, done for real in a house of its own, and checked."""

import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import msgspec
import rich_click as click
import trio
from rich.console import Console

from termald.cli.demonstration.claims import Outcome, StoryEnded
from termald.cli.demonstration.evidence import end_leftovers
from termald.cli.demonstration.house import House, open_house
from termald.cli.demonstration.story import Story
from termald.cli.demonstration.view import Lines, Screen, Silent, closing_lines
from termald.cli.demonstration.watch import Progress
from termald.cli.exits import Exit
from termald.cli.failures import leaves
from termald.cli.invocation import Invocation, json_option, pass_invocation, settings_options, tells_failures
from termald.client.errors import ClientError
from termald.codex.binary import find_codex
from termald.codex.errors import CodexFault
from termald.scripted_model.config import write_codex_home
from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server

SESSIONS_MAX: Final = 64
# Each step has its own deadline; this one is for what nobody thought of.
DEADLINE_S: Final = 300.0


@click.command("demo", cls=click.RichCommand)
@click.option(
    "--sessions", type=click.IntRange(1, SESSIONS_MAX), default=8, show_default=True, help="How many run at once."
)
@click.option("--keep", is_flag=True, help="Leave the temporary folder for a look.")
@settings_options("codex-bin")
@json_option
@pass_invocation
@tells_failures
def command(invocation: Invocation, sessions: int, keep: bool) -> None:
    """Show the main job on the real Codex with a scripted model.

    No account is needed, and nothing of yours is touched: home, state and sockets lie in a temporary folder. Several
    sessions run at once over one process; a phantom is killed; the daemon is restarted; and every claim is checked. The
    exit code is 1 if one does not hold.
    """
    codex_bin = trio.run(_find, invocation)
    with open_house(keep=keep) as house:
        try:
            outcome = trio.run(_demonstrate, invocation, house, codex_bin, sessions, keep)
        finally:
            end_leftovers(house)
    if invocation.as_json:
        invocation.print_json({"holds": outcome.holds, **msgspec.to_builtins(outcome)})
    else:
        for line in closing_lines(outcome):
            click.echo(line)
    sys.exit(Exit.OK if outcome.holds else Exit.FAILURE)


async def _find(invocation: Invocation) -> Path:
    try:
        return (await find_codex(invocation.settings().settings.codex.bin, os.environ.get("PATH", ""))).path
    except CodexFault as error:
        invocation.fail(Exit.FAILURE, error.slug, str(error))


async def _demonstrate(invocation: Invocation, house: House, codex_bin: Path, count: int, keep: bool) -> Outcome:
    sessions: dict[str, Progress] = {}
    screen = Screen(Console(), sessions)
    is_live = sys.stdout.isatty() and not invocation.as_json
    view = Silent() if invocation.as_json else screen if is_live else Lines()
    model = ScriptedModel()
    story = Story(house, codex_bin, model, sessions, view)
    failure = None
    began = time.monotonic()
    try:
        with screen.shown() if is_live else nullcontext():
            with trio.fail_after(DEADLINE_S):
                async with open_server(model) as base_url:
                    write_codex_home(house.codex_home, base_url)
                    await story.tell(count)
    except* (StoryEnded, ClientError, trio.TooSlowError) as errors:
        failure = "; ".join(str(error) or type(error).__name__ for error in leaves(errors))
    return Outcome(
        claims=tuple(story.claims),
        sessions=count,
        seconds=round(time.monotonic() - began, 1),
        failure=failure,
        folder=str(house.root) if keep else None,
    )
