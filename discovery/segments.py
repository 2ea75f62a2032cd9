"""Where the files of a thread's history lie.

A thread's rollout is `rollout-<time>-<thread id>.jsonl` in `sessions/<year>/<month>/<day>` or in `archived_sessions`.
A revert begins a new file, `rollout-<time>-<thread id>_<segment id>.jsonl`, beside the old one, which stays because the
new one goes on from it; archiving moves all of them together (measured on codex 0.163 and 0.171). Codex may compress a
file to `.jsonl.zst`; the state DB then still names it without the suffix.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

COMPRESSED: Final = ".zst"
ROOTS: Final = ("sessions", "archived_sessions")


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is there. `bytes` on disk, so compressed or not."""

    path: Path
    bytes: int

    @property
    def compressed(self) -> bool:
        """Whether it would have to be unpacked first."""
        return self.path.suffix == COMPRESSED


def find_rollout(home: Path, told: str | None) -> Rollout | None:
    """Return the file that the state DB tells of, as it stands or compressed; None if it is gone.

    A home that was moved still names its old place: the part below `sessions` is then looked for in this home.
    """
    if not told:
        return None
    return next((found for path in _places(home, told) if (found := _there(path)) is not None), None)


def find_segment(folders: Iterable[Path], segment_id: str) -> Rollout | None:
    """Return the file in one of the folders whose name ends with this thread's or segment's id."""
    ends = tuple(mark + segment_id + suffix for mark in "-_" for suffix in (".jsonl", ".jsonl" + COMPRESSED))
    for folder in dict.fromkeys(folders):
        for name in _names(folder):
            if name.endswith(ends) and (found := _there(folder / name)) is not None:
                return found
    return None


def archive_of(home: Path) -> Path:
    """Return the folder of archived rollouts."""
    return home / "archived_sessions"


def _places(home: Path, told: str) -> Iterator[Path]:
    path = home / told
    yield path
    for root in ROOTS:
        if root in path.parts:
            below = path.parts[path.parts.index(root) :]
            yield home.joinpath(*below)


def _there(path: Path) -> Rollout | None:
    return _regular(path) or _regular(Path(f"{path}{COMPRESSED}"))


def _regular(path: Path) -> Rollout | None:
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a name with a NUL in it, from a row that is junk
        return None
    return Rollout(path=path, bytes=status.st_size) if stat.S_ISREG(status.st_mode) else None


def _names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.name
    except OSError:
        # Not every home has an archive, and a thread's old folder may be gone: the caller says what it did not find.
        return
