"""Lists that come in pages."""

from typing import Any, TypeVar

from termald.client.link import Link
from termald.client.models import Page

T = TypeVar("T")
PAGE_ROWS = 500
"""The most that the daemon gives at once."""


async def all_pages(link: Link, path: str, page: type[Page[T]], *, limit: int | None = None, **query: Any) -> list[T]:
    """Return every row, or the first `limit`. Errors: `ClientError`."""
    rows: list[T] = []
    cursor: str | None = None
    while True:
        size = PAGE_ROWS if limit is None else min(PAGE_ROWS, limit - len(rows))
        got = await link.get(path, page, cursor=cursor, limit=size, **query)
        rows.extend(got.data)
        cursor = got.next_cursor
        if cursor is None or (limit is not None and len(rows) >= limit):
            return rows
