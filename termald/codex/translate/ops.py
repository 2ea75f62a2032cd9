"""What the core wants sent, in Codex's words."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from state.records import PromptRecord, SessionRecord
from termald.codex.message import Message
from termald.codex.protocol import types as t
from termald.core.effects import (
    AnswerForm,
    Ask,
    DisposeThread,
    EndTools,
    ForkThread,
    Interrupt,
    ManageThread,
    NameThread,
    Op,
    OpenFresh,
    OpenKnown,
    ReadTurns,
    RevertThread,
    StartTurn,
    SteerTurn,
    Unsubscribe,
)

TURNS_READ: Final = 20
"""Turns read to settle what is uncertain, newest first. A prompt whose fate is unknown is in the newest turn or in
none; the rest is room for other front-ends' turns on the same thread."""

_SANDBOX_POLICIES: Final = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
}


def approval_policy(session: SessionRecord) -> Any:
    """Return the session's approval policy: its own, or the one that its runtime mode stands for.

    `untrusted` asks before every command that is not known to be harmless, and before every edit.
    """
    if session.approval_policy_json is not None:
        return msgspec.json.decode(session.approval_policy_json)
    return "never" if session.runtime_mode == "full-access" else "untrusted"


def sandbox_mode(session: SessionRecord) -> str:
    """Return the session's sandbox mode: its own, or the one that its runtime mode stands for."""
    if session.sandbox is not None:
        return session.sandbox
    return "danger-full-access" if session.runtime_mode == "full-access" else "workspace-write"


def request(op: Op) -> tuple[str, bytes]:
    """Return method and params of an operation."""
    if isinstance(op, Ask):
        return op.method, op.params_json.encode()
    method, params = _OPS[type(op)](op)
    return method, msgspec.json.encode(params)


def answer(form: AnswerForm, answer_json: str) -> bytes:
    """Return the `result` of an answer in its form."""
    raw = msgspec.Raw(answer_json.encode())
    return bytes(raw) if form == "result" else msgspec.json.encode({form: raw})


def _set(value: Any) -> Any:
    # A setting that was not made is left out, so that Codex's own default applies.
    return msgspec.UNSET if value is None else value


def _open_fresh(op: OpenFresh) -> tuple[str, Message]:
    session = op.session
    return "thread/start", t.ThreadStartParams(
        cwd=session.cwd,
        model=_set(session.model),
        model_provider=_set(session.model_provider),
        service_tier=_set(session.service_tier),
        approval_policy=approval_policy(session),
        sandbox=sandbox_mode(session),
        developer_instructions=_set(session.developer_instructions),
        config=_config(session),
        thread_source=op.tag,
    )


def _open_known(op: OpenKnown) -> tuple[str, Message]:
    session = op.session
    return "thread/resume", t.ThreadResumeParams(
        thread_id=op.thread,
        exclude_turns=True,
        cwd=_set(session.cwd or None),
        model=_set(session.model),
        model_provider=_set(session.model_provider),
        service_tier=_set(session.service_tier),
        approval_policy=approval_policy(session),
        sandbox=sandbox_mode(session),
        developer_instructions=_set(session.developer_instructions),
        config=_config(session),
    )


def _config(session: SessionRecord) -> Any:
    config = {} if session.config_json is None else msgspec.json.decode(session.config_json)
    if session.effort is not None:
        config.setdefault("model_reasoning_effort", session.effort)
    return config or msgspec.UNSET


def _start_turn(op: StartTurn) -> tuple[str, Message]:
    session, prompt = op.session, op.prompt
    schema = prompt.output_schema_json
    return "turn/start", t.TurnStartParams(
        thread_id=op.thread,
        input=msgspec.Raw(prompt.input_json.encode()),
        client_user_message_id=prompt.id,
        model=_set(prompt.model or session.model),
        effort=_set(prompt.effort or session.effort),
        # Codex keeps a turn's tier for those after it, until it is told another, or none.
        service_tier=prompt.service_tier or session.service_tier,
        approval_policy=approval_policy(session),
        sandbox_policy=t.SandboxPolicy(type=_SANDBOX_POLICIES[sandbox_mode(session)]),
        output_schema=msgspec.UNSET if schema is None else msgspec.json.decode(schema),
        collaboration_mode=_collaboration(session, prompt, pin=op.pin),
    )


