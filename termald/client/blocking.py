"""The same without `await`, for scripts and notebooks: `with connect() as termald`.

A thread of its own runs the asynchronous client; a call hands over to it and waits. It works in a notebook too, whose
own event loop is left alone.
"""

import threading
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from anyio import to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

from termald.client import session as asynchronous
from termald.client import termald as asynchronous_termald
from termald.client.events import Done, Event
from termald.client.models import IgnoredThread, Item, Killed, Prompt, Ready, State, Thread, Turn, Version
from termald.client.models import Session as SessionInfo
from termald.client.requests import Request as AsyncRequest
from termald.client.run import Run as AsyncRun
from termald.client.turns import TurnAccumulator

P = ParamSpec("P")
T = TypeVar("T")
Handler = Callable[["Request"], object]
UNWIND_S: Final = 5.0
"""For a call that is cut to close its connection."""


@contextmanager
def connect(**options: Any) -> Iterator["Termald"]:
    """Find the running daemon and connect. Options and errors: as `termald.client.connect`."""
    with start_blocking_portal() as portal:
        try:
            with portal.wrap_async_context_manager(asynchronous_termald.connect(**options)) as termald:
                yield Termald(_Caller(portal), termald)
        finally:
            # Ctrl-C may have come between the start of a call and the wait for it: such a call is cut, not waited for.
            portal.call(portal.stop, True)


class _Caller:
    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal

    def __call__(self, function: Callable[P, Awaitable[T]], *arguments: P.args, **options: P.kwargs) -> T:
        ended = threading.Event()

        async def call() -> T:
            try:
                return await function(*arguments, **options)
            finally:
                ended.set()

        future = self._portal.start_task_soon(call)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C here is not seen over there: the call is cut, and is over before the next one begins.
            if future.cancel():
                ended.wait(UNWIND_S)
            raise


class Request:
    """Something that Codex asks. `card` is what it says of itself."""

    def __init__(self, call: _Caller, card: AsyncRequest) -> None:
        self._call = call
        self.card = card

    def accept(self) -> None:
        """Allow what is asked, this once."""
        self._call(self.card.accept)

    def decline(self) -> None:
        """Refuse it."""
        self._call(self.card.decline)

    def decide(self, decision: Any) -> None:
        """Answer with one of the decisions that are offered."""
        self._call(self.card.decide, decision)

    def answer(self, answers: dict[str, str | list[str]]) -> None:
        """Answer questions."""
        self._call(self.card.answer, answers)

    def result(self, result: dict[str, Any]) -> None:
        """Answer with an object as Codex wants it."""
        self._call(self.card.result, result)


class Run(Iterator[Event]):
    """The events of one prompt; the last is a `Done`. Close it where it is left early, or use it with `with`."""

    def __init__(self, call: _Caller, run: AsyncRun) -> None:
        self._call = call
        self._run = run

    @property
    def prompt_id(self) -> str | None:
        """The prompt's id, once it is accepted."""
        return self._run.prompt_id

    @property
    def done(self) -> Done | None:
        """The end, once it is known."""
        return self._run.done

    def submit(self) -> str:
        """Send the prompt, if that is not done yet, and return its id."""
        return self._call(self._run.submit)

    def __next__(self) -> Event:
        try:
            return self._call(self._next)
        except _OverError:
            raise StopIteration from None

    async def _next(self) -> Event:
        try:
            return await anext(self._run)
        except StopAsyncIteration:
            # Neither may leave a coroutine that is waited for in another thread.
            raise _OverError from None

    def cancel(self) -> Done:
        """End the prompt and return its end."""
        return self._call(self._run.cancel)

    def drain(self) -> Done:
        """Read to the end and return it."""
        return self._call(self._run.drain)

    def close(self) -> None:
        """Stop listening; the turn goes on."""
        self._call(self._run.aclose)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _OverError(Exception):
    pass


