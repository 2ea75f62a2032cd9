"""Tell what `make mutants` found: a line for each module, then every mutant that nothing noticed.

Reads what mutmut left in `mutants/`. One of those that survived is shown by `.venv-mutants/bin/mutmut show NAME`; what
is known of them stands in docs/mutants.md.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SURVIVED: Final = 0
NO_TESTS: Final = frozenset({5, 33})
NOT_RUN: Final = frozenset({None, 2, 34})


def verdict(exit_code: int | None) -> str:
    """Return what the exit status of a mutant's tests says of it. A test that never ends has noticed it too."""
    if exit_code in NOT_RUN:
        return "not run"
    if exit_code in NO_TESTS:
        return "untested"
    return "survived" if exit_code == SURVIVED else "noticed"


def found(root: Path) -> dict[str, dict[str, str]]:
    """Return, for each module, each mutant with its verdict."""
    return {
        meta.name.removesuffix(".py.meta"): {
            name: verdict(code) for name, code in json.loads(meta.read_bytes())["exit_code_by_key"].items()
        }
        for meta in sorted((root / "mutants" / "termald" / "core").glob("*.py.meta"))
    }


def main() -> int:
    """Print the table and the names."""
    modules = found(ROOT)
    columns = ("noticed", "survived", "untested", "not run")
    print(f"{'':14}" + "".join(f"{column:>10}" for column in columns))
    for module, verdicts in modules.items():
        counts = Counter(verdicts.values())
        print(f"{module:14}" + "".join(f"{counts[column]:10}" for column in columns))
    for verdicts in modules.values():
        for name, said in verdicts.items():
            if said in ("survived", "untested"):
                print(f"{said:9} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
