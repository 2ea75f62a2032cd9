"""The scripted app-server: one process that behaves like the real one, until it is told not to.

By default it does what was measured on 0.163 and 0.171 (`tests/sim/test_honesty.py` compares the two): a start is
answered before it is told to every connection; a thread is stored with its first turn; a second turn steers silently;
an interrupt before the turn is active is refused; open requests are sent again to whoever resumes. What the model says
is written in the prompt, in the language of `termald.scripted_model`. What goes wrong is `scripted_codex_faults`'s.

It knows no more of termald than its wire. A call that it does not know how to answer fails the test.
"""

import trio
from support import scripted_codex_calls as calls
from support import scripted_codex_turns as turns
from support import scripted_codex_wire as wire
from support.scripted_codex_home import THREAD, ThreadRow
from support.scripted_codex_links import Connection
from support.scripted_codex_process import ELSEWHERE, Loaded, Process
from support.scripted_codex_wire import Json

MISCHIEF_PAUSE_S = (0.5, 8.0)


class ScriptedCodex(Process):
    """The process, with what it does when it is asked and by itself."""

    async def serve(self, connection: Connection, frame: Json) -> None:
        await calls.serve(self, connection, frame)

    async def idle(self) -> None:
        """Now and then see whether something happens that nobody asked for."""
        while True:
            await self.pause(ELSEWHERE, *MISCHIEF_PAUSE_S)
            await self._mischief()

    async def _mischief(self) -> None:
        loaded = self._somebody()
        deed = await self.misdeed("idle", ELSEWHERE if loaded is None else loaded.row.cwd)
        if deed is None:
            return
        match deed.name:
            case "bad-frame":
                for connection in list(self.connections):
                    self.write(connection, b'{"method":"turn/completed","params":{"threadId":7}}')
            case "no-thread-notice":
                self.tell_all("warning", {"message": "about nobody"})
            case "stranger":
                self.nursery.start_soon(self.stranger)
            case "stall" | "deaf":
                for connection in list(self.connections):
                    connection.block("stalled" if deed.name == "stall" else "deaf")
                    self.nursery.start_soon(self._unblock, connection, deed.seconds)
            case _ if loaded is not None:
                await self._meddle(loaded, deed.name)

    async def _meddle(self, loaded: Loaded, name: str) -> None:
        """Do something to a thread, as another front-end would."""
        match name:
            case "foreign-turn":
                await self.foreign_turn(loaded, "from another front-end")
            case "compaction" if loaded.row.stored:
                await turns.compact(self, loaded)
            case "unload" if loaded.turn is None:
                await turns.unload(self, loaded.row.id)
                self.tell_all("thread/closed", {"threadId": loaded.row.id})
            case "archive" | "delete" if loaded.row.stored:
                await calls.put_away(self, loaded.row, f"{name}d")
                self.tell_all(f"thread/{name}d", {"threadId": loaded.row.id})
            case "unarchive" if archived := [row for row in self.home.threads.values() if row.archived]:
                archived[0].archived = False
                self.tell_all("thread/unarchived", {"threadId": archived[0].id})
            case "rename":
                loaded.row.name = "renamed elsewhere"
                self.tell_all("thread/name/updated", {"threadId": loaded.row.id, "threadName": loaded.row.name})

    async def _unblock(self, connection: Connection, seconds: float) -> None:
        await trio.sleep(seconds)
        connection.unblock()

    def _somebody(self) -> Loaded | None:
        there = list(self.threads.values())
        return self.home.chance(ELSEWHERE).choice(there) if there else None

    async def foreign_turn(self, loaded: Loaded, text: str) -> None:
        """Another front-end, or Codex's own queue, says something on the thread: a turn of its own, or a steer."""
        given = (None, [{"type": "text", "text": text}])
        if loaded.turn is not None:
            loaded.turn.steer(given)
        else:
            turn = turns.acknowledge(self, loaded, given)
            self.nursery.start_soon(turns.run, self, loaded, turn)

    async def stranger(self) -> None:
        """Another front-end starts a thread of its own, and says something in it."""
        row = ThreadRow(
            id=self.home.mint(THREAD),
            cwd="/stranger",
            tag=None,
            minted_by=self.number,
            at_s=self.now_s(),
            writer=self.number,
        )
        self.home.threads[row.id] = row
        loaded = self.threads[row.id] = Loaded(row)
        self.tell_all("thread/started", {"thread": row.object(loaded.status)})
        await self.foreign_turn(loaded, "hello")
        await trio.lowlevel.checkpoint()


__all__ = ["ScriptedCodex", "wire"]
