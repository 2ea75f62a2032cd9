"""`doctor`: each thing that can be wrong is brought about, found, explained, and mended only where that is safe."""

import json
import os
import resource
import shutil
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner
from support.canned_daemon import canned_daemon
from support.codex_process import codex_binaries

from state.store import open_store
from termald.cli.checkup import machine
from termald.cli.exits import Exit
from termald.cli.main import root
from termald.codex.identity import ProcessIdentity
from termald.codex.supervisor import SOCKET_NAME as CODEX_SOCKET_NAME


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A place where all is well: a home with a provider that needs no login, and folders for our own."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('model_provider = "own"\n[model_providers.own]\nname = "own"\n')
    (tmp_path / "run").mkdir()
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "fake-codex").write_text("#!/bin/sh\necho codex-cli 0.163.0\n")
    return tmp_path


def examine(folder: Path, *arguments: str, **environment: str) -> tuple[int, dict[str, dict[str, Any]], list[str]]:
    """Return the exit code, what was found by its name, and what was mended."""
    (folder / "termald.toml").touch()
    private = {
        "TERMALD_STATE_DIR": str(folder / "state"),
        "TERMALD_RUNTIME_DIR": str(folder / "run"),
        "TERMALD_CONFIG": str(folder / "termald.toml"),
        "TERMALD_LISTEN": "127.0.0.1:0",
        "TERMALD_CODEX_BIN": str(codex_binaries()["installed"]),
        "CODEX_HOME": str(folder / "home"),
        "SHELL": "/bin/sh",
    }
    strangers = ("TERMALD_", "CODEX_", "OPENAI_")
    cleared = dict.fromkeys((name for name in os.environ if name.startswith(strangers)), None)
    shown = CliRunner().invoke(root, ("doctor", "--json", *arguments), env=cleared | private | environment)
    document = json.loads(shown.stdout)
    return shown.exit_code, {each["what"]: each for each in document["findings"]}, document["fixed"]


def test_where_all_is_well_it_says_so(folder: Path) -> None:
    code, found, _ = examine(folder)
    assert code == Exit.OK
    assert {each["level"] for each in found.values()} <= {"ok", "note"}
    assert {"codex", "schema", "codex home", "login", "login shell", "state folder", "daemon", "database", "open files",
            "disk", "port"} <= found.keys()  # fmt: skip


def test_a_codex_that_is_not_there_is_a_problem(folder: Path) -> None:
    code, found, _ = examine(folder, "--codex-bin", "/nowhere/codex")
    assert (code, found["codex"]["level"]) == (Exit.FAILURE, "problem")
    assert "codex.bin" in found["codex"]["help"]


class TestHome:
    """Codex's own folder."""

    def test_nobody_is_logged_in(self, folder: Path) -> None:
        (folder / "home" / "config.toml").unlink()
        code, found, _ = examine(folder)
        assert (code, found["login"]["help"]) == (Exit.FAILURE, f"CODEX_HOME={folder / 'home'} codex login")
        (folder / "home" / "auth.json").touch()
        assert examine(folder)[1]["login"]["level"] == "ok"

    def test_a_key_in_the_environment_is_noted(self, folder: Path) -> None:
        (folder / "home" / "config.toml").unlink()
        assert examine(folder, OPENAI_API_KEY="k")[1]["login"]["level"] == "note"

    def test_a_provider_may_ask_for_the_login_too(self, folder: Path) -> None:
        with (folder / "home" / "config.toml").open("a") as config:
            config.write("requires_openai_auth = true\n")
        assert examine(folder)[1]["login"]["level"] == "problem"

    def test_settings_of_codex_that_do_not_read_are_told(self, folder: Path) -> None:
        (folder / "home" / "config.toml").write_text("[")
        assert "cannot be read" in examine(folder)[1]["login"]["says"]

    def test_a_home_that_is_no_folder(self, folder: Path) -> None:
        code, found, _ = examine(folder, CODEX_HOME=str(folder / "fake-codex"))
        assert (code, found["codex home"]["level"]) == (Exit.FAILURE, "problem")


