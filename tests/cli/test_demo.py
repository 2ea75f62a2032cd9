"""`termald demo` on the real Codex: everything it claims, and that it leaves nothing behind when it is cut short."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from termald.cli.demonstration.evidence import app_servers
from termald.cli.demonstration.house import House

COMMAND = [sys.executable, "-P", "-m", "termald", "demo"]
# Three starts of Codex and of a daemon, on a machine that is busy with other tests.
DEADLINE_S = 240

pytestmark = pytest.mark.real


@pytest.fixture
def ground() -> Iterator[Path]:
    """An empty folder for the house to stand in. Not pytest's own: a socket's path in it would be too long."""
    with tempfile.TemporaryDirectory(prefix="td-") as folder:
        yield Path(folder)


def test_every_claim_holds() -> None:
    """Under half a minute, by itself."""
    done = subprocess.run([*COMMAND, "--json"], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    outcome = json.loads(done.stdout)
    broken = [claim for claim in outcome["claims"] if not claim["holds"]]
    assert (broken, outcome["failure"]) == ([], None), done.stderr
    assert outcome["holds"]
    assert done.returncode == 0
    assert outcome["sessions"] == 8
    assert len(outcome["claims"]) >= 12
    claims = " ".join(claim["claim"] for claim in outcome["claims"])
    for word in ("at the same time", "one app-server process", "exactly 8 threads", "phantom is not back"):
        assert word in claims


def test_without_codex_it_fails_in_a_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--codex-bin", str(tmp_path / "none")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("termald: ")
    assert str(tmp_path / "none") in done.stderr


def test_an_interrupt_leaves_neither_process_nor_folder(ground: Path) -> None:
    """Ctrl-C reaches the demonstration alone here: it must take its daemon and Codex along by itself."""
    environment = os.environ | {"TMPDIR": str(ground)}
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True, env=environment) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if "run their turns at the same time" in line:
                break
        (root,) = ground.glob("termald-demo-*")
        assert app_servers(House(root)) != []
        running.send_signal(signal.SIGINT)
        running.stdout.read()
        assert running.wait(timeout=DEADLINE_S) != 0
    assert app_servers(House(root)) == []
    assert not root.exists()
