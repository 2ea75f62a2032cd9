"""Who writes a thread is read from the kernel's list of locks."""

import subprocess
import sys
from pathlib import Path

from discovery.writers import FOLDER, writers_of

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_the_holder_of_a_lock_is_told_and_no_lock_is_tried(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "free.lock").touch()
    (folder / ".coordination.lock").touch()
    lock = folder / "held.lock"
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        assert writers_of(tmp_path) == {"held": holder.pid}
        holder.stdin.close()
        holder.wait()
    assert writers_of(tmp_path) == {}


def test_where_nobody_tells_nobody_is_told_of(tmp_path: Path) -> None:
    assert writers_of(tmp_path) == {}
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "t.lock").touch()
    assert writers_of(tmp_path, tmp_path / "no-such-file") == {}
    junk = tmp_path / "locks"
    junk.write_text("1: FLOCK\n2: -> FLOCK ADVISORY WRITE 7 fe:00:1 0 EOF\n\x00\n")
    assert writers_of(tmp_path, junk) == {}
