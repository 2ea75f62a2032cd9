"""A whole daemon for each test, over a folder of its own."""

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
async def base_url(model: ScriptedModel) -> AsyncIterator[str]:
    async with open_server(model) as url:
        yield url


@pytest.fixture
async def daemon(model: ScriptedModel, base_url: str, tmp_path: Path) -> AsyncIterator[Daemon]:
    async with open_daemon(tmp_path, model, base_url) as daemon:
        yield daemon
