"""What is pure stays pure: it can be replayed, fuzzed and reasoned about without a clock, a socket or a process."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["frames", "lines", "protocol.methods", "protocol.types"])
def test_pure_modules_load_nothing_that_acts(module: str) -> None:
    program = f"import termald.codex.{module}, sys; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert "msgspec" in loaded
    assert not {"trio", "trio_websocket", "apsw", "socket", "subprocess"} & set(loaded)
