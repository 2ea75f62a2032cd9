"""The sources in their order: defaults, file, environment, flags; later ones rank higher.

`resolve` is pure and holds every rule; `load` feeds it from the real machine. Every value that is given is checked,
also one that a higher source overrides, and everything that is wrong is said at once.
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import NODEFAULT

from termald.config.checks import contradictions
from termald.config.places import Places, find_places
from termald.config.values import read_value
from termald.settings import FIELDS, SECTIONS, SOCKET_NAME, Field, Settings, show, value_of

PREFIX: Final = "TERMALD_"
CONFIG_VARIABLE: Final = "TERMALD_CONFIG"
# Ours, but no settings. The second is the mark of what Codex has started: `termald status` may well run there.
OTHER_VARIABLES: Final = frozenset({CONFIG_VARIABLE, "TERMALD_RUNTIME"})
QUOTED_MAX: Final = 200  # characters: a message stays readable with several mistakes in it


class Source(msgspec.Struct, frozen=True):
    """Where a value came from. `name`: the file, the variable or the flag; empty for a default."""

    kind: Literal["default", "file", "environment", "flag"]
    name: str = ""

    def __str__(self) -> str:
        """As it stands in messages."""
        return f"{self.kind} {self.name}".rstrip()


class ConfigFile(msgspec.Struct, frozen=True):
    """A file that was read. `path` is absolute."""

    path: Path
    text: str


class Flag(msgspec.Struct, frozen=True):
    """A setting given on the command line. `name` is the option as it was written."""

    key: str
    name: str
    text: str


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """The settings, the source of each by its key, and what was noticed but is no error."""

    settings: Settings
    sources: dict[str, Source]
    warnings: tuple[str, ...] = ()


class SettingsError(Exception):
    """What was given cannot be taken. `problems` holds a sentence for each mistake, with key, value and source."""

    slug = "settings-invalid"

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class _Given(msgspec.Struct, frozen=True):
    """A value as it was found: text from variables and flags, TOML's own types from the file."""

    field: Field
    raw: object
    source: Source
    base: Path


