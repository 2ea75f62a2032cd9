"""Telling the service manager how far we are (sd_notify). Without NOTIFY_SOCKET, which is the usual case, nothing."""

import os
import socket
from collections.abc import Mapping
from typing import Final, Literal

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


def notify(state: Literal["READY=1", "STOPPING=1"], environment: Mapping[str, str] = os.environ) -> bool:
    """Tell the service manager; return whether there is one that could be told. Never blocks."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.setblocking(False)
        try:
            channel.sendto(state.encode(), address)
        except OSError:
            # The manager went away or does not read. It decides by its own deadline; we have no better one.
            return False
    return True
