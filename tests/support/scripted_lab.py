"""A real Codex that asks a scripted model in the test's own process.

Nothing leaves the machine, and both sides are in the test's hand.
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
from support.codex_process import CodexProcess, open_codex

from termald.scripted_model.config import write_codex_home
from termald.scripted_model.model import ScriptedModel


class Lab(msgspec.Struct, frozen=True):
    """Codex, the model that it asks, and an empty folder for its threads to work in."""

    codex: CodexProcess
    model: ScriptedModel
    base_url: str
    cwd: Path

    async def thread(self, **params: Any) -> str:
        """Start a thread in the folder and return its id."""
        return await self.codex.start_thread(self.cwd, **params)


@contextlib.asynccontextmanager
async def open_lab(
    binary: Path, model: ScriptedModel, base_url: str, folder: Path, **settings: int
) -> AsyncIterator[Lab]:
    """Run this Codex against the model at `base_url`, with its home and its work under `folder`.

    `settings` are those of `write_codex_home`.
    """
    cwd = folder / "work"
    cwd.mkdir()
    home = folder / "codex-home"
    write_codex_home(home, base_url, **settings)
    async with open_codex(binary, home) as codex:
        yield Lab(codex, model, base_url, cwd)
