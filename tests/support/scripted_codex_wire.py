"""What the scripted app-server says, in the shapes and the wording of the real one (0.163 and 0.171). Pure.

Of the real objects the fields are kept that termald, or a comparison of both, may look at. `tests/sim/test_honesty.py`
holds these shapes against the real binary.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

Json = dict[str, Any]
RpcId = int | str

VERSION: Final = "0.171.0"
MODEL: Final = "scripted"
METHODS: Final = (
    "initialize",
    "thread/start",
    "thread/resume",
    "thread/read",
    "thread/list",
    "thread/loaded/list",
    "thread/turns/list",
    "thread/archive",
    "thread/unarchive",
    "thread/delete",
    "thread/unsubscribe",
    "thread/name/set",
    "thread/compact/start",
    "thread/backgroundTerminals/clean",
    "turn/start",
    "turn/steer",
    "turn/interrupt",
)

# What is refused, in Codex's words. `{}` is the thread's id.
TEXTS: Final[dict[str, tuple[int, str]]] = {
    "overloaded": (-32001, "Server overloaded; retry later."),
    "no-rollout": (-32600, "no rollout found for thread id {}"),
    "no-turns-yet": (-32601, "list_turns is not supported yet"),
    "not-materialized": (
        -32600,
        "thread {} is not materialized yet; thread/turns/list is unavailable before first user message",
    ),
    "not-loaded": (-32600, "thread not loaded: {}"),
    "not-found": (-32600, "thread not found: {}"),
    "active-writer": (-32600, "thread {} already has an active writer"),
    "archived": (-32600, "session {} is archived. Run `codex unarchive {}` to unarchive it first."),
    "provider-missing": (-32600, "failed to load configuration: Model provider `gone` not found"),
    "no-active-turn": (-32600, "no active turn to interrupt"),
    "no-turn-to-steer": (-32600, "no active turn to steer"),
    "too-large": (-32602, "Input exceeds the maximum length of 1048576 characters."),
    "shutting-down": (-32600, "the server is shutting down"),
    "unknown": (-32603, "something that no version has said before"),
}


class Refusal(Exception):  # noqa: N818 - it is an answer, not a failure of the fake
    """An error reply."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def refused(name: str, thread: str = "") -> Refusal:
    """Return a refusal by its name in `TEXTS`."""
    code, text = TEXTS[name]
    data = {"input_error_code": "input_too_large", "max_chars": 1_048_576} if name == "too-large" else None
    return Refusal(code, text.replace("{}", thread), data)


def mismatch(expected: str, found: str) -> Refusal:
    """Return the refusal of an interrupt that names another turn than the active one."""
    return Refusal(-32600, f"expected active turn id {expected} but found {found}")


def unknown_method(method: str) -> Refusal:
    """Return the refusal of a method that there is not, with the list of those there are."""
    known = ", ".join(f"`{name}`" for name in METHODS)
    return Refusal(-32600, f"Invalid request: unknown variant `{method}`, expected one of {known}")


# --- frames ---


def reply(rpc_id: RpcId, result: Any) -> bytes:
    """Return the answer to a request."""
    return msgspec.json.encode({"id": rpc_id, "result": result})


def error(rpc_id: RpcId, refusal: Refusal) -> bytes:
    """Return the refusal of a request."""
    told: Json = {"code": refusal.code, "message": refusal.message}
    if refusal.data is not None:
        told["data"] = refusal.data
    return msgspec.json.encode({"error": told, "id": rpc_id})


def notification(method: str, params: Json, at_ms: int) -> bytes:
    """Return a notification."""
    return msgspec.json.encode({"method": method, "params": params, "emittedAtMs": at_ms})


def request(rpc_id: RpcId, method: str, params: Json) -> bytes:
    """Return a request of the server's."""
    return msgspec.json.encode({"method": method, "id": rpc_id, "params": params})


# --- objects ---


