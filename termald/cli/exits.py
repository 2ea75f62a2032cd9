"""The exit codes. Scripts live by them: a number is never given another meaning."""

from enum import IntEnum


class Exit(IntEnum):
    """What a command ends with."""

    OK = 0
    """Done."""
    FAILURE = 1
    """Refused or failed; the message says why."""
    USAGE = 2
    """The command line or the settings cannot be understood; nothing was done."""
    NOT_RUNNING = 3
    """The command needs a running daemon, and there is none."""
    TURN = 4
    """The prompt was taken, and its turn failed, was cut short or was cancelled."""
    LEFT = 130
    """Left with Ctrl-C; what was begun goes on."""
