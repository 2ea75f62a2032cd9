"""A setting that nothing reads is a promise that nothing keeps."""

import ast
from pathlib import Path

from termald.settings import FIELDS

TERMALD = Path(__file__).parents[2] / "termald"
# These name every setting, or only tell of them.
TELLERS = {TERMALD / "settings.py", TERMALD / "limits.py", TERMALD / "config" / "values.py"}


def test_every_setting_is_read_by_something() -> None:
    read = {
        node.attr
        for path in TERMALD.rglob("*.py")
        if path not in TELLERS and "protocol" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert {field.key for field in FIELDS.values() if field.name not in read} == set()
