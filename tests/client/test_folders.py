"""A client looks where the daemon is: its own reading of the settings agrees with the daemon's."""

import os
from pathlib import Path

import pytest

from termald.client.errors import ClientError
from termald.client.folders import find_folders
from termald.config.resolve import load


@pytest.mark.parametrize(
    ("environment", "file"),
    [
        ({}, ""),
        ({"TERMALD_STATE_DIR": "/s"}, ""),
        ({"TERMALD_RUNTIME_DIR": "/r"}, ""),
        ({"TERMALD_STATE_DIR": "", "TERMALD_RUNTIME_DIR": ""}, ""),
        ({"TERMALD_STATE_DIR": "/s/../t", "TERMALD_RUNTIME_DIR": "relative/run"}, '[state]\ndir = "/no"\n'),
        ({}, '[state]\ndir = "beside"\n[runtime]\ndir = "~/run"\n'),
        ({}, '[state]\ndir = "/only/state"\n'),
        ({"XDG_RUNTIME_DIR": "/run/x"}, ""),
        ({"XDG_RUNTIME_DIR": "/run/x"}, '[runtime]\ndir = "/wins"\n'),
        ({"XDG_RUNTIME_DIR": "not/absolute"}, ""),
    ],
)
def test_it_finds_what_the_daemon_would(
    environment: dict[str, str], file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("TERMALD_", "XDG_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "config.toml").write_text(file)
    for name, value in {"TERMALD_CONFIG": str(tmp_path / "config.toml"), **environment}.items():
        monkeypatch.setenv(name, value)
    theirs = load([]).settings
    ours = find_folders()
    assert (ours.runtime_dir, ours.state_dir) == (theirs.runtime.dir, theirs.state.dir)


def test_what_is_given_wins() -> None:
    found = find_folders("/a", "/b", {"TERMALD_RUNTIME_DIR": "/x", "TERMALD_STATE_DIR": "/y"})
    assert (found.runtime_dir, found.state_dir) == (Path("/a"), Path("/b"))


@pytest.mark.parametrize("text", [None, "not toml ["])
def test_a_settings_file_that_is_named_and_cannot_be_read_is_an_error(tmp_path: Path, text: str | None) -> None:
    """To look elsewhere would be to talk to another daemon than the one that was meant."""
    path = tmp_path / "config.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ClientError, match=r"config\.toml"):
        find_folders(environment={"TERMALD_CONFIG": str(path)})
