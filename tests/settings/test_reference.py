"""`docs/settings.md` says what the code does."""

from pathlib import Path

from termald.cli.reference import settings_page
from termald.settings import FIELDS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_page_is_what_the_settings_say() -> None:
    """Renew it with `termald config reference > docs/settings.md`."""
    assert PAGE.read_text(encoding="utf-8") == settings_page()


def test_every_setting_says_what_it_is_for_and_every_number_its_unit_and_range() -> None:
    for field in FIELDS.values():
        assert field.about.endswith("."), field.key
        if isinstance(field.default, int) and not isinstance(field.default, bool):
            assert field.unit, field.key
            assert field.low is not None, field.key
            assert field.high is not None, field.key
            assert field.low <= field.default <= field.high, field.key
