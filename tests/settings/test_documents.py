"""The documents lead somewhere, and every page can be found."""

import re
from pathlib import Path

import pytest

from termald.cli.exits import Exit

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")


def links_of(document: Path) -> list[str]:
    return [link for link in LINK.findall(document.read_text(encoding="utf-8")) if "://" not in link]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_to_a_file(document: Path) -> None:
    missing = [link for link in links_of(document) if not (document.parent / link).exists()]
    assert missing == []


def test_every_page_is_in_the_index() -> None:
    """A page that nobody finds is not documentation."""
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link).resolve() for link in links_of(index)}
    pages = {page.resolve() for page in (ROOT / "docs").rglob("*.md")} - {index.resolve()}
    assert pages - listed == set()


def test_the_readme_names_every_room() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rooms = [folder for folder in (ROOT / "termald").iterdir() if (folder / "__init__.py").exists()]
    assert [room.name for room in rooms if f"termald/{room.name}`" not in text] == []


def test_the_readme_tells_the_exit_codes_that_there_are() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    from_code = {str(int(code)) for code in Exit}
    assert set(re.findall(r"^\| (\d+) \|", text, re.MULTILINE)) == from_code
