"""WIRE-12: what Codex says on standard error is drained, bounded, shown without harm, and never parsed."""

import errno
import os
from pathlib import Path

import trio
from trio.testing import MockClock, memory_stream_one_way_pair

from termald.codex.stderr import (
    LOG_BYTES_KEPT,
    LOG_BYTES_MAX,
    TAIL_BYTES,
    TAIL_LINES,
    StderrFile,
    StderrPipe,
    last_lines,
)


def test_last_lines_are_plain_and_few() -> None:
    said = "".join(f"line {number}\r\n" for number in range(100)) + "\x1b[31mred\x1b[0m\x07 \u202eend\n\n"
    lines = last_lines(said.encode() + b"\xff")
    assert len(lines) == TAIL_LINES
    assert lines[-2:] == ("red end", "\ufffd")
    assert lines[0] == f"line {100 - TAIL_LINES + 2}"


def test_line_without_an_end_is_cut() -> None:
    (line,) = last_lines(b"x" * 100_000)
    assert len(line) == 500


async def test_pipe_is_drained_and_only_its_end_is_kept() -> None:
    """A process that waits for us to read its standard error would stop for ever."""
    theirs, ours = memory_stream_one_way_pair()
    pipe = StderrPipe(ours)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipe.keep_bounded)
        for _ in range(100):
            await theirs.send_all(b"x" * 65_536)
        await theirs.send_all(b'\n{"method":"turn/completed"}\nlast words')
        await theirs.aclose()
    assert pipe.tail()[-2:] == ('{"method":"turn/completed"}', "last words")
    assert len(pipe._kept) <= TAIL_BYTES


def test_file_is_cut_while_the_process_goes_on_writing(tmp_path: Path) -> None:
    log = StderrFile(tmp_path / "stderr")
    process = log.open_new()
    try:
        os.write(process, b"x" * LOG_BYTES_MAX)
        log.cut()
        assert (tmp_path / "stderr").stat().st_size == LOG_BYTES_MAX  # at the limit nothing happens
        os.write(process, b"\nafter one more\n")
        log.cut()
        assert (tmp_path / "stderr").stat().st_size == LOG_BYTES_KEPT
        os.write(process, b"and the process goes on\n")
    finally:
        os.close(process)
    assert (tmp_path / "stderr").stat().st_size == LOG_BYTES_KEPT + 24
    assert log.tail()[-2:] == ("after one more", "and the process goes on")


async def test_file_that_cannot_be_cut_now_is_cut_at_a_later_look(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A full disk, or no descriptor left: no reason to end the process, and with it every turn."""

    class Refusing(StderrFile):
        looks = 0

        def cut(self) -> None:
            self.looks += 1
            if self.looks <= 3:
                raise OSError(errno.EMFILE, "Too many open files")
            super().cut()

    path = tmp_path / "stderr"
    path.write_bytes(b"x" * (LOG_BYTES_MAX + 1))
    file = Refusing(path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(file.keep_bounded)
        await trio.sleep(60.0)
        nursery.cancel_scope.cancel()
    assert file.looks > 3
    assert path.stat().st_size == LOG_BYTES_KEPT


def test_file_is_private_and_begins_empty(tmp_path: Path) -> None:
    """Codex may quote a prompt, or worse, on its standard error."""
    log = StderrFile(tmp_path / "stderr")
    assert log.tail() == ()
    log.cut()
    (tmp_path / "stderr").write_text("of an earlier process\n")
    os.close(log.open_new())
    assert log.tail() == ()
    (tmp_path / "stderr").unlink()
    os.close(log.open_new())
    assert (tmp_path / "stderr").stat().st_mode & 0o777 == 0o600
