"""What a log line holds, and that it holds no secret; that the log of a reader who left ends nothing."""

import io
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from termald.logs import bound, set_up_logging
from termald.redact import HIDDEN, is_secret_name, redact, redact_text
from termald.settings import LogSettings

log = structlog.get_logger()
KEY = "sk-proj-aB3dE5fG7hJ9kL1m"


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Logging is the process's; other tests must find it untouched."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.captureWarnings(capture=False)
    root.handlers = handlers
    root.setLevel(level)


def lines_of(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def logging_to_json(level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    set_up_logging(LogSettings(level=level, format="json"), to=stream)  # type: ignore[arg-type]  # one of the words
    return stream


def test_a_line_for_machines_is_one_json_object_with_time_level_text_and_keys() -> None:
    stream = logging_to_json()
    log.warning("a thread was\nignored", thread="t1", folder=Path("/srv"), error=ValueError("no"), record=LogSettings())
    (line,) = lines_of(stream)
    assert list(line)[:3] == ["at", "level", "event"]
    assert line | {"at": ""} == {
        "at": "",
        "level": "warning",
        "event": "a thread was\nignored",
        "thread": "t1",
        "folder": "/srv",
        "error": "ValueError: no",
        "record": {"level": "info", "format": "auto"},
    }


def test_auto_is_json_where_there_is_no_terminal_and_text_where_there_is_one() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    pipe, terminal = io.StringIO(), Terminal()
    for stream in (pipe, terminal):
        set_up_logging(LogSettings(format="auto"), to=stream)
        log.info("hello", session="s1")
    assert lines_of(pipe)[0]["event"] == "hello"
    assert "hello" in terminal.getvalue()
    assert "\x1b[" in terminal.getvalue()


def test_what_is_below_the_level_is_not_said() -> None:
    stream = logging_to_json("warning")
    log.info("quiet")
    log.warning("loud")
    assert [line["event"] for line in lines_of(stream)] == ["loud"]


async def test_bound_ids_stand_first_and_reach_tasks_started_inside_but_none_outside() -> None:
    stream = logging_to_json()

    async def task() -> None:
        log.info("from the task", other=1)

    async with trio.open_nursery() as nursery:
        with bound(turn="t9", session="s1"):
            nursery.start_soon(task)
        log.info("outside")
    by_text = {line["event"]: line for line in lines_of(stream)}
    assert list(by_text["from the task"]) == ["at", "level", "event", "session", "turn", "other"]
    assert "session" not in by_text["outside"]


@pytest.mark.parametrize("kind", ["console", "json"])
def test_no_secret_passes_wherever_it_hides(kind: str) -> None:
    """A log is the first thing that people paste into an issue."""
    stream = io.StringIO()
    set_up_logging(LogSettings(format=kind), to=stream)  # type: ignore[arg-type]  # one of the words
    secret = "hunter2hunter2"
    log.info(f"key {KEY}", authorization=f"Basic {secret}", env={"OPENAI_API_KEY": secret}, argv=["--token", KEY])
    log.info("frame", frame=f'{{"accessToken": "{secret}", "n": 1}}', header=f"Authorization: Bearer {secret}")

    def refuse() -> None:
        raise RuntimeError(f"refused with token={secret}")

    try:
        refuse()
    except RuntimeError as error:
        log.exception("failed", error=error)
    logging.getLogger("library").warning("calling https://user:%s@host", secret)
    assert secret not in stream.getvalue()
    assert KEY not in stream.getvalue()
    assert HIDDEN in stream.getvalue()
    assert "RuntimeError: refused" in stream.getvalue()


def test_libraries_speak_through_our_lines_and_only_when_it_matters() -> None:
    stream = logging_to_json("debug")
    logging.getLogger("httpx").info("HTTP Request: GET")
    logging.getLogger("httpx").warning("%d retries", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old name", UserWarning, stacklevel=1)
    first, second = lines_of(stream)
    assert (first["event"], first["logger"], first["level"]) == ("3 retries", "httpx", "warning")
    assert "old name" in str(second["event"])


def test_text_that_is_not_utf8_still_makes_a_line() -> None:
    stream = logging_to_json()
    log.info("found", path="/srv/\udcff")
    assert lines_of(stream)[0]["path"] == "/srv/\udcff"


def test_a_reader_that_left_costs_lines_and_is_told_how_many() -> None:
    """`termald serve | head` must not take the sessions down."""

    class Pipe(io.StringIO):
        broken = True

        def write(self, text: str) -> int:
            if self.broken:
                raise BrokenPipeError
            return super().write(text)

    stream = Pipe()
    set_up_logging(LogSettings(format="json"), to=stream)
    log.info("one")
    log.info("two")
    stream.broken = False
    log.info("three")
    lost, line = lines_of(stream)
    assert (lost["event"], lost["lines"]) == ("log lines were lost", 2)
    assert line["event"] == "three"


@pytest.mark.parametrize("name", ["token", "accessToken", "OPENAI_API_KEY", "X-Api-Key", "Authorization", "set-cookie"])
def test_names_that_tell_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["tokens", "token_usage", "tokenUsage", "totalTokens", "key", "threadId", 7])
def test_names_that_do_not(name: object) -> None:
    assert not is_secret_name(name)


def test_counted_tokens_stay() -> None:
    usage = {"input_tokens": 12, "token": 3, "tokens": {"input": 1}, "secret": None}
    assert redact(usage) == usage


def test_what_contains_itself_ends() -> None:
    loop: dict[str, object] = {}
    loop["loop"] = loop
    assert HIDDEN in str(redact(loop))


@settings(deadline=None)
@given(
    st.text(max_size=60),
    st.sampled_from([KEY, f"Bearer {KEY}", "ghp_" + "a1" * 12, f"password={KEY}"]),
    st.text(max_size=60),
)
def test_a_secret_is_found_in_any_surroundings_and_once_is_enough(before: str, secret: str, after: str) -> None:
    shown = redact_text(f"{before} {secret} {after}")
    assert secret not in shown
    assert KEY not in shown
    assert redact_text(shown) == shown
