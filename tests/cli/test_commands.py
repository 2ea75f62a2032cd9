"""The commands as people and scripts meet them: what is printed where, and with which exit code."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from support.canned_daemon import Canned, canned_daemon

from termald.cli.exits import Exit
from termald.cli.main import COMMANDS, LazyGroup, root
from termald.settings import FIELDS

STATE = {
    "host": {"id": "h", "epoch": 3, "label": "box", "platform": "linux", "version": "9.9.9", "capabilities": []},
    "runtime": {"id": "r", "status": "ready", "pid": 77, "transport": "unix", "codexVersion": "0.163.0", "restarts": 2},
    "sessions": [{"id": f"s{n}", "status": "ready" if n < 2 else "running"} for n in range(3)],
    "ignoredThreads": [{"threadId": "t9", "reason": "killed"}],
    "discovery": {"status": "failed", "reason": "no such folder", "finishedAt": None, "report": [{"home": "/h"}]},
    "lastEventId": 12,
}
READY = {"ready": False, "parts": {"store": {"state": "ready"}, "runtime": {"state": "backoff", "reason": "it died"}}}
ANSWERS = {"GET /api/state": Canned(200, STATE), "GET /api/ready": Canned(503, READY)}


def run(*arguments: str, folder: Path, **environment: str) -> Result:
    """Run a command in this process, with state, runtime and configuration in `folder` and nothing of the user's."""
    private = {
        "TERMALD_STATE_DIR": str(folder / "state"),
        "TERMALD_RUNTIME_DIR": str(folder / "run"),
        "TERMALD_CONFIG": str(folder / "config.toml"),
    }
    (folder / "config.toml").touch()
    cleared = dict.fromkeys((name for name in os.environ if name.startswith(("TERMALD_", "CODEX_"))), None)
    return CliRunner().invoke(root, arguments, env=cleared | private | environment, prog_name="termald")


def document_of(result: Result) -> Any:
    """The one JSON document on standard output."""
    return json.loads(result.stdout)


