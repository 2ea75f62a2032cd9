"""Which process writes a thread now, told by the locks that Codex holds; none is taken or tried.

While a Codex has a thread loaded it holds a lock on `thread-writer-locks/<thread id>.lock` in its home (measured on
codex 0.163 and 0.171; 0.149 has the folder). Who holds it the kernel tells in `/proc/locks`; where there is no such
file, nobody is told of, and Codex's own refusal of a second writer stays the only word.
"""

import os
from pathlib import Path
from typing import Final

from state.records import ThreadId

FOLDER: Final = "thread-writer-locks"
_LOCKS: Final = Path("/proc/locks")
_SUFFIX: Final = ".lock"
# `1: FLOCK  ADVISORY  WRITE 707 fe:00:2220540 0 EOF`; a waiting one has `->` after the number and holds nothing.
_FIELDS: Final = 8


def writers_of(home: Path, locks: Path = _LOCKS) -> dict[ThreadId, int]:
    """Return the pid that writes each thread of the home; 0 for a process that cannot be seen from here. Blocks for one
    look at a folder and one read."""
    files = _lock_files(home)
    if not files:
        return {}
    try:
        lines = locks.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[ThreadId, int] = {}
    for line in lines:
        fields = line.split()
        if len(fields) != _FIELDS or fields[1] != "FLOCK" or fields[3] != "WRITE":
            continue
        pid, (major, minor, inode) = int(fields[4]), fields[5].split(":")
        thread = files.get((int(major, 16), int(minor, 16), int(inode)))
        if thread is not None:
            found[thread] = max(pid, 0)
    return found


def _lock_files(home: Path) -> dict[tuple[int, int, int], ThreadId]:
    files = {}
    try:
        paths = list((home / FOLDER).iterdir())
    except OSError:
        return {}  # an older Codex, or none was ever here
    for path in paths:
        if path.suffix == _SUFFIX and not path.name.startswith("."):
            try:
                told = path.stat()
            except OSError:
                continue  # let go of meanwhile
            files[os.major(told.st_dev), os.minor(told.st_dev), told.st_ino] = ThreadId(path.stem)
    return files
