"""The model: people, Codex, time, the disk and the processes, in any order, on the code that runs in production.

After every batch, and when all is quiet at the end, `model_checks` judges by I1 to I12.
"""

from functools import partial
from typing import Any, Final

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from support import model_checks
from support.model_base import Option, which
from support.model_codex_side import CodexSide
from support.model_people import People

from state.records import RuntimeId
from termald.core import inputs as ins

ROUNDS_MAX: Final = 80
"""Rounds after which what still moves is taken to move for ever."""
QUIET_ROUNDS: Final = 9
"""Rounds without news after which it is quiet: looks at something uncertain go on for six."""


class Model(People, CodexSide):
    """All of it; here the disk, the clock, the connection and the processes."""

    @initialize(progress=st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8]))
    def begins(self, progress: int) -> None:
        """From nothing, up to a session whose first turn has ended: what comes later in a life is tried as well."""
        if progress > 0:
            self.daemon.connect()
        if progress > 1:
            self.create()
        for _ in range(4 * (progress - 2)):
            if options := self.natural():
                options[0][1]()
        if progress > 7 and self.running:
            self.codex.ask(self.running[0])
            self.all_told()

    @precondition(lambda self: self.daemon.timers or self.daemon.fired)
    @rule(which=which)
    def time_passes(self, which: int) -> None:
        options: list[tuple[str, Option]] = [
            (f"due: {' '.join(key)}", partial(self.daemon.fire, *key)) for key in self.daemon.timers
        ]
        live = [*self.daemon.timers.values()]
        old = [one for one in self.daemon.fired[-4:] if one not in live and not isinstance(one, ins.CallRetry)]
        options += [(f"due, though forgotten: {timer}", partial(self.daemon.put, timer)) for timer in old]
        self.choose(options, which)

    @rule(which=which)
    def something_breaks(self, which: int) -> None:
        options: list[tuple[str, Option]] = []
        if self.codex.wire is not None:
            options.append(("the link is lost", self.daemon.lose_link))
        if self.codex.runtime is not None:
            options.append(("Codex dies, and all that it said was read", partial(self.codex_dies, heard=True)))
            options.append(("Codex dies in the middle of a word", partial(self.codex_dies, heard=False)))
            options.append(("Codex and the daemon die", self.both_die))
        options.append(("the daemon dies", self.daemon.die))
        for frames in range(3):
            doomed = partial(setattr, self.daemon, "crash_after", frames)
            options.append((f"the daemon dies after the next commit, {frames} frames later", doomed))
        options.append(("a planned stop begins", partial(self.stop_begins, interrupt=which % 2 == 0)))
        self.choose(options, which)

    @rule(times=st.integers(1, 3))
    def the_disk_is_full_for_a_while(self, times: int) -> None:
        self.daemon.store.fail_next = times

    @rule()
    def a_batch_comes_together_or_is_decided(self) -> None:
        if self.daemon.held is None:
            note("    from here on inputs come together")
            self.daemon.held = []
        else:
            note("    the batch is decided")
            self.daemon.flush()

    # --- how it is done ---

    def codex_dies(self, *, heard: bool) -> None:
        """The process ends. I8: only its own sessions change."""
        while heard and (self.notices or self.replies):
            self.hear(self.notices.pop(0) if self.notices else self.replies.pop(0))
        before = self.untouched_by(self.codex.runtime)
        self.daemon.lose_process()
        if self.daemon.held is None:
            after = self.daemon.store.sessions
            assert all(after[record.id] == record for record in before), "I8: an exit changed a detached session"

    def untouched_by(self, runtime: RuntimeId | None) -> list[Any]:
        """Return the sessions that are not attached to this process."""
        records = self.daemon.store.sessions.values()
        return [r for r in records if r.attachment is None or r.attachment.runtime_id != runtime]

    def both_die(self) -> None:
        """The machine loses its power."""
        self.codex.exit()
        self.daemon.die()

    def stop_begins(self, *, interrupt: bool) -> None:
        """A planned stop begins; the daemon will have to be started again."""
        self.daemon.put(ins.ShuttingDown(at_ms=0, interrupt=interrupt))

    # --- quiet ---

    def come_to_rest(self, *, turns_end: bool) -> None:
        """Let everything that is under way come to its end, and every timer fire, until there is no more news."""
        quiet = 0
        for _ in range(ROUNDS_MAX):
            news = len(self.daemon.store.events), len(self.codex.record_order)
            if self.codex.wire is None:
                self.daemon.connect()
            self.flow(turns_end=turns_end)
            if self.daemon.timers:
                self.daemon.fire(*min(self.daemon.timers, key=self.daemon.due.__getitem__))
            self.flow(turns_end=turns_end)
            quiet = quiet + 1 if news == (len(self.daemon.store.events), len(self.codex.record_order)) else 0
            if quiet == QUIET_ROUNDS:
                return
        raise AssertionError("I7: it never comes to rest")

    def teardown(self) -> None:
        note("    from here on all goes well")
        self.daemon.crash_after, self.daemon.store.fail_next = None, 0
        self.daemon.flush()
        if self.daemon.state.shutting_down.value:
            self.daemon.die()
        self.come_to_rest(turns_end=False)
        model_checks.at_rest(self.daemon)
        self.come_to_rest(turns_end=True)
        self.scan_reads()
        self.daemon.put(self.pages[-1])
        self.come_to_rest(turns_end=True)
        model_checks.at_rest(self.daemon)
        model_checks.at_the_end(self.daemon)
        self.daemon.die()
        events = len(self.daemon.store.events)
        self.daemon.die()
        assert len(self.daemon.store.events) == events, "I10: a second boot adds events"
