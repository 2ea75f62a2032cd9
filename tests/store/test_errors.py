"""SQLite's errors get our names once; whoever catches them decides by class, not by text."""

import apsw
import pytest

from state.errors import (
    StateForeign,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreIOError,
    StoreReadOnly,
    StoreRefused,
    translated,
)


@pytest.mark.parametrize(
    ("error", "meaning", "retryable"),
    [
        (apsw.FullError("x"), StoreFull, True),
        (apsw.IOError("x"), StoreIOError, True),
        (apsw.CantOpenError("x"), StoreIOError, True),
        (apsw.BusyError("x"), StoreBusy, True),
        (apsw.LockedError("x"), StoreBusy, True),
        (apsw.ReadOnlyError("x"), StoreReadOnly, True),
        (apsw.CorruptError("x"), StoreCorrupt, False),
        (apsw.NotADBError("x"), StateForeign, False),
        (apsw.ConstraintError("x"), StoreRefused, False),
        (apsw.SQLError("x"), StoreError, False),
    ],
)
def test_an_error_gets_its_meaning_and_keeps_its_cause(
    error: Exception, meaning: type[StoreError], retryable: bool
) -> None:
    with pytest.raises(StoreError, match=r"^writing: x$") as caught, translated("writing"):
        raise error
    assert type(caught.value) is meaning
    assert caught.value.retryable is retryable
    assert caught.value.__cause__ is error


def test_every_error_has_a_slug_of_its_own() -> None:
    family: list[type[StoreError]] = [StoreError, *StoreError.__subclasses__()]
    assert len({one.slug for one in family}) == len(family)


def test_what_is_not_the_databases_passes() -> None:
    with pytest.raises(ZeroDivisionError), translated("writing"):
        _ = 1 / 0
