"""Each real Codex that is there, on its pipes or on a control socket, asking a scripted model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from facts.lab import SocketLab, open_socket_lab
from support.codex_process import codex_binaries
from support.scripted_lab import Lab, open_lab

from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server

BINARIES = codex_binaries()


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
async def base_url(model: ScriptedModel) -> AsyncIterator[str]:
    async with open_server(model) as url:
        yield url


@pytest.fixture(params=list(BINARIES))
def codex_binary(request: pytest.FixtureRequest) -> Path:
    return BINARIES[request.param]


@pytest.fixture
async def lab(codex_binary: Path, model: ScriptedModel, base_url: str, tmp_path: Path) -> AsyncIterator[SocketLab]:
    async with open_socket_lab(codex_binary, model, base_url, tmp_path) as lab:
        yield lab


@pytest.fixture
async def piped(codex_binary: Path, model: ScriptedModel, base_url: str, tmp_path: Path) -> AsyncIterator[Lab]:
    folder = tmp_path / "piped"
    folder.mkdir()
    async with open_lab(codex_binary, model, base_url, folder) as lab:
        yield lab
