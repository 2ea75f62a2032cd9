"""What should happen, and how it relates to the disk.

Every effect is carried out after the commit of the batch that decided it, in the order decided. Nothing here is done
twice by itself: what may be sent again says who decides that.
"""

from typing import Literal

import msgspec

from state.records import (
    CodexAttachment,
    IgnoredThread,
    LinkId,
    Problem,
    PromptRecord,
    RequestRecord,
    SessionId,
    SessionRecord,
    ThreadId,
    TurnId,
)
from termald.core.inputs import CallId, Input, Ticket


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all effects."""


# --- operations: what a call asks of Codex. Wire names are given to them by `codex.translate` ---


class Op(msgspec.Struct, frozen=True, kw_only=True):
    """Base of operations."""


class SessionOp(Op, frozen=True, kw_only=True):
    """Base of operations on one session: they cannot be built without the attachment they are made under (I4)."""

    attachment: CodexAttachment


class OpenFresh(SessionOp, frozen=True, kw_only=True):
    """Mint a thread. After the commit of its intent, whose `tag` it carries."""

    session: SessionRecord
    tag: str


class OpenKnown(SessionOp, frozen=True, kw_only=True):
    """Resume the claimed thread; subscribes. `turns` asks for the newest turns along with it."""

    session: SessionRecord
    thread: ThreadId


class StartTurn(SessionOp, frozen=True, kw_only=True):
    """Run a prompt. After the commit that marks it `sent`. Never repeated before a read has shown that Codex does not
    have it. `pin`: the thread may still have what an earlier turn chose, so the session's own choices are all said."""

    session: SessionRecord
    thread: ThreadId
    prompt: PromptRecord
    pin: bool = False


class SteerTurn(SessionOp, frozen=True, kw_only=True):
    """Add a prompt to the turn that runs. After the commit that marks it `sent`; refused if another turn is active by
    then."""

    thread: ThreadId
    turn: TurnId
    prompt: PromptRecord


class Interrupt(SessionOp, frozen=True, kw_only=True):
    """End a turn that was seen active."""

    thread: ThreadId
    turn: TurnId


class ReadTurns(SessionOp, frozen=True, kw_only=True):
    """Read the newest turns and our ids in them, or those before a page of them; changes nothing in Codex."""

    thread: ThreadId
    older: str | None = None


class EndTools(SessionOp, frozen=True, kw_only=True):
    """End the thread's background terminals. Before unsubscribing: afterwards their end is not told."""

    thread: ThreadId


class Unsubscribe(SessionOp, frozen=True, kw_only=True):
    """Hear no more of the thread, so that Codex can unload it."""

    thread: ThreadId


class DisposeThread(Op, frozen=True, kw_only=True):
    """One step of letting a thread go. The thread belongs to nobody, so there is no attachment to stamp it with."""

    thread: ThreadId
    what: Literal["interrupt", "end_tools", "unsubscribe", "archive", "delete"]
    turn: TurnId | None = None


class ManageThread(Op, frozen=True, kw_only=True):
    """Do something to a stored thread. It needs no attachment of its session, which may be detached; the call is
    compared instead."""

    thread: ThreadId
    what: Literal["compact", "review", "archive", "unarchive"]
    target_json: str | None = None


class NameThread(Op, frozen=True, kw_only=True):
    """Give a stored thread its session's title. It disturbs nothing, and may be sent again."""

    thread: ThreadId
    name: str


class RevertThread(SessionOp, frozen=True, kw_only=True):
    """Take back `removed`, the newest turns of a thread. Sent again it is refused: the turn before which it cuts is
    gone. `messages`: how many of them these turns hold."""

    thread: ThreadId
    before_turn: TurnId
    removed: tuple[TurnId, ...]
    messages: int


class ForkThread(Op, frozen=True, kw_only=True):
    """Mint a copy of a thread. After the commit of its intent, whose `tag` it carries."""

    thread: ThreadId
    session: SessionRecord
    tag: str


class Ask(Op, frozen=True, kw_only=True):
    """A read for a caller, passed through."""

    method: str
    params_json: str


class Send(Effect, frozen=True, kw_only=True):
    """Write a request to Codex. Dropped if `link` is no longer the current one: its outcome is then decided with the
    link's loss."""

    link: LinkId
    call: CallId
    op: Op


AnswerForm = Literal["decision", "answers", "result"]
"""What the JSON of an answer is: one of the offered decisions, answers by question, or the whole result."""


class SendAnswer(Effect, frozen=True, kw_only=True):
    """Answer a request of Codex's. After the commit of the decision, except where a rule answers it."""

    link: LinkId
    rpc_id_json: str
    form: AnswerForm
    answer_json: str


class SendRefusal(Effect, frozen=True, kw_only=True):
    """Refuse a request of Codex's that nobody here can answer."""

    link: LinkId
    rpc_id_json: str
    message: str


class Arm(Effect, frozen=True, kw_only=True):
    """Put `timer` into the inbox after `after_ms` plus a random part of up to `jitter_ms`. Re-arming an equal `key`
    replaces it."""

    key: tuple[str, ...]
    timer: Input
    after_ms: int
    jitter_ms: int = 0


class Disarm(Effect, frozen=True, kw_only=True):
    """Forget a timer; one that has already fired is refused by its stamp."""

    key: tuple[str, ...]


class RestartProcess(Effect, frozen=True, kw_only=True):
    """End the process and start another."""


class SessionAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="session"):
    """A session as it is after the command."""

    session: SessionRecord
    prompt: PromptRecord | None = None


class PromptAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="prompt"):
    """A prompt as it is after the command."""

    prompt: PromptRecord


class QueueAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="queue"):
    """The prompts that wait, in the order in which they will run."""

    prompts: tuple[PromptRecord, ...]


class InterruptAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="interrupt"):
    """Whether there was anything to interrupt."""

    interrupted: bool


class KillAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="kill"):
    """What a kill did, and what Codex said (`upstream_json`: step -> "ok" or its error; None where nothing was asked of
    it)."""

    killed: bool
    session: SessionId
    thread: ThreadId | None
    ignored: bool
    upstream_json: str | None
    dry_run: bool = False


class RequestAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="request"):
    """A request as it is after the command."""

    request: RequestRecord


class IgnoredAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="ignored"):
    """An ignore entry as it is, or was before it was removed."""

    entry: IgnoredThread


class CodexAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="codex"):
    """The JSON that Codex gave."""

    result_json: str


class DoneAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """Accepted; there is nothing more to say."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """Nothing was done, and why. The slug is one of `refusals.REFUSALS`."""

    problem: Problem


Answer = (
    SessionAnswer
    | PromptAnswer
    | QueueAnswer
    | InterruptAnswer
    | KillAnswer
    | RequestAnswer
    | IgnoredAnswer
    | CodexAnswer
    | DoneAnswer
    | Refused
)


class Respond(Effect, frozen=True, kw_only=True):
    """Answer a caller. After the commit of what was promised to it."""

    ticket: Ticket
    answer: Answer
