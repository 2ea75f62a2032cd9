"""`termald serve` as a service manager and a shell meet it. What the daemon then does is tested elsewhere."""

import json
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from termald.cli.demonstration.evidence import app_servers, end_leftovers
from termald.cli.demonstration.house import House
from termald.cli.exits import Exit

COMMAND = [sys.executable, "-P", "-m", "termald"]
# A cold start on a machine that is busy with other tests.
DEADLINE_S = 60


@pytest.fixture
def house() -> Iterator[House]:
    """Folders whose sockets' paths are short enough; no process of theirs outlives the test."""
    with tempfile.TemporaryDirectory(prefix="ts-") as root:
        house = House(Path(root))
        house.codex_home.mkdir()
        yield house
        end_leftovers(house)


def run(house: House, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        env=house.environment() | environment,
    )


@contextmanager
def serving(house: House, *arguments: str, **environment: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A daemon that has said its line."""
    command = [*COMMAND, "serve", *arguments]
    with house.log.open("w") as log:
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=house.environment() | environment
        )
    with running:
        assert running.stdout is not None
        line = running.stdout.readline()
        try:
            assert line, house.log.read_text()
            yield running, line
        finally:
            running.kill()


@pytest.mark.real
def test_a_service_lives_from_its_one_line_to_a_clean_end(house: House) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(house.root / "notify"))
        manager.settimeout(DEADLINE_S)
        with serving(house, "--json", NOTIFY_SOCKET=str(house.root / "notify")) as (daemon, line):
            told: dict[str, Any] = json.loads(line)
            assert told["pid"] == daemon.pid
            assert told["url"].startswith("http://127.0.0.1:")
            assert told["socket"] == str(house.runtime_dir / "termald.sock")
            assert manager.recv(64) == b"READY=1"

            status = json.loads(run(house, "status", "--json").stdout)
            assert status["daemon"]["pid"] == daemon.pid

            second = run(house, "serve")
            assert second.returncode == Exit.FAILURE
            assert second.stdout == ""
            assert f"process {daemon.pid}" in second.stderr

            daemon.send_signal(signal.SIGTERM)
            assert daemon.wait(timeout=DEADLINE_S) == Exit.OK
            assert daemon.stdout is not None
            assert daemon.stdout.read() == ""
    assert app_servers(house) == []
    assert run(house, "status").returncode == Exit.NOT_RUNNING


@pytest.mark.real
def test_a_daemon_that_was_killed_is_not_running_whatever_its_file_says(house: House) -> None:
    with serving(house) as (daemon, line):
        assert (
            line == f"termald is ready at {line.split()[4]} and {house.runtime_dir}/termald.sock (pid {daemon.pid})\n"
        )
        daemon.kill()
        daemon.wait()
    assert (house.runtime_dir / "daemon.json").exists()
    shown = run(house, "status")
    assert shown.returncode == Exit.NOT_RUNNING
    assert shown.stderr.count("\n") == 1


def test_an_address_in_use_is_a_sentence(house: House) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = run(house, "serve", "--listen", address)
    assert ended.returncode == Exit.FAILURE
    assert "Traceback" not in ended.stderr
    assert address.rpartition(":")[2] in ended.stderr


def test_settings_that_are_wrong_start_nothing(house: House) -> None:
    ended = run(house, "serve", "--listen", "0.0.0.0:0")
    assert ended.returncode == Exit.USAGE
    assert "server.allow_non_loopback = true" in ended.stderr
    assert not house.state_dir.exists()
