"""`termald serve`: the daemon, in the foreground."""

import functools
import sys

import rich_click as click
import structlog
import trio

from termald.cli.exits import Exit
from termald.cli.failures import MENDABLE, mendable
from termald.cli.invocation import (
    EVERYTHING,
    Invocation,
    json_option,
    pass_invocation,
    settings_options,
    tells_failures,
)
from termald.daemon import ReadyInfo, run
from termald.logs import set_up_logging
from termald.notify import READY, notify

log = structlog.get_logger()


@click.command("serve", cls=click.RichCommand)
@settings_options(*EVERYTHING)
@json_option
@pass_invocation
@tells_failures
def command(invocation: Invocation) -> None:
    """Run the daemon in the foreground.

    It says one line when it is ready, logs to standard error, and ends on SIGTERM or SIGINT.
    """
    resolved = invocation.settings()
    set_up_logging(resolved.settings.log)
    for warning in resolved.warnings:
        log.warning("a setting was passed over", what=warning)
    try:
        code = trio.run(functools.partial(run, resolved.settings, ready=functools.partial(tell_ready, invocation)))
    except (*MENDABLE, ExceptionGroup) as error:
        known = mendable(error)
        if known is None:
            raise
        invocation.fail(Exit.FAILURE, *known)
    sys.exit(code)


def tell_ready(invocation: Invocation, info: ReadyInfo) -> None:
    """Print the one line, and tell the service manager."""
    if invocation.as_json:
        invocation.print_json({"pid": info.pid, "url": info.url, "socket": info.socket})
    else:
        where = " and ".join(str(place) for place in (info.url, info.socket) if place)
        click.echo(f"termald is ready at {where} (pid {info.pid})")
    sys.stdout.flush()
    notify(READY)
