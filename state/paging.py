"""Lists in pages: each goes on behind the last row that was shown, found by the columns that order the list.

No offset: a row that comes or goes in front of the reader would then shift all that follow, and one would be shown
twice or never.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import apsw

from state.rows import Table
from state.views import C, Page

T = TypeVar("T")


class Listing(Generic[T, C]):
    """A list: what a row is read as, and the cursor whose fields are the columns that order it."""

    def __init__(
        self, table: Table[Any], cursor: type[C], read: Callable[[Sequence[Any]], T], select: str | None = None
    ) -> None:
        self._select = table.select if select is None else select
        self._read = read
        self._cursor = cursor
        self._columns = cursor.__struct_fields__
        self._at = [table.columns.index(column) for column in self._columns]
        self._ordered = [f"{table.name}.{column}" for column in self._columns]

    def statement(self, conditions: Sequence[str], *, descending: bool, going_on: bool) -> str:
        """Return the page's SQL. Bindings: those of the conditions, the cursor's if it goes on, the limit."""
        columns, way, past = ", ".join(self._ordered), " DESC" if descending else "", "<" if descending else ">"
        behind = [f"({columns}) {past} ({', '.join('?' * len(self._ordered))})"] if going_on else []
        where = " AND ".join([*conditions, *behind])
        order = ", ".join(column + way for column in self._ordered)
        return f"{self._select}{' WHERE ' if where else ''}{where} ORDER BY {order} LIMIT ?"

    def page(
        self,
        db: apsw.Connection,
        conditions: Mapping[str, Any],
        after: C | None,
        limit: int,
        *,
        always: Sequence[str] = (),
        descending: bool = False,
    ) -> Page[T, C]:
        """Return up to `limit` rows that meet `always` and each condition whose value is not None."""
        asked = {condition: value for condition, value in conditions.items() if value is not None}
        sql = self.statement([*asked, *always], descending=descending, going_on=after is not None)
        behind = [] if after is None else [getattr(after, column) for column in self._columns]
        rows = db.execute(sql, [*asked.values(), *behind, limit + 1]).fetchall()
        more = len(rows) > limit
        return Page(
            rows=tuple(self._read(row) for row in rows[:limit]),
            next=self._cursor(*(rows[limit - 1][at] for at in self._at)) if more else None,
        )
