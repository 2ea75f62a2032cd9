"""Where clients come in: the port, the Unix socket and its mode, whose it is, and who is let in."""

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import structlog.testing
import trio
from support.asgi_apps import RawClient, describe, running, running_on_unix

from termald.api import listeners
from termald.api.asgi import Peer
from termald.api.gate import Gate
from termald.api.listeners import AddressTaken, may_enter, open_tcp_listener, open_unix_listener
from termald.api.server import ServerControl, serve
from termald.limits import ServerLimits

GET = b"GET / HTTP/1.1\r\nHost: anything at all\r\n\r\n"


def content(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.fixture
def no_umask() -> Iterator[None]:
    """What a careless environment gives."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
async def test_the_socket_is_private_whatever_the_umask_and_nothing_else_is_left(tmp_path: Path) -> None:
    """It runs commands for whoever can open it."""
    path = tmp_path / "termald.sock"
    listener = open_unix_listener(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert content(tmp_path) == [path]
    assert listener.url == f"unix:{path}"
    listener.close()
    assert content(tmp_path) == []


@pytest.mark.usefixtures("no_umask")
async def test_the_socket_is_never_open_to_others_not_even_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between bind and chmod it has the umask's mode; then a folder of its own hides it."""
    seen: list[tuple[int, int]] = []
    chmod = Path.chmod

    def look(path: Path, mode: int) -> None:
        seen.append((stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)))
        chmod(path, mode)

    monkeypatch.setattr(Path, "chmod", look)
    open_unix_listener(tmp_path / "s").close()
    assert seen == [(0o777, 0o700)]


async def test_a_socket_that_nobody_listens_on_is_replaced(tmp_path: Path) -> None:
    """A crash leaves one behind."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as crashed:
        crashed.bind(str(path))
        crashed.listen()
    async with running_on_unix(describe, tmp_path) as server:
        assert (await server.ask(GET)).status == 200


async def test_a_socket_that_somebody_listens_on_is_left_alone(tmp_path: Path) -> None:
    """Also when its backlog is full: it lives."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as living, socket.socket(socket.AF_UNIX) as first:
        living.bind(str(path))
        living.listen(0)
        with pytest.raises(AddressTaken, match="another process listens"):
            open_unix_listener(path)
        living.accept()[0].close()
        first.connect(str(path))
        with pytest.raises(AddressTaken, match="another process listens"):
            open_unix_listener(path)
        assert content(tmp_path) == [path]


async def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    """A wrong path in the settings must not cost a file."""
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(AddressTaken, match="is not a socket"):
        open_unix_listener(path)
    assert path.read_text() == "mine"


async def test_of_two_that_open_at_once_one_waits_for_nobody(tmp_path: Path) -> None:
    """Both would find the stale socket stale, and the second would replace the living one of the first."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(AddressTaken, match="another process is opening"):
            open_unix_listener(tmp_path / "s")
    finally:
        os.close(descriptor)
    open_unix_listener(tmp_path / "s").close()


async def test_only_what_is_still_ours_is_removed(tmp_path: Path) -> None:
    """Somebody has deleted our socket, and another daemon listens at its path."""
    path = tmp_path / "s"
    first = open_unix_listener(path)
    path.unlink()
    second = open_unix_listener(path)
    first.close()
    assert path.is_socket()
    second.close()
    assert not path.exists()


async def test_a_second_close_removes_nothing_even_if_the_inode_came_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems give the number of a removed file to the next one."""
    path = tmp_path / "s"
    monkeypatch.setattr(listeners, "_inode", lambda path: (1, 1))
    first = open_unix_listener(path)
    first.close()
    second = open_unix_listener(path)
    first.close()
    assert path.is_socket()
    second.close()
    assert not path.exists()


