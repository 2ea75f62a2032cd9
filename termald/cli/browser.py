"""`termald open`: a link that lets a browser in."""

from urllib.parse import urlsplit

import rich_click as click

from termald.cli.asking import Json, asking_command, daemon_of, not_there_yet
from termald.cli.exits import Exit
from termald.cli.invocation import Invocation
from termald.client.errors import Refused
from termald.client.locate import read_daemon_file

_EVERY_ADDRESS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what a daemon may listen on is no address to go to


@asking_command("open")
@click.option("--browser", is_flag=True, help="Open it in a browser here as well.")
def open_(invocation: Invocation, browser: bool) -> None:
    """Print a link that opens the daemon's page in a browser.

    It works once, within two minutes, and lets that browser in for twelve hours. Whoever has it first can run commands
    on this machine as you.
    """
    with daemon_of(invocation) as client:
        base = read_daemon_file(invocation.settings().settings.runtime.dir).url
        if base is None:
            way = "set server.listen, as in: termald serve --listen 127.0.0.1:8787"
            invocation.fail(Exit.FAILURE, "no-address", f"the daemon listens where no browser gets to; {way}")
        try:
            made = client.post("/api/browser-links", Json)
        except Refused as error:
            not_there_yet(invocation, error, "let a browser in")
    url = reachable(base) + made["path"]
    if invocation.as_json:
        invocation.print_json({"url": url, "expiresAt": made["expiresAt"]})
    else:
        click.echo(url)
        click.echo("works once, within two minutes", err=True)
    if browser and click.launch(url) != 0:
        invocation.fail(Exit.FAILURE, "no-browser", "no browser could be started here; open the link in one")


def reachable(base: str) -> str:
    """Return an address that leads to a daemon that says this of itself."""
    parts = urlsplit(base)
    return f"http://127.0.0.1:{parts.port}" if parts.hostname in _EVERY_ADDRESS else base.rstrip("/")
