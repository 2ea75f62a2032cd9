"""Where clients come in: a TCP port, or a Unix socket that only our user can reach. Opens, accepts, and says who came.

A listener is closed by `serve`, at the first step of a drain, so that nobody waits in the backlog of a daemon that will
not answer. The Unix socket:

- is 0600 at every moment, whatever the umask: it is bound in a private folder and renamed into its place;
- replaces a socket file that nobody listens on, and never one that somebody does (or a file that is no socket);
- is removed at the end only while the path still leads to it.

Peers on it are known by the kernel's word: ours and root's processes may enter, nobody else's.
"""

import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from termald.api.asgi import Peer

BACKLOG: Final = 128  # what Linux allowed without asking for decades; a burst of clients is far smaller
_ROOT_UID: Final = 0
_UCRED: Final = struct.Struct("3i")  # pid, uid, gid
_XUCRED: Final = struct.Struct("=IIh")  # version, uid, number of groups; from macOS's sys/ucred.h
_XUCRED_BYTES: Final = 76  # with its 16 groups
_SOL_LOCAL: Final = 0  # these two from macOS's sys/un.h
_LOCAL_PEERCRED: Final = 0x001


class AddressTaken(OSError):  # noqa: N818 - named for what happened
    """Somebody listens there already, or the path holds something that is not ours to replace."""


class Listener:
    """An open, listening socket. `path` is set for a Unix socket, `host` and `port` for TCP."""

    def __init__(self, sock: trio.socket.SocketType, path: Path | None = None) -> None:
        self.socket = sock
        self.path = path
        self.host: str | None = None
        self.port: int | None = None
        self._inode = _inode(path) if path is not None else None
        if path is None:
            self.host, self.port = sock.getsockname()[:2]
        self._accepting = trio.SocketListener(sock)

    @property
    def url(self) -> str:
        """`http://HOST:PORT`, or `unix:PATH`."""
        if self.path is not None:
            return f"unix:{self.path}"
        return f"http://[{self.host}]:{self.port}" if ":" in str(self.host) else f"http://{self.host}:{self.port}"

    async def accept(self) -> trio.SocketStream:
        """Wait for a connection. Raises OSError where the process has no descriptor left for it."""
        return await self._accepting.accept()

    def peer(self, stream: trio.SocketStream) -> Peer:
        """Say who is at the other end. Raises OSError if they have left already."""
        if self.path is not None:
            return Peer(kind="unix", client=None, server=(str(self.path), None), port=None, uid=peer_uid(stream.socket))
        client = stream.socket.getpeername()[:2]
        return Peer(kind="tcp", client=client, server=stream.socket.getsockname()[:2], port=self.port, uid=None)

    def close(self) -> None:
        """Stop listening and, if the path still leads to this socket, remove it. May be called again."""
        self.socket.close()
        if self.path is not None and self._inode is not None and _inode(self.path) == self._inode:
            self.path.unlink(missing_ok=True)
        self._inode = None


def may_enter(peer: Peer) -> bool:
    """Tell whether this peer may speak: on a Unix socket only our own user and root."""
    return peer.kind == "tcp" or peer.uid in {os.geteuid(), _ROOT_UID}


def peer_uid(sock: trio.socket.SocketType) -> int | None:
    """Return the user at the other end of a Unix socket as of its connect, or None where the system cannot tell."""
    read = _UID_READERS.get(sys.platform)
    return None if read is None else read(sock)


def _uid_on_linux(sock: trio.socket.SocketType) -> int:
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    return int(_UCRED.unpack(credentials)[1])


def _uid_on_darwin(sock: trio.socket.SocketType) -> int:
    credentials = sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED_BYTES)
    return int(_XUCRED.unpack_from(credentials)[1])


_UID_READERS: Final = {"linux": _uid_on_linux, "darwin": _uid_on_darwin}


async def open_tcp_listener(host: str, port: int) -> Listener:
    """Listen on one address; port 0 takes a free one, which `Listener.port` tells.

    A name is resolved and its first address taken. Raises AddressTaken, or OSError for an address that is not ours.
    """
    candidates = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = candidates[0]
    sock = trio.socket.socket(family, kind, protocol)
    try:
        # Without it a restart has to wait a minute for the last connections' TIME_WAIT.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        await sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressTaken(errno.EADDRINUSE, f"another process listens on {host}:{port}") from error
        raise
    return Listener(sock)


def open_unix_listener(path: Path) -> Listener:
    """Listen on a Unix socket at `path`, mode 0600; its folder must exist, and should be private to the user.

    Raises AddressTaken if somebody listens there, if another process is just about to, or if the path holds something
    else than a socket; OSError for a path that is too long (about 100 bytes) or a folder that is missing.
    """
    with _folder_locked(path.parent):
        _refuse_taken(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with tempfile.TemporaryDirectory(prefix=".", dir=path.parent) as private:
                born = Path(private, "s")
                sock.bind(os.fspath(born))
                born.chmod(0o600)
                # Listening before it can be found: a client never meets a socket that refuses.
                sock.listen(BACKLOG)
                born.replace(path)
            return Listener(trio.socket.from_stdlib_socket(sock), path)
        except BaseException:
            sock.close()
            raise


@contextlib.contextmanager
def _folder_locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, so that of two daemons that find the same stale socket only one replaces it.

    The lock is on the folder itself: a lock file would have to stay behind for ever.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise AddressTaken(errno.EADDRINUSE, f"another process is opening a socket in {folder}") from error
    finally:
        os.close(descriptor)


def _refuse_taken(path: Path) -> None:
    """Raise AddressTaken unless `path` is free or holds a socket that nobody listens on."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFSOCK  # asked all the same, since that refuses a path too long to be connected to
    if not stat.S_ISSOCK(mode):
        raise AddressTaken(errno.EADDRINUSE, f"{path} exists and is not a socket; it was left alone")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a full backlog answers EAGAIN at once: somebody lives there
        answer = probe.connect_ex(os.fspath(path))
    if answer not in {errno.ECONNREFUSED, errno.ENOENT}:
        raise AddressTaken(errno.EADDRINUSE, f"another process listens on {path}")


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
