"""Codex: the binary, whether we know its protocol, its home, its login, and its slow friend, the login shell."""

import os
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import trio

from termald.cli.checkup.findings import Finding, note, ok, problem
from termald.codex.binary import find_codex, parse_version
from termald.codex.errors import CodexFault
from termald.codex.protocol.methods import CODEX_VERSION
from termald.settings import Settings

SHELL_SLOW_S: Final = 0.5
"""Each new thread waits for it: at this pace the first hundred of a busy morning cost a minute."""
SHELL_DEADLINE_S: Final = 20.0
_KEYS: Final = ("OPENAI_API_KEY", "CODEX_API_KEY")


def look(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what is found. Blocks; starts `codex --version` and a login shell."""
    yield from _binary(settings, environment)
    yield _home(settings.codex.home)
    yield _login(settings.codex.home, environment)
    yield _shell(settings, environment.get("SHELL", ""))


def _binary(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    try:
        found = trio.run(find_codex, settings.codex.bin, environment.get("PATH", ""))
    except CodexFault as error:
        yield problem("codex", str(error), "install it (pip install 'termald[codex]', or npm's), or name it: codex.bin")
        return
    yield ok("codex", f"{found.version} at {found.path} ({found.origin})")
    ours = parse_version(CODEX_VERSION)
    if parse_version(found.version)[:2] == ours[:2]:
        yield ok("schema", f"termald's message types are of Codex {CODEX_VERSION}")
    else:
        newer = "newer" if parse_version(found.version) > ours else "older"
        yield note(
            "schema",
            f"Codex {found.version} is {newer} than the {CODEX_VERSION} that termald's message types are made from",
            "what termald does not know is passed on as it stands; if something is missing, look for a newer termald",
        )


def _home(home: Path) -> Finding:
    if home.is_dir():
        if os.access(home, os.W_OK | os.X_OK):
            return ok("codex home", str(home))
        return problem("codex home", f"{home} cannot be written", f"chown or chmod it: ls -ld {home}")
    parent = next(folder for folder in home.parents if folder.exists())
    if home.exists() or not os.access(parent, os.W_OK | os.X_OK):
        return problem("codex home", f"{home} is no folder and cannot be made", "name another: CODEX_HOME, codex.home")
    return note("codex home", f"{home} does not exist yet; Codex makes it")


def _login(home: Path, environment: Mapping[str, str]) -> Finding:
    provider = _provider(home)
    if isinstance(provider, Finding):
        return provider
    name, asks_login = provider
    if not asks_login:
        return ok("login", f"provider {name!r} of {home}/config.toml; OpenAI's login is not needed")
    if (home / "auth.json").is_file():
        return ok("login", f"{home}/auth.json")
    key = next((key for key in _KEYS if environment.get(key)), None)
    if key is not None:
        return note("login", f"no login in {home}; {key} is set", "the daemon must be started with it set as well")
    return problem("login", f"nobody is logged in with {home}", f"CODEX_HOME={home} codex login")


def _provider(home: Path) -> tuple[str, bool] | Finding:
    """Return the model provider in force, and whether it asks for OpenAI's login."""
    path = home / "config.toml"
    try:
        config: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        config = {}
    except (OSError, ValueError) as error:
        return problem("login", f"{path} cannot be read: {error}", "mend it: Codex does not start with it either")
    name = config.get("model_provider", "openai")
    providers = config.get("model_providers")
    own = providers.get(name) if isinstance(providers, dict) else None
    if not isinstance(own, dict):
        return str(name), name == "openai"
    return str(name), own.get("requires_openai_auth") is True


def _shell(settings: Settings, shell: str) -> Finding:
    if not shell:
        return note("login shell", "SHELL is not set")
    began = time.monotonic()
    try:
        subprocess.run(  # noqa: S603 - the user's own shell, as Codex would run it
            [shell, "-lc", "true"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=SHELL_DEADLINE_S,
            check=False,
        )
        took = f"takes {time.monotonic() - began:.1f} s"
    except subprocess.TimeoutExpired:
        took = f"does not end within {SHELL_DEADLINE_S:.0f} s"
    except OSError as error:
        return problem("login shell", f"{shell}: {error.strerror}", "set SHELL to one that exists")
    slow = time.monotonic() - began > SHELL_SLOW_S
    if slow and settings.codex.shell_snapshot:
        way_out = "set codex.shell_snapshot = false, or make its start files faster"
        return problem("login shell", f"{shell} {took}, and each new thread waits for it", way_out)
    spared = "; threads do not wait for it (codex.shell_snapshot = false)" if slow else ""
    return ok("login shell", f"{shell} {took}{spared}")
