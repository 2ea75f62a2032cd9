"""An MCP server with one tool, which asks its user something and tells what came of it. Run as a program."""

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def say(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serve until the input ends."""
    call: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                version = message["params"]["protocolVersion"]
                info = {"name": "asker", "version": "0"}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
                say({"id": message["id"], "result": result})
            case "tools/list":
                tool = {
                    "name": "ask_me",
                    "description": "Asks the user for a name.",
                    "inputSchema": {"type": "object", "properties": {}},
                    "annotations": {"readOnlyHint": True},
                }
                say({"id": message["id"], "result": {"tools": [tool]}})
            case "tools/call":
                call = message["id"]
                asked = {"message": "Who are you?", "requestedSchema": SCHEMA}
                say({"id": "asked", "method": "elicitation/create", "params": asked})
            case None if message.get("id") == "asked":
                answer = json.dumps(message.get("result") or message.get("error"))
                say({"id": call, "result": {"content": [{"type": "text", "text": answer}]}})
            case _ if "id" in message:
                say({"id": message["id"], "result": {}})


if __name__ == "__main__":
    main()
