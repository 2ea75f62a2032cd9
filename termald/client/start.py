"""Starting a daemon for a program that wants one: `termald serve`, in a process of its own that outlives the caller."""

import os
import subprocess
import sys
from typing import Final

import anyio
import anyio.to_thread

from termald.client.errors import ClientError, DaemonNotRunning
from termald.client.folders import Folders
from termald.client.locate import find_endpoint, read_daemon_file

START_DEADLINE_S: Final = 60.0
"""A cold start reads a binary of 300 MB."""
_LOOK_PAUSE_S: Final = 0.05
_SAID_MAX: Final = 2_000
LOG_NAME: Final = "serve.log"
# Kept for as long as this program lives: a Popen that is collected while its process runs complains, rightly elsewhere.
_started: Final[list[subprocess.Popen[bytes]]] = []


async def start_daemon(folders: Folders) -> None:
    """Start one with these folders, and return once it listens. Its log is `serve.log` in the state folder.

    If another program starts one at the same moment, that one is taken. Errors: `client-error` with the log's last
    words where it ends, or does not listen in time.
    """
    process = await anyio.to_thread.run_sync(_spawn, folders)
    _started.append(process)
    with anyio.move_on_after(START_DEADLINE_S):
        while True:
            ended = process.poll() is not None
            if await anyio.to_thread.run_sync(_listens, folders):
                return
            if ended:
                raise ClientError(f"`termald serve` ended with {process.returncode}: {_last_words(folders)}")
            await anyio.sleep(_LOOK_PAUSE_S)
    raise ClientError(f"`termald serve` does not listen after {START_DEADLINE_S:.0f} s: {_last_words(folders)}")


def _spawn(folders: Folders) -> subprocess.Popen[bytes]:
    folders.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    chosen = {"TERMALD_STATE_DIR": str(folders.state_dir), "TERMALD_RUNTIME_DIR": str(folders.runtime_dir)}
    descriptor = os.open(folders.state_dir / LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        # -P: no module is looked for in the current folder. A session of its own: Ctrl-C here is not meant for it.
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "termald", "serve"],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            env=os.environ | chosen,
            cwd=folders.state_dir,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)


def _listens(folders: Folders) -> bool:
    try:
        find_endpoint(read_daemon_file(folders.runtime_dir), folders.runtime_dir, folders.state_dir)
    except DaemonNotRunning:
        return False
    return True


def _last_words(folders: Folders) -> str:
    text = (folders.state_dir / LOG_NAME).read_text(encoding="utf-8", errors="replace")
    return text[-_SAID_MAX:].strip() or "it said nothing"