def _steer_turn(op: SteerTurn) -> tuple[str, Message]:
    return "turn/steer", t.TurnSteerParams(
        thread_id=op.thread,
        expected_turn_id=op.turn,
        input=msgspec.Raw(op.prompt.input_json.encode()),
        client_user_message_id=op.prompt.id,
    )


def _collaboration(session: SessionRecord, prompt: PromptRecord, *, pin: bool) -> Any:
    # The only way to say "no effort of its own" again, and to leave plan mode: Codex keeps both from turn to turn, and
    # takes a null effort for none said. It adds words of Codex's to the conversation, so it is said only where needed.
    model = prompt.model or session.model
    if (prompt.interaction_mode is None and not pin) or model is None:
        return msgspec.UNSET
    effort = prompt.effort or session.effort
    settings = t.Settings(model=model, reasoning_effort=effort)
    return t.CollaborationMode(mode=prompt.interaction_mode or "default", settings=settings)


def _interrupt(op: Interrupt) -> tuple[str, Message]:
    return "turn/interrupt", t.TurnInterruptParams(thread_id=op.thread, turn_id=op.turn)


def _read_turns(op: ReadTurns) -> tuple[str, Message]:
    return "thread/turns/list", t.ThreadTurnsListParams(
        thread_id=op.thread, items_view="full", limit=TURNS_READ, sort_direction="desc", cursor=_set(op.older)
    )


def _end_tools(op: EndTools) -> tuple[str, Message]:
    return "thread/backgroundTerminals/clean", t.ThreadBackgroundTerminalsCleanParams(thread_id=op.thread)


def _unsubscribe(op: Unsubscribe) -> tuple[str, Message]:
    return "thread/unsubscribe", t.ThreadUnsubscribeParams(thread_id=op.thread)


def _manage(op: ManageThread) -> tuple[str, Message]:
    match op.what:
        case "compact":
            return "thread/compact/start", t.ThreadCompactStartParams(thread_id=op.thread)
        case "review":
            target = msgspec.json.decode(op.target_json or '{"type":"uncommittedChanges"}', type=t.ReviewTarget)
            return "review/start", t.ReviewStartParams(thread_id=op.thread, target=target)
        case "archive":
            return "thread/archive", t.ThreadArchiveParams(thread_id=op.thread)
        case "unarchive":
            return "thread/unarchive", t.ThreadUnarchiveParams(thread_id=op.thread)


def _name(op: NameThread) -> tuple[str, Message]:
    return "thread/name/set", t.ThreadSetNameParams(thread_id=op.thread, name=op.name)


def _revert(op: RevertThread) -> tuple[str, Message]:
    return "thread/revert", t.ThreadRevertParams(thread_id=op.thread, before_turn_id=op.before_turn)


def _fork(op: ForkThread) -> tuple[str, Message]:
    session = op.session
    return "thread/fork", t.ThreadForkParams(
        thread_id=op.thread,
        exclude_turns=True,
        cwd=_set(session.cwd or None),
        model=_set(session.model),
        model_provider=_set(session.model_provider),
        service_tier=_set(session.service_tier),
        approval_policy=approval_policy(session),
        sandbox=sandbox_mode(session),
        developer_instructions=_set(session.developer_instructions),
        config=_config(session),
        thread_source=op.tag,
    )


def _dispose(op: DisposeThread) -> tuple[str, Message]:
    match op.what:
        case "interrupt":
            assert op.turn is not None
            return "turn/interrupt", t.TurnInterruptParams(thread_id=op.thread, turn_id=op.turn)
        case "end_tools":
            return "thread/backgroundTerminals/clean", t.ThreadBackgroundTerminalsCleanParams(thread_id=op.thread)
        case "unsubscribe":
            return "thread/unsubscribe", t.ThreadUnsubscribeParams(thread_id=op.thread)
        case "archive":
            return "thread/archive", t.ThreadArchiveParams(thread_id=op.thread)
        case "delete":
            return "thread/delete", t.ThreadDeleteParams(thread_id=op.thread)


_OPS: Final[dict[type[Op], Callable[[Any], tuple[str, Message]]]] = {
    OpenFresh: _open_fresh,
    OpenKnown: _open_known,
    StartTurn: _start_turn,
    SteerTurn: _steer_turn,
    Interrupt: _interrupt,
    ReadTurns: _read_turns,
    EndTools: _end_tools,
    Unsubscribe: _unsubscribe,
    DisposeThread: _dispose,
    ManageThread: _manage,
    RevertThread: _revert,
    NameThread: _name,
    ForkThread: _fork,
}
