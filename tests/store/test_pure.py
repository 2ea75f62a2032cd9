"""The core speaks in `state.records`; it must stay free of I/O whatever else lives in this package."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["state", "state.records", "state.views"])
def test_what_the_core_and_the_api_speak_in_brings_no_io(module: str) -> None:
    """In a fresh interpreter: here apsw is loaded already, and a re-export in `state/__init__.py` would go unseen."""
    loaded = f"import sys, {module}; print({{'apsw', 'trio', 'sqlite3'}} & sys.modules.keys())"
    assert (
        subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout == "set()\n"
    )
