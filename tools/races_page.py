"""Write docs/races.md: which entry of the catalogue of races is tested where, read from the tests themselves.

    python -m tools.races_page

An entry is named in a test's name (`test_setup_12_...`) or in what its file says of it (`SETUP-12`).
"""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "races.md"

FAMILIES: Final = {
    "SETUP": (29, "claiming, parking, binding"),
    "TURN": (25, "delivery, modes, endings"),
    "EVENT": (19, "routing, lateness, the log"),
    "STOP": (18, "interrupt, stop, close, kill"),
    "RUNTIME": (17, "the process and the connection"),
    "BOOT": (17, "crash, adoption, recovery"),
    "DISC": (16, "discovery and the ignore set"),
    "REQ": (13, "requests of Codex's"),
    "WIRE": (16, "framing, payload, flow"),
}

UNNAMED: Final = {
    "WIRE-16": "writer/test_writer.py::test_an_input_that_cannot_be_handled_is_set_aside_alone",
}
"""Entries whose test bears another name."""

NOT_YET: Final[dict[str, str]] = {}
"""Entries without a test, and what it needs."""

_IN_A_NAME: Final = re.compile(rf"def test_\w*?(({'|'.join(FAMILIES).lower()})((?:_\d\d)+))(?=_|\()")
_IN_TEXT: Final = re.compile(rf"\b({'|'.join(FAMILIES)})-(\d\d)\b")

HEAD: Final = """# Races, and where each is tested

The catalogue of the orders of events that must be survived, by entry; made by `python -m tools.races_page`.
What an entry promises stands in the test's name and docstring.
Any order of them together is tried by the model and the simulation ([testing](testing.md)), which are not listed here.
"""


def tested() -> dict[str, list[str]]:
    """Return for each entry the test files that name it, as paths below `tests/`."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        names = [(m[2].upper(), number) for m in _IN_A_NAME.finditer(text) for number in re.findall(r"\d\d", m[3])]
        for family, number in names + _IN_TEXT.findall(text):
            found.setdefault(f"{family}-{number}", set()).add(str(path.relative_to(ROOT / "tests")))
    return {entry: sorted(files) for entry, files in found.items()}


def entries() -> list[str]:
    """Return every entry of the catalogue."""
    return [f"{family}-{number:02}" for family, (last, _) in FAMILIES.items() for number in range(1, last + 1)]


def page() -> str:
    """Return the page."""
    where = tested()
    lines = [HEAD]
    for family, (last, about) in FAMILIES.items():
        lines += [f"## {family}: {about}\n", "| entry | tested in |", "| --- | --- |"]
        for number in range(1, last + 1):
            entry = f"{family}-{number:02}"
            lines.append(f"| {entry} | {_where(entry, where)} |")
        lines.append("")
    return "\n".join(lines)


def _where(entry: str, where: dict[str, list[str]]) -> str:
    if entry in where:
        return ", ".join(f"`{file}`" for file in where[entry])
    if entry in UNNAMED:
        file, _, test = UNNAMED[entry].partition("::")
        return f"`{file}`: `{test}`"
    return f"not yet: {NOT_YET[entry]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
