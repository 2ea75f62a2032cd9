"""`termald discover` waits for the end of the scan, however long it takes, and shows how far it is."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.exceptions import Exit as Exited

from termald.cli import threads
from termald.cli.invocation import Invocation
from termald.client.http import Client

IDLE: Any = {"status": "idle", "finishedAt": "t0", "reason": None, "report": None}
DONE: Any = {"status": "idle", "finishedAt": "t9", "reason": None, "report": []}


def scanning(report: Any) -> Any:
    return {"status": "scanning", "finishedAt": None, "reason": None, "report": report}


def at(seen: int, expected: int | None = None) -> Any:
    return scanning([{"home": "/h", "seen": seen, "told": 7, "expected": expected}])


class Daemon:
    """Its answers in order, the last one for ever; a clock that each look advances."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.now = 0.0

    def get(self, path: str, kind: Any) -> Any:
        assert path == "/api/discovery"
        self.now += 20.0
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Given(Invocation):
    """What the command was called with: nothing that matters here."""

    def __init__(self) -> None:
        pass

    def fail(self, status: int, slug: str, sentence: str) -> Any:
        raise Exited(status)


def scanned(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = SimpleNamespace(monotonic=lambda: daemon.now, sleep=lambda _: None)
    monkeypatch.setattr(threads, "time", clock)
    return threads._scanned(Given(), cast(Client, daemon), IDLE)


def test_a_scan_that_gets_on_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = Daemon(IDLE, scanning(None), *(at(seen) for seen in range(200, 4_000, 200)), DONE)
    assert scanned(daemon, monkeypatch) == DONE
    assert daemon.now > 2 * threads.SCAN_SILENCE_S


def test_a_scan_that_gets_no_further_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = Daemon(at(200))
    with pytest.raises(Exited):
        scanned(daemon, monkeypatch)
    assert daemon.now < 10 * threads.SCAN_SILENCE_S


def test_a_bar_on_a_terminal_and_nothing_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = (at(1_200, 10_000), DONE)
    assert scanned(Daemon(*answers), monkeypatch) == DONE
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    assert scanned(Daemon(*answers), monkeypatch) == DONE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "/h" in shown.err and "1,200 threads, 7 new or changed" in shown.err
