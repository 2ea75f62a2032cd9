"""Settings for tests: from what a test gives, on a machine that does not exist."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from termald.config.places import Places
from termald.config.resolve import ConfigFile, Flag, Resolved, resolve

PLACES = Places(
    home=Path("/home/u"),
    working=Path("/home/u/work"),
    config_file=Path("/home/u/.config/termald/config.toml"),
    state_dir=Path("/home/u/.local/state/termald"),
    runtime_dir=Path("/run/user/1000/termald"),
)


def resolve_from(
    *,
    file: str | None = None,
    path: Path = PLACES.config_file,
    environment: Mapping[str, str] | None = None,
    flags: Iterable[Flag] = (),
    runtime_dir: Path | None = PLACES.runtime_dir,
) -> Resolved:
    """Resolve on the invented machine. `file` is the text of the file, None where there is none."""
    return resolve(
        places=msgspec.structs.replace(PLACES, runtime_dir=runtime_dir),
        environment=environment or {},
        file=None if file is None else ConfigFile(path, file),
        flags=flags,
    )


def flag(key: str, text: str) -> Flag:
    """A flag whose option is named like its key."""
    return Flag(key=key, name=f"--{key}", text=text)
