"""What a home holds of threads that are asked for by id: nothing is told of what cannot be read."""

from pathlib import Path

import pytest
from scan.homemade import make_db, rollout_path, row, snapshot, thread_id, user, write_rollout

from discovery.homes import HomeUnreadable
from discovery.lookup import Held, look_up
from state.records import ThreadId

NOTHING = Held(stored=False, messages=0, reason="neither a row nor a rollout of it")


def held(home: Path, *numbers: int) -> list[Held]:
    threads = [ThreadId(thread_id(number)) for number in numbers]
    found = look_up(home, threads, None, lambda: None)
    return [found[thread] for thread in threads]


def test_a_thread_is_told_by_its_row_and_by_its_rollout_and_by_either_alone(tmp_path: Path) -> None:
    make_db(tmp_path / "state_5.sqlite", [row(1, tmp_path), row(2, tmp_path), row(3, tmp_path)], killed=True)
    for number, said in ((1, [user("hi")]), (2, []), (4, [user("a"), user("b")])):
        write_rollout(rollout_path(tmp_path, number), thread_id(number), said)
    before = snapshot(tmp_path)
    both, empty, row_only, file_only, neither = held(tmp_path, 1, 2, 3, 4, 5)
    assert (both.stored, both.messages) == (True, 1)
    assert (empty.stored, empty.messages) == (True, 0)
    assert (row_only.stored, row_only.messages) == (True, None), "what it held is not known"
    assert (file_only.stored, file_only.messages) == (True, 2), "a state DB that was lost hides nothing"
    assert neither == NOTHING
    assert snapshot(tmp_path) == before


def test_an_archived_and_a_compressed_rollout_are_found(tmp_path: Path) -> None:
    make_db(tmp_path / "state_5.sqlite", [])
    archived = tmp_path / "archived_sessions" / rollout_path(tmp_path, 1).name
    write_rollout(archived, thread_id(1), [user("hi")])
    packed = Path(f"{rollout_path(tmp_path, 2)}.zst")
    packed.parent.mkdir(parents=True)
    packed.write_bytes(b"(packed)")
    found = held(tmp_path, 1, 2)
    assert [(one.stored, one.messages) for one in found] == [(True, 1), (True, None)]


def test_a_home_that_codex_was_never_used_in_holds_nothing(tmp_path: Path) -> None:
    assert held(tmp_path, 1) == [NOTHING]
    assert held(tmp_path / "not-there", 1) == [NOTHING]


def test_what_cannot_be_read_is_no_evidence(tmp_path: Path) -> None:
    (tmp_path / "state_5.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(HomeUnreadable):
        held(tmp_path, 1)


def test_a_folder_of_rollouts_that_cannot_be_listed_is_no_evidence(tmp_path: Path) -> None:
    make_db(tmp_path / "state_5.sqlite", [])
    (tmp_path / "sessions").write_text("a file")
    with pytest.raises(HomeUnreadable):
        held(tmp_path, 1)
