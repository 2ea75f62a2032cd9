"""The count is the number of messages that Codex itself would show, or unknown with a reason; never a part of it.

The legacy cases are shown to the real Codex too (`test_real_codex.py`).
"""

import os
from pathlib import Path

import pytest
from scan.homemade import agent, event, item, line, rollout_path, said_again, thread_id, user, write_rollout
from scan.legacy import LEGACY

from discovery import lines
from discovery.rollouts import Base, Meta, Tally, tally_rollout
from discovery.segments import Rollout, find_segment


def unchecked() -> None:
    return None


def no_base(rollout: Rollout, meta: Meta, base: Base) -> Rollout | None:
    raise AssertionError(f"{rollout.path} was not to go on from {base}")


def beside(rollout: Rollout, meta: Meta, base: Base) -> Rollout | None:
    return find_segment([rollout.path.parent], base.thread_id)


def on_disk(path: Path) -> Rollout:
    return Rollout(path=path, bytes=path.stat().st_size)


def legacy(folder: Path, events: list[bytes]) -> Tally:
    path = write_rollout(rollout_path(folder, 1), thread_id(1), events)
    return tally_rollout(on_disk(path), no_base, unchecked)


def paginated(folder: Path, events: list[bytes]) -> Tally:
    path = write_rollout(rollout_path(folder, 1), thread_id(1), events, history_mode="paginated")
    return tally_rollout(on_disk(path), no_base, unchecked)


@pytest.mark.parametrize("case", LEGACY)
def test_a_legacy_rollout_is_counted_as_codex_shows_it(tmp_path: Path, case: str) -> None:
    events, count = LEGACY[case]
    tally = legacy(tmp_path, events)
    assert (tally.messages, tally.reason) == (count, None)


def test_a_paginated_rollout_is_counted_by_its_items(tmp_path: Path) -> None:
    tally = paginated(
        tmp_path,
        [
            event("task_started", 1, turn_id="t1"),
            said_again("user", "<environment_context>"),
            item("UserMessage", "u1", text="what?", ordinal=4),
            item("CommandExecution", "c1", ordinal=5),
            item("AgentMessage", "m1", ordinal=6),
            item("AgentMessage", "m1", ordinal=7),
            item("AgentMessage", "m1", turn="t2", ordinal=8),
            item("NeverHeard", "n1", ordinal=9),
            user("of the other mode"),
            event("item_completed", 10, item="odd"),
            event("item_completed", 11, item={"type": 7}),
        ],
    )
    assert tally == Tally(messages=3, preview="what?")


def test_a_text_that_looks_like_an_item_is_a_text(tmp_path: Path) -> None:
    trap = item("AgentMessage", "m9").decode()
    assert paginated(tmp_path, [said_again("user", trap), item("UserMessage", "u", text=trap)]).messages == 1