async def test_a_path_that_does_not_fit_or_exist_is_an_os_error(tmp_path: Path) -> None:
    """And leaves nothing behind."""
    with pytest.raises(OSError, match="too long"):
        open_unix_listener(tmp_path / ("x" * 120))
    with pytest.raises(FileNotFoundError):
        open_unix_listener(tmp_path / "missing" / "s")
    assert content(tmp_path) == []


async def test_a_peer_on_the_unix_socket_is_known_by_its_user(tmp_path: Path) -> None:
    """It has no address, and needs no name for us."""
    async with running_on_unix(describe, tmp_path) as server:
        answer = msgspec.json.decode((await server.ask(GET)).body)
    assert answer["client"] is None
    assert answer["transport"] == {"kind": "unix", "peer_uid": os.geteuid()}


async def test_another_users_process_gets_no_byte_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mode is the first fence; root's carelessness can take it down."""
    monkeypatch.setattr(listeners, "peer_uid", lambda sock: os.geteuid() + 1)
    with structlog.testing.capture_logs() as logs:
        async with running_on_unix(describe, tmp_path) as server:
            client = await server.connect()
            async with client.stream:
                assert await client.until_closed() == b""
            assert server.control.statistics().refused_total == 1
    assert [entry["peer_uid"] for entry in logs if entry["event"] == "peer-refused"] == [os.geteuid() + 1]


@pytest.mark.parametrize(("uid", "enters"), [(os.geteuid(), True), (0, True), (os.geteuid() + 1, False), (None, False)])
def test_ourselves_and_root_may_enter_by_the_unix_socket(uid: int | None, enters: bool) -> None:
    """Unknown is not us. On TCP the token decides."""
    assert may_enter(Peer(kind="unix", client=None, server=("s", None), port=None, uid=uid)) is enters
    assert may_enter(Peer(kind="tcp", client=("127.0.0.1", 1), server=("127.0.0.1", 2), port=2, uid=None))


async def test_a_free_port_is_taken_and_told() -> None:
    """And is then taken for anybody else."""
    listener = await open_tcp_listener("127.0.0.1", 0)
    assert listener.port is not None
    assert listener.url == f"http://127.0.0.1:{listener.port}"
    with pytest.raises(AddressTaken, match=f"another process listens on 127.0.0.1:{listener.port}"):
        await open_tcp_listener("127.0.0.1", listener.port)
    listener.close()
    again = await open_tcp_listener("127.0.0.1", listener.port)
    again.close()


async def test_an_address_that_is_not_ours_is_an_os_error() -> None:
    """203.0.113.0/24 is for documentation."""
    with pytest.raises(OSError, match="assign"):
        await open_tcp_listener("203.0.113.1", 0)


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 here")
async def test_ipv6_is_spelled_in_brackets() -> None:
    """In the URL, and in the Host that is asked for."""
    listener = await open_tcp_listener("::1", 0)
    assert listener.url == f"http://[::1]:{listener.port}"
    port = listener.port or 0
    async with running(describe, listener=listener), await trio.open_tcp_stream("::1", port) as stream:
        client = RawClient(stream)
        await client.send(b"GET / HTTP/1.1\r\nHost: [::1]:%d\r\n\r\n" % port)
        assert (await client.answer()).status == 200


async def test_one_shell_serves_both_and_closes_both(tmp_path: Path) -> None:
    """The port and the socket, as the daemon has them."""
    tcp = await open_tcp_listener("127.0.0.1", 0)
    unix = open_unix_listener(tmp_path / "s")
    control = ServerControl()
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[None]) -> None:
            await serve(
                describe,
                [tcp, unix],
                gate=Gate(),
                limits=ServerLimits(),
                control=control,
                task_status=task_status,
            )

        await nursery.start(run)
        for stream in (
            await trio.open_tcp_stream("127.0.0.1", tcp.port or 0),
            await trio.open_unix_socket(tmp_path / "s"),
        ):
            async with stream:
                client = RawClient(stream)
                await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert (await client.answer()).status == 200
        control.begin_drain()
    assert content(tmp_path) == []
    assert tcp.socket.fileno() == -1
