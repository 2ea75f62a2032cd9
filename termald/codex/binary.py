"""Finding the native Codex binary, and knowing what it can do before it is trusted with a thread.

npm's `codex` is a Node shim that runs the native binary as a child (older Node) or in its own place (newer). Killing a
parent shim leaves the app-server alive with its thread writer locks, so a shim is followed to the binary it would run
and is itself never started. What is neither a binary nor a shim we know is refused, not guessed at.
"""

import functools
import importlib.util
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec
import trio

from termald.codex.errors import CodexNotFound, CodexNotNative, CodexTooOld, CodexUnusable

Origin = Literal["setting", "package", "path", "npm"]
Version = tuple[int, int, int]

# The oldest release that the message types, the handshake and the refusals were measured on.
VERSION_MIN: Final[Version] = (0, 163, 0)
# `--version` answers in 15 ms; a binary read for the first time from a cold, slow disk (300 MB) may take seconds.
PROBE_DEADLINE_S: Final = 20.0

_ELF: Final = b"\x7fELF"
# Thin Mach-O of both widths and byte orders, and the universal header.
_MACH_O: Final = frozenset(
    bytes.fromhex(magic) for magic in ("feedface", "feedfacf", "cefaedfe", "cffaedfe", "cafebabe", "bebafeca")
)
# As in the shim itself: platform package and target triple by operating system and processor.
_NPM_TARGETS: Final = {
    ("Linux", "x86_64"): ("codex-linux-x64", "x86_64-unknown-linux-musl"),
    ("Linux", "aarch64"): ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
    ("Darwin", "x86_64"): ("codex-darwin-x64", "x86_64-apple-darwin"),
    ("Darwin", "arm64"): ("codex-darwin-arm64", "aarch64-apple-darwin"),
}
_SHIM_TAIL: Final = ("@openai", "codex", "bin", "codex.js")
# pnpm and Windows-born installers put a small shell script on PATH that names the shim relative to itself.
_SHIM_IN_SCRIPT: Final = re.compile(r"""["']?([^\s"']*@openai/codex/bin/codex\.js)["']?""")
_SCRIPT_HEAD_BYTES: Final = 8192
_VERSION_LINE: Final = re.compile(r"\b(\d+)\.(\d+)\.(\d+)((?:-[0-9A-Za-z.-]+)?)")


class Located(msgspec.Struct, frozen=True):
    """A native binary and how it was come by; not run yet."""

    path: Path
    origin: Origin


class CodexBinary(msgspec.Struct, frozen=True):
    """A native Codex whose version is known and new enough. `version` is as printed, a pre-release suffix included."""

    path: Path
    version: str
    origin: Origin

    @property
    def version_tuple(self) -> Version:
        return parse_version(self.version)


async def find_codex(setting: str | None, env_path: str) -> CodexBinary:
    """Return the binary to run: the setting, else the PyPI package, else `codex` on `env_path` (npm's shim followed).

    Errors: `codex-not-found`, `codex-not-native`, `codex-unusable`, `codex-too-old`; a setting is never fallen back
    from.
    """
    located = await trio.to_thread.run_sync(locate_codex, setting, env_path)
    version = await read_version(located.path)
    if parse_version(version) < VERSION_MIN:
        oldest = ".".join(map(str, VERSION_MIN))
        raise CodexTooOld(f"{located.path} is Codex {version}; termald needs {oldest} or newer")
    return CodexBinary(path=located.path, version=version, origin=located.origin)


def locate_codex(setting: str | None, env_path: str) -> Located:
    """Return where the native binary is, without running anything.

    Blocks on the file system. Errors: see `find_codex`.
    """
    if setting is not None:
        return Located(_from_setting(setting, env_path), "setting")
    packaged = _packaged()
    if packaged is not None:
        return Located(packaged, "package")
    refused: list[str] = []
    for entry in _on_path(env_path):
        try:
            native = resolve_native(entry)
        except CodexNotNative as error:
            refused.append(str(error))
            continue
        return Located(native, "path" if native == entry.resolve() else "npm")
    if refused:
        raise CodexNotNative("; ".join(refused))
    raise CodexNotFound(
        "no Codex: the setting is empty, the package openai-codex-cli-bin is not installed, and PATH has no `codex` "
        f"({env_path!r}); install termald[codex], or set codex.bin to a native binary"
    )


def resolve_native(path: Path) -> Path:
    """Return the native binary that `path` is or, being npm's shim, would run. Errors: `codex-not-native`."""
    real = path.resolve()
    if is_native(real):
        return real
    shim = _shim_behind(real)
    if shim is None:
        raise CodexNotNative(f"{path} is a script, not a native binary; set codex.bin to the binary it runs")
    native = _binary_of_shim(shim)
    if native is None:
        raise CodexNotNative(
            f"{path} is npm's shim, and no native binary for this machine lies beside it; reinstall @openai/codex"
        )
    return native


