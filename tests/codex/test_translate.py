"""Names change at one door: any bytes become one input, and a payload that cannot be read costs only itself."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state.records import CodexAttachment, LinkId, PromptRecord, RuntimeId, SessionId, SessionRecord, ThreadId, TurnId
from termald.codex.protocol.methods import SERVER_NOTIFICATIONS
from termald.codex.translate import incoming, notices, ops
from termald.core import effects as fx
from termald.core import inputs as ins
from termald.core.model import Purpose

LINK = LinkId(runtime_id=RuntimeId("R"), connection=1)
STAMP = CodexAttachment(runtime_id=RuntimeId("R"), generation=3)
THREAD: dict[str, Any] = {"id": "T", "status": {"type": "idle"}, "threadSource": None, "name": "a name", "turns": []}


def read(frame: Any, purpose: Purpose | None = None) -> ins.Input:
    raw = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
    return incoming.read(LINK, raw, lambda call: purpose, 7)


def notice(method: str, **params: Any) -> ins.Input:
    return read({"method": method, "params": params})


@given(st.binary())
def test_any_bytes_become_an_input(raw: bytes) -> None:
    assert isinstance(read(raw), ins.Input)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(notices.HANDLERS)), json_values)
def test_any_payload_of_a_known_method_becomes_a_notice_or_a_bad_frame(method: str, params: Any) -> None:
    assert isinstance(read({"method": method, "params": params}), ins.FromCodex)


@given(st.sampled_from(["open_fresh", "open_known", "turn", "read", "interrupt", "ask"]), json_values)
def test_any_result_becomes_a_reply_or_a_malformed_one(purpose: Purpose, result: Any) -> None:
    assert isinstance(read({"id": 4, "result": result}, purpose), ins.Reply)


def test_an_unknown_method_passes_verbatim_with_its_thread() -> None:
    told = notice("thread/newThing", threadId="T", turnId="t", more=[1, 2])
    assert isinstance(told, ins.RawNotice)
    assert (told.method, told.thread, told.turn) == ("thread/newThing", "T", "t")
    assert json.loads(told.params_json) == {"threadId": "T", "turnId": "t", "more": [1, 2]}


def test_unknown_fields_and_enum_values_pass() -> None:
    changed = notice("thread/status/changed", threadId="T", status={"type": "dreaming", "depth": 2}, more=1)
    assert isinstance(changed, ins.ThreadStatusChanged)
    assert changed.status == "notLoaded"
    ended = notice("turn/completed", threadId="T", turn={"id": "t", "status": "paused", "items": []})
    assert isinstance(ended, ins.TurnCompleted)
    assert ended.status == "inProgress"  # an end that is not understood is not an end


def test_a_payload_without_its_id_is_a_bad_frame() -> None:
    assert isinstance(notice("turn/started", threadId="T", turn={"status": "inProgress"}), ins.BadFrame)
    assert isinstance(notice("item/completed", threadId="T", turnId="t", item={"type": "x"}), ins.BadFrame)


def test_a_thread_without_a_tag_is_told_from_a_source_that_keeps_none() -> None:
    started = notice("thread/started", thread=THREAD)
    assert isinstance(started, ins.ThreadStarted)
    assert started.tag is None
    assert started.known.tag == ""


def test_our_id_is_found_in_a_user_item_and_the_item_is_kept_verbatim() -> None:
    item = {"type": "userMessage", "id": "u", "clientId": "prompt-1", "content": [], "new": {"deep": 1}}
    for method in ("item/started", "item/completed"):
        told = notice(method, threadId="T", turnId="t", item=item)
        assert isinstance(told, ins.ItemStarted | ins.ItemCompleted)
        assert told.prompt == "prompt-1"
        assert json.loads(told.item_json) == item
    other = notice("item/started", threadId="T", turnId="t", item={**item, "type": "agentMessage"})
    assert isinstance(other, ins.ItemStarted)
    assert other.prompt is None


def test_tokens_always_add_up() -> None:
    count = {
        "inputTokens": 10,
        "cachedInputTokens": 4,
        "outputTokens": 3,
        "reasoningOutputTokens": 1,
        "totalTokens": 99,
    }
    told = notice("thread/tokenUsage/updated", threadId="T", turnId="t", tokenUsage={"last": count, "total": count})
    assert isinstance(told, ins.TurnUsage)
    assert (told.last.input, told.last.cache_read, told.last.output, told.last.total) == (10, 4, 3, 13)


@pytest.mark.parametrize(
    ("info", "variant", "status"),
    [
        ("serverOverloaded", "serverOverloaded", None),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "httpConnectionFailed", 401),
        ({"responseStreamDisconnected": {"httpStatusCode": None}}, "responseStreamDisconnected", None),
        ({"somethingNew": "odd"}, "somethingNew", None),
        (None, None, None),
    ],
)
def test_a_failure_keeps_its_variant_and_its_http_status(info: Any, variant: str | None, status: int | None) -> None:
    told = notice("error", threadId="T", turnId="t", willRetry=True, error={"message": "m", "codexErrorInfo": info})
    assert isinstance(told, ins.TurnErrored)
    assert (told.failure.variant, told.failure.http_status) == (variant, status)


@pytest.mark.parametrize(
    ("code", "message", "data", "refusal"),
    [
        (-32001, "Server overloaded; retry later.", None, "overloaded"),
        (-32600, "the server is shutting down", {"reason": "serverShuttingDown"}, "overloaded"),
        (-32600, "no rollout found for thread id 019", None, "no_rollout"),
        (-32600, "thread 019 is not materialized yet; thread/turns/list is unavailable", None, "no_rollout"),
        (-32601, "list_turns is not supported yet", None, "no_rollout"),
        (-32603, "failed to submit turn input: ActiveTurnNotSteerable { turn_kind: Compact }", None, "overloaded"),
        (-32603, "rollout at /x/rollout-1.jsonl is empty", None, "no_rollout"),
        (-32600, "invalid paginated history lineage: missing source rollout", None, "no_rollout"),
        (-32600, "the provider is gone", {"type": "modelProviderNotConfigured"}, "provider_missing"),
        (-32600, "thread not found: 019", None, "thread_not_found"),
        (-32600, "thread not loaded: 019", None, "thread_not_found"),
        (-32600, "thread 019 already has an active writer", None, "active_writer"),
        (-32600, "session 019 is archived. Run `codex unarchive 019` first.", None, "archived"),
        (-32600, "failed to load configuration: Model provider `x` not found", None, "provider_missing"),
        (-32600, "no active turn to interrupt", None, "no_active_turn"),
        (-32602, "Input exceeds the maximum", {"input_error_code": "input_too_large"}, "input_too_large"),
        (-32600, "something about a rollout that was not found", None, "other"),
        (-1, "", None, "other"),
    ],
)
def test_a_refusal_means_what_its_text_says_and_an_unknown_text_nothing(
    code: int, message: str, data: Any, refusal: str
) -> None:
    told = read({"id": 4, "error": {"code": code, "message": message, "data": data}})
    assert isinstance(told, ins.CallRefused)
    assert (told.refusal, told.code, told.message) == (refusal, code, message)


def test_a_turn_mismatch_names_the_turn_that_is_active() -> None:
    told = read({"id": 4, "error": {"code": -32600, "message": "expected active turn id 01a-b but found 01c-d"}})
    assert isinstance(told, ins.CallRefused)
    assert told.active_turn == "01c-d"


def test_ids_of_another_type_answer_nobody() -> None:
    told = read({"id": "4", "result": {}}, "turn")
    assert isinstance(told, ins.Reply)
    assert told.call == -1


@pytest.mark.parametrize("rpc_id", [0, 7, "", "7"])
def test_a_requests_id_is_kept_with_its_type(rpc_id: int | str) -> None:
    told = read(
        {"id": rpc_id, "method": "item/commandExecution/requestApproval", "params": {"threadId": "T", "itemId": "i"}}
    )
    assert isinstance(told, ins.RequestArrived)
    assert json.loads(told.rpc_id_json) == rpc_id
    assert told.kind == "command"
    assert '"accept"' in told.decisions


def test_offered_decisions_are_kept_as_they_are() -> None:
    amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch"]}}
    told = read(
        {
            "id": 1,
            "method": "item/commandExecution/requestApproval",
            "params": {"threadId": "T", "turnId": "t", "itemId": "i", "availableDecisions": ["accept", amendment]},
        }
    )
    assert isinstance(told, ins.RequestArrived)
    decisions = [json.loads(decision) for decision in told.decisions]
    assert decisions[:2] == ["accept", amendment]
    assert decisions[2:] == [
        "acceptForSession",
        "decline",
        "cancel",
    ]  # taken by Codex, also where it does not offer them


@pytest.mark.parametrize(
    "method", ["item/tool/call", "account/chatgptAuthTokens/refresh", "execCommandApproval", "something/new"]
)
def test_what_nobody_can_answer_is_answered_by_rule(method: str) -> None:
    told = read({"id": 1, "method": method, "params": {"threadId": "T"}})
    assert isinstance(told, ins.RequestArrived)
    assert told.kind is None
    assert (told.rule_json is None) != (told.rule_error is None)


def test_malformed_params_of_a_request_are_refused_and_nothing_more() -> None:
    told = read({"id": 1, "method": "item/fileChange/requestApproval", "params": {"threadId": 5}})
    assert isinstance(told, ins.RequestArrived)
    assert told.kind is None
    assert told.rule_error is not None


# --- what goes out ---

SESSION = SessionRecord(id=SessionId("s"), cwd="/work", thread_id=ThreadId("T"), attachment=STAMP)


def test_a_fresh_thread_carries_its_tag_and_asks_before_commands_and_edits() -> None:
    method, params = ops.request(fx.OpenFresh(attachment=STAMP, session=SESSION, tag="tag"))
    assert method == "thread/start"
    assert json.loads(params) == {
        "cwd": "/work",
        "threadSource": "tag",
        "approvalPolicy": "untrusted",
        "sandbox": "workspace-write",
    }


def test_full_access_asks_nothing() -> None:
    session = msgspec.structs.replace(SESSION, runtime_mode="full-access")
    _, params = ops.request(fx.OpenFresh(attachment=STAMP, session=session, tag="tag"))
    sent = json.loads(params)
    assert (sent["approvalPolicy"], sent["sandbox"]) == ("never", "danger-full-access")


def test_a_turn_carries_our_id_and_the_settings_of_now() -> None:
    session = msgspec.structs.replace(SESSION, model="m1", effort="high")
    prompt = PromptRecord(
        id="p",  # type: ignore[arg-type]  # a plain text is enough here
        session_id=session.id,
        position=0,
        input_json='[{"type":"text","text":"hi"}]',
        model="m2",
        interaction_mode="plan",
        output_schema_json='{"type":"object"}',
    )
    method, params = ops.request(fx.StartTurn(attachment=STAMP, session=session, thread=ThreadId("T"), prompt=prompt))
    sent = json.loads(params)
    assert method == "turn/start"
    assert sent["clientUserMessageId"] == "p"
    assert sent["input"] == [{"type": "text", "text": "hi"}]
    assert (sent["model"], sent["effort"]) == ("m2", "high")
    assert sent["outputSchema"] == {"type": "object"}
    assert sent["collaborationMode"]["mode"] == "plan"
    assert sent["sandboxPolicy"] == {"type": "workspaceWrite"}


@pytest.mark.parametrize(
    ("what", "method"),
    [
        ("interrupt", "turn/interrupt"),
        ("end_tools", "thread/backgroundTerminals/clean"),
        ("unsubscribe", "thread/unsubscribe"),
        ("archive", "thread/archive"),
        ("delete", "thread/delete"),
    ],
)
def test_each_step_of_letting_a_thread_go_has_its_method(what: Any, method: str) -> None:
    op = fx.DisposeThread(thread=ThreadId("T"), what=what, turn=TurnId("t"))
    assert ops.request(op)[0] == method


def test_every_operation_of_the_core_has_a_method() -> None:
    def leaves(kind: type[fx.Op]) -> set[type[fx.Op]]:
        return {kind} if not kind.__subclasses__() else {leaf for sub in kind.__subclasses__() for leaf in leaves(sub)}

    assert leaves(fx.Op) - {fx.Ask} == set(ops._OPS)  # a table with a hole would fail only when the hole is met


def test_every_method_with_an_input_of_its_own_is_in_the_schema() -> None:
    assert set(notices.HANDLERS) <= set(SERVER_NOTIFICATIONS)
