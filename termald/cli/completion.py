"""`termald completion`: what a shell needs to complete commands and options."""

import rich_click as click
from click.shell_completion import get_completion_class

from termald.cli.exits import Exit
from termald.cli.invocation import Invocation, json_option, pass_invocation

SHELLS = ("bash", "zsh", "fish")
_WHERE = {
    "bash": 'eval "$(termald completion bash)"   # in ~/.bashrc',
    "zsh": 'eval "$(termald completion zsh)"   # in ~/.zshrc',
    "fish": "termald completion fish > ~/.config/fish/completions/termald.fish",
}


@click.command("completion", cls=click.RichCommand)
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@pass_invocation
def completion(invocation: Invocation, shell: str) -> None:
    """Print the script for a shell's completion.

    bash: `eval "$(termald completion bash)"` in ~/.bashrc; zsh the same in ~/.zshrc; fish: into a file of
    ~/.config/fish/completions.
    """
    found = get_completion_class(shell)
    context = click.get_current_context()
    assert context is not None, "a command runs in one"
    root = context.find_root().command
    if found is None:
        invocation.fail(Exit.FAILURE, "no-completion", f"click cannot complete for {shell}")
    script = found(root, {}, "termald", "_TERMALD_COMPLETE").source()
    if invocation.as_json:
        invocation.print_json({"shell": shell, "script": script, "use": _WHERE[shell]})
    else:
        click.echo(script)