def load(
    flags: Iterable[Flag] = (), *, config_file: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Resolved:
    """Return the settings of this machine. Blocks on reading the file. Errors: `SettingsError`.

    The file is `config_file` (then it must exist), else what TERMALD_CONFIG names, else the user's own.
    """
    places = find_places(environment)
    file, warnings = _read_file(config_file, environment.get(CONFIG_VARIABLE, ""), places)
    resolved = resolve(places=places, environment=environment, file=file, flags=flags)
    return msgspec.structs.replace(resolved, warnings=warnings + resolved.warnings)


def _read_file(asked: Path | None, named: str, places: Places) -> tuple[ConfigFile | None, tuple[str, ...]]:
    path = asked or (Path(named).expanduser() if named else places.config_file)
    path = places.working / path
    try:
        return ConfigFile(path, path.read_text(encoding="utf-8")), ()
    except FileNotFoundError as error:
        if asked is not None:
            raise SettingsError([f"there is no file {path} (flag --config)"]) from error
        # No error either where the variable names it: a service's unit does, before anybody has written the file.
        return None, (f"there is no file {path} (environment {CONFIG_VARIABLE})",) if named else ()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError([f"cannot read the settings in {path}: {error}"]) from error


def resolve(
    *, places: Places, environment: Mapping[str, str], file: ConfigFile | None, flags: Iterable[Flag]
) -> Resolved:
    """Return the settings that follow from what is given. Pure. Errors: `SettingsError`, with all that is wrong."""
    problems: list[str] = []
    warnings: list[str] = []
    values: dict[str, object] = {}
    sources = dict.fromkeys(FIELDS, Source("default"))
    for given in (
        *_from_file(file, problems),
        *_from_environment(environment, places, problems, warnings),
        *_from_flags(flags, places, problems),
    ):
        key, textual = given.field.key, given.source.kind != "file"
        try:
            values[key] = read_value(given.field, given.raw, textual=textual, base=given.base, home=places.home)
        except ValueError as error:
            problems.append(f"{key} = {_quote(given.raw)} ({given.source}): {error}")
        sources[key] = given.source
    if problems:
        raise SettingsError(problems)
    settings = _build({**_defaults(places, values), **values})
    problems.extend(
        f"{key} = {show(value_of(settings, FIELDS[key]), FIELDS[key].none)} ({sources[key]}): {why}"
        for key, why in contradictions(settings)
    )
    if problems:
        raise SettingsError(problems)
    return Resolved(settings=settings, sources=sources, warnings=tuple(warnings))


def _from_file(file: ConfigFile | None, problems: list[str]) -> Iterator[_Given]:
    if file is None:
        return
    source = Source("file", str(file.path))
    try:
        document = tomllib.loads(file.text)
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{file.path} is not TOML: {error}")
        return
    for section, table in document.items():
        if section not in SECTIONS:
            problems.append(f"{section} ({source}): there is no such section{_nearest(section, SECTIONS)}")
        elif not isinstance(table, dict):
            problems.append(f"{section} = {_quote(table)} ({source}): must be a table, as in [{section}]")
        else:
            for name, raw in table.items():
                if (key := f"{section}.{name}") in FIELDS:
                    yield _Given(FIELDS[key], raw, source, file.path.parent)
                else:
                    problems.append(_unknown(key, raw, source, FIELDS))


def _from_environment(
    environment: Mapping[str, str], places: Places, problems: list[str], warnings: list[str]
) -> Iterator[_Given]:
    known = {variable: field for field in FIELDS.values() for variable in field.variables}
    # Empty is unset: `VARIABLE= command` is how a shell takes one back.
    for variable, field in known.items():
        if text := environment.get(variable):
            yield _Given(field, text, Source("environment", variable), places.working)
    for variable in sorted(environment.keys() - known.keys() - OTHER_VARIABLES):
        if variable.startswith(PREFIX) and (text := environment[variable]):
            section = variable.removeprefix(PREFIX).partition("_")[0].lower()
            # In one of our sections it can only be a setting that was meant; any other name may be somebody else's.
            (problems if section in SECTIONS else warnings).append(
                _unknown(variable, text, Source("environment", variable), known)
            )


def _from_flags(flags: Iterable[Flag], places: Places, problems: list[str]) -> Iterator[_Given]:
    for flag in flags:
        source = Source("flag", flag.name)
        if flag.key in FIELDS:
            yield _Given(FIELDS[flag.key], flag.text, source, places.working)
        else:
            problems.append(_unknown(flag.key, flag.text, source, FIELDS))


def _unknown(key: str, raw: object, source: Source, known: Iterable[str]) -> str:
    return f"{key} = {_quote(raw)} ({source}): there is no such setting{_nearest(key, known)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, tuple(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _quote(raw: object) -> str:
    """The value as it was given, for a message; bounded, since anything may stand in a variable."""
    text = repr(raw)
    return text if len(text) <= QUOTED_MAX else f"{text[:QUOTED_MAX]}…"


def _defaults(places: Places, values: Mapping[str, object]) -> dict[str, object]:
    """The defaults of this machine, those that follow from other settings included."""
    state_dir = values.get("state.dir", places.state_dir)
    assert isinstance(state_dir, Path)
    runtime_dir = values.get("runtime.dir", places.runtime_dir or state_dir / "run")
    assert isinstance(runtime_dir, Path)
    defaults = {key: field.default for key, field in FIELDS.items() if field.default is not NODEFAULT}
    return defaults | {
        "state.dir": state_dir,
        "runtime.dir": runtime_dir,
        "codex.home": places.home / ".codex",
        "server.unix_socket": runtime_dir / SOCKET_NAME,
    }


def _build(values: Mapping[str, object]) -> Settings:
    sections = {
        name: struct(**{field.name: values[field.key] for field in FIELDS.values() if field.section == name})
        for name, struct in SECTIONS.items()
    }
    return msgspec.convert(sections, Settings, strict=True)
