"""Which Codex is run. A shim run by mistake leaves a native process behind that holds every thread's writer lock."""

import os
import platform
import shutil
from pathlib import Path

import pytest
import trio

from termald.codex import binary
from termald.codex.binary import CodexBinary, find_codex, locate_codex, parse_version, read_version, resolve_native
from termald.codex.errors import CodexNotFound, CodexNotNative, CodexTooOld, CodexUnusable

NATIVE = b"\x7fELF" + b"\0" * 60
PACKAGE, TRIPLE = binary._NPM_TARGETS[platform.system(), platform.machine()]  # the machine the tests run on


def make_executable(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(0o755)
    return path


def npm_install(root: Path, *, nested: bool = False) -> tuple[Path, Path]:
    """Lay out what `npm i @openai/codex` leaves: (the shim, the native binary)."""
    package = root / "node_modules" / "@openai" / "codex"
    shim = make_executable(package / "bin" / "codex.js", "#!/usr/bin/env node\n")
    home = package if nested else root
    native = make_executable(
        home / "node_modules" / "@openai" / PACKAGE / "vendor" / TRIPLE / "bin" / "codex",
        NATIVE,
    )
    return shim, native


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "_packaged", lambda: None)


@pytest.mark.parametrize("nested", [False, True])
def test_npm_shim_is_followed_to_the_native_binary(tmp_path: Path, *, nested: bool) -> None:
    shim, native = npm_install(tmp_path, nested=nested)
    assert resolve_native(shim) == native


def test_link_on_path_to_the_shim_is_an_npm_install(tmp_path: Path, no_package: None) -> None:
    shim, native = npm_install(tmp_path)
    link = tmp_path / "bin" / "codex"
    link.parent.mkdir()
    link.symlink_to(os.path.relpath(shim, link.parent))
    located = locate_codex(None, str(link.parent))
    assert (located.path, located.origin) == (native, "npm")


def test_shell_script_that_names_the_shim_is_followed_too(tmp_path: Path, no_package: None) -> None:
    _, native = npm_install(tmp_path)
    script = make_executable(
        tmp_path / "bin" / "codex",
        '#!/bin/sh\nbasedir=$(dirname "$0")\nexec node  "$basedir/../node_modules/@openai/codex/bin/codex.js" "$@"\n',
    )
    assert locate_codex(None, str(script.parent)).path == native


def test_shim_whose_binary_is_missing_is_refused_with_the_way_out(tmp_path: Path) -> None:
    shim, native = npm_install(tmp_path)
    native.unlink()
    with pytest.raises(CodexNotNative, match="reinstall"):
        resolve_native(shim)


def test_other_scripts_are_refused(tmp_path: Path) -> None:
    script = make_executable(tmp_path / "codex", "#!/bin/sh\nexec /usr/bin/true\n")
    with pytest.raises(CodexNotNative, match="script"):
        locate_codex(str(script), "")


def test_wrapper_earlier_on_path_does_not_hide_the_native_binary(tmp_path: Path, no_package: None) -> None:
    make_executable(tmp_path / "a" / "codex", "#!/bin/sh\n")
    native = make_executable(tmp_path / "b" / "codex", NATIVE)
    located = locate_codex(None, f"{tmp_path}/a:{tmp_path}/b")
    assert (located.path, located.origin) == (native, "path")


def test_nothing_anywhere_says_where_was_looked(no_package: None) -> None:
    with pytest.raises(CodexNotFound, match="openai-codex-cli-bin"):
        locate_codex(None, "/nonexistent")


def test_setting_is_never_fallen_back_from(tmp_path: Path) -> None:
    make_executable(tmp_path / "codex", NATIVE)
    with pytest.raises(CodexNotFound, match="no such file"):
        locate_codex(str(tmp_path / "missing"), str(tmp_path))
    with pytest.raises(CodexNotFound, match="no such program"):
        locate_codex("codex-nightly", str(tmp_path))
    assert locate_codex("codex", str(tmp_path)).path == tmp_path / "codex"


def test_version_lines() -> None:
    assert parse_version("codex-cli 0.163.0") == (0, 163, 0)
    assert parse_version("0.172.0-alpha.3") == (0, 172, 0)
    with pytest.raises(ValueError, match="no version"):
        parse_version("hello")


async def test_binary_that_cannot_run_is_unusable(tmp_path: Path) -> None:
    broken = make_executable(tmp_path / "codex", NATIVE)
    with pytest.raises(CodexUnusable, match="cannot be run"):
        await read_version(broken)
    with pytest.raises(CodexUnusable, match="ended with 1"):
        await read_version(Path(shutil.which("false") or "/bin/false"))


async def test_binary_that_never_answers_is_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "PROBE_DEADLINE_S", 0.2)
    silent = make_executable(tmp_path / "codex", "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.05; done\n")
    with trio.fail_after(3), pytest.raises(CodexUnusable, match="no answer"):
        await read_version(silent)


async def test_too_old_a_codex_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def old(path: Path) -> str:
        await trio.lowlevel.checkpoint()
        return "0.162.9"

    monkeypatch.setattr(binary, "read_version", old)
    with pytest.raises(CodexTooOld, match=r"0\.163\.0 or newer"):
        await find_codex(str(make_executable(tmp_path / "codex", NATIVE)), "")


@pytest.mark.real
async def test_installed_codex_is_found_with_its_version() -> None:
    found = await find_codex(None, "")
    assert isinstance(found, CodexBinary)
    assert found.origin == "package"
    assert found.version_tuple >= binary.VERSION_MIN
    assert await binary.supports_unix_listen(found.path)
