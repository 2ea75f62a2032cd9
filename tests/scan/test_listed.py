"""Codex's own list as a source: each page once, to an end, and no thread of ours without its tag."""

from pathlib import Path

import msgspec
import trio
from scan.homemade import agent, rollout_path, thread_id, user, write_rollout
from scan.test_scanner import Listener

from discovery.listed import ListedPage, ListUnavailable
from discovery.scanner import ScanReport, scan_listed
from state.records import KnownThread, ThreadId


class Listed:
    """A Codex's list in the test's hand: pages by archive and cursor, and tags."""

    def __init__(self, **pages: ListedPage) -> None:
        self.pages = pages
        self.tags: dict[str, str | None] = {}
        self.asked: list[str] = []
        self.sizes: set[int] = set()

    async def page(self, home: Path, cursor: str | None, size: int, *, archived: bool) -> ListedPage:
        await trio.lowlevel.checkpoint()
        self.sizes.add(size)
        name = "archived" if archived else (cursor or "first")
        self.asked.append(name)
        if name not in self.pages and not archived:
            raise ListUnavailable("Codex is not running")
        return self.pages.get(name, ListedPage(threads=(), following=None))

    async def tag_of(self, thread: ThreadId) -> str | None:
        await trio.lowlevel.checkpoint()
        self.asked.append(f"tag of {thread}")
        if thread not in self.tags:
            raise ListUnavailable("no such thread")
        return self.tags[thread]


def known(home: Path, number: int, *, tag: str | None = "") -> KnownThread:
    path = rollout_path(home, number)
    write_rollout(path, thread_id(number), [user("hello"), agent("hi")])
    return KnownThread(
        thread_id=ThreadId(thread_id(number)),
        home=str(home),
        cls="discovered",
        reason="listed",
        title=f"one\ntwo of {number}",
        tag=tag,
        rollout_path=str(path),
        stamp=f"s{number}",
    )


def page(*threads: KnownThread, following: str | None = None) -> ListedPage:
    return ListedPage(threads=threads, following=following)


async def scanned(home: Path, listing: Listed, listener: Listener) -> ScanReport:
    return await scan_listed(
        home, listing, "it is junk", emit=listener.emit, known_stamps=listener.known_stamps, page_size=2
    )


async def test_all_pages_are_told_once_and_what_is_unchanged_not_again(tmp_path: Path) -> None:
    one, two, three = (known(tmp_path, number) for number in (1, 2, 3))
    archived = msgspec.structs.replace(three, archived=True)
    listing = Listed(first=page(one, following="c2"), c2=page(two), archived=page(archived))
    listener = Listener()
    report = await scanned(tmp_path, listing, listener)
    assert (report.listed, report.error, report.trouble, report.told) == (True, None, None, 3)
    assert report.flaw is not None and report.flaw.endswith("it is junk")
    assert listener.told == [one.thread_id, two.thread_id, three.thread_id]
    assert (listing.asked, listing.sizes) == (["first", "c2", "archived"], {2})
    assert {(told.message_count, told.title) for told in listener.threads.values()} == {(2, "one")}
    assert (await scanned(tmp_path, listing, listener)).unchanged == 3
    assert len(listener.told) == 3
    write_rollout(rollout_path(tmp_path, 2), thread_id(2), [user("hello"), agent("hi"), user("more")])
    await scanned(tmp_path, listing, listener)
    assert listener.told[3:] == [two.thread_id], "its rollout grew"


async def test_a_cursor_that_comes_again_ends_the_list(tmp_path: Path) -> None:
    """DISC-15: it would go on for ever. Also where it is not the page's own."""
    one, two = known(tmp_path, 1), known(tmp_path, 2)
    listing = Listed(first=page(one, following="c2"), c2=page(two, following="c3"), c3=page(following="c2"))
    listener = Listener()
    report = None
    with trio.move_on_after(10):
        report = await scanned(tmp_path, listing, listener)
    assert report is not None, "it goes on for ever"
    assert report.trouble == "read-failed"
    assert report.error == "it is junk; and Codex does not list its threads: Codex gave one cursor of its list twice"
    assert listener.told == [one.thread_id, two.thread_id], "what was told before stands"


async def test_only_what_may_be_ours_is_asked_for_its_tag(tmp_path: Path) -> None:
    theirs, ours, untagged = known(tmp_path, 1), known(tmp_path, 2, tag=None), known(tmp_path, 3, tag=None)
    listing = Listed(first=page(theirs, ours, untagged))
    listing.tags = {ours.thread_id: "termald:h:s:1", untagged.thread_id: None}
    listener = Listener()
    await scanned(tmp_path, listing, listener)
    assert [listener.threads[one.thread_id].tag for one in (theirs, ours, untagged)] == ["", "termald:h:s:1", None]
    assert [asked for asked in listing.asked if asked.startswith("tag")] == [
        f"tag of {ours.thread_id}",
        f"tag of {untagged.thread_id}",
    ]


async def test_without_its_tag_a_thread_that_may_be_ours_is_not_told(tmp_path: Path) -> None:
    """It would pass for somebody else's."""
    listener = Listener()
    report = await scanned(tmp_path, Listed(first=page(known(tmp_path, 1, tag=None))), listener)
    assert (report.trouble, listener.told) == ("read-failed", [])
    assert report.error == "it is junk; and Codex does not list its threads: no such thread"


async def test_a_codex_that_is_gone_is_a_line_in_the_report(tmp_path: Path) -> None:
    one, listener = known(tmp_path, 1), Listener()
    report = await scanned(tmp_path, Listed(first=page(one, following="c2")), listener)
    assert report.error is not None and report.error.endswith("Codex is not running")
    assert (report.told, listener.told) == (1, [one.thread_id])
