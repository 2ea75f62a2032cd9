"""The list of guards is kept true: every snippet is still there, every test too, and some are taken out for real.

`make guards` takes out all of them.
"""

from pathlib import Path

import pytest
from guards.guard import Guard
from guards.mutations import GUARDS
from guards.run import ROOT, NotAppliedError, applied, copy_of_the_checkout, take_out


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_stands_where_the_list_says_and_has_its_test(guard: Guard) -> None:
    compile(applied(ROOT, guard), guard.file, "exec")
    file, _, function = guard.test.partition("::")
    assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8")


def test_no_two_guards_bear_one_name() -> None:
    assert len({guard.name for guard in GUARDS}) == len(GUARDS)


def test_a_snippet_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NotAppliedError, match="0 times"):
        applied(ROOT, GUARDS[0]._replace(snippet="nowhere"))


def test_without_its_guard_a_promise_is_broken_and_with_it_kept() -> None:
    """Some of them, for their test's own sake: that what fails is the guard that is missing, and nothing else."""
    chosen = [guard for guard in GUARDS if guard.promise in ("I1 SETUP-03", "I12 TURN-20", "I6 REQ-05")]
    assert len(chosen) == 3
    with copy_of_the_checkout() as copy:
        for guard in chosen:
            verdict, said = take_out(copy, guard)
            assert verdict == "noticed", f"{guard.name}: {said}"
        harmless = chosen[0]._replace(replacement=chosen[0].snippet + "\n")
        assert take_out(copy, harmless) == ("missed", "its test passes without it")
        assert (copy / chosen[0].file).read_text() == (Path(ROOT) / chosen[0].file).read_text()
