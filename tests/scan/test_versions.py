"""Homes that real versions of Codex left, the oldest that there is to the newest: each is told in full.

The archives are described in `fixtures/README.md`.
"""

import contextlib
import sqlite3
import zipfile
from pathlib import Path

import pytest
from scan.homemade import snapshot

from discovery.scanner import ScanReport, scan
from state.records import KnownThread, ThreadId

ARCHIVES = sorted((Path(__file__).parent / "fixtures").glob("*.zip"))
VERSIONS = ["0.133.0", "0.149.0", "0.163.0", "0.171.0"]
TAKES_NO_TAG = {"0.133.0"}
"""Its `threadSource` is one of three words of its own."""


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.stem)
def archive(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


@pytest.fixture
def home(archive: Path, tmp_path: Path) -> Path:
    """The home, at another place than where it was made."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path)
    return tmp_path


async def scanned(home: Path) -> tuple[list[KnownThread], ScanReport]:
    told: list[KnownThread] = []

    async def emit(threads: tuple[KnownThread, ...]) -> None:
        told.extend(threads)

    async def known_stamps(_: object) -> dict[ThreadId, str]:
        return {}

    return told, await scan(home, emit=emit, known_stamps=known_stamps)


async def test_both_threads_are_told_with_all_that_their_version_stores(archive: Path, home: Path) -> None:
    before = snapshot(home)
    threads, report = await scanned(home)
    assert (report.error, report.flaw, report.skipped, report.uncounted) == (None, None, (), ())
    archived, named = threads
    assert (named.title, named.preview, named.message_count, named.archived) == ("A name", "first words", 4, False)
    assert (archived.title, archived.message_count, archived.archived) == ("to be archived", 2, True)
    cwd = f"/tmp/codex-{archive.stem}/work"
    for thread in threads:
        assert (thread.cwd, thread.source, thread.model_provider) == (cwd, "vscode", "scripted")
        assert thread.rollout_path is not None and Path(thread.rollout_path).is_relative_to(home)
        assert 1_796_079_000_000 < thread.created_at_ms <= thread.updated_at_ms < 1_796_083_200_000
    assert named.tag == ("" if archive.stem in TAKES_NO_TAG else "termald:host:s:1")
    assert snapshot(home) == before


def test_the_versions_are_those_that_the_page_names() -> None:
    assert [archive.stem for archive in ARCHIVES] == VERSIONS
    page = Path(__file__).parents[2] / "docs" / "discovery.md"
    assert all(version in page.read_text(encoding="utf-8") for version in VERSIONS)


def test_each_version_has_columns_of_its_own(home: Path, archive: Path) -> None:
    """So that four layouts are read, and not one four times."""
    with contextlib.closing(sqlite3.connect(home / "state_5.sqlite")) as database:
        columns = {str(row[1]) for row in database.execute("PRAGMA table_info(threads)")}
    assert len(columns) == {"0.133.0": 29, "0.149.0": 38, "0.163.0": 42, "0.171.0": 43}[archive.stem]
