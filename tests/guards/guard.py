"""What a guard is, and where the tests for guards live."""

from typing import Final, NamedTuple

CORE: Final = "termald/core/"
CATALOGUE: Final = "tests/core/test_catalogue_"
SETUP: Final = "tests/core/test_setup.py"
TURNS: Final = "tests/core/test_turns.py"
ENDINGS: Final = "tests/core/test_endings.py"
RUNTIME: Final = "tests/core/test_runtime.py"
REQUESTS: Final = "tests/core/test_requests.py"
FOUND: Final = "tests/core/test_model_found.py"
POLICY: Final = "tests/scan/test_policy.py"
WRITER: Final = "tests/writer/test_writer.py"


class Guard(NamedTuple):
    """A line that keeps a promise, and what is left where it is missing. `snippet` stands exactly once in the file;
    `test` must fail without it, by an assertion."""

    name: str
    promise: str
    file: str
    snippet: str
    replacement: str
    test: str