def is_native(path: Path) -> bool:
    """Say whether the file begins like an ELF or Mach-O executable. Errors: OSError if it cannot be read."""
    with path.open("rb") as file:
        magic = file.read(4)
    return magic == _ELF or magic in _MACH_O


def parse_version(text: str) -> Version:
    """Return the three numbers in `text`; a pre-release counts as its release. Errors: ValueError if there are none."""
    match = _VERSION_LINE.search(text)
    if match is None:
        raise ValueError(f"no version in {text[:200]!r}")
    return int(match[1]), int(match[2]), int(match[3])


async def read_version(path: Path) -> str:
    """Return what `path --version` prints, without the product's name. Errors: `codex-unusable`."""
    output = await _probe(path, "--version")
    match = _VERSION_LINE.search(output)
    if match is None:
        raise CodexUnusable(f"{path} --version printed {output[:200]!r}, which is not a Codex version")
    return match[0]


async def supports_unix_listen(path: Path) -> bool:
    """Say whether this binary's app-server offers the control socket.

    Asked of its help: the version alone does not tell.
    """
    return "unix://" in await _probe(path, "app-server", "--help")


async def _probe(path: Path, *arguments: str) -> str:
    """Run the binary for what it prints. Its group needs no care: neither `--version` nor `--help` starts a child."""

    async def kill(process: trio.Process) -> None:
        process.kill()  # it has nothing to save, and may not listen

    run = functools.partial(
        trio.run_process, capture_stdout=True, capture_stderr=True, stdin=subprocess.DEVNULL, deliver_cancel=kill
    )
    try:
        with trio.fail_after(PROBE_DEADLINE_S):
            done = await run([path, *arguments])
    except trio.TooSlowError as error:
        raise CodexUnusable(f"{path} {' '.join(arguments)} gave no answer in {PROBE_DEADLINE_S:.0f} s") from error
    except OSError as error:
        raise CodexUnusable(f"{path} cannot be run: {error.strerror or error}") from error
    except subprocess.CalledProcessError as error:
        said = bytes(error.stderr).decode(errors="replace").strip()[-300:]
        raise CodexUnusable(f"{path} {' '.join(arguments)} ended with {error.returncode}: {said}") from error
    return bytes(done.stdout).decode(errors="replace")


def _from_setting(setting: str, env_path: str) -> Path:
    path = Path(setting).expanduser()
    if path.name == setting:
        found = shutil.which(setting, path=env_path)
        if found is None:
            raise CodexNotFound(f"codex.bin is {setting!r}, and PATH has no such program ({env_path!r})")
        path = Path(found)
    if not path.is_file():
        raise CodexNotFound(f"codex.bin is {setting!r}, and there is no such file")
    try:
        return resolve_native(path)
    except OSError as error:
        raise CodexUnusable(f"codex.bin is {setting!r}, which cannot be read: {error.strerror}") from error


def _packaged() -> Path | None:
    """The PyPI package's binary, found without importing the package: it is data, and may be damaged."""
    spec = importlib.util.find_spec("codex_cli_bin")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "bin" / "codex"
        if path.is_file() and is_native(path):
            return path.resolve()
    return None


def _on_path(env_path: str) -> Iterator[Path]:
    """Every `codex` on PATH, not the first alone: a wrapper of the user's may stand before the real one."""
    for folder in env_path.split(":"):
        found = shutil.which("codex", path=folder) if folder else None
        if found is not None:
            yield Path(found)


def _shim_behind(script: Path) -> Path | None:
    """The `codex.js` that this script is, or names; None for any other script."""
    if script.parts[-len(_SHIM_TAIL) :] == _SHIM_TAIL:
        return script
    with script.open("rb") as file:
        head = file.read(_SCRIPT_HEAD_BYTES).decode(errors="replace")
    for named in _SHIM_IN_SCRIPT.findall(head):
        shim = Path(re.sub(r"^\$\{?basedir\}?", lambda _: str(script.parent), named))
        if shim.is_absolute() and shim.is_file():
            return shim.resolve()
    return None


def _binary_of_shim(shim: Path) -> Path | None:
    """Where Node would resolve the platform package from the shim: upwards through node_modules, then the
    package itself."""
    target = _NPM_TARGETS.get((platform.system(), platform.machine()))
    if target is None:
        return None
    package, triple = target
    tail = Path("vendor", triple, "bin", "codex")
    roots = [folder / "node_modules" / "@openai" / package for folder in shim.parents]
    for root in (*roots, shim.parent.parent):
        native = root / tail
        if native.is_file() and is_native(native):
            return native.resolve()
    return None
