"""A served daemon, and a client that may ask it."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from support.api_daemon import Served, served


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    """A daemon behind TCP."""
    async with served(tmp_path) as running:
        yield running


@pytest.fixture
async def client(api: Served) -> AsyncIterator[httpx.AsyncClient]:
    """A client that shows the token."""
    async with api.client() as asking:
        yield asking
