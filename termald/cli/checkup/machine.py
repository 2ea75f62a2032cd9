"""The machine: open files, disk, the port."""

import resource
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from termald.cli.checkup.findings import Finding, note, ok, problem
from termald.settings import Listen, Settings

DESCRIPTORS_MIN: Final = 1_024
"""256 connections, 256 streams, pipes, the database, and Codex, which inherits the limit and opens files of its own."""
DISK_LOW_BYTES: Final = 1 << 30
DISK_NONE_BYTES: Final = 64 << 20
"""A log that is not yet folded in may take 64 MiB."""


def look(settings: Settings, daemon: int | None) -> Iterator[Finding]:
    """Yield what is found; `daemon` is the pid of the one that runs."""
    yield _descriptors()
    yield _disk(settings.state.dir)
    if daemon is None:
        yield _port(settings.server.listen)


def _descriptors() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= DESCRIPTORS_MIN:
        return ok("open files", "no limit" if soft == resource.RLIM_INFINITY else f"up to {soft:,}")
    most = "as many as you like" if hard == resource.RLIM_INFINITY else f"up to {hard:,} are allowed"
    return problem("open files", f"at most {soft:,}", f"ulimit -n {DESCRIPTORS_MIN} before the start ({most})")


def _disk(folder: Path) -> Finding:
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(existing).free
    says = f"{free / 2**30:,.1f} GiB free for {folder}"
    if free < DISK_NONE_BYTES:
        return problem("disk", says, "make room: without it no prompt is taken")
    if free < DISK_LOW_BYTES:
        return note("disk", says, "make room before it is full")
    return ok("disk", says)


def _port(listen: Listen | None) -> Finding:
    if listen is None or listen.port == 0:
        return ok("port", "none is fixed")
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the daemon itself: an address that is only waiting out an old connection is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((listen.host, listen.port))
        except OSError as error:
            way_out = f"find out who: ss -ltnp 'sport = :{listen.port}'; or another: termald serve --listen 127.0.0.1:0"
            return problem("port", f"{listen.host}:{listen.port} cannot be taken: {error.strerror}", way_out)
    return ok("port", f"{listen.host}:{listen.port} is free")
