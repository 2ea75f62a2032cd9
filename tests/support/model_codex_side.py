"""What Codex does by itself, what others do to its threads, and what becomes of words on their way."""

from functools import partial
from typing import Any, Final

from hypothesis.stateful import precondition, rule
from support.model_base import NOT_TOLD_AGAIN, Base, Option, name_of, which
from support.model_codex import Thread, Wire
from support.story import Sent

from termald.core import effects as fx
from termald.core import inputs as ins

THREADS_MAX: Final = 8
LOSABLE: Final = (ins.TurnStarted, ins.ItemStarted, ins.ItemDelta, ins.ItemCompleted, ins.RequestResolved)
"""Notices that are survived one by one. A lost end is seen by the status that follows it."""


class CodexSide(Base):
    """Answers, notices, turns, threads."""

    @precondition(lambda self: self.is_going_on)
    @rule(which=which)
    def all_goes_well(self, which: int) -> None:
        """The next natural thing, or all of them, or all of them and the turns to their ends."""
        if which % 6 == 0:
            self.flow(turns_end=which % 12 == 0)
        else:
            self.choose(self.natural(), which)

    @precondition(lambda self: self.is_going_on)
    @rule(which=which)
    def something_goes_on(self, which: int) -> None:
        self.choose(self.natural(), which)

    @precondition(lambda self: self.is_going_on)
    @rule(which=which)
    def something_more_goes_on(self, which: int) -> None:
        """Once more in the list of rules, so that most of the steps are taken by what is normal."""
        self.choose(self.natural(), which)

    @precondition(lambda self: self.unread or self.replies or self.notices or self.daemon.heard)
    @rule(which=which)
    def something_goes_wrong_on_the_wire(self, which: int) -> None:
        options: list[tuple[str, Option]] = []
        for sent in self.readable:
            if isinstance(sent, Sent):
                for refusal in _refusals(sent.op):
                    refused = partial(self.refuse, sent, refusal)
                    options.append((f"Codex refuses {name_of(sent)}: {refusal}", refused))
                if isinstance(sent.op, fx.OpenFresh | fx.OpenKnown | fx.StartTurn | fx.SteerTurn):
                    options.append((f"{name_of(sent)} could not be written", partial(self.unwritten, sent)))
        for reply in self.replies:
            name = name_of(reply)
            options.append((f"the answer is lost: {name}", partial(self.replies.remove, reply)))
            options.append((f"the answer is torn: {name}", partial(self.torn, reply)))
            options.append((f"the answer comes twice: {name}", partial(self.twice, reply)))
        if self.notices and isinstance(self.notices[0], LOSABLE):
            options.append((f"a notice is lost: {name_of(self.notices[0])}", self.notice_lost))
        again = [heard for heard in self.daemon.heard if not isinstance(heard, NOT_TOLD_AGAIN)]
        options += [(f"told again: {name_of(heard)}", partial(self.daemon.put, heard)) for heard in again]
        self.choose(options, which)

    @precondition(lambda self: any(wire.unread or wire.replies or wire.notices for wire in self.codex.gone))
    @rule(which=which)
    def an_ended_connection_has_an_echo(self, which: int) -> None:
        options: list[tuple[str, Option]] = []
        for wire in self.codex.gone[-2:]:
            late = [*wire.replies, *wire.notices][:6]
            options += [(f"an ended connection says {name_of(one)}", partial(self.late, one)) for one in late]
            if self.codex.runtime is not None:
                for sent in self.codex.readable(wire):
                    number, name = wire.unread.index(sent), name_of(sent)
                    options.append((f"Codex reads it after all: {name}", partial(self.codex.read, wire, number)))
                    options.append((f"Codex never reads it: {name}", partial(_forget, wire, number)))
        self.choose(options, which)

    @precondition(lambda self: self.running or self.idle)
    @rule(which=which)
    def a_turn_takes_a_turn(self, which: int) -> None:
        """Ends and troubles of turns, and turns that others begin."""
        options: list[tuple[str, Option]] = []
        for thread in self.running:
            assert thread.running is not None
            if thread.running.status != "active":
                continue
            options.append((f"the turn of {thread.id} is cut", partial(self.codex.end, thread, "interrupted")))
            options.append((f"the turn of {thread.id} fails", partial(self.codex.end, thread, "failed")))
            idle = partial(self.codex.end, thread, "completed", idle_first=True)
            options.append((f"the turn of {thread.id} completes, idle first", idle))
            options.append((f"the stream of {thread.id} breaks", partial(self.codex.fail_attempt, thread)))
            options += [(f"Codex asks on {thread.id}", partial(self.codex.ask, thread))] * 2
        for thread in self.threads:
            for rpc_id in thread.asks:
                resolved = partial(self.codex.resolve, thread, rpc_id)
                options.append((f"request {rpc_id} is resolved elsewhere", resolved))
        free = [thread for thread in self.idle if not thread.archived]
        options += [(f"somebody else begins a turn on {one.id}", partial(self.begins_a_turn, one)) for one in free]
        self.choose(options, which)

    @rule(which=which)
    def somebody_else_meddles(self, which: int) -> None:
        options: list[tuple[str, Option]] = []
        if self.codex.runtime is not None and len(self.threads) < THREADS_MAX:
            options.append(("somebody else opens a thread and talks", self.others_thread))
        for thread in self.threads:
            for what, happens in self.meddling(thread):
                options.append((f"{thread.id} is {what}", happens))
        options += [("a scan reads a page", self.scan_reads)] * 2
        for page in self.pages:
            names = [str(thread.thread_id) for thread in page.threads]
            options.append((f"a scan's page is decided: {names}", partial(self.daemon.put, page)))
        self.choose(options, which)

    # --- how it is done ---

    def refuse(self, sent: Sent, refusal: str) -> None:
        """Refuse a request."""
        assert self.codex.wire is not None
        self.codex.read(self.codex.wire, self.unread.index(sent), refusal)

    def unwritten(self, sent: Sent) -> None:
        """A request is not written at all."""
        self.unread.remove(sent)
        slug = "cwd-missing" if isinstance(sent.op, fx.OpenFresh | fx.OpenKnown) else "input-too-large"
        self.daemon.put(ins.CallUnwritten(at_ms=0, call=sent.call, slug=slug, message="it cannot be"))

    def torn(self, reply: ins.Reply) -> None:
        """An answer does not hold what it must."""
        self.replies.remove(reply)
        self.daemon.put(ins.ReplyMalformed(at_ms=0, link=reply.link, call=reply.call, reason="torn"))

    def twice(self, reply: ins.Reply) -> None:
        """An answer comes twice."""
        self.answer_arrives(reply)
        self.daemon.put(reply)

    def notice_lost(self) -> None:
        """A notice cannot be read."""
        lost = self.notices.pop(0)
        self.daemon.put(ins.BadFrame(at_ms=0, link=lost.link, reason="garbage", excerpt="{"))

    def late(self, late: ins.FromCodex) -> None:
        """I4, RUNTIME-04: whatever an ended connection says, nothing changes."""
        sessions, events = dict(self.daemon.store.sessions), len(self.daemon.store.events)
        self.daemon.put(late)
        if self.daemon.held is None and self.daemon.crash_after is None:
            assert self.daemon.store.sessions == sessions, "I4: an ended connection changed a session"
            assert len(self.daemon.store.events) == events, "I4: an ended connection was published"

    def begins_a_turn(self, thread: Thread) -> None:
        """Another front-end begins a turn on a thread that we have too."""
        self.codex.begin(thread)

    def others_thread(self) -> None:
        """Another front-end opens a thread and begins a turn on it."""
        thread = self.codex.mint("")
        self.codex.begin(thread)
        self.codex.activate(thread)
        self.codex.record(thread)

    def meddling(self, thread: Thread) -> list[tuple[str, Option]]:
        """Return what can be done to a thread from elsewhere."""
        options: list[tuple[str, Option]] = []
        if self.codex.runtime is None or thread.deleted:
            return options
        if thread.loaded and thread.running is None:
            options.append(("unloaded", partial(self.codex.unload, thread)))
        if not thread.archived:
            options.append(("archived", partial(self.codex.archive, thread)))
        else:
            options.append(("unarchived", partial(self.codex.unarchive, thread)))
        options.append(("deleted", partial(self.codex.delete, thread)))
        if not thread.loaded:
            options.append(("locked by another process", partial(setattr, thread, "locked", True)))
        if thread.locked:
            options.append(("free again", partial(setattr, thread, "locked", False)))
        return options

    def scan_reads(self) -> None:
        """A scan reads what is stored; it is decided later."""
        self.pages = [*self.pages[-1:], ins.ThreadsSeen(at_ms=0, home="/home", threads=self.codex.page())]


def _forget(wire: Wire, number: int) -> None:
    del wire.unread[number]


def _refusals(op: fx.Op) -> list[str]:
    """Return the refusals that Codex may give to this operation, beside those that follow from what it holds."""
    refusals: list[Any] = ["overloaded", "other"]
    if isinstance(op, fx.OpenFresh | fx.OpenKnown):
        refusals.append("provider_missing")
    if isinstance(op, fx.StartTurn | fx.SteerTurn):
        refusals.append("input_too_large")
    return refusals
