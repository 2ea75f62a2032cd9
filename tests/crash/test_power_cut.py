"""A 202 means that the disk has it: what the API promised is found after a power cut at the moment of the answer.

`tests/store/test_power.py` cuts at every operation on the disk; here is shown that each promise is committed with a
sync before anybody hears of it.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from store.power import Disk, nothing
from support.api_daemon import Served, served

from state.records import BootImage, IgnoredThread, PromptId, SessionId, Wanted
from state.store import Store, open_store


@pytest.fixture
def disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """A disk that keeps nothing but what was synced, under the daemon's state."""
    vfs = Disk(f"disk of {request.node.name}")
    monkeypatch.setattr("support.api_daemon.open_store", partial(open_store, vfs=vfs.name))
    yield vfs
    vfs.unregister()


class Found:
    """What a start after the cut finds."""

    def __init__(self, image: BootImage, prompts: frozenset[PromptId], ignored: tuple[IgnoredThread, ...]) -> None:
        self.image = image
        self.prompts = prompts
        self.ignored = ignored


async def after_a_cut(disk: Disk, folder: Path, name: str) -> Found:
    """Cut the power now, and start on what the disk kept."""
    left = folder / name
    left.mkdir()
    for file, content in disk.after_a_cut(folder / "state", nothing).items():
        (left / file).write_bytes(content)
    async with open_store(left) as store:
        return Found(await store.boot(), await prompts_in(store), tuple((await store.ignored(limit=10)).rows))


async def prompts_in(store: Store) -> frozenset[PromptId]:
    page = await store.prompts(SessionId("s"), limit=10)
    return frozenset(prompt.id for prompt in page.rows)


async def prompted(api: Served, text: str) -> PromptId:
    async with api.client() as client:
        answer = await client.post("/api/sessions/s/prompts", json={"input": text}, headers={"Idempotency-Key": text})
        assert answer.status_code == 202, answer.text
        return PromptId(answer.json()["prompt"]["id"])


async def test_what_was_answered_with_202_survives_a_cut_at_that_moment(disk: Disk, tmp_path: Path) -> None:
    async with served(tmp_path, unix=True) as api:
        await api.daemon.link_up()
        async with api.client() as client:
            assert (await client.post("/api/sessions", json={"id": "s", "cwd": str(tmp_path)})).status_code == 201
        first = await prompted(api, "one")
        found = await after_a_cut(disk, tmp_path, "after-one")
        assert found.prompts == {first}
        second = await prompted(api, "two")
        found = await after_a_cut(disk, tmp_path, "after-two")
        assert found.prompts == {first, second}
        # The intent is on the disk before the frame that mints a thread leaves.
        assert len(api.daemon.frames) == 1
        assert [intent.session_id for intent in found.image.loaded.intents] == ["s"]


async def test_an_ignored_thread_and_a_kill_survive_it(disk: Disk, tmp_path: Path) -> None:
    async with served(tmp_path, unix=True) as api, api.client() as client:
        assert (await client.post("/api/sessions", json={"id": "s", "cwd": str(tmp_path)})).status_code == 201
        answer = await client.put("/api/ignored-threads/T", json={"reason": "noise"})
        assert answer.status_code == 200, answer.text
        found = await after_a_cut(disk, tmp_path, "after-the-ignore")
        assert [entry.thread_id for entry in found.ignored] == ["T"]
        assert (await client.post("/api/sessions/s/kill", json={})).status_code == 200
        await after_a_cut(disk, tmp_path, "after-the-kill")
    async with open_store(tmp_path / "after-the-kill") as store:
        loaded = await store.load(Wanted(sessions=frozenset({SessionId("s")})))
    assert [bundle.session.killed_at_ms is not None for bundle in loaded.bundles] == [True]


async def test_without_the_sync_the_cut_would_take_it(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, unix=True) as api:
        async with api.client() as client:
            assert (await client.post("/api/sessions", json={"id": "s", "cwd": str(tmp_path)})).status_code == 201
        commit = api.daemon.store.commit
        monkeypatch.setattr(api.daemon.store, "commit", lambda changes, *, sync: commit(changes, sync=False))
        await prompted(api, "one")
        found = await after_a_cut(disk, tmp_path, "after-one")
        assert found.prompts == frozenset()