class Session:
    """A session of the daemon's. Each method is that of `termald.client.session.Session`."""

    def __init__(self, call: _Caller, session: asynchronous.Session) -> None:
        self._call = call
        self._session = session
        self.id = session.id

    def run(
        self, prompt: asynchronous.Input, *, on_request: Handler | None = None, key: str | None = None, **choices: Any
    ) -> Run:
        """Prompt, and give the events of what comes of it. `on_request` is called in a thread of its own."""
        return Run(self._call, self._session.run(prompt, on_request=self._handler(on_request), key=key, **choices))

    def ask(
        self, prompt: asynchronous.Input, *, on_request: Handler | None = None, key: str | None = None, **choices: Any
    ) -> TurnAccumulator:
        """Prompt, wait for the end, and return all that was said."""
        handler = self._handler(on_request)
        return self._call(lambda: self._session.ask(prompt, on_request=handler, key=key, **choices))

    def _handler(self, handler: Handler | None) -> Callable[[AsyncRequest], Awaitable[object]] | None:
        if handler is None:
            return None

        async def handle(card: AsyncRequest) -> object:
            # Not in the client's own thread: what the handler calls is carried out there.
            return await to_thread.run_sync(handler, Request(self._call, card))

        return handle

    def send(self, prompt: asynchronous.Input, *, key: str | None = None, **choices: Any) -> Prompt:
        """Prompt, and do not wait for what comes of it."""
        return self._call(lambda: self._session.send(prompt, key=key, **choices))

    def follow(self, prompt_id: str, *, on_request: Handler | None = None) -> Run:
        """Give the events of a prompt that was sent already, from its beginning."""
        return Run(self._call, self._session.follow(prompt_id, on_request=self._handler(on_request)))

    def steer(self, text: asynchronous.Input) -> Prompt:
        """Add to the turn that runs."""
        return self._call(self._session.steer, text)

    def reorder(self, *prompt_ids: str) -> list[Prompt]:
        """As `Session.reorder`."""
        return self._call(self._session.reorder, *prompt_ids)

    def take_back(self, prompt_id: str) -> Prompt:
        """Take a queued prompt back."""
        return self._call(self._session.take_back, prompt_id)

    def interrupt(self) -> bool:
        """Ask for the end of what runs, and return whether anything did."""
        return self._call(self._session.interrupt)

    def cancel(self) -> Done | None:
        """Interrupt what runs, wait until it is over, and return its end."""
        return self._call(self._session.cancel)

    def stop(self) -> SessionInfo:
        """End what runs and let go of the thread."""
        return self._call(self._session.stop)

    def close(self) -> SessionInfo:
        """As `stop`, for good."""
        return self._call(self._session.close)

    def kill(self, *, thread: str | None = None, dry_run: bool = False) -> Killed:
        """Remove the session; its thread is ignored from here on."""
        return self._call(lambda: self._session.kill(thread=thread, dry_run=dry_run))

    def retry(self, *, fresh: bool = False) -> SessionInfo:
        """Let held prompts go on."""
        return self._call(lambda: self._session.retry(fresh=fresh))

    def update(self, **changes: Any) -> SessionInfo:
        """Change settings from the next turn on."""
        return self._call(lambda: self._session.update(**changes))

    def info(self) -> SessionInfo:
        """Return how it stands."""
        return self._call(self._session.info)

    def turns(self, *, order: str = "asc") -> list[Turn]:
        """Return its turns."""
        return self._call(lambda: self._session.turns(order=order))

    def items(self, *, turn_id: str | None = None, order: str = "asc") -> list[Item]:
        """Return its items, or those of one turn: the history."""
        return self._call(lambda: self._session.items(turn_id=turn_id, order=order))

    history = items

    def prompts(self) -> list[Prompt]:
        """Return its prompts."""
        return self._call(self._session.prompts)

    def requests(self) -> list[Request]:
        """Return what waits for an answer here."""
        return [Request(self._call, card) for card in self._call(self._session.requests)]

    def events(self, *, after: int | None = None) -> Iterator[Event]:
        """Give the session's events from a number on, or from now on; never ends by itself."""
        return _each(self._call, self._session.events(after=after))

    def compact(self) -> object:
        """Have Codex shorten the history."""
        return self._call(self._session.compact)

    def review(self, target: dict[str, Any] | None = None) -> SessionInfo:
        """Have Codex review changes: uncommitted ones, or the `target` as Codex names it."""
        return self._call(self._session.review, target)

    def archive(self) -> SessionInfo:
        """Archive the thread in Codex; prompts are held until it is unarchived."""
        return self._call(self._session.archive)

    def unarchive(self) -> SessionInfo:
        """Take the thread out of Codex's archive."""
        return self._call(self._session.unarchive)

    def revert(self, *, turns: int | None = None, before_turn_id: str | None = None) -> SessionInfo:
        """Take the newest turns back: so many, or one and all after it."""
        return self._call(lambda: self._session.revert(turns=turns, before_turn_id=before_turn_id))

    def fork(self, **fields: Any) -> "Session":
        """Make a session that goes on from here beside this one."""
        return Session(self._call, self._call(lambda: self._session.fork(**fields)))


