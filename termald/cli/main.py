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
    attribute: str = "command"


COMMANDS: Final = {
    "serve": Entry("termald.cli.serve", "Run the daemon in the foreground."),
    "demo": Entry("termald.cli.demo", "Show the main job on the real Codex with a scripted model."),
    "status": Entry("termald.cli.status", "Say how the daemon, Codex and the sessions are."),
    "open": Entry("termald.cli.browser", "Print a link that opens the daemon's page in a browser.", "open_"),
    "ls": Entry("termald.cli.sessions", "List the sessions, newest first.", "ls"),
    "new": Entry("termald.cli.sessions", "Make a session and print its id.", "new"),
    "send": Entry("termald.cli.talk", "Prompt a session and stream the answer.", "send"),
    "chat": Entry("termald.cli.talk", "Talk with a session, prompt by prompt.", "chat"),
    "tail": Entry("termald.cli.talk", "Print events as they come, of one session or of all.", "tail"),
    "history": Entry("termald.cli.sessions", "Print what was said and done in a session.", "history"),
    "requests": Entry("termald.cli.decisions", "List what waits for an answer: approvals and questions.", "requests"),
    "approve": Entry("termald.cli.decisions", "Allow what a request asks for.", "approve"),
    "deny": Entry("termald.cli.decisions", "Refuse what a request asks for.", "deny"),
    "answer": Entry("termald.cli.decisions", "Answer a question of Codex's.", "answer"),
    "interrupt": Entry("termald.cli.sessions", "Interrupt what runs in a session.", "interrupt"),
    "stop": Entry(
        "termald.cli.sessions",
        "End what runs in a session and let go of its thread.",
        "stop",
    ),
    "close": Entry("termald.cli.sessions", "Close a session for good.", "close"),
    "kill": Entry("termald.cli.sessions", "Remove sessions and never import their threads again.", "kill"),
    "fork": Entry("termald.cli.operations", "Make a session that goes on from here beside this one.", "fork"),
    "compact": Entry("termald.cli.operations", "Have Codex summarise what was said, to make room.", "compact"),
    "revert": Entry("termald.cli.operations", "Take the newest turns of a session back.", "revert"),
    "retry": Entry("termald.cli.operations", "Let the prompts go on that a session holds back.", "retry"),
    "phantoms": Entry(
        "termald.cli.threads",
        "List sessions that hold nothing, with the evidence.",
        "phantoms",
    ),
    "threads": Entry("termald.cli.threads", "List the threads that Codex has, each with what it is here.", "threads"),
    "discover": Entry("termald.cli.threads", "Look for threads that Codex has, now.", "discover"),
    "ignored": Entry("termald.cli.threads", "List the threads that are never imported, and why.", "ignored"),
    "unignore": Entry("termald.cli.threads", "Let a thread be imported again.", "unignore"),
    "models": Entry("termald.cli.threads", "List the models that Codex offers.", "models"),
    "doctor": Entry("termald.cli.doctor", "Look for what is wrong, and say what helps."),
    "token": Entry("termald.cli.token", "Print the token that TCP clients need."),
    "config": Entry("termald.cli.config", "Show the settings and where each comes from."),
    "version": Entry("termald.cli.version", "Print the versions of termald and Codex."),
    "completion": Entry("termald.cli.completion", "Print the script for a shell's completion.", "completion"),
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
        entry = COMMANDS[name]
        command: click.Command = getattr(importlib.import_module(entry.module), entry.attribute)
        return name, command, rest


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="termald", message="%(prog)s %(version)s")
def root() -> None:
    """Many durable Codex sessions over one shared `codex app-server`.

    Exit codes: 0 done, 1 failed, 2 the command line or the settings are wrong, 3 the daemon is not running, 4 the turn
    did not end well, 130 left with Ctrl-C.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit. `arguments` is None for those of the process."""
    root.main(None if arguments is None else list(arguments), prog_name="termald")
