"""What the daemon takes from outside: time, chance, ids, the machine, the file system. The real ones are the defaults;
a simulation says its own, and then the whole daemon does the same thing twice."""

import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random, SystemRandom

import msgspec

from discovery.homes import Marks
from discovery.scanner import scan
from termald.codex.binary import CodexBinary, find_codex
from termald.codex.machine import Machine, RealMachine
from termald.outbox import file_bytes, is_folder
from termald.scanning import Scan, look_at_marks
from termald.writer import wall_ms


def new_id() -> str:
    """Return an id that nobody has used."""
    return str(uuid.uuid4())


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    """Each field is asked whenever it is needed. `now_ms`: Unix milliseconds."""

    now_ms: Callable[[], int] = wall_ms
    random: Random = SystemRandom()
    new_id: Callable[[], str] = new_id
    machine: Machine = RealMachine()
    find_codex: Callable[[str | None, str], Awaitable[CodexBinary]] = find_codex
    is_folder: Callable[[Path], Awaitable[bool]] = is_folder
    file_bytes: Callable[[Path], Awaitable[int | None]] = file_bytes
    scan: Scan = scan
    look_at_marks: Callable[[Path, Path | None], Awaitable[Marks]] = look_at_marks