class Termald:
    """A connection to the daemon. Each method is that of `termald.client.termald.Termald`."""

    def __init__(self, call: _Caller, termald: asynchronous_termald.Termald) -> None:
        self._call = call
        self._termald = termald

    def session(self, id: str | None = None, *, cwd: Path | str | None = None, **settings: Any) -> Session:
        """Continue the session of this id, or create it."""
        return Session(self._call, self._call(lambda: self._termald.session(id, cwd=cwd, **settings)))

    def get_session(self, session_id: str) -> Session:
        """Return a session without asking whether it exists."""
        return Session(self._call, self._termald.get_session(session_id))

    def sessions(
        self,
        *,
        status: str | None = None,
        origin: str | None = None,
        cwd: Path | str | None = None,
        limit: int | None = None,
    ) -> list[SessionInfo]:
        """Return sessions, newest first."""
        return self._call(lambda: self._termald.sessions(status=status, origin=origin, cwd=cwd, limit=limit))

    def kill(self, session_id: str) -> Killed:
        """Kill a session by its id, also one that is gone already."""
        return self._call(self._termald.kill, session_id)

    def requests(self, *, session_id: str | None = None) -> Iterator[Request]:
        """Give what waits for an answer, and then what comes; never ends by itself."""
        cards = _each(self._call, self._termald.requests(session_id=session_id))
        return (Request(self._call, card) for card in cards)

    def open_requests(self) -> list[Request]:
        """Return what waits for an answer now."""
        return [Request(self._call, card) for card in self._call(self._termald.open_requests)]

    def threads(self, *, class_: str | None = None, limit: int | None = None) -> list[Thread]:
        """Return the threads that Codex has."""
        return self._call(lambda: self._termald.threads(class_=class_, limit=limit))

    def ignored_threads(self) -> list[IgnoredThread]:
        """Return the threads that are never imported."""
        return self._call(self._termald.ignored_threads)

    def ignore(self, thread_id: str, reason: str) -> IgnoredThread:
        """Never import this thread."""
        return self._call(self._termald.ignore, thread_id, reason)

    def unignore(self, thread_id: str) -> IgnoredThread:
        """Let it be imported again."""
        return self._call(self._termald.unignore, thread_id)

    def scan(self) -> None:
        """Look for Codex's threads now."""
        self._call(self._termald.scan)

    def phantoms(self) -> list[dict[str, Any]]:
        """Return sessions that hold nothing, each with its evidence."""
        return self._call(self._termald.phantoms)

    def kill_phantoms(self, ids: Collection[str] | None = None, *, dry_run: bool = False) -> dict[str, Any]:
        """Kill those of the named sessions, or of all, that hold nothing."""
        return self._call(lambda: self._termald.kill_phantoms(ids, dry_run=dry_run))

    def models(self) -> list[dict[str, Any]]:
        """Return the models that Codex offers."""
        return self._call(self._termald.models)

    def account(self) -> dict[str, Any]:
        """Return who Codex is logged in as, as it tells it."""
        return self._call(self._termald.account)

    def rate_limits(self) -> dict[str, Any]:
        """Return what is left of the account's quota, as Codex tells it."""
        return self._call(self._termald.rate_limits)

    def state(self) -> State:
        """Return everything at one moment."""
        return self._call(self._termald.state)

    def ready(self) -> Ready:
        """Return whether it takes work."""
        return self._call(self._termald.ready)

    def version(self) -> Version:
        """Return what runs."""
        return self._call(self._termald.version)

    def restart_codex(self) -> None:
        """End the one Codex process and start it again."""
        self._call(self._termald.restart_codex)

    def events(
        self, *, after: int | None = None, session: str | None = None, kinds: Collection[str] = ()
    ) -> Iterator[Event]:
        """Give all events, or one session's, from a number on, or from now on; never ends by itself."""
        return _each(self._call, self._termald.events(after=after, session=session, kinds=kinds))


T_co = TypeVar("T_co", covariant=True)


class _Source(Protocol[T_co]):
    async def __anext__(self) -> T_co: ...
    async def aclose(self) -> None: ...


def _each(call: _Caller, source: _Source[T]) -> Iterator[T]:
    try:
        while True:
            yield call(source.__anext__)
    finally:
        call(source.aclose)
