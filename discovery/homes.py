"""Where a Codex home keeps its state DB, and which of several is the one to read.

Codex has moved it over the years and still offers to: `state_<n>.sqlite` in the home itself or in its `sqlite` folder,
or wherever `sqlite_home` of `config.toml` or `CODEX_SQLITE_HOME` says (measured on codex 0.163 and 0.171: then nothing
is left in the home). A new number is a new file that Codex fills from the rollouts, so that for a while the newest file
knows less than the one before. Therefore: the newest that is whole; else the newest that can be read at all; and what
was passed over is told with the reason (DISC-04).
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import apsw
import msgspec

from discovery.readonly import DatabaseUnreadable, ReadOnlyDatabase

_NAME: Final = re.compile(r"state_(\d{1,9})\.sqlite")
_CONFIG_BYTES_MAX: Final = 1 << 20

Marks = frozenset[tuple[str, int, int]]
"""Path, size in bytes, time of change in nanoseconds. For comparison only."""
Trouble = Literal["no-home", "no-database", "unusable-database", "read-failed"]


class HomeUnreadable(Exception):  # noqa: N818 - the state of a folder, not a mistake in the program
    """Nothing, or nothing more, can be told of this home now. `kind` is for code, `reason` for people.

    `no-home` and `no-database` are what a machine looks like on which Codex was never used.
    """

    def __init__(self, home: Path, kind: Trouble, reason: str) -> None:
        super().__init__(f"{home}: {reason}")
        self.home = home
        self.kind: Trouble = kind
        self.reason = reason


class PassedOver(msgspec.Struct, frozen=True, kw_only=True):
    """A state DB that was not chosen, or was chosen for want of a better one, and why."""

    path: Path
    reason: str


class StateFile(msgspec.Struct, frozen=True, kw_only=True):
    """The state DB to read, and those that were passed over for it. `flaw`: why it was only the best of a bad lot."""

    home: Path
    path: Path
    number: int
    flaw: str | None = None
    passed_over: tuple[PassedOver, ...] = ()


class _Candidate(msgspec.Struct, frozen=True, kw_only=True):
    path: Path
    number: int
    written_ns: int


def find_state_file(home: Path, sqlite_home: Path | None = None) -> StateFile:
    """Return the state DB of this home. `sqlite_home` is the folder that the environment names, if it names one.

    Blocks on the file system, for a few milliseconds each file. Errors: `HomeUnreadable`.
    """
    if not home.is_dir():
        raise HomeUnreadable(home, "no-home", "it is a file" if home.exists() else "no such folder")
    flawed: list[tuple[_Candidate, str]] = []
    unusable: list[PassedOver] = []
    for candidate in _candidates(home, sqlite_home):
        try:
            flaw = _flaw(candidate.path)
        except DatabaseUnreadable as error:
            unusable.append(PassedOver(path=candidate.path, reason=error.reason))
            continue
        if flaw is None:
            passed = [PassedOver(path=other.path, reason=reason) for other, reason in flawed]
            return _chosen(home, candidate, None, [*unusable, *passed])
        flawed.append((candidate, flaw))
    if flawed:
        (best, flaw), *others = flawed
        return _chosen(home, best, flaw, [*unusable, *(PassedOver(path=c.path, reason=why) for c, why in others)])
    if unusable:
        told = "; ".join(f"{passed.path.name}: {passed.reason}" for passed in unusable)
        raise HomeUnreadable(home, "unusable-database", told)
    raise HomeUnreadable(home, "no-database", "no state_<n>.sqlite in it")


def marks_of(home: Path, sqlite_home: Path | None = None) -> Marks:
    """Return size and time of change of every file that may be this home's state DB or its WAL. While they stay equal,
    nothing was stored. Blocks as `find_state_file` does, and opens none of them; a home that is not there has none."""
    marks = set()
    for candidate in _candidates(home, sqlite_home):
        for path in (candidate.path, candidate.path.with_name(candidate.path.name + "-wal")):
            try:
                told = path.stat()
            except OSError:
                continue
            marks.add((str(path), told.st_size, told.st_mtime_ns))
    return frozenset(marks)


def _chosen(home: Path, candidate: _Candidate, flaw: str | None, passed: list[PassedOver]) -> StateFile:
    return StateFile(home=home, path=candidate.path, number=candidate.number, flaw=flaw, passed_over=tuple(passed))


def _candidates(home: Path, sqlite_home: Path | None) -> list[_Candidate]:
    """All state DBs of the home, the likeliest first: the highest number, and among equals the last written."""
    folders = dict.fromkeys(f for f in (sqlite_home, _configured(home), home, home / "sqlite") if f is not None)
    found = [candidate for folder in folders for candidate in _in_folder(folder)]
    return sorted(found, key=lambda c: (c.number, c.written_ns), reverse=True)


def _in_folder(folder: Path) -> Iterator[_Candidate]:
    try:
        names = [path.name for path in folder.iterdir()]
    except (OSError, ValueError):
        # Most homes have no `sqlite` folder, a configured one may not be mounted or not be a path: the others are
        # looked at.
        return
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        path = folder / name
        written = [_written_ns(path), _written_ns(path.with_name(name + "-wal"))]
        yield _Candidate(path=path, number=int(match[1]), written_ns=max(written))


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _configured(home: Path) -> Path | None:
    """The folder that the home's own `config.toml` names. A configuration that cannot be read names none: judging it is
    Codex's business."""
    try:
        with (home / "config.toml").open("rb") as file:
            text = file.read(_CONFIG_BYTES_MAX).decode("utf-8")
        named = tomllib.loads(text).get("sqlite_home")
        return home / Path(named).expanduser() if isinstance(named, str) and named else None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RuntimeError):  # RuntimeError: `~nobody`
        return None


def _flaw(path: Path) -> str | None:
    """Why this file is only second best; None if it is whole. Errors: `DatabaseUnreadable` if it is no use at all."""
    with ReadOnlyDatabase(path) as database:
        columns = database.read(lambda connection: columns_of(connection, "threads"))
        if not columns:
            raise DatabaseUnreadable(path, "it has no table `threads`")
        if "id" not in columns:
            raise DatabaseUnreadable(path, "its table `threads` has no column `id`")
        return database.read(_unfinished)


def columns_of(connection: apsw.Connection, table: str) -> frozenset[str]:
    """Return the names of the table's columns; empty where there is no such table."""
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return frozenset(str(name) for (name,) in rows)


def _unfinished(connection: apsw.Connection) -> str | None:
    if "success" in columns_of(connection, "_sqlx_migrations"):
        count = connection.execute("SELECT count(*) FROM _sqlx_migrations WHERE NOT success").get
        if count:
            return "a migration of it is unfinished"
    if "status" in columns_of(connection, "backfill_state"):
        status = connection.execute("SELECT status FROM backfill_state LIMIT 1").get
        if status is not None and status != "complete":
            return f"Codex still fills it from the rollouts ({status})"
    if connection.execute("SELECT 1 FROM threads LIMIT 1").get is None:
        return "it holds no thread"
    return None
