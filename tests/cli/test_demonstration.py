"""The demonstration's own means: what it counts, what it reads from events, and that its house keeps to itself."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import trio

from termald.cli.demonstration.claims import Claim, Outcome, StoryEnded
from termald.cli.demonstration.evidence import app_servers, end_leftovers, stored_threads
from termald.cli.demonstration.house import House, open_house
from termald.cli.demonstration.view import closing_lines
from termald.cli.demonstration.watch import Progress, Watch
from termald.client.sse import ServerEvent


@contextmanager
def process(house: House, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that waits, with these words on its command line and the house's environment."""
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=house.environment()) as running:
        try:
            yield running
        finally:
            running.kill()


class TestEvidence:
    """Counting without asking the daemon."""

    def test_only_app_servers_of_this_home_are_counted(self, tmp_path: Path) -> None:
        here, elsewhere = House(tmp_path / "here"), House(tmp_path / "elsewhere")
        with process(here, "app-server") as one, process(here, "exec"), process(elsewhere, "app-server"):
            assert app_servers(here) == [one.pid]

    def test_two_would_be_seen_as_two(self, tmp_path: Path) -> None:
        """The claim "one process" is worth nothing if the count cannot be wrong."""
        house = House(tmp_path)
        with process(house, "app-server") as one, process(house, "app-server") as other:
            assert sorted(app_servers(house)) == sorted([one.pid, other.pid])

    def test_what_is_left_is_ended_and_nobody_elses(self, tmp_path: Path) -> None:
        here, elsewhere = House(tmp_path / "here"), House(tmp_path / "elsewhere")
        with process(here, "app-server") as ours, process(elsewhere, "app-server") as theirs:
            assert end_leftovers(here) == [ours.pid]
            assert ours.wait(timeout=10) != 0
            assert theirs.poll() is None

    def test_threads_are_read_from_the_newest_database(self, tmp_path: Path) -> None:
        house = House(tmp_path)
        assert stored_threads(house) == set()
        (house.codex_home / "sqlite").mkdir(parents=True)
        for name, thread in (("state_9.sqlite", "old"), ("sqlite/state_10.sqlite", "new")):
            with closing(sqlite3.connect(house.codex_home / name)) as database, database:
                database.execute("CREATE TABLE threads (id TEXT)")
                database.execute("INSERT INTO threads VALUES (?)", (thread,))
        assert stored_threads(house) == {"new"}


def event(kind: str, data: str) -> ServerEvent:
    return ServerEvent(id="", kind=kind, data=data)


class TestWatch:
    """What is read from the events."""

    def test_each_event_counts_for_its_own_session(self) -> None:
        one, other = Progress("one"), Progress("other")
        watch = Watch({"s1": one, "s2": other})
        for each in (
            event("session/ready", '{"seq":1,"sessionId":"s1","threadId":"t1","status":"ready"}'),
            event("turn/started", '{"seq":2,"sessionId":"s1"}'),
            event("item/delta", '{"seq":3,"sessionId":"s1","delta":"hel"}'),
            event("item/delta", '{"seq":4,"sessionId":"s1","delta":"lo"}'),
            event("item/completed", '{"seq":5,"sessionId":"s1","item":{"type":"agentMessage","text":"hello"}}'),
            event("item/completed", '{"seq":6,"sessionId":"s1","item":{"type":"userMessage"}}'),
            event("turn/done", '{"seq":7,"sessionId":"s1","state":"normal"}'),
            event("turn/done", '{"seq":8,"sessionId":"s2","state":"error"}'),
            event("runtime/ready", '{"seq":9,"sessionId":null}'),
        ):
            watch.note(each)
        assert (one.thread_id, one.events, one.deltas, one.tail) == ("t1", 7, 2, "hello")
        assert (one.answers, one.turns, one.doing) == (["hello"], ["normal"], "done: normal")
        assert (other.turns, other.answers) == (["error"], [])
        assert watch.seen[9] == "runtime/ready"

    def test_a_mark_of_the_stream_is_no_event(self) -> None:
        watch = Watch({})
        watch.note(event("synced", "{}"))
        assert watch.is_synced
        assert watch.seen == {}

    async def test_what_does_not_come_ends_the_story(self, autojump_clock: trio.testing.MockClock) -> None:
        with pytest.raises(StoryEnded, match="waited 20 s for: the end"):
            await Watch({}).wait_until(lambda: False, "the end", 20.0)


class TestHouse:
    """Nothing of the user's is read, and nothing stays."""

    def test_it_is_gone_afterwards_unless_it_is_kept(self) -> None:
        with open_house(keep=False) as house:
            assert house.root.stat().st_mode & 0o777 == 0o700
            (house.work / "file").touch()
        assert not house.root.exists()
        with open_house(keep=True) as kept:
            pass
        assert kept.root.exists()
        (kept.root / "config.toml").unlink()
        kept.work.rmdir()
        kept.root.rmdir()

    def test_neither_settings_nor_keys_of_the_user_come_in(self, tmp_path: Path) -> None:
        around = {
            "PATH": "/bin",
            "TERMALD_CODEX_TRANSPORT": "stdio",
            "CODEX_API_KEY": "k",
            "OPENAI_API_KEY": "k",
            "XDG_RUNTIME_DIR": "/run/user/1",
        }
        inside = House(tmp_path).environment(around)
        assert inside["PATH"] == "/bin"
        assert inside["CODEX_HOME"] == str(tmp_path / "codex")
        assert not {"TERMALD_CODEX_TRANSPORT", "CODEX_API_KEY", "OPENAI_API_KEY", "XDG_RUNTIME_DIR"} & inside.keys()

    def test_its_sockets_fit_the_limit_of_their_paths(self) -> None:
        with open_house(keep=False) as house:
            assert len(os.fsencode(house.runtime_dir / "termald.sock")) < 100


def outcome(*holds: bool, failure: str | None = None) -> Outcome:
    claims = tuple(Claim(claim=f"c{number}", holds=each, evidence="e") for number, each in enumerate(holds))
    return Outcome(claims=claims, sessions=8, seconds=1.0, failure=failure)


def test_one_claim_that_does_not_hold_fails_the_whole() -> None:
    assert outcome(True, True).holds
    assert not outcome(True, False).holds


def test_an_early_end_fails_it_too_whatever_was_proven_until_then() -> None:
    ended = outcome(True, failure="it broke")
    assert not ended.holds
    assert not outcome().holds
    assert any("it broke" in line for line in closing_lines(ended))
