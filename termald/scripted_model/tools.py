"""The tools that a request offers, and the output item that calls one of them.

Which shell tool Codex offers, and how its arguments look, depends on version, model and configuration. A script says
`@shell`; here it becomes the call that fits. A tool that is not offered is refused, because Codex would answer it with
an error that looks like the model's.
"""

from typing import Any

import msgspec

from termald.scripted_model.plan import Ask, CallTool, Patch, Shell, Spawn, ToolStep

Item = dict[str, Any]


class ToolNotOfferedError(ValueError):
    """The script calls a tool that the request does not offer; the message lists those it does."""


class Tools(msgspec.Struct, frozen=True):
    """The offered tools by name: type and names of the parameters. Those of a namespace are `namespace.name`."""

    types: dict[str, str]
    parameters: dict[str, frozenset[str]]

    @classmethod
    def read(cls, tools: list[dict[str, Any]]) -> "Tools":
        """Return what a request's `tools` offers. A built-in tool without a name goes by its type."""
        types: dict[str, str] = {}
        parameters: dict[str, frozenset[str]] = {}
        for tool in tools:
            kind, name = str(tool.get("type")), str(tool.get("name", tool.get("type")))
            members = tool.get("tools")
            if kind == "namespace" and isinstance(members, list):
                inner = cls.read([member for member in members if isinstance(member, dict)])
                types |= {f"{name}.{key}": value for key, value in inner.types.items()}
                parameters |= {f"{name}.{key}": value for key, value in inner.parameters.items()}
                continue
            types[name] = kind
            schema = tool.get("parameters")
            properties = schema.get("properties") if isinstance(schema, dict) else None
            parameters[name] = frozenset(properties) if isinstance(properties, dict) else frozenset()
        return cls(types, parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the offered tools, in the request's order."""
        return tuple(self.types)


def tool_item(step: ToolStep, tools: Tools, call_id: str) -> Item:
    """Return the output item (without `id`) that calls the tool of this step.

    Errors: `ToolNotOfferedError`.
    """
    if isinstance(step, Shell):
        return _shell_item(step, tools, call_id)
    if isinstance(step, Patch):
        return _patch_item(step, tools, call_id)
    if isinstance(step, Ask):
        return _function("request_user_input", _encode(_question(step)), tools, call_id)
    if isinstance(step, Spawn):
        # The namespace carries a version.
        name = next((name for name in tools.types if name.rpartition(".")[2] == "spawn_agent"), "spawn_agent")
        return _function(name, _encode({"message": step.prompt}), tools, call_id)
    return _named_item(step, tools, call_id)


def _shell_item(step: Shell, tools: Tools, call_id: str) -> Item:
    if "exec_command" in tools.types:
        return _function(
            "exec_command", _encode({"cmd": step.command, **_extras("exec_command", step, tools)}), tools, call_id
        )
    if "shell_command" in tools.types:
        arguments = {"command": step.command, **_extras("shell_command", step, tools)}
        return _function("shell_command", _encode(arguments), tools, call_id)
    argv = ["bash", "-lc", step.command]
    if "shell" in tools.types:
        return _function("shell", _encode({"command": argv, **_extras("shell", step, tools)}), tools, call_id)
    if "local_shell" in tools.types:
        action = {"type": "exec", "command": argv, "working_directory": step.workdir, "timeout_ms": step.wait_ms}
        return {"type": "local_shell_call", "call_id": call_id, "status": "completed", "action": action}
    raise _not_offered("a shell tool", tools)


def _extras(name: str, step: Shell, tools: Tools) -> dict[str, Any]:
    known = tools.parameters[name]
    extras: dict[str, Any] = {}
    if "login" in known:
        extras["login"] = False  # the same command, without what the user's profile prints and costs
    if step.workdir is not None:
        extras["workdir"] = step.workdir
    if step.wait_ms is not None:
        extras["yield_time_ms" if "yield_time_ms" in known else "timeout_ms"] = step.wait_ms
    if step.escalate:
        # The older spelling is a flag; both need a reason, which Codex shows to the user.
        spelling = ("sandbox_permissions", "require_escalated") if "sandbox_permissions" in known else None
        key, value = spelling or ("with_escalated_permissions", True)
        extras |= {key: value, "justification": f"May `{step.command}` run outside the sandbox?"}
    return extras


def _patch_item(step: Patch, tools: Tools, call_id: str) -> Item:
    kind = tools.types.get("apply_patch")
    if kind == "custom":
        return {
            "type": "custom_tool_call",
            "call_id": call_id,
            "name": "apply_patch",
            "input": step.text,
            "status": "completed",
        }
    if kind == "function":
        return _function("apply_patch", _encode({"input": step.text}), tools, call_id)
    # Codex takes a shell command of this form, and of no other, for its patch tool.
    return _shell_item(Shell(f"apply_patch <<'PATCH'\n{step.text}PATCH"), tools, call_id)


def _question(step: Ask) -> dict[str, Any]:
    options = [{"label": option, "description": option} for option in step.options]
    return {"questions": [{"id": "q1", "header": "Question", "question": step.question, "options": options}]}


def _named_item(step: CallTool, tools: Tools, call_id: str) -> Item:
    full = step.name if step.namespace is None else f"{step.namespace}.{step.name}"
    if tools.types.get(full) == "custom":
        return {
            "type": "custom_tool_call",
            "call_id": call_id,
            "name": step.name,
            "input": step.arguments,
            "status": "completed",
        }
    return _function(full, step.arguments, tools, call_id)


def _function(full: str, arguments: str, tools: Tools, call_id: str) -> Item:
    if full not in tools.types:
        raise _not_offered(full, tools)
    namespace, _, name = full.rpartition(".")
    item: Item = {
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }
    return {**item, "namespace": namespace} if namespace else item


def _not_offered(what: str, tools: Tools) -> ToolNotOfferedError:
    return ToolNotOfferedError(f"the request does not offer {what}; it offers {', '.join(tools.names) or 'no tool'}")


def _encode(arguments: dict[str, Any]) -> str:
    return msgspec.json.encode(arguments).decode()
