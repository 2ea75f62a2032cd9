"""Disks that take nothing, and states that cannot be opened: said clearly, survived where possible, nothing lost.

A full disk is a limit on how large a file the daemon may write: the system refuses the write all the same.
"""

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import trio
from support.daemon import Daemon, open_daemon

from state.schema import APPLICATION_ID
from termald.scripted_model.model import ScriptedModel


@contextmanager
def full_disk(daemon: Daemon) -> Iterator[None]:
    """Let the daemon's files grow no more until the block ends."""
    assert daemon.process is not None
    pid, (soft, hard) = daemon.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
    # Smaller than everything that it has open, so that nothing can be written at an end.
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.real
async def test_a_full_disk_promises_nothing_and_loses_nothing(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@say begun\n@hold release\n@say whole"})
    kept = await daemon.prompt("s", "promised before")
    await daemon.model.wait_held("release")
    async with daemon.client() as client:
        with full_disk(daemon):
            body, key = {"input": "not promised"}, {"Idempotency-Key": "once"}
            refused = await client.post("/api/sessions/s/prompts", json=body, headers=key)
            assert refused.status_code == 503
            problem = refused.json()
            assert (problem["type"], problem["retryable"]) == ("urn:termald:problem:store-unavailable", True)
            assert str(daemon.state) in problem["detail"]
            # What Codex says meanwhile waits, and what was committed can be read.
            daemon.model.release("release")
            assert (await client.get("/api/health")).status_code == 200
            listed = (await client.get("/api/sessions/s/prompts")).json()["data"]
            assert [prompt["id"] for prompt in listed][-1:] == [kept]
        again = await client.post("/api/sessions/s/prompts", json=body, headers=key)
        assert again.status_code == 202, again.text
    ends = await daemon.wait_done("s", 3)
    assert [end["state"] for end in ends] == ["normal"] * 3
    events = await daemon.events()
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert sum("promised" in call.prompt for call in daemon.model.calls) == 2


@pytest.mark.real
async def test_a_full_disk_is_told_by_readiness_though_nobody_writes_and_is_over_by_itself(daemon: Daemon) -> None:
    await daemon.wait_ready()
    with full_disk(daemon):

        async def is_told() -> bool:
            answer = await daemon.call("GET", "/api/ready")
            store = answer.json()["parts"]["store"]
            return answer.status_code == 503 and store["state"] == "failed" and str(daemon.state) in store["reason"]

        await daemon.until(is_told, "the full disk to be told")
        assert (await daemon.call("GET", "/api/health")).status_code == 200
    await daemon.wait_ready()


@pytest.mark.real
async def test_a_daemon_killed_on_a_full_disk_has_what_it_promised(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@hold release\n@say whole"})
    await daemon.prompt("s", "promised before")
    await daemon.model.wait_held("release")
    with full_disk(daemon):
        daemon.model.release("release")
        assert (await daemon.call("POST", "/api/sessions/s/prompts", {"input": "no"})).status_code == 503
        assert daemon.process is not None
        daemon.process.kill()
        daemon.process.wait()
    await daemon.start()
    ends = await daemon.wait_done("s", 2)
    assert [end["state"] for end in ends] == ["normal"] * 2
    assert [call.prompt for call in daemon.model.calls][-1] == "promised before"


@pytest.mark.real
async def test_a_database_that_somebody_locks_is_waited_for_and_nothing_is_promised(daemon: Daemon) -> None:
    await daemon.create("s")
    with closing(sqlite3.connect(daemon.state / "termald.sqlite", isolation_level=None)) as other:
        other.execute("begin immediate")
        refused = await daemon.call("POST", "/api/sessions/s/prompts", {"input": "first"})
        assert refused.status_code == 503
        assert "locked" in refused.json()["detail"]
        other.execute("rollback")
    await daemon.prompt("s", "second")
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "normal"


async def refused_start(daemon: Daemon) -> str:
    """Start a daemon that cannot; return what it says."""
    with pytest.raises(AssertionError):
        await daemon.start()
    assert daemon.process is not None
    assert daemon.process.returncode == 1
    said = daemon.log.read_text()
    assert "Traceback" not in said
    return said


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table later (a)")
        database.execute(f"pragma application_id = {APPLICATION_ID}")
        database.execute("pragma user_version = 99")


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("create table notes (text)")


def torn(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"\x07" * 9_000)


def log_alone(path: Path) -> None:
    path.with_name(path.name + "-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\0" * 4_096)


@pytest.mark.parametrize(
    ("damage", "says"),
    [(newer, "version 99"), (foreign, "another program's"), (torn, "termald.sqlite"), (log_alone, "restore a copy")],
)
async def test_a_state_that_is_not_ours_or_not_whole_is_refused_and_let_alone(
    model: ScriptedModel, base_url: str, tmp_path: Path, damage: object, says: str
) -> None:
    async with open_daemon(tmp_path, model, base_url, start=False) as daemon:
        daemon.state.mkdir(mode=0o700)
        assert callable(damage)
        damage(daemon.state / "termald.sqlite")
        before = {path.name: path.read_bytes() for path in daemon.state.glob("termald.sqlite*")}
        said = await refused_start(daemon)
        assert says in said
        after = {path.name: path.read_bytes() for path in daemon.state.glob("termald.sqlite*")}
        assert {name: content for name, content in after.items() if name in before} == before
        assert daemon.app_servers() == []


async def test_the_states_folder_is_its_owners_alone_though_the_runtime_folder_is_in_it(
    model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    """As it is by default where the system has no folder for the latter."""
    runtime = tmp_path / "state" / "run"
    async with open_daemon(tmp_path, model, base_url, TERMALD_RUNTIME_DIR=str(runtime)) as daemon:
        assert [oct(folder.stat().st_mode & 0o777) for folder in (daemon.state, runtime)] == ["0o700", "0o700"]
        daemon.runtime_dir = runtime  # where its Codex is looked for at the end


async def test_a_folder_where_nothing_can_be_made_is_named(model: ScriptedModel, base_url: str, tmp_path: Path) -> None:
    nowhere = tmp_path / "a-file"
    nowhere.write_text("no folder")
    state = str(nowhere / "state")
    async with open_daemon(tmp_path, model, base_url, start=False, TERMALD_STATE_DIR=state) as daemon:
        assert state in await refused_start(daemon)


async def test_a_database_locked_at_the_start_is_named_and_opened_later(
    model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    async with open_daemon(tmp_path, model, base_url) as daemon:
        await daemon.end()
        with closing(sqlite3.connect(daemon.state / "termald.sqlite", isolation_level=None)) as other:
            other.execute("begin immediate")
            assert "locked" in await refused_start(daemon)
            other.execute("rollback")
        with trio.fail_after(30):
            await daemon.start()


@pytest.mark.real
async def test_what_is_complete_stands_for_its_deltas(daemon: Daemon) -> None:
    """Of a turn of the real Codex: its reasoning, its text, and a command's output."""
    script = "@reasoning I think about it.\n@deltas 50\n@shell printf 'one\\ntwo\\n'\n@say All done."
    await daemon.create("s", runtimeMode="full-access", prompt={"input": script})
    await daemon.wait_done("s")
    before = await daemon.events()
    items = await daemon.get("/api/sessions/s/items")
    assert sum(event["kind"] == "item/delta" for event in before) > 50
    await daemon.end()
    daemon.environment["TERMALD_STATE_FOLD_AFTER_MS"] = "0"
    await daemon.start()

    async def folded() -> bool:
        return all(event["kind"] != "item/delta" for event in await daemon.events())

    await daemon.until(folded, "the deltas to be folded")
    after = await daemon.events()
    whole = [event for event in before if event["kind"] != "item/delta"]
    assert after[: len(whole)] == whole
    assert await daemon.get("/api/sessions/s/items") == items
