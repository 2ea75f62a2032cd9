"""A private home and state in a temporary folder, and a daemon in it that is a process like any other."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import trio

from termald.cli.demonstration.claims import StoryEnded

# A cold start reads a binary of 300 MB; a stop ends Codex within its own deadline before it returns.
START_DEADLINE_S: Final = 60.0
STOP_DEADLINE_S: Final = 30.0
LOG_TAIL_LINES: Final = 15

# What would reach past the walls: our own settings, Codex's, and keys that no scripted model needs.
_PRIVATE: Final = ("TERMALD_", "CODEX_", "OPENAI_", "XDG_")


class House(msgspec.Struct, frozen=True):
    """The folders of one demonstration. Short names: the path of a Unix socket may have 107 bytes."""

    root: Path

    @property
    def state_dir(self) -> Path:
        """The daemon's state."""
        return self.root / "state"

    @property
    def runtime_dir(self) -> Path:
        """The sockets."""
        return self.root / "run"

    @property
    def codex_home(self) -> Path:
        """Codex's home."""
        return self.root / "codex"

    @property
    def work(self) -> Path:
        """Where sessions work."""
        return self.root / "work"

    @property
    def log(self) -> Path:
        """The log of every daemon that ran here, one after the other."""
        return self.root / "daemon.log"

    def environment(self, around: Mapping[str, str] = os.environ) -> dict[str, str]:
        """Return the environment for everything that runs in the house."""
        kept = {name: value for name, value in around.items() if not name.startswith(_PRIVATE)}
        return kept | {
            "TERMALD_CONFIG": str(self.root / "config.toml"),
            "TERMALD_STATE_DIR": str(self.state_dir),
            "TERMALD_RUNTIME_DIR": str(self.runtime_dir),
            "TERMALD_LISTEN": "127.0.0.1:0",
            "TERMALD_LOG_FORMAT": "json",
            "CODEX_HOME": str(self.codex_home),
        }


@contextmanager
def open_house(*, keep: bool) -> Iterator[House]:
    """Make the folders, private to the user; remove them at the end unless they are kept. Blocks."""
    root = Path(tempfile.mkdtemp(prefix="termald-demo-"))
    try:
        house = House(root)
        house.work.mkdir()
        (root / "config.toml").touch()
        yield house
    finally:
        if not keep:
            shutil.rmtree(root)


@asynccontextmanager
async def running_daemon(house: House, codex_bin: Path) -> AsyncIterator[int]:
    """Run `termald serve` in the house and give its pid once it is ready; stop it at the end.

    Errors: `StoryEnded`, with the last lines of its log, where it does not get ready, or does not end with 0 after
    SIGTERM.
    """
    # -P: no module of ours is looked for in the current folder, where one named `state` would be found first.
    command = [sys.executable, "-P", "-m", "termald", "serve", "--json", "--codex-bin", str(codex_bin)]
    with house.log.open("ab") as log:
        run = partial(
            trio.run_process,
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            env=house.environment(),
            cwd=house.root,
            check=False,
            deliver_cancel=_end,
        )
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(run)
            await _wait_ready(process, house)
            yield process.pid
            await _stop(process, house)


async def _wait_ready(process: trio.Process, house: House) -> None:
    assert process.stdout is not None
    line = b""
    with trio.move_on_after(START_DEADLINE_S):
        while not line.endswith(b"\n"):
            piece = await process.stdout.receive_some()
            if not piece:
                raise StoryEnded(f"`termald serve` ended before it was ready\n{_tail(house)}")
            line += piece
        return
    raise StoryEnded(f"`termald serve` was not ready after {START_DEADLINE_S:.0f} s\n{_tail(house)}")


async def _stop(process: trio.Process, house: House) -> None:
    process.send_signal(signal.SIGTERM)
    with trio.move_on_after(STOP_DEADLINE_S):
        code = await process.wait()
        if code != 0:
            raise StoryEnded(f"`termald serve` ended with {code} after SIGTERM\n{_tail(house)}")
        return
    raise StoryEnded(f"`termald serve` did not end within {STOP_DEADLINE_S:.0f} s after SIGTERM\n{_tail(house)}")


async def _end(process: trio.Process) -> None:
    """What becomes of the daemon where something failed or was interrupted: asked first, so that it ends its Codex."""
    process.send_signal(signal.SIGTERM)
    with trio.move_on_after(STOP_DEADLINE_S):
        await process.wait()
        return
    process.kill()


def _tail(house: House) -> str:
    lines = house.log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(lines[-LOG_TAIL_LINES:])
