"""The architecture page names code; each name must still be there, or the page misleads."""

import re
from pathlib import Path

import pytest

from termald.settings import FIELDS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
ROOMS = ("termald", "state", "discovery")
SOURCES = "\n".join(path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*.py"))
# `module.function`, `Class.method`, `ClassName`, `folder/`, `file.py`, `codex/method`
NAMES = sorted(set(re.findall(r"`([A-Za-z_/]+(?:\.[A-Za-z_]+)?/?)`", PAGE.read_text())))


def _exists(name: str) -> bool:
    if "/" in name or name.endswith(".py"):
        paths = [ROOT / room for room in ROOMS] + [path for room in ROOMS for path in (ROOT / room).rglob("*")]
        quoted = f'"{name}"' in SOURCES or f"`{name}`" in SOURCES
        return quoted or any(f"/{path.relative_to(ROOT)}".endswith(f"/{name.rstrip('/')}") for path in paths)
    head, _, tail = name.partition(".")
    if not tail:
        return re.search(rf"\b{head}\b", SOURCES) is not None
    if head[0].isupper():
        bodies = re.finditer(rf"^class {head}\b.*?(?=^class |\Z)", SOURCES, re.MULTILINE | re.DOTALL)
        return any(re.search(rf"def {tail}\b", body.group()) for body in bodies)
    modules = [path for room in ROOMS for path in (ROOT / room).rglob(f"{head}.py")]
    defines = any(re.search(rf"^(?:async )?def {tail}\b", path.read_text(), re.MULTILINE) for path in modules)
    return defines or (ROOT / head / f"{tail}.py").exists() or name in FIELDS


@pytest.mark.parametrize("name", NAMES)
def test_a_name_on_the_page_is_a_name_in_the_code(name: str) -> None:
    assert _exists(name), f"{name} is named in docs/architecture.md and not found"


def test_the_check_would_notice_a_name_that_is_gone() -> None:
    assert not _exists("Work.forget_everything")
    assert not _exists("setup.improvise")
    assert not _exists("termald/nowhere.py")
