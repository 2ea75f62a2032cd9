"""All guards: each line that keeps a promise, how it is taken out, and the test that must notice.

`run.py` takes one out at a time. Whoever writes a guard adds it here with its test.
"""

from typing import Final

from guards.guard import Guard
from guards.of_browsers import OF_BROWSERS
from guards.of_clients import OF_CLIENTS
from guards.of_endings import OF_ENDINGS
from guards.of_sessions import OF_SESSIONS
from guards.of_the_ground import OF_THE_GROUND
from guards.of_the_log import OF_THE_LOG
from guards.of_turns import OF_TURNS

GUARDS: Final[tuple[Guard, ...]] = (
    *OF_SESSIONS,
    *OF_ENDINGS,
    *OF_TURNS,
    *OF_BROWSERS,
    *OF_CLIENTS,
    *OF_THE_GROUND,
    *OF_THE_LOG,
)
