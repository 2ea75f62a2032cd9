"""What all rules of the model stand on: a daemon, a fake Codex, the judges, and the telling of what happens.

A rule offers what can happen now and picks one by number, so that no step is wasted, and says what it picked: a failing
run reads as a story. The rules themselves are in `model_people`, `model_codex_side` and `model_world`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine
from support import model_checks
from support.model_codex import Codex, Thread
from support.model_daemon import Daemon
from support.story import Sent

from state.records import SessionId
from termald.core import inputs as ins
from termald.core.limits import Limits

T = TypeVar("T")
Option = Callable[[], None]

which = st.integers(0, 23)


def pick(those: Sequence[T], number: int) -> T:
    """Return one of those."""
    return those[number % len(those)]


class Base(RuleBasedStateMachine):
    """The world as it stands."""

    def __init__(self) -> None:
        super().__init__()
        self.codex = Codex()
        self.checks = model_checks.Checks(self.codex)
        self.daemon = Daemon(self.codex, Limits(setups_max=2, calls_max=4), self.checks.after_commit)
        self.pages: list[ins.ThreadsSeen] = []

    def choose(self, options: list[tuple[str, Option]], number: int) -> None:
        """Do one of these, and say which."""
        if options:
            what, happens = pick(options, number)
            note(f"    {what}")
            happens()

    # --- what there is ---

    @property
    def known(self) -> list[SessionId]:
        """The sessions that there are, killed ones too."""
        return list(self.daemon.store.sessions)

    @property
    def threads(self) -> list[Thread]:
        """Codex's threads."""
        return list(self.codex.threads.values())

    @property
    def running(self) -> list[Thread]:
        """Threads with a turn that runs or is about to."""
        return [thread for thread in self.threads if thread.running is not None]

    @property
    def idle(self) -> list[Thread]:
        """Loaded threads without one."""
        return [thread for thread in self.threads if thread.loaded and thread.running is None]

    @property
    def unread(self) -> list[Any]:
        """What was written and not read."""
        return self.codex.wire.unread if self.codex.wire is not None else []

    @property
    def readable(self) -> list[Any]:
        """What may be read next."""
        return self.codex.readable(self.codex.wire) if self.codex.wire is not None else []

    @property
    def replies(self) -> list[ins.Reply]:
        """Answers on their way."""
        return self.codex.wire.replies if self.codex.wire is not None else []

    @property
    def notices(self) -> list[ins.FromCodex]:
        """Notices on their way."""
        return self.codex.wire.notices if self.codex.wire is not None else []

    @property
    def is_going_on(self) -> bool:
        """Whether there is anything to come by itself."""
        return bool(self.codex.wire is None or self.unread or self.replies or self.notices or self.running)

    # --- what goes well ---

    def natural(self) -> list[tuple[str, Option]]:
        """Return what happens next if nothing goes wrong."""
        options: list[tuple[str, Option]] = []
        if self.codex.wire is None:
            options.append(("a link comes up", self.daemon.connect))
        options += [(f"Codex reads {name_of(one)}", partial(self.read, one)) for one in self.readable]
        options += [(f"the answer arrives: {name_of(one)}", partial(self.answer_arrives, one)) for one in self.replies]
        if self.notices:
            options.append((f"told: {name_of(self.notices[0])}", self.notice_arrives))
            options.append((f"told {len(self.notices)}, from {name_of(self.notices[0])} on", self.all_told))
        options += [(f"the turn of {one.id} goes on", partial(self.turn_goes_on, one)) for one in self.running]
        return options

    def read(self, one: Any) -> None:
        """Codex reads one of the written requests and carries it out."""
        assert self.codex.wire is not None
        self.codex.read(self.codex.wire, self.unread.index(one))

    def answer_arrives(self, reply: ins.Reply) -> None:
        """An answer arrives."""
        self.replies.remove(reply)
        self.hear(reply)

    def notice_arrives(self) -> None:
        """The next notice arrives."""
        self.hear(self.notices.pop(0))

    def all_told(self) -> None:
        """All notices arrive that were said by now."""
        for _ in range(len(self.notices)):
            if self.notices:
                self.notice_arrives()

    def hear(self, happened: ins.FromCodex) -> None:
        """Deliver something, and keep it to be told again."""
        self.daemon.heard = [*self.daemon.heard[-7:], happened]
        self.daemon.put(happened)

    def turn_goes_on(self, thread: Thread) -> None:
        """The next natural thing of a turn."""
        turn = thread.running
        assert turn is not None
        if turn.status == "pending":
            self.codex.activate(thread)
        elif turn.coming or not turn.items:
            self.codex.record(thread)
        elif turn.open_item is None and all(item.type == "userMessage" for item in turn.items):
            self.codex.speak(thread, whole=False)
        elif turn.open_item is not None:
            self.codex.speak(thread, whole=True)
        else:
            self.codex.end(thread, "completed")

    def flow(self, *, turns_end: bool = False) -> None:
        """Let everything go well until there is nothing left to say; turns end only if they are to."""
        while self.codex.wire is not None and self.daemon.held is None:
            if self.unread:
                self.read(self.unread[0])
            elif self.notices:
                self.notice_arrives()
            elif self.replies:
                self.answer_arrives(self.replies[0])
            else:
                going = [thread for thread in self.running if turns_end or _unrecorded(thread)]
                if not going:
                    return
                self.turn_goes_on(going[0])


def _unrecorded(thread: Thread) -> bool:
    turn = thread.running
    return turn is not None and bool(turn.status == "pending" or turn.coming or not turn.items)


NOT_TOLD_AGAIN: Final = (ins.RequestArrived, ins.ThreadStatusChanged, ins.ThreadGone)
"""What means something else when it is told later: a request sent again is Codex's doing (`resume`), and a status or an
unloading is true only when it is said."""


def name_of(what: Any) -> str:
    if isinstance(what, Sent):
        return f"{type(what.op).__name__} c{what.call}"
    told = [f"{name}={getattr(what, name)}" for name in ("call", "thread", "turn", "prompt") if hasattr(what, name)]
    return " ".join([type(what).__name__, *told])
