"""What outlives a scripted app-server: the threads that it stored, and the record of everything that was ever said.

The record is the other end of every promise: which threads were minted by which frame, in which turns which prompt was
written down, who answered which request. Checks compare it with what the daemon stored and published.
"""

from random import Random
from typing import Any, Final

import msgspec
from support.scripted_codex_wire import Json, thread, turn

THREAD: Final = 0x7
TURN: Final = 0x8
ITEM: Final = 0x9


class TurnRow(msgspec.Struct, kw_only=True):
    """A turn as it is written down. `ours` are the client ids of its user items, in order."""

    id: str
    status: str = "inProgress"
    items: list[Json] = msgspec.field(default_factory=list)
    failure: Json | None = None
    began_s: float = 0.0

    @property
    def ours(self) -> list[str]:
        """The client ids of its user items."""
        return [item["clientId"] for item in self.items if item["type"] == "userMessage" and item["clientId"]]


class ThreadRow(msgspec.Struct, kw_only=True):
    """A thread. Nothing of it is left after its process if it was never `stored`."""

    id: str
    cwd: str
    tag: str | None
    minted_by: int
    """The number of the process that made it."""
    at_s: int
    parent: str | None = None
    name: str | None = None
    preview: str = ""
    stored: bool = False
    archived: bool = False
    deleted: bool = False
    writer: int | None = None
    """The process that has it loaded; no other may."""
    turns: list[TurnRow] = msgspec.field(default_factory=list)
    usage: tuple[int, int, int] = (0, 0, 0)
    last_usage: tuple[int, int, int] = (0, 0, 0)
    usage_of: str = ""
    """The turn of the last model call."""

    def object(self, status: Json) -> Json:
        """Return it as the protocol shows it."""
        return thread(
            self.id,
            cwd=self.cwd,
            status=status,
            tag=self.tag,
            at_s=self.at_s,
            name=self.name,
            preview=self.preview,
            parent=self.parent,
        )

    def listed(self, limit: int) -> list[Json]:
        """Return its newest turns, newest first, with what is complete of their items."""
        newest = reversed(self.turns[-limit:])
        return [turn(row.id, row.status, items=row.items, view="full", failure=row.failure) for row in newest]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One frame, or one event in the life of a process. `way`: `>` to Codex, `<` from it, `!` an event."""

    at_s: float
    process: int
    connection: int
    way: str
    what: Any

    def __str__(self) -> str:
        said = self.what if isinstance(self.what, str) else msgspec.json.encode(self.what).decode()
        return f"{self.at_s:10.4f} P{self.process}/{self.connection} {self.way} {said}"


class CodexHome:
    """One `CODEX_HOME`. Chance is drawn per working folder, so that what happens to one does not change another."""

    def __init__(self, path: str, seed: str) -> None:
        self.path = path
        self.threads: dict[str, ThreadRow] = {}
        self.record: list[Entry] = []
        self.starts = 0
        """How many `thread/start` frames were carried out."""
        self._seed = seed
        self._chances: dict[str, Random] = {}
        self._minted: dict[int, int] = {}

    def chance(self, of: str) -> Random:
        """Return the dice of one working folder."""
        return self._chances.setdefault(of, Random(f"{self._seed}/{of}"))

    def mint(self, kind: int) -> str:
        """Return a new id. `kind` stands in it (`THREAD`, `TURN`, `ITEM`), for whoever reads a trace."""
        number = self._minted[kind] = self._minted.get(kind, 0) + 1
        return f"019a{kind:04x}-0000-7000-8000-{number:012d}"

    def unarchive(self) -> None:
        """Take everything out of the archive, as a user would who finds that something cannot be resumed."""
        for row in self.threads.values():
            row.archived = False

    def lost(self, process: int) -> None:
        """A process is gone: what it had not stored goes with it, and its turns are found interrupted."""
        for row in list(self.threads.values()):
            if row.writer != process:
                continue
            row.writer = None
            if not row.stored:
                row.deleted = True
            for one in row.turns:
                if one.status == "inProgress":
                    one.status = "interrupted"

    def find(self, thread_id: str) -> ThreadRow | None:
        """Return a thread that is, or may be, stored."""
        row = self.threads.get(thread_id)
        return row if row is not None and not row.deleted else None

    def recorded(self, prompt: str) -> list[TurnRow]:
        """Return the turns in which a prompt was written down: more than one means that it ran twice."""
        return [one for row in self.threads.values() for one in row.turns for ours in one.ours if ours == prompt]
