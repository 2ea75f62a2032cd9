"""The folders of this user's daemon, found as the daemon finds them: the environment, the settings file, the defaults.

Only two settings matter to a client, `state.dir` and `runtime.dir`; a test holds this module to what the daemon itself
resolves. Written again here because a client must not need the daemon's own code.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import platformdirs

from termald.client.errors import ClientError

_NAMES: Final = {"state": "TERMALD_STATE_DIR", "runtime": "TERMALD_RUNTIME_DIR"}


class Folders(msgspec.Struct, frozen=True, kw_only=True):
    """Absolute paths; neither need exist."""

    runtime_dir: Path
    state_dir: Path


def find_folders(
    runtime_dir: Path | str | None = None,
    state_dir: Path | str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Folders:
    """Return the folders; what is given wins. Blocks on the settings file. Errors: `client-error` where that cannot be
    read."""
    given = {"state": state_dir, "runtime": runtime_dir}
    file = _config_file(environment)
    found = {name: _one(name, given[name], environment, file) for name in _NAMES}
    state = found["state"] or platformdirs.user_state_path("termald", appauthor=False)
    return Folders(state_dir=state, runtime_dir=found["runtime"] or _system_runtime_dir(environment) or state / "run")


def _one(
    name: str, given: Path | str | None, environment: Mapping[str, str], file: tuple[Path, dict[str, Any]]
) -> Path | None:
    if given is not None:
        return _absolute(given, Path.cwd())
    # Empty is unset: `VARIABLE= command` is how a shell takes one back.
    if text := environment.get(_NAMES[name]):
        return _absolute(text, Path.cwd())
    path, document = file
    table = document.get(name)
    text = table.get("dir") if isinstance(table, dict) else None
    return _absolute(text, path.parent) if isinstance(text, str) and text else None


def _config_file(environment: Mapping[str, str]) -> tuple[Path, dict[str, Any]]:
    named = environment.get("TERMALD_CONFIG")
    usual = platformdirs.user_config_path("termald", appauthor=False) / "config.toml"
    path = _absolute(named, Path.cwd()) if named else usual
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise ClientError(f"TERMALD_CONFIG names {path}, which does not exist") from None
        return path, {}
    except (OSError, ValueError) as error:
        raise ClientError(f"the settings file {path} cannot be read: {error}") from error


def _absolute(text: Path | str, base: Path) -> Path:
    return Path(os.path.normpath(base / Path(text).expanduser()))


def _system_runtime_dir(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("XDG_RUNTIME_DIR", "")
    if named and Path(named).is_absolute():
        return Path(named, "termald")
    usual = Path("/run/user", str(os.getuid()))
    return usual / "termald" if os.access(usual, os.W_OK | os.X_OK) else None
