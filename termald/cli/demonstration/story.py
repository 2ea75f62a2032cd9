"""The steps of the demonstration, and what each of them proves.

Sessions are prompted at once; one process serves them; Codex itself has exactly one thread for each. Then another
program leaves a thread in the same home, the daemon finds it, and it is killed: a phantom. The daemon is stopped and
started, and what must be there is there, and what must not is not.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

from termald.cli.demonstration.claims import Claim, StoryEnded
from termald.cli.demonstration.evidence import app_servers, stored_threads
from termald.cli.demonstration.house import House, running_daemon
from termald.cli.demonstration.view import View
from termald.cli.demonstration.watch import FOLDED, Progress, Watch
from termald.client.http import AsyncClient
from termald.client.models import Killed, Session, State
from termald.scripted_model.model import ScriptedModel

TURNS_DEADLINE_S: Final = 60.0
SEEN_DEADLINE_S: Final = 20.0

MEET: Final = "all-are-here"
PROMPT: Final = f"""\
{{title}}: a scripted model answers this, word by word.
@say This is {{title}}.
@hold {MEET}
@pace 30ms
@say I share one app-server with the others. What I say arrives here and nowhere else. The end of {{title}}.
"""
GO_ON: Final = "@say And on I go after the restart, in the thread that I had."


class Story:
    """One demonstration. `tell` does all of it; what it proved stands in `claims`, also where it ended early.

    `sessions` is filled with how each goes on, for whoever shows it.
    """

    def __init__(
        self, house: House, codex_bin: Path, model: ScriptedModel, sessions: dict[str, Progress], view: View
    ) -> None:
        self._house = house
        self._codex_bin = codex_bin
        self._model = model
        self._sessions = sessions
        self._view = view
        self.claims: list[Claim] = []

    async def tell(self, count: int) -> None:
        """Do it all, with `count` sessions. Errors: `StoryEnded`, and what the client meets."""
        self._view.step("starting the daemon, which starts Codex")
        async with running_daemon(self._house, self._codex_bin) as daemon, self._watching() as (client, before):
            await self._prompt_all_at_once(client, before, count)
            threads = await self._count_process_and_threads(client)
            phantom = await self._leave_a_phantom(threads)
            await self._kill(client, before, phantom)
        self._view.step("the daemon is stopped, and started again on the same state")
        told = self._forget_what_was_shown()
        async with running_daemon(self._house, self._codex_bin) as again, self._watching() as (client, after):
            self._prove("the daemon was restarted", again != daemon, f"pid {daemon}, then pid {again}")
            await self._look_for_the_phantom(client, after, phantom)
            await self._compare(client, told, before, after)
            await self._go_on(client, after, threads | {phantom})
        left = await trio.to_thread.run_sync(app_servers, self._house)
        self._prove("the stopped daemon left no process behind", not left, f"app-servers: {left or 'none'}")

    # --- before the restart ---

    async def _prompt_all_at_once(self, client: AsyncClient, watch: Watch, count: int) -> None:
        titles = [f"session {number}" for number in range(1, count + 1)]
        self._view.step(f"prompting {count} sessions at once")
        # In their order, which the one who shows them keeps; the requests then arrive in any.
        self._sessions.update({title.replace(" ", "-"): Progress(title) for title in titles})
        async with trio.open_nursery() as nursery:
            for name in self._sessions:
                nursery.start_soon(self._open, client, name)
        with trio.move_on_after(TURNS_DEADLINE_S):
            await self._model.wait_held(MEET, count=count)
        held = [number for each in self._model.holds if each.name == MEET for number in each.calls]
        self._prove(
            f"{count} sessions, prompted at once, run their turns at the same time",
            len(held) == count,
            f"the model is in the middle of {len(held)} answers",
        )
        self._model.release(MEET)
        sessions = self._sessions.values()
        await watch.wait_until(lambda: all(each.turns for each in sessions), "the end of every turn", TURNS_DEADLINE_S)
        ended = [each.turns for each in sessions]
        self._prove("each turn ended once, and well", ended == [["normal"]] * count, f"ends: {_counted(ended)}")
        own = [each for each in sessions if len(each.answers) == 1 and _is_own(each, titles)]
        self._prove("each session has its own answer, whole", len(own) == count, f"{len(own)} of {count}")

    async def _open(self, client: AsyncClient, name: str) -> None:
        title = self._sessions[name].title
        folder = self._house.work / name
        folder.mkdir()
        body = {"id": name, "title": title, "cwd": str(folder), "prompt": PROMPT.format(title=title)}
        await client.post("/api/sessions", Session, body, key=f"demo-{name}")

    async def _count_process_and_threads(self, client: AsyncClient) -> set[str]:
        state = await client.get("/api/state", State)
        pids = await trio.to_thread.run_sync(app_servers, self._house)
        self._prove(
            "one app-server process serves them all",
            pids == [state.runtime.pid],
            f"counted in the process table: {pids}; the daemon names {state.runtime.pid}",
        )
        stored = await trio.to_thread.run_sync(stored_threads, self._house)
        claimed = [session.thread_id for session in state.sessions]
        count = len(self._sessions)
        self._prove(
            f"Codex's own database has exactly {count} threads, one for each session",
            len(stored) == count and sorted(map(str, claimed)) == sorted(stored),
            f"{len(stored)} rows, {len(set(claimed) & stored)} of them claimed by {len(claimed)} sessions",
        )
        asking = [call.thread_id for call in self._model.calls]
        self._prove(
            "each prompt reached the model once, from its session's thread",
            sorted(map(str, asking)) == sorted(map(str, claimed)),
            f"{len(asking)} requests from {len(set(asking))} threads",
        )
        return stored

    async def _leave_a_phantom(self, before: set[str]) -> str:
        """Let another program leave a thread in the same home; return its id."""
        self._view.step("another program, `codex exec`, leaves a thread in the same home")
        command = [
            str(self._codex_bin),
            "exec",
            "--skip-git-repo-check",
            "-C",
            str(self._house.work),
            "a stray thought",
        ]
        with trio.move_on_after(TURNS_DEADLINE_S):
            done = await trio.run_process(
                command, env=self._house.environment(), capture_stdout=True, capture_stderr=True, check=False
            )
            new = await trio.to_thread.run_sync(stored_threads, self._house) - before
            if done.returncode != 0 or len(new) != 1:
                said = done.stderr.decode(errors="replace")[-300:]
                raise StoryEnded(f"`codex exec` ended with {done.returncode} and left {len(new)} threads: {said}")
            return new.pop()
        raise StoryEnded(f"`codex exec` did not end within {TURNS_DEADLINE_S:.0f} s")

    async def _kill(self, client: AsyncClient, watch: Watch, phantom: str) -> None:
        state = await self._scan(client, watch)
        owner = _owner(state, phantom)
        self._prove(
            "the daemon found that thread and offers it as a session",
            owner is not None and owner.origin == "discovered" and len(state.sessions) == len(self._sessions) + 1,
            f"{len(state.sessions)} sessions, its origin: {owner and owner.origin}",
        )
        if owner is None:
            raise StoryEnded("there is no phantom to kill")
        killed = await client.post(f"/api/sessions/{owner.id}/kill", Killed)
        state = await client.get("/api/state", State)
        ignored = {entry.thread_id for entry in state.ignored_threads}
        stored = await trio.to_thread.run_sync(stored_threads, self._house)
        self._prove(
            "the phantom was killed: no session, its thread ignored, Codex's own record untouched",
            killed.killed and _owner(state, phantom) is None and phantom in ignored and phantom in stored,
            f"{len(state.sessions)} sessions, {len(ignored)} ignored, {len(stored)} rows",
        )

    # --- after it ---

    def _forget_what_was_shown(self) -> dict[str, Progress]:
        """Begin every session's progress anew, so that all that is shown from here on comes from the log."""
        told = dict(self._sessions)
        for name, progress in told.items():
            self._sessions[name] = Progress(progress.title)
        return told

    async def _look_for_the_phantom(self, client: AsyncClient, watch: Watch, phantom: str) -> None:
        state = await self._scan(client, watch)
        stored = await trio.to_thread.run_sync(stored_threads, self._house)
        self._prove(
            "the phantom is not back after a restart and a scan, though Codex still has it",
            _owner(state, phantom) is None and phantom in stored,
            f"{len(state.sessions)} sessions, {len(stored)} rows",
        )

    async def _compare(self, client: AsyncClient, told: dict[str, Progress], before: Watch, after: Watch) -> None:
        state = await client.get("/api/state", State)
        threads = {session.id: session.thread_id for session in state.sessions}
        wanted = {name: progress.thread_id for name, progress in told.items()}
        kept = [name for name, thread in wanted.items() if thread is not None and threads.get(name) == thread]
        self._prove(
            "the sessions are still there, each with its thread",
            len(kept) == len(told) == len(threads),
            f"{len(kept)} of {len(told)}",
        )
        whole = {seq: kind for seq, kind in before.seen.items() if kind not in FOLDED}
        missing = [seq for seq, kind in whole.items() if after.seen.get(seq) != kind]
        same = [name for name, progress in told.items() if self._sessions[name].answers == progress.answers]
        self._prove(
            "their events are still there, and tell the same",
            not missing and len(same) == len(told),
            f"{len(whole)} events read again, {len(missing)} missing; {len(same)} of {len(told)} answers equal",
        )

    async def _go_on(self, client: AsyncClient, watch: Watch, threads: set[str]) -> None:
        name = next(iter(self._sessions))
        progress = self._sessions[name]
        self._view.step(f"{progress.title} is prompted again")
        turns = len(progress.turns)
        await client.post(f"/api/sessions/{name}/prompts", object, {"input": GO_ON}, key="demo-go-on")
        await watch.wait_until(lambda: len(progress.turns) > turns, "the end of the second turn", TURNS_DEADLINE_S)
        stored = await trio.to_thread.run_sync(stored_threads, self._house)
        pids = await trio.to_thread.run_sync(app_servers, self._house)
        self._prove(
            "a session goes on in the thread that it had: no thread more, and one process again",
            progress.turns[-1] == "normal" and stored == threads and len(pids) == 1,
            f"{len(stored)} rows, app-servers: {pids}",
        )

    # --- means ---

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[tuple[AsyncClient, Watch]]:
        """Speak to the daemon, and follow all its events from the very first on."""
        watch = Watch(self._sessions)
        async with (
            AsyncClient.find(self._house.runtime_dir, self._house.state_dir) as client,
            trio.open_nursery() as nursery,
        ):
            await nursery.start(watch.follow, client)
            await watch.wait_until(lambda: watch.is_synced, "the events until now", SEEN_DEADLINE_S)
            yield client, watch
            nursery.cancel_scope.cancel()

    async def _scan(self, client: AsyncClient, watch: Watch) -> State:
        """Have the daemon look at Codex's threads now; return how things are after it."""
        last = max(watch.seen, default=0)
        await client.post("/api/discovery/scan", object)
        await watch.wait_until(
            lambda: any(seq > last and kind == "discovery/finished" for seq, kind in watch.seen.items()),
            "the end of a scan",
            SEEN_DEADLINE_S,
        )
        return await client.get("/api/state", State)

    def _prove(self, claim: str, holds: bool, evidence: str) -> None:
        checked = Claim(claim=claim, holds=holds, evidence=evidence)
        self.claims.append(checked)
        self._view.proven(checked)


def _owner(state: State, thread: str) -> Session | None:
    return next((session for session in state.sessions if session.thread_id == thread), None)


def _is_own(progress: Progress, titles: list[str]) -> bool:
    """Whether the answer is this session's, from its first word to its last, and no other's."""
    answer = progress.answers[0]
    named = {title for title in titles if f"{title}." in answer}
    return (
        answer.startswith(f"This is {progress.title}.")
        and answer.endswith(f"{progress.title}.")
        and named == {progress.title}
    )


def _counted(ends: list[list[str]]) -> str:
    flat = [state for turns in ends for state in turns]
    return ", ".join(f"{flat.count(state)} {state}" for state in sorted(set(flat))) or "none"
