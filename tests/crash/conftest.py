"""A whole daemon, over a folder of its own, that gives a Codex up soon."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.daemon import Daemon, open_daemon

from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
async def daemon(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[Daemon]:
    """Not started yet: the test says how its Codex begins."""
    settings = {
        "TERMALD_CODEX_CRASHES_MAX": "3",
        "TERMALD_CODEX_BACKOFF_FIRST_MS": "20",
        "TERMALD_CODEX_BACKOFF_MAX_MS": "100",
    }
    async with (
        open_server(model) as base_url,
        open_daemon(tmp_path, model, base_url, start=False, **settings) as daemon,
    ):
        yield daemon