def test_help_imports_none_of_the_daemon() -> None:
    """Completion and help run at every key press; half a second each would be felt."""
    code = (
        "import sys; from termald.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'trio', 'httpx', 'apsw', 'litestar', 'structlog', 'msgspec', 'termald.daemon'} & sys.modules.keys()\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, entry in COMMANDS.items():
        assert f" {name} " in done.stdout
        assert entry.about in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_says_of_each_command_what_its_own_help_says(name: str, tmp_path: Path) -> None:
    group = root
    assert isinstance(group, LazyGroup)
    context = group.make_context("termald", [name])
    _, command, _ = group.resolve_command(context, [name])
    assert command is not None
    assert command.name == name
    assert (command.help or "").partition("\n")[0] == COMMANDS[name].about
    shown = run(name, "--help", folder=tmp_path)
    assert shown.exit_code == Exit.OK
    assert COMMANDS[name].about in shown.stdout


def commands_below(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        if isinstance(command, click.Group):
            yield from commands_below(command, (*path, name))
        elif command is not None:
            yield (*path, name), command


def test_every_command_that_prints_has_json() -> None:
    found = dict(commands_below(root))
    assert ("config", "show") in found
    without = [path for path, command in found.items() if not any("--json" in each.opts for each in command.params)]
    assert without == []


def test_a_command_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    assert run("srve", folder=tmp_path).exit_code == Exit.USAGE


class TestConfig:
    """`config show`: the settings in force and where each comes from."""

    def test_the_lines_are_a_file_that_gives_the_same_values(self, tmp_path: Path) -> None:
        (tmp_path / "config.toml").write_text("[codex]\ncalls_max = 32\n")
        first = run("config", "show", folder=tmp_path, TERMALD_LISTEN="127.0.0.1:0").stdout
        assert 'server.listen = "127.0.0.1:0"  # environment TERMALD_LISTEN\n' in first
        assert f"codex.calls_max = 32  # file {tmp_path / 'config.toml'}\n" in first
        assert "codex.setups_max = 4  # default\n" in first
        assert set(tomllib.loads(first)) == {field.section for field in FIELDS.values()}
        (tmp_path / "config.toml").write_text(first)
        second = run("config", "show", folder=tmp_path).stdout
        assert [line.partition("  #")[0] for line in first.splitlines()] == [
            line.partition("  #")[0] for line in second.splitlines()
        ]

    def test_a_flag_wins_and_is_named(self, tmp_path: Path) -> None:
        shown = run(
            "config", "show", "--json", "--set", "log.level=debug", "--listen", "127.0.0.1:1", folder=tmp_path,
            TERMALD_LOG_LEVEL="error",
        )  # fmt: skip
        settings = document_of(shown)["settings"]
        assert set(settings) == set(FIELDS)
        assert settings["log.level"] == {"value": "debug", "source": {"kind": "flag", "name": "--set log.level"}}
        assert settings["server.listen"]["value"] == "127.0.0.1:1"
        assert settings["server.listen"]["source"]["name"] == "--listen"
        assert settings["codex.bin"] == {"value": "auto", "source": {"kind": "default", "name": ""}}

    def test_mistakes_are_told_all_at_once_on_standard_error(self, tmp_path: Path) -> None:
        (tmp_path / "config.toml").write_text("[codex]\ncalls_max = 0\n")
        shown = run("config", "show", folder=tmp_path, TERMALD_LOG_LEVEL="loud")
        assert shown.exit_code == Exit.USAGE
        assert shown.stdout == ""
        first, second = shown.stderr.splitlines()
        assert first.startswith(f"termald: codex.calls_max = 0 (file {tmp_path / 'config.toml'}): must be")
        assert second.startswith("log.level = 'loud' (environment TERMALD_LOG_LEVEL): must be")

    def test_with_json_a_mistake_is_the_document(self, tmp_path: Path) -> None:
        shown = run("config", "show", "--json", "--set", "log.level=loud", folder=tmp_path)
        assert shown.exit_code == Exit.USAGE
        assert document_of(shown)["error"]["slug"] == "settings-invalid"

    def test_an_option_without_a_value_to_set_is_a_usage_error(self, tmp_path: Path) -> None:
        assert run("config", "show", "--set", "log.level", folder=tmp_path).exit_code == Exit.USAGE

    def test_a_stranger_among_the_variables_is_noticed(self, tmp_path: Path) -> None:
        shown = run("config", "show", folder=tmp_path, TERMALD_SPECIAL="1")
        assert shown.exit_code == Exit.OK
        assert "TERMALD_SPECIAL = '1'" in shown.stderr


class TestStatus:
    """`status`: one look at the running daemon."""

    def test_without_a_daemon_it_is_one_sentence_with_the_way_out(self, tmp_path: Path) -> None:
        shown = run("status", folder=tmp_path)
        assert shown.exit_code == Exit.NOT_RUNNING
        assert shown.stdout == ""
        (sentence,) = shown.stderr.splitlines()
        assert sentence.startswith("termald: the daemon is not running (")
        assert sentence.endswith("start it with: termald serve")

    def test_without_a_daemon_json_is_still_one_document(self, tmp_path: Path) -> None:
        shown = run("status", "--json", folder=tmp_path)
        assert shown.exit_code == Exit.NOT_RUNNING
        assert document_of(shown)["error"]["slug"] == "daemon-not-running"

    def test_a_pipe_gets_a_line_for_each_value(self, tmp_path: Path) -> None:
        with canned_daemon(ANSWERS, tmp_path / "run", pid=4242):
            shown = run("status", folder=tmp_path)
        assert shown.exit_code == Exit.OK, shown.stderr
        lines = dict(line.split("\t") for line in shown.stdout.splitlines())
        assert lines["daemon.pid"] == "4242"
        assert lines["daemon.ready"] == "false"
        assert lines["runtime.status"] == "ready"
        assert lines["sessions.total"] == "3"
        assert lines["sessions.running"] == "1"
        assert lines["discovery.reason"] == "no such folder"
        assert lines["daemon.url"] == ""

    def test_json_says_the_same(self, tmp_path: Path) -> None:
        with canned_daemon(ANSWERS, tmp_path / "run"):
            shown = document_of(run("status", "--json", folder=tmp_path))
        assert shown["sessions"] == {"total": 3, "ready": 2, "running": 1}
        assert shown["daemon"]["parts"] == {"store": "ready", "runtime": "backoff"}
        assert shown["ignoredThreads"] == 1

    def test_what_the_daemon_refuses_is_a_failure_in_its_words(self, tmp_path: Path) -> None:
        problem = {"type": "urn:termald:problem:starting", "title": "The daemon is still starting", "detail": "wait"}
        answers = ANSWERS | {"GET /api/state": Canned(503, problem, "application/problem+json")}
        with canned_daemon(answers, tmp_path / "run"):
            shown = run("status", folder=tmp_path)
        assert shown.exit_code == Exit.FAILURE
        assert shown.stderr == "termald: The daemon is still starting: wait\n"


class TestToken:
    """`token`: what TCP clients must show."""

    def test_it_is_made_once_and_kept_private(self, tmp_path: Path) -> None:
        first = run("token", folder=tmp_path)
        again = document_of(run("token", "--json", folder=tmp_path))
        assert first.exit_code == Exit.OK
        assert first.stdout.strip() == again["token"] == (tmp_path / "state" / "token").read_text().strip()
        assert (tmp_path / "state" / "token").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700

    def test_a_file_that_holds_none_is_refused_in_a_sentence(self, tmp_path: Path) -> None:
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / "token").write_text("short")
        shown = run("token", folder=tmp_path)
        assert shown.exit_code == Exit.FAILURE
        assert "holds no token" in shown.stderr
        assert document_of(run("token", "--json", folder=tmp_path))["error"]["slug"] == "token-refused"

    def test_a_state_folder_that_cannot_be_made_is_a_sentence_too(self, tmp_path: Path) -> None:
        (tmp_path / "state").touch()
        shown = run("token", folder=tmp_path)
        assert shown.exit_code == Exit.FAILURE
        assert str(tmp_path / "state") in shown.stderr


def test_the_reference_tells_programs_the_same(tmp_path: Path) -> None:
    told = document_of(run("config", "reference", "--json", folder=tmp_path))["settings"]
    assert set(told) == set(FIELDS)
    assert told["codex.calls_max"]["max"] == 128
    assert told["codex.home"]["variables"] == ["CODEX_HOME", "TERMALD_CODEX_HOME"]


def test_version_names_what_is_here_and_what_is_not(tmp_path: Path) -> None:
    shown = document_of(run("version", "--json", "--codex-bin", "/nowhere/codex", folder=tmp_path))
    assert shown["codex"]["version"] is None
    assert "/nowhere/codex" in shown["codex"]["problem"]
    assert shown["termald"]
