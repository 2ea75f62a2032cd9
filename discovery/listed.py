"""Codex's own list of its threads, page by page, for a home whose state DB cannot be read.

The second source, never the first: it needs the process, hides threads without a preview and attached ones, and tells
no tag (measured on codex 0.163 and 0.171), so that each thread that may be ours is asked for by itself. What Codex says
comes through `Listing`; its words are the daemon's to translate.
"""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from discovery.homes import HomeUnreadable
from state.records import KnownThread, ThreadId


class ListUnavailable(Exception):  # noqa: N818 - the state of a process, not a mistake in the program
    """Codex does not run, does not answer, or answers with no list; why is its text."""


class ListedPage(msgspec.Struct, frozen=True, kw_only=True):
    """Threads that Codex listed, newest first; `following`: its cursor to the next page, None at the end.

    Whose `tag` is None may be ours; Codex is to be asked for it.
    """

    threads: tuple[KnownThread, ...]
    following: str | None


class Listing(Protocol):
    """Codex, asked. Errors of both: `ListUnavailable`."""

    async def page(self, home: Path, cursor: str | None, size: int, *, archived: bool) -> ListedPage:
        """Return a page of the threads that are, or are not, archived."""

    async def tag_of(self, thread: ThreadId) -> str | None:
        """Return the tag that the thread bears, "" for none; None where this Codex keeps no tags of ours."""


async def listed_pages(home: Path, listing: Listing, size: int) -> AsyncGenerator[tuple[KnownThread, ...], None]:
    """Yield each page once: what is in use, then what is archived. Errors: `HomeUnreadable`, also where Codex gives a
    cursor a second time, which would go on for ever (DISC-15)."""
    for archived in (False, True):
        cursor: str | None = None
        given: set[str] = set()
        while True:
            try:
                page = await listing.page(home, cursor, size, archived=archived)
            except ListUnavailable as error:
                raise HomeUnreadable(home, "read-failed", str(error)) from error
            yield page.threads
            cursor = page.following
            if cursor is None:
                break
            if cursor in given:
                raise HomeUnreadable(home, "read-failed", "Codex gave one cursor of its list twice")
            given.add(cursor)


async def with_tags(home: Path, listing: Listing, threads: Sequence[KnownThread]) -> tuple[KnownThread, ...]:
    """Return the threads, those that may be ours with the tag that they bear. Errors: `HomeUnreadable`: without its tag
    a thread that we minted would pass for somebody else's."""
    told = []
    for thread in threads:
        tagged = thread
        if thread.tag is None:
            try:
                tagged = msgspec.structs.replace(thread, tag=await listing.tag_of(thread.thread_id))
            except ListUnavailable as error:
                raise HomeUnreadable(home, "read-failed", str(error)) from error
        told.append(tagged)
    return tuple(told)
