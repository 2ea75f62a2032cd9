"""The policy is pure in a fresh interpreter: a re-export in a package would not be seen by the import contract."""

import subprocess
import sys

import pytest

SHOW = "import sys; import {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"


@pytest.mark.parametrize("module", ["discovery.policy", "discovery.source", "state.tags"])
def test_a_pure_module_loads_neither_engine_nor_database(module: str) -> None:
    loaded = _loaded_by(module)
    assert {"msgspec", module.split(".", maxsplit=1)[0]} <= loaded
    # `os`, `time` and `datetime` are there before our first line (the interpreter, msgspec): the import contract of the
    # lint run forbids those by name.
    forbidden = {"trio", "apsw", "anyio", "httpx", "structlog", "random", "socket", "subprocess", "sqlite3"}
    assert not loaded & (forbidden - _loaded_by("msgspec"))


def _loaded_by(module: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SHOW.format(module=module)], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())
