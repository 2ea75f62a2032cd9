"""Each row of the benchmark runs, as small as can be, and says what a row says. What it found is judged by nobody."""

import msgspec
import pytest
import trio

from bench.__main__ import ROWS
from bench.figures import Figure, Given, Report, Row, Spread, Verdict, markdown, verdict

QUICK = Given(size="quick", rounds=1)
DEADLINE_S = 120


@pytest.mark.real
@pytest.mark.parametrize("name", ROWS)
async def test_a_row_runs(name: str) -> None:
    with trio.fail_after(DEADLINE_S):
        row = await ROWS[name](QUICK)
    assert row.id == name
    assert row.figures
    for figure in row.figures:
        assert figure.spread.low <= figure.spread.median <= figure.spread.high
    assert all(one.met is None for one in row.verdicts), "a quick run proves nothing"
    assert msgspec.json.decode(msgspec.json.encode(row), type=Row) == row


def test_a_missed_aim_stands_out() -> None:
    full = Given(size="full", rounds=3)
    verdicts = [verdict("a ÷ b", 1.2, "<=", 1.1, full), verdict("b ÷ a", 0.9, ">=", 0.8, full)]
    assert verdicts == [Verdict("a ÷ b", 1.2, "<=", 1.1, False), Verdict("b ÷ a", 0.9, ">=", 0.8, True)]
    figure = Figure("a", "s", Spread.of([3, 1, 2]))
    row = Row(id="x", measured="m", beside="n", figures=[figure], verdicts=verdicts, notes=["why"])
    page = markdown(Report(at="now", size="full", machine={}, versions={}, rows=[row]))
    assert "| x | m | n | a: 2 s (1 to 3) | a ÷ b: 1.2 <= 1.1<br>b ÷ a: 0.9 >= 0.8 | **no**<br>yes |" in page
    assert "- x (0 s): why" in page
