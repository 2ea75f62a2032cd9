"""`termald config`: the settings in force, and the page that describes them all."""

import sys

import rich_click as click

from termald.cli.invocation import (
    EVERYTHING,
    Invocation,
    json_option,
    pass_invocation,
    settings_options,
    tells_failures,
)
from termald.cli.reference import described, settings_page
from termald.cli.rows import print_rows
from termald.settings import FIELDS, show, value_of


@click.group("config", cls=click.RichGroup)
def command() -> None:
    """Show the settings and where each comes from."""


@command.command("show", cls=click.RichCommand)
@settings_options(*EVERYTHING)
@json_option
@pass_invocation
@tells_failures
def show_settings(invocation: Invocation) -> None:
    """Print each setting with its value and where that comes from.

    In a pipe the lines are a settings file that gives the same values.
    """
    resolved = invocation.settings()
    shown = {key: show(value_of(resolved.settings, field), field.none) for key, field in FIELDS.items()}
    for warning in resolved.warnings:
        click.echo(f"termald: {warning}", err=True)
    if invocation.as_json:
        invocation.print_json(
            {
                "settings": {
                    key: {
                        "value": _json_value(value_of(resolved.settings, field), field.none),
                        "source": resolved.sources[key],
                    }
                    for key, field in FIELDS.items()
                },
                "warnings": resolved.warnings,
            }
        )
    elif sys.stdout.isatty():
        print_rows(("setting", "value", "source"), ((key, shown[key], str(resolved.sources[key])) for key in FIELDS))
    else:
        for key in FIELDS:
            click.echo(f"{key} = {shown[key]}  # {resolved.sources[key]}")


@command.command("reference", cls=click.RichCommand)
@json_option
@pass_invocation
def print_reference(invocation: Invocation) -> None:
    """Print the description of every setting, in Markdown."""
    if invocation.as_json:
        invocation.print_json({"settings": {key: described(field) for key, field in FIELDS.items()}})
    else:
        click.echo(settings_page(), nl=False)


def _json_value(value: object, none: str | None) -> object:
    """As the file holds it: the word for None, and addresses and paths as text."""
    if value is None:
        return none
    if isinstance(value, bool | int | str):
        return value
    return [str(each) for each in value] if isinstance(value, tuple) else str(value)
