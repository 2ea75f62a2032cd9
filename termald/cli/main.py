"""The entrance: which commands there are, and loading one when it is used.

Help and completion must be instant, and `serve` alone needs half a second of imports; so this module knows each
command's name and one line, and imports nothing of the rest.
"""

import importlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import rich_click as click


class Entry(NamedTuple):
    """Where a command is, and what the overview says of it: the first sentence of its own help."""

    module: str
    about: str


COMMANDS: Final = {
    "serve": Entry("termald.cli.serve", "Run the daemon in the foreground."),
    "demo": Entry("termald.cli.demo", "Show the main job on the real Codex with a scripted model."),
    "status": Entry("termald.cli.status", "Say how the daemon, Codex and the sessions are."),
    "token": Entry("termald.cli.token", "Print the token that TCP clients need."),
    "config": Entry("termald.cli.config", "Show the settings and where each comes from."),
    "version": Entry("termald.cli.version", "Print the versions of termald and Codex."),
}


class LazyGroup(click.RichGroup):
    """A group that imports a command's module when the command is called, not when it is listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of `COMMANDS`: what is needed first stands first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return what listing and completion need of a command. `resolve_command` returns the real one."""
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else click.RichCommand(name=cmd_name, help=entry.about)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the real command for the first argument. Errors: UsageError for a name that does not exist."""
        name, listed, rest = super().resolve_command(ctx, args)
        if name is None or listed is None:
            return name, listed, rest
        command: click.Command = importlib.import_module(COMMANDS[name].module).command
        return name, command, rest


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="termald", message="%(prog)s %(version)s")
def root() -> None:
    """Many durable Codex sessions over one shared `codex app-server`.

    Exit codes: 0 done, 1 failed, 2 the command line or the settings are wrong, 3 the daemon is not running.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit. `arguments` is None for those of the process."""
    root.main(None if arguments is None else list(arguments), prog_name="termald")