def test_a_torn_last_line_is_not_counted_until_it_is_whole(tmp_path: Path) -> None:
    path = write_rollout(rollout_path(tmp_path, 1), thread_id(1), [item("UserMessage", "u")], history_mode="paginated")
    before, appended = path.read_bytes(), item("AgentMessage", "m")
    for cut, count in ((len(appended) // 2, 1), (len(appended), 2)):
        path.write_bytes(before + appended[:cut])
        assert tally_rollout(on_disk(path), no_base, unchecked).messages == count


# --- forks and reverts ---


def chain(folder: Path) -> dict[str, Path]:
    """A thread of two turns; a fork of it after the first; a revert of the fork, which is a segment beside it."""
    home = {"history_mode": "paginated"}
    second = item("UserMessage", "u2", turn="t2", ordinal=5)
    of_first = [item("UserMessage", "u1", text="root", ordinal=1), item("AgentMessage", "a1", ordinal=2), second]
    of_first.append(item("AgentMessage", "a2", turn="t2", ordinal=6))
    first = write_rollout(rollout_path(folder, 1), thread_id(1), of_first, **home)
    cut = first.read_bytes().index(second)
    base = {"thread_id": thread_id(1), "end_ordinal_exclusive": 5, "end_byte_offset": cut}
    of_fork = [item("UserMessage", "u3", turn="t3", ordinal=6), item("AgentMessage", "a3", turn="t3", ordinal=7)]
    of_fork.append(item("UserMessage", "u4", turn="t4", ordinal=8))
    origin = {"history_base": base, "forked_from_id": thread_id(1)}
    fork = write_rollout(rollout_path(folder, 2), thread_id(2), of_fork, **origin, **home)
    segment = fork.with_name(fork.stem + f"_{thread_id(77)}.jsonl")
    reverted = {"thread_id": thread_id(2), "end_ordinal_exclusive": 8}
    write_rollout(
        segment, thread_id(2), [item("UserMessage", "u5", turn="t5", ordinal=9)], history_base=reverted, **home
    )
    return {"first": first, "fork": fork, "segment": segment}


def test_a_fork_counts_what_it_goes_on_from_up_to_there(tmp_path: Path) -> None:
    files = chain(tmp_path)
    tallies = {name: tally_rollout(on_disk(path), beside, unchecked) for name, path in files.items()}
    assert {name: tally.messages for name, tally in tallies.items()} == {"first": 4, "fork": 5, "segment": 5}
    assert {tally.preview for tally in tallies.values()} == {"root"}


def test_an_offset_is_not_needed(tmp_path: Path) -> None:
    """It is that of the uncompressed file, as it was then; the ordinal says the same."""
    files = chain(tmp_path)
    text = files["fork"].read_bytes()
    begin = text.index(b',"end_byte_offset"')
    files["fork"].write_bytes(text[:begin] + text[text.index(b"}", begin) :])
    assert tally_rollout(on_disk(files["fork"]), beside, unchecked).messages == 5


def test_a_line_without_an_ordinal_is_cut_by_the_offset(tmp_path: Path) -> None:
    mode = {"history_mode": "paginated"}
    late = item("UserMessage", "late", turn="t2")
    first = write_rollout(rollout_path(tmp_path, 1), thread_id(1), [item("UserMessage", "u1"), late], **mode)
    base = {"thread_id": thread_id(1), "end_ordinal_exclusive": 9, "end_byte_offset": first.read_bytes().index(late)}
    fork = write_rollout(rollout_path(tmp_path, 2), thread_id(2), [], history_base=base, **mode)
    assert tally_rollout(on_disk(first), no_base, unchecked).messages == 2
    assert tally_rollout(on_disk(fork), beside, unchecked).messages == 1


def test_a_missing_beginning_makes_the_count_unknown(tmp_path: Path) -> None:
    """A part of the truth would be shown as all of it."""
    files = chain(tmp_path)
    files["first"].unlink()
    for name in ("fork", "segment"):
        tally = tally_rollout(on_disk(files[name]), beside, unchecked)
        assert (tally.messages, tally.reason) == (None, "the history that it goes on from is not there")


def test_a_history_that_goes_round_in_a_circle_is_given_up(tmp_path: Path) -> None:
    base = {"thread_id": thread_id(1), "end_ordinal_exclusive": 5}
    meta = {"history_mode": "paginated", "history_base": base}
    path = write_rollout(rollout_path(tmp_path, 1), thread_id(1), [], **meta)
    tally = tally_rollout(on_disk(path), beside, unchecked)
    assert (tally.messages, tally.reason) == (None, "its history goes on from 256 others")


def test_a_legacy_fork_holds_a_copy_and_a_second_meta(tmp_path: Path) -> None:
    copied = line("session_meta", {"id": thread_id(9), "history_mode": "paginated", "parent_thread_id": "p"})
    assert legacy(tmp_path, [copied, user("1"), agent("1")]) == Tally(messages=2, preview="1")


def test_a_review_names_its_parent_in_its_rollout_only(tmp_path: Path) -> None:
    path = write_rollout(rollout_path(tmp_path, 1), thread_id(1), [user("1")], parent_thread_id=thread_id(5))
    assert tally_rollout(on_disk(path), no_base, unchecked).parent == thread_id(5)


# --- what cannot be read ---


@pytest.mark.parametrize(
    "content", [b"", b"{torn", b"\x00" * 100, line("event_msg", {"type": "x"}), line("session_meta", {"id": 7})]
)
def test_what_is_no_rollout_has_no_count(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    tally = tally_rollout(on_disk(path), no_base, unchecked)
    assert tally == Tally(messages=None, reason="its first line is not a session_meta")


def test_a_compressed_rollout_has_no_count(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl.zst"
    path.write_bytes(b"(\xb5/\xfd")
    assert tally_rollout(on_disk(path), no_base, unchecked) == Tally(messages=None, reason="compressed")


def test_a_file_that_went_meanwhile_and_one_that_would_never_answer(tmp_path: Path) -> None:
    gone = Rollout(path=tmp_path / "gone.jsonl", bytes=5)
    assert tally_rollout(gone, no_base, unchecked).reason == "No such file or directory"
    os.mkfifo(tmp_path / "pipe.jsonl")
    pipe = Rollout(path=tmp_path / "pipe.jsonl", bytes=0)
    assert tally_rollout(pipe, no_base, unchecked).reason == "not a regular file"


# --- lines beyond all measure ---

HUGE = "x" * 9000


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of 16 MiB, made small enough to be passed in a test."""
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 8192)
    monkeypatch.setattr(lines, "HEAD_BYTES", 2048)
    monkeypatch.setattr(lines, "CHECK_BYTES", 1024)


@pytest.mark.usefixtures("short_lines")
def test_a_line_beyond_the_limit_is_counted_by_its_head(tmp_path: Path) -> None:
    tally = paginated(
        tmp_path,
        [
            item("UserMessage", "u1", text=HUGE, ordinal=3),
            item("AgentMessage", "a1", text=HUGE, ordinal=4),
            item("AgentMessage", "a1", text=HUGE, ordinal=5),
            item("CommandExecution", "c1", text=HUGE),
            said_again("user", HUGE),
            line("compacted", {"message": HUGE}),
            event("exec_command_end", aggregated_output='"item_completed"' + HUGE),
            item("AgentMessage", "a2", text="short again"),
        ],
    )
    assert (tally.messages, tally.reason) == (3, None)
    assert legacy(tmp_path, [user(HUGE), agent(HUGE), agent("short")]) == Tally(messages=3, preview="…")


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize(
    "unknown",
    [
        b'{"payload":{"text":"' + HUGE.encode() + b'","x":"item_completed"}}',
        b'{"timestamp":"t","type":"event_msg","payload":{"item":"item_completed","x":"' + HUGE.encode() + b'"}}',
        b'{"timestamp":"t","type":"event_msg","payload":{"type":"item_completed","x":"' + HUGE.encode() + b'"}}',
    ],
    ids=["no head", "no kind", "no item"],
)
def test_a_line_beyond_the_limit_of_unknown_shape_makes_the_count_unknown(tmp_path: Path, unknown: bytes) -> None:
    tally = paginated(tmp_path, [item("UserMessage", "u1"), b'{"x":"item_completed"}', unknown])
    assert tally.messages is None
    assert tally.reason is not None
    assert tally.reason.endswith("is too long to be read, and of unknown shape")


@pytest.mark.usefixtures("short_lines")
def test_a_long_read_can_be_ended_between_lines_and_within_one(tmp_path: Path) -> None:
    class Ended(Exception):  # noqa: N818 - stands for a cancellation
        pass

    def end() -> None:
        raise Ended

    for events in ([item("UserMessage", str(n)) for n in range(50)], [item("UserMessage", "u", text=HUGE)]):
        path = write_rollout(rollout_path(tmp_path, 1), thread_id(1), events, history_mode="paginated")
        with pytest.raises(Ended):
            tally_rollout(on_disk(path), no_base, end)
