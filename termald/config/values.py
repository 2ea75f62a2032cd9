"""One value: from the text of a variable or flag, or from TOML, to the setting's own type. Pure."""

import os
from pathlib import Path
from typing import Literal, get_args, get_origin

import msgspec

from termald.settings import Field, Listen


def read_value(field: Field, raw: object, *, textual: bool, base: Path, home: Path) -> object:
    """Return the value of the field's own type. `textual`: `raw` is the text of a variable or flag, not TOML.

    Relative paths begin at `base`, `~` is `home`. Errors: ValueError with what is allowed, as the end of a sentence.
    """
    if field.none is not None and raw == field.none:
        return None
    if isinstance(raw, str) and not _is_sound(raw):
        raise ValueError("must be UTF-8 without NUL")
    kind = _plain(field.type)
    if kind is Listen and isinstance(raw, str):
        return Listen.parse(raw)
    if textual and get_origin(kind) is tuple:
        raw = _split(str(raw))
    try:
        value: object = msgspec.convert(
            raw, field.type, strict=not textual, dec_hook=lambda _kind, text: _absolute(text, base, home)
        )
    except msgspec.ValidationError as error:
        # msgspec's own words speak of types that nobody has written.
        raise ValueError(f"must be {allowed(field)}") from error
    if value == "":
        raise ValueError(f"must be {allowed(field)}")
    # A program is a name, which PATH finds, or a path like any other.
    if field.key == "codex.bin" and "/" in str(value):
        return str(_absolute(value, base, home))
    return value


def allowed(field: Field) -> str:
    """Return what a value of this setting must be, in words."""
    kind = _plain(field.type)
    if get_origin(kind) is Literal:
        return " or ".join(f'"{value}"' for value in get_args(kind))
    if get_origin(kind) is tuple:
        return "a list of paths" if Path in get_args(kind) else "a list of texts"
    if kind is int:
        return f"a whole number from {field.low} to {field.high} ({field.unit})"
    if kind is bool:
        return "true or false"
    what = "a path" if kind is Path else "HOST:PORT" if kind is Listen else "a text"
    return f'{what}, or "{field.none}"' if field.none else what


def _is_sound(text: str) -> bool:
    """Variables may hold any bytes; what is not UTF-8 arrives as lone surrogates, which no file or answer can carry."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _plain(hint: object) -> object:
    """The type without its annotation, and without the None that a word stands for."""
    bare = get_args(hint)[0]
    if type(None) not in get_args(bare):
        return bare
    return next(option for option in get_args(bare) if option is not type(None))


def _split(text: str) -> object:
    """A list in a variable or flag: with commas, or as JSON where an item holds a comma or the list is empty."""
    if not text.startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"is not a JSON list: {error}") from error


def _absolute(text: object, base: Path, home: Path) -> Path:
    if not isinstance(text, str) or not text:
        raise ValueError(f"{text!r} is not a path")
    if text == "~" or text.startswith("~/"):
        return Path(os.path.normpath(home / text[2:]))
    return Path(os.path.normpath(base / text))
