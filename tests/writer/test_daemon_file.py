"""`daemon.json`: whole or not there, and whoever cannot write it says which file it was."""

from pathlib import Path

import pytest

from termald.client.locate import DAEMON_FILE, RunningDaemon
from termald.daemon_file import write_daemon_file

DAEMON = RunningDaemon(pid=7, url=None, socket="/run/s", started_at="2026-01-01T00:00:00.000Z")


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path / DAEMON_FILE}'"):
        write_daemon_file(tmp_path, DAEMON)
    assert list(tmp_path.iterdir()) == []
