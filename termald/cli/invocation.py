"""What all commands share: the options that name settings, `--json`, and how results and failures are told."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import msgspec
import rich_click as click
from click import get_current_context
from click.exceptions import Exit as Exited

from termald.cli.exits import Exit
from termald.client.errors import ClientError, DaemonNotRunning
from termald.config.resolve import Flag, Resolved, SettingsError, load

C = TypeVar("C", bound=Callable[..., Any])


class Invocation:
    """One command being carried out: what its options said, and how it wants to be answered."""

    def __init__(self) -> None:
        self.as_json = False
        self.config_file: Path | None = None
        self.flags: list[Flag] = []

    def settings(self) -> Resolved:
        """Return the settings in force, flags included. Errors: `SettingsError`."""
        return load(self.flags, config_file=self.config_file)

    def print_json(self, document: object) -> None:
        """Print the one document: indented for people on a terminal, on one line for programs."""
        text = msgspec.json.encode(document, enc_hook=str)
        click.echo(msgspec.json.format(text, indent=2) if sys.stdout.isatty() else text)

    def fail(self, code: Exit, slug: str, message: str) -> NoReturn:
        """Say why on standard error, with `--json` in the one document on standard output, and end with `code`."""
        if self.as_json:
            self.print_json({"error": {"slug": slug, "message": message}})
        else:
            click.echo(f"termald: {message}", err=True)
        raise Exited(code)


pass_invocation = click.make_pass_decorator(Invocation, ensure=True)


def _of(context: click.Context) -> Invocation:
    return context.ensure_object(Invocation)


def _note_json(context: click.Context, _option: click.Parameter, value: bool) -> None:
    _of(context).as_json |= value


json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_note_json,
    help="Print one JSON document.",
)


def _note_file(context: click.Context, _option: click.Parameter, value: Path | None) -> None:
    _of(context).config_file = value


def _note_pairs(context: click.Context, _option: click.Parameter, pairs: tuple[str, ...]) -> None:
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE")
        _of(context).flags.append(Flag(key=key, name=f"--set {key}", text=text))


class _Shortcut(click.ParamType[str]):
    """The text of an option that is short for `--set`; told as the option it was, when it is refused."""

    name = "text"

    def __init__(self, key: str) -> None:
        self.key = key


def _note_shortcut(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        assert isinstance(option.type, _Shortcut)
        _of(context).flags.append(Flag(key=option.type.key, name=option.opts[0], text=value))


_SHORTCUTS: Final = {
    "listen": ("server.listen", "HOST:PORT", "TCP address; port 0 takes a free one."),
    "state-dir": ("state.dir", "PATH", "Folder of the database and the token."),
    "runtime-dir": ("runtime.dir", "PATH", "Folder of the sockets and of daemon.json."),
    "codex-bin": ("codex.bin", "PATH", "The native Codex binary."),
    "codex-home": ("codex.home", "PATH", "Codex's home."),
    "transport": ("codex.transport", "unix|stdio", "How to speak to Codex."),
    "log-level": ("log.level", "LEVEL", "debug, info, warning or error."),
    "log-format": ("log.format", "FORMAT", "auto, console or json."),
}
PLACES: Final = ("state-dir", "runtime-dir")
EVERYTHING: Final = tuple(_SHORTCUTS)


def settings_options(*shortcuts: str) -> Callable[[C], C]:
    """Let a command take settings: `--config`, `--set KEY=VALUE`, and the named shortcuts. Read them by `settings`."""

    def decorate(command: C) -> C:
        for name in reversed(shortcuts):
            key, metavar, text = _SHORTCUTS[name]
            command = click.option(
                f"--{name}",
                type=_Shortcut(key),
                metavar=metavar,
                expose_value=False,
                callback=_note_shortcut,
                help=text,
            )(command)
        command = click.option(
            "--set",
            multiple=True,
            metavar="KEY=VALUE",
            expose_value=False,
            callback=_note_pairs,
            help="Any setting, by its key; may be given again.",
        )(command)
        return click.option(
            "--config",
            type=click.Path(dir_okay=False, path_type=Path),
            expose_value=False,
            callback=_note_file,
            help="The settings file. [default: $TERMALD_CONFIG, else the user's own]",
        )(command)

    return decorate


def tells_failures(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the errors that a person can do something about into a sentence and an exit code. Others are ours: they end
    with a traceback."""

    @functools.wraps(command)
    def guarded(*arguments: Any, **options: Any) -> None:
        invocation = get_current_context().ensure_object(Invocation)
        try:
            command(*arguments, **options)
        except SettingsError as error:
            invocation.fail(Exit.USAGE, error.slug, "; ".join(error.problems) if invocation.as_json else str(error))
        except DaemonNotRunning as error:
            invocation.fail(Exit.NOT_RUNNING, error.slug, str(error))
        except ClientError as error:
            invocation.fail(Exit.FAILURE, error.slug, str(error))

    return guarded
