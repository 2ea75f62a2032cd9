"""Those who listen to the events of a simulation, over every life of its daemon: what they heard is what is written."""

import contextlib
from random import Random

import trio
from support.sim_http import Heard, HttpWorld
from support.sim_world import DaemonGone

from state.records import EventRecord, SessionId

CATCH_UP_S = 300.0
"""More than all the pauses of one who is far behind and leaves now and then."""
_MARKS = frozenset({"synced", "reset"})
_LINE_BREAKS = b"\r\n"


class Listener:
    """One reader: of everything, or of one session. It leaves at times, as `dice` say, reads slowly at times, and
    always comes back for what follows what it has."""

    def __init__(self, world: HttpWorld, dice: Random, session: str | None = None) -> None:
        self.heard: list[Heard] = []
        self._world = world
        self._dice = dice
        self._session = session
        self._after = 0
        self._hurries = False

    async def run(self) -> None:
        """Listen until cut."""
        path = "/api/events" if self._session is None else f"/api/sessions/{self._session}/events"
        while True:
            with contextlib.suppress(DaemonGone):  # another one comes
                await self._listen(f"{path}?after={self._after}")
            await trio.sleep(self._dice.uniform(0.0, 2.0))

    async def _listen(self, path: str) -> None:
        async with self._world.listening(path) as events:
            async for event in events:
                assert event.kind != "reset", f"{self._after} is a number that this daemon gave: {event.data!r}"
                assert event.seq >= self._after, f"I11: event {event.seq} came after {self._after}"
                self._after = event.seq
                if event.kind not in _MARKS:
                    self.heard.append(event)
                if self._dice.random() < 0.02:
                    return
                if self._dice.random() < 0.02 and not self._hurries:
                    await trio.sleep(self._dice.uniform(0.0, 20.0))

    async def check(self) -> None:
        """Hold what was heard against what is written: all of it, in order, once. Of a session that was killed while
        it did not listen, it can hear no more."""
        self._hurries = True
        await trio.sleep(CATCH_UP_S)
        written = [_as_heard(event) for event in self._world.rows.events if self._is_mine(event)]
        if self._session is not None and all(record.id != self._session for record in self._world.rows.live()):
            written = written[: len(self.heard)]
        assert self.heard == written, f"I11: {len(self.heard)} events were heard, {len(written)} are written"

    def _is_mine(self, event: EventRecord) -> bool:
        return self._session is None or event.session_id == SessionId(self._session)


def _as_heard(event: EventRecord) -> Heard:
    return Heard(seq=event.seq, kind=event.kind, data=event.data_json.translate(None, _LINE_BREAKS))
