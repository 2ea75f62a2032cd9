"""Telling the service manager, where there is one."""

import socket
from pathlib import Path

import pytest

from termald.notify import READY, STOPPING, notify


def test_each_state_is_one_datagram(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        assert notify(READY, environment)
        assert notify(STOPPING, environment)
        assert [manager.recv(64), manager.recv(64)] == [b"READY=1", b"STOPPING=1"]


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1234"])
def test_without_a_manager_that_we_can_reach_nothing_happens(address: str) -> None:
    assert not notify(READY, {"NOTIFY_SOCKET": address})
    assert not notify(READY, {})


def test_a_manager_that_went_away_or_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    """A daemon that hangs in its own readiness would be restarted for ever."""
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
    assert not notify(READY, environment)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        taken = 0
        while notify(READY, environment):
            taken += 1
            assert taken < 100_000
