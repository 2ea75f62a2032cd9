"""A disk that can lose its power: what was not synced is gone, or there in part.

An apsw VFS over the real files. It remembers each file as it was at its last sync, and at any operation can tell what
would be found after a cut there: for each sector that was written since, the old or the new one, by the policy. A
process that is killed loses nothing of what it wrote: that is the policy `everything`.
"""
# ruff: noqa: N802 - the methods are SQLite's

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import apsw

if TYPE_CHECKING:
    from typing_extensions import Buffer

SECTOR: Final = 512
_LOGS: Final = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL

Policy = Callable[[], bool]
"""Asked for each sector, size and deletion since the last sync: did it reach the disk?"""


def nothing() -> bool:
    """The power went, and the disk had written back nothing by itself."""
    return False


def everything() -> bool:
    """The process was killed; the kernel writes back all that it was given."""
    return True


def some(seed: int) -> Policy:
    """The power went while the disk was writing back, in an order of its own."""
    chosen = random.Random(seed)
    return lambda: chosen.random() < 0.5


class Disk(apsw.VFS):
    """Register with a name of its own; unregister after use. `on_operation` is called before each write, truncation,
    sync and deletion; what it raises is the operation's error."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "")
        self.name = name
        self.synced: dict[Path, bytes] = {}
        self.on_operation: Callable[[str], None] = lambda kind: None

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "DiskFile":
        return DiskFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.on_operation("delete")
        super().xDelete(filename, syncdir)
        if syncdir:
            self.synced.pop(Path(filename), None)

    def forget_deleted(self) -> None:
        """The folder was synced: what was deleted in it stays so."""
        self.synced = {path: content for path, content in self.synced.items() if path.exists()}

    def after_a_cut(self, folder: Path, policy: Policy) -> dict[str, bytes]:
        """Return the database's files by name as they would be found."""
        found = {}
        for path in sorted({*self.synced, *folder.glob("*.sqlite*")}):
            if path.name.endswith("-shm"):
                continue  # memory that processes share; after a boot nobody has it
            old, new = self.synced.get(path), path.read_bytes() if path.exists() else None
            kept = _mixed(old, new, policy)
            if kept is not None:
                found[path.name] = kept
        return found


class DiskFile(apsw.VFSFile):
    """An open file of the disk's."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        # SQLite syncs the folder with a new log's first sync, and with it every deletion before. (The one of the
        # journal from before the switch to WAL matters: a journal that came back would undo the whole database.)
        self._sync_folder = bool(flags[0] & apsw.SQLITE_OPEN_CREATE) and bool(flags[0] & _LOGS)
        self._path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name or "")

    def xWrite(self, data: "Buffer", offset: int) -> None:
        self._disk.on_operation("write")
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._disk.on_operation("truncate")
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._disk.on_operation("sync")  # not the real disk's: that costs milliseconds and is not what is looked at
        self._disk.synced[self._path] = self._path.read_bytes()
        if self._sync_folder:
            self._sync_folder = False
            self._disk.forget_deleted()


def _mixed(old: bytes | None, new: bytes | None, policy: Policy) -> bytes | None:
    if new is None:
        return None if policy() else old  # a deletion that was not synced
    if old is None:
        if not policy():
            return None  # a new file whose name did not reach the disk
        old = b""
    size = len(new) if policy() else len(old)
    mixed = b"".join(
        (new if new[at : at + SECTOR] == old[at : at + SECTOR] or policy() else old)[at : at + SECTOR].ljust(
            SECTOR, b"\0"
        )
        for at in range(0, size, SECTOR)
    )
    return mixed[:size]
