"""`termald token`: what TCP clients must show."""

import rich_click as click

from termald.api.token import TokenRefused, read_or_make_token
from termald.cli.exits import Exit
from termald.cli.invocation import Invocation, json_option, pass_invocation, settings_options, tells_failures


@click.command("token", cls=click.RichCommand)
@settings_options("state-dir")
@json_option
@pass_invocation
@tells_failures
def command(invocation: Invocation) -> None:
    """Print the token that TCP clients need.

    It is made where there is none yet. Whoever has it can run commands on this machine as you.
    """
    folder = invocation.settings().settings.state.dir
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        token = read_or_make_token(folder)
    except TokenRefused as error:
        invocation.fail(Exit.FAILURE, error.slug, str(error))
    except OSError as error:
        invocation.fail(Exit.FAILURE, "token-unreadable", f"{folder}: {error.strerror or error}")
    if invocation.as_json:
        invocation.print_json({"token": token})
    else:
        click.echo(token)
