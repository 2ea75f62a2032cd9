"""A rollout's lines, in bounded memory whatever its size and whatever one line's size.

A rollout is JSON, one value a line, appended while Codex runs: the last line may be torn. A line longer than
`LINE_BYTES_MAX` (a pasted image, a dump of a tool) is given by its head alone; Codex writes the fields that say what a
line is before those that make it long.
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

# Codex takes no message over 16 MiB from a client; what is longer came from a tool, and is no message.
LINE_BYTES_MAX: Final = 16 << 20
HEAD_BYTES: Final = 4096
# A page of a busy disk: small enough that a cancelled scan ends at once, large enough that asking costs nothing.
CHECK_BYTES: Final = 4 << 20


class Line(msgspec.Struct, frozen=True):
    """`start`: offset in the file. `text`: without its newline; the head alone if not `whole`."""

    start: int
    text: bytes
    whole: bool


def read_lines(path: Path, check: Callable[[], None]) -> Iterator[Line]:
    """Yield the lines of a regular file. Blocks; `check` is called every few MiB, and may raise to end it.

    Errors: `OSError`; also for what is not a regular file, which might never answer.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb", buffering=256 << 10) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a regular file")
        start = checked = 0
        while text := file.readline(LINE_BYTES_MAX):
            whole = text.endswith(b"\n") or len(text) < LINE_BYTES_MAX
            yield Line(start, text.rstrip(b"\n") if whole else text[:HEAD_BYTES], whole)
            start += len(text)
            while not whole and (rest := file.readline(CHECK_BYTES)):
                check()
                start += len(rest)
                whole = rest.endswith(b"\n")
            if start - checked >= CHECK_BYTES:
                checked = start
                check()
