"""Logging: for people on a terminal, JSON lines otherwise; on standard error, without secrets, with the ids in force.

`set_up_logging` is called once, by the command that runs. Everywhere else: `log = structlog.get_logger()` and
`log.info("what happened", key=value)`, and around what belongs to one session `with bound(session=..., turn=...)`: the
ids then stand in each line, also in those of tasks that were started inside.
Return or raise, and log where it is handled, once. The text says what happened; what varies stands in the keys.
"""

import json
import logging
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO, cast

import msgspec
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from termald.redact import redact, redact_text
from termald.settings import LogSettings

# The order in which ids stand in a line, outermost first; what else is bound follows.
IDS: Final = ("session", "attachment", "turn", "request")

bound = structlog.contextvars.bound_contextvars
"""`with bound(session=id, turn=id):` puts the ids into every line of the block, tasks started in it included."""


def set_up_logging(settings: LogSettings, *, to: TextIO | None = None) -> None:
    """Send all logging of this process to `to` (standard error), the standard library's and Python's warnings included.

    Blocks on writing, as every line does. May be called again; the last call is in force for loggers made later.
    """
    stream = sys.stderr if to is None else to
    is_console = settings.format == "console" or (settings.format == "auto" and stream.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _plain_values,
            # A traceback as text, before secrets are looked for; never with the values of local variables.
            structlog.processors.format_exc_info,
            _without_secrets,
            *(_for_people(stream) if is_console else _for_machines()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(settings.level),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, _Sink(stream))),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_Forward()]
    # Libraries narrate at INFO (httpx: each request); what they warn of is wanted.
    root.setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def _for_people(stream: TextIO) -> list[Processor]:
    return [
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
        structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
        ),
    ]


def _for_machines() -> list[Processor]:
    return [
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        _in_order,
        structlog.processors.JSONRenderer(serializer=_to_json),
    ]


def _plain_values(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Turn records, paths and errors into plain values, so that no secret hides in something's `repr`."""
    return {key: value if key == "exc_info" else _plain(value) for key, value in event.items()}


def _plain(value: object) -> object:
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return msgspec.to_builtins(value, enc_hook=str, str_keys=True)


def _without_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return cast(EventDict, redact(event))


def _in_order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Time, level and text first, then the ids, then the rest as it was given."""
    first = ("at", "level", "event", *IDS)
    return {key: event[key] for key in first if key in event} | dict(event)


def _to_json(event: Mapping[str, Any], **_options: object) -> str:
    try:
        return msgspec.json.encode(event).decode()
    except UnicodeEncodeError:
        # A path or a frame that is not UTF-8: its lone surrogates can only be escaped.
        return json.dumps(event, ensure_ascii=True)


class _Sink:
    """The stream, for as long as somebody reads it: a log that nobody can take must not end the daemon.

    Lines that could not be written are counted, and told of with the next that can be.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = 0

    def write(self, text: str) -> None:
        try:
            if self._lost:
                # As JSON for both kinds of reader: a line of text would break the one that parses.
                self._stream.write(f'{{"level":"warning","event":"log lines were lost","lines":{self._lost}}}\n')
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._lost += 1
        else:
            self._lost = 0

    def flush(self) -> None:
        """Every line was flushed when it was written."""


class _Forward(logging.Handler):
    """Takes what libraries log in the standard way into our own lines."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = redact_text(record.getMessage())
            structlog.get_logger().log(record.levelno, text, logger=record.name, exc_info=record.exc_info)
        except Exception:
            # As the standard handlers do: a line that cannot be formatted is the library's mistake, not the caller's.
            self.handleError(record)