def thread(
    thread_id: str,
    *,
    cwd: str,
    status: Json,
    tag: str | None,
    at_s: int,
    name: str | None = None,
    preview: str = "",
    parent: str | None = None,
    turns: Sequence[Json] = (),
) -> Json:
    """Return a thread."""
    return {
        "id": thread_id,
        "sessionId": thread_id,
        "forkedFromId": None,
        "parentThreadId": parent,
        "preview": preview,
        "ephemeral": False,
        "modelProvider": MODEL,
        "model": MODEL,
        "reasoningEffort": None,
        "createdAt": at_s,
        "updatedAt": at_s,
        "status": status,
        "path": f"/sessions/rollout-{thread_id}.jsonl",
        "cwd": cwd,
        "cliVersion": VERSION,
        "originator": "termald",
        "source": "vscode" if parent is None else {"subAgent": {"thread_spawn": {"parent_thread_id": parent}}},
        "threadSource": tag,
        "gitInfo": None,
        "name": name,
        "turns": list(turns),
    }


def opened(thread: Json) -> Json:
    """Return the result of a start or a resume."""
    return {
        "thread": thread,
        "model": MODEL,
        "modelProvider": MODEL,
        "serviceTier": None,
        "cwd": thread["cwd"],
        "reasoningEffort": None,
    }


def turn(
    turn_id: str,
    status: str,
    *,
    items: Sequence[Json] = (),
    view: str = "notLoaded",
    failure: Json | None = None,
) -> Json:
    """Return a turn."""
    return {
        "id": turn_id,
        "rootTurnId": turn_id,
        "items": list(items),
        "itemsView": view,
        "status": status,
        "error": failure,
        "startedAt": None,
        "completedAt": None,
        "durationMs": None,
    }


def user_message(item_id: str, client_id: str | None, content: Sequence[Json]) -> Json:
    """Return a user's message."""
    return {"type": "userMessage", "id": item_id, "clientId": client_id, "content": list(content)}


def agent_message(item_id: str, text: str) -> Json:
    """Return a message of the model's."""
    return {"type": "agentMessage", "id": item_id, "text": text, "phase": None}


def reasoning(item_id: str, summary: Sequence[str]) -> Json:
    """Return a reasoning item."""
    return {"type": "reasoning", "id": item_id, "summary": list(summary), "content": []}


def command(
    item_id: str, text: str, cwd: str, *, status: str, output: str | None = None, code: int | None = None
) -> Json:
    """Return a command that the model runs."""
    return {
        "type": "commandExecution",
        "id": item_id,
        "command": f"/bin/bash -c '{text}'",
        "cwd": cwd,
        "processId": None,
        "source": "agent" if status in ("inProgress", "declined") else "unifiedExecStartup",
        "status": status,
        "commandActions": [{"type": "unknown", "command": text}],
        "aggregatedOutput": output,
        "exitCode": code,
    }


def file_change(item_id: str, text: str, *, status: str) -> Json:
    """Return a new file of this text. Its path is told as well by the real one."""
    return {
        "type": "fileChange",
        "id": item_id,
        "changes": [{"kind": {"type": "add"}, "diff": text}],
        "status": status,
    }


def diff_of_new_file(name: str, text: str) -> str:
    """Return the change as git would show it."""
    blob = hashlib.sha1(b"blob %d\0%s" % (len(text), text.encode()), usedforsecurity=False).hexdigest()
    return (
        f"diff --git a/{name} b/{name}\nnew file mode 100644\nindex {'0' * 40}..{blob}\n"
        f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{text}"
    )


def failure(message: str, info: Any, details: str | None = None) -> Json:
    """Return why an attempt or a turn failed."""
    return {"message": message, "codexErrorInfo": info, "additionalDetails": details}


def tokens(spent: int, made: int, reasoned: int) -> Json:
    """Return token counts."""
    return {
        "totalTokens": spent + made,
        "inputTokens": spent,
        "cachedInputTokens": 0,
        "cacheWriteInputTokens": 0,
        "outputTokens": made,
        "reasoningOutputTokens": reasoned,
    }
