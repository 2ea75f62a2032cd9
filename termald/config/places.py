"""The folders of this machine and user that defaults and relative paths refer to."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import platformdirs


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Absolute paths; none need exist. `runtime_dir` is None where the system gives none: then it lies in the state
    folder, which is private as well."""

    home: Path
    working: Path
    config_file: Path
    state_dir: Path
    runtime_dir: Path | None


def find_places(environment: Mapping[str, str]) -> Places:
    """Return the folders of this user. Through platformdirs it reads the process's own environment as well."""
    directories = platformdirs.PlatformDirs("termald", appauthor=False)
    return Places(
        home=Path.home(),
        working=Path.cwd(),
        config_file=directories.user_config_path / "config.toml",
        state_dir=directories.user_state_path,
        runtime_dir=_runtime_dir(environment.get("XDG_RUNTIME_DIR", "")),
    )


def _runtime_dir(named: str) -> Path | None:
    # Not platformdirs: it refuses a folder that is not 0700 itself and then takes a guessable name in the shared
    # temporary folder. Ours, below it, is 0700, and the state folder needs no guess.
    if named and Path(named).is_absolute():
        return Path(named, "termald")
    usual = Path("/run/user", str(os.getuid()))
    return usual / "termald" if os.access(usual, os.W_OK | os.X_OK) else None
