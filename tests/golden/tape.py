"""Traces of the real Codex: every frame as it stood on the wire, both ways, and at the end Codex's own record.

    cd tests && ../.venv/bin/python -m golden.tape [BINARY]

records the traces of a binary (the installed one, unless told otherwise) into the folder of its version.
"""

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import trio
from golden.scenes import SCENES, Stage
from support.codex_process import codex_binaries
from support.scripted_lab import Lab, open_lab

from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server

FOLDER: Final = Path(__file__).parent / "traces"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One frame: what was sent `to` whom; `record` is Codex's record of the turns, read when all was over."""

    to: Literal["codex", "us", "record"]
    frame: str

    @property
    def message(self) -> dict[str, Any]:
        """The frame as a value."""
        value: dict[str, Any] = msgspec.json.decode(self.frame)
        return value


class Tape:
    """What passes over one connection, in its order."""

    def __init__(self, lab: Lab) -> None:
        self.lines: list[Line] = []
        self._codex = lab.codex
        self._write, self._take = lab.codex.write, lab.codex._take
        lab.codex.write = self._writing  # type: ignore[method-assign]  # the lab's own connection, for as long as it is
        lab.codex._take = self._taking  # type: ignore[method-assign]

    async def _writing(self, frame: bytes) -> None:
        self.lines.append(Line(to="codex", frame=frame.decode()))
        await self._write(frame)

    def _taking(self, frames: Iterable[bytes | str]) -> None:
        kept = list(frames)
        self.lines += [Line(to="us", frame=frame if isinstance(frame, str) else frame.decode()) for frame in kept]
        self._take(kept)


async def record(lab: Lab, scene: str) -> list[Line]:
    """Play a scene on a Codex that has done nothing yet, and return its trace."""
    play, choices = SCENES[scene]
    tape = Tape(lab)
    stage = Stage(lab, await lab.codex.start_thread(lab.cwd, **choices))
    await play(stage)
    lines = tuple(tape.lines)
    params = {"threadId": stage.thread, "itemsView": "full", "sortDirection": "asc"}
    turns = await lab.codex.request("thread/turns/list", params)
    return [*lines, Line(to="record", frame=msgspec.json.encode(turns).decode())]


def saved() -> dict[str, Path]:
    """Return the traces that are kept, by version and scene."""
    return {f"{path.parent.name}-{path.stem}": path for path in sorted(FOLDER.glob("*/*.jsonl"))}


def load(path: Path) -> list[Line]:
    """Return a trace."""
    return [msgspec.json.decode(line, type=Line) for line in path.read_text(encoding="utf-8").splitlines()]


async def _record_all(binary: Path) -> None:
    for scene in SCENES:
        with tempfile.TemporaryDirectory(prefix="golden-") as name:
            model = ScriptedModel()
            async with open_server(model) as url, open_lab(binary, model, url, Path(name)) as lab:
                lines = await record(lab, scene)
                version = lab.codex.version
        path = FOLDER / version / f"{scene}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whose folder it was is nobody's business, and of no account.
        text = "\n".join(msgspec.json.encode(line).decode() for line in lines).replace(name, "/tmp/golden")
        path.write_text(text + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    trio.run(_record_all, Path(sys.argv[1]) if len(sys.argv) > 1 else codex_binaries()["installed"])
