"""What an input names, so that the writer can load it before the batch is decided."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from state.records import Wanted
from termald.core import inputs
from termald.core.state import State


def wanted(state: State, batch: Iterable[inputs.Input]) -> Wanted:
    """Return what the batch names and memory does not hold.

    Cheap for the common case: what Codex says of live threads names nothing that is not here.
    """
    names = [name(happened) for happened in batch if (name := _NAMES.get(type(happened))) is not None]
    if not names:
        return Wanted()
    return Wanted(
        sessions=frozenset(one for each in names for one in each.sessions if one not in state.sessions),
        threads=frozenset(one for each in names for one in each.threads),
        tags=frozenset(one for each in names for one in each.tags if one not in state.intents),
        keys=frozenset(one for each in names for one in each.keys if one not in state.idempotency),
    )


def _session(command: Any) -> Wanted:
    return Wanted(sessions=frozenset({command.session}))


def _thread(named: inputs.UnignoreThread | inputs.ThreadOpened | inputs.ThreadNotice) -> Wanted:
    return Wanted(threads=frozenset({named.thread}))


def _entry(command: inputs.IgnoreThread) -> Wanted:
    return Wanted(threads=frozenset({command.entry.thread_id}))


def _prompt(command: inputs.SubmitPrompt | inputs.CreateSession) -> Wanted:
    key = command.idempotency
    thread = command.thread if isinstance(command, inputs.CreateSession) else None
    return Wanted(
        sessions=frozenset({command.session}),
        threads=frozenset() if thread is None else frozenset({thread}),
        keys=frozenset() if key is None else frozenset({key.key}),
    )


def _fork(command: inputs.ForkSession) -> Wanted:
    key = command.idempotency
    sessions = frozenset({command.session, command.new_session})
    return Wanted(sessions=sessions, keys=frozenset() if key is None else frozenset({key.key}))


def _started(notice: inputs.ThreadStarted) -> Wanted:
    tags: frozenset[str] = frozenset() if notice.tag is None else frozenset({notice.tag})
    return Wanted(threads=frozenset({notice.thread}), tags=tags)


def _seen(page: inputs.ThreadsSeen) -> Wanted:
    threads = {thread.thread_id for thread in page.threads}
    parents = {thread.parent_thread_id for thread in page.threads if thread.parent_thread_id is not None}
    tags = {thread.tag for thread in page.threads if thread.tag is not None}
    return Wanted(threads=frozenset(threads | parents), tags=frozenset(tags))


_NAMES: Final[dict[type[inputs.Input], Callable[[Any], Wanted]]] = {
    inputs.CreateSession: _prompt,
    inputs.SubmitPrompt: _prompt,
    inputs.PatchSession: _session,
    inputs.TakeBackPrompt: _session,
    inputs.ReorderPrompts: _session,
    inputs.RetrySession: _session,
    inputs.OperateSession: _session,
    inputs.RevertSession: _session,
    inputs.ForkSession: _fork,
    inputs.InterruptSession: _session,
    inputs.StopSession: _session,
    inputs.CloseSession: _session,
    inputs.KillSession: _session,
    inputs.AnswerRequest: _session,
    inputs.LimitOver: _session,
    inputs.RequestDeadline: _session,
    inputs.IgnoreThread: _entry,
    inputs.UnignoreThread: _thread,
    inputs.ThreadOpened: _thread,
    inputs.ThreadStarted: _started,
    # Renamed, archived or deleted elsewhere: the owner may be a session that is not in memory.
    inputs.ThreadRenamed: _thread,
    inputs.ThreadGone: _thread,
    inputs.ThreadUnarchived: _thread,
    inputs.ThreadsSeen: _seen,
}