class TestShell:
    """A login shell that is slow holds up each thread, if Codex runs it."""

    @pytest.mark.parametrize(("snapshot", "level"), [("true", "problem"), ("false", "ok")])
    def test_a_slow_one_matters_where_it_is_waited_for(
        self, snapshot: str, level: str, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("termald.cli.checkup.codex.SHELL_SLOW_S", 0.0)
        _, found, _ = examine(folder, "--set", f"codex.shell_snapshot={snapshot}")
        assert found["login shell"]["level"] == level
        said = found["login shell"]["help"] or found["login shell"]["says"]
        assert "codex.shell_snapshot = false" in said

    def test_one_that_does_not_exist(self, folder: Path) -> None:
        assert examine(folder, SHELL="/nowhere/sh")[1]["login shell"]["level"] == "problem"


class TestState:
    """Our own folders, and what an earlier daemon left."""

    def test_folders_that_others_can_read_are_mended(self, folder: Path) -> None:
        (folder / "state").chmod(0o755)
        (folder / "state" / "token").write_text("t" * 43)
        (folder / "state" / "token").chmod(0o644)
        code, found, _ = examine(folder)
        assert (code, found["state folder"]["canFix"], found["token"]["canFix"]) == (Exit.FAILURE, True, True)
        code, found, fixed = examine(folder, "--fix")
        assert (code, len(fixed)) == (Exit.OK, 2)
        assert (folder / "state").stat().st_mode & 0o777 == 0o700
        assert (folder / "state" / "token").stat().st_mode & 0o777 == 0o600

    def test_what_a_daemon_left_that_is_gone_is_removed(self, folder: Path) -> None:
        with closing(socket.socket(socket.AF_UNIX)) as dead:
            dead.bind(str(folder / "run" / "termald.sock"))
        (folder / "run" / "daemon.json").write_text('{"pid": 1}')
        code, found, fixed = examine(folder)
        assert (code, found["sockets"]["level"], fixed) == (Exit.OK, "note", [])
        _, found, fixed = examine(folder, "--fix")
        assert len(fixed) == 1
        assert ("sockets" in found, list((folder / "run").iterdir())) == (False, [])

    def test_what_a_daemon_uses_that_runs_is_left_alone(self, folder: Path) -> None:
        with canned_daemon({}, folder / "run", pid=4242):
            _, found, fixed = examine(folder, "--fix")
            assert (found["daemon"]["says"].split(" with ")[0], fixed) == ("runs (pid 4242)", [])
            assert (folder / "run" / "daemon.json").exists()

    def test_a_codex_that_outlived_its_daemon_is_told_and_left_alone(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It may be in the middle of turns, and the next daemon takes it over with them."""
        with closing(socket.socket(socket.AF_UNIX)) as codex:
            codex.bind(str(folder / "run" / CODEX_SOCKET_NAME))
            codex.listen()
            codex_itself = [ProcessIdentity(os.getpid(), "1")]
            monkeypatch.setattr("termald.cli.checkup.state.find_listening", lambda _socket: codex_itself)
            (folder / "run" / "daemon.json").write_text('{"pid": 1}')
            code, found, fixed = examine(folder, "--fix")
            assert (code, found["processes"]["level"], found["processes"]["canFix"]) == (Exit.OK, "note", False)
            assert f"pid {os.getpid()}" in found["processes"]["says"]
            assert "termald serve" in found["processes"]["help"]
            # Its socket is in use; what the daemon itself left is not.
            assert len(fixed) == 1
            assert [path.name for path in (folder / "run").iterdir()] == [CODEX_SOCKET_NAME]

    async def test_a_database_that_is_whole(self, folder: Path) -> None:
        async with open_store(folder / "state"):
            _, found, _ = await trio.to_thread.run_sync(examine, folder)  # also while it is in use
        assert found["database"]["level"] == "ok"

    @pytest.mark.parametrize("bytes_", [b"no database at all, but long enough to be read as a page" * 20, b"\0" * 4096])
    def test_a_database_that_is_none(self, bytes_: bytes, folder: Path) -> None:
        (folder / "state" / "termald.sqlite").write_bytes(bytes_)
        code, found, _ = examine(folder)
        assert (code, found["database"]["level"], found["database"]["canFix"]) == (Exit.FAILURE, "problem", False)

    def test_a_thread_that_is_owned_and_ignored(self, folder: Path) -> None:
        with closing(sqlite3.connect(folder / "state" / "termald.sqlite")) as database, database:
            database.execute("CREATE TABLE sessions (id TEXT, thread_id TEXT, killed_at_ms INTEGER)")
            database.execute("CREATE TABLE ignored_threads (thread_id TEXT)")
            database.execute("INSERT INTO sessions VALUES ('s', 't', NULL), ('killed', 'k', 5)")
            database.execute("INSERT INTO ignored_threads VALUES ('t'), ('k')")
        code, found, _ = examine(folder)
        assert (code, found["ignore set"]["level"]) == (Exit.FAILURE, "problem")
        assert found["ignore set"]["says"].startswith("1 thread is")


@contextmanager
def taken_port() -> Iterator[int]:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


class TestMachine:
    """What the daemon needs of the system."""

    def test_a_port_that_is_taken(self, folder: Path) -> None:
        with taken_port() as port:
            code, found, _ = examine(folder, TERMALD_LISTEN=f"127.0.0.1:{port}")
        assert (code, found["port"]["level"]) == (Exit.FAILURE, "problem")
        assert "--listen" in found["port"]["help"]
        assert examine(folder, TERMALD_LISTEN=f"127.0.0.1:{port}")[1]["port"]["level"] == "ok"

    def test_too_few_open_files(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 4_096))
        found = examine(folder)[1]["open files"]
        assert (found["level"], found["help"]) == (
            "problem", "ulimit -n 1024 before the start (up to 4,096 are allowed)",
        )  # fmt: skip

    @pytest.mark.parametrize(("free", "level"), [(1 << 20, "problem"), (1 << 28, "note"), (1 << 40, "ok")])
    def test_a_disk_that_is_full(self, free: int, level: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "DISK_LOW_BYTES", 1 << 30)
        usage = shutil.disk_usage(folder)._replace(free=free)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
        assert examine(folder)[1]["disk"]["level"] == level
