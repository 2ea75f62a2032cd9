"""Who decides about what Codex asks, on the real Codex: whoever is asked, the session's policy, or the deadline."""

import sys
from pathlib import Path
from typing import Any

import pytest
from support.daemon import Daemon

pytestmark = pytest.mark.real

PERMISSIONS = '@tool request_permissions {"reason":"need it","permissions":{"network":{"enabled":true}}}\n@say done'
WITH_PERMISSIONS: dict[str, Any] = {
    "config": {"features": {"request_permissions_tool": True}},
    "approvalPolicy": "on-request",
}


async def cards(daemon: Daemon, session: str) -> list[dict[str, Any]]:
    """The requests of a session that are closed, as the API shows them."""
    found: list[dict[str, Any]] = (await daemon.get(f"/api/sessions/{session}/requests?status=resolved"))["data"]
    return found


async def test_a_permission_is_asked_for_and_granted_by_its_user(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": PERMISSIONS}, **WITH_PERMISSIONS)
    opened = await daemon.wait_event(lambda event: event["kind"] == "request/opened", what="the request")
    assert opened["requestKind"] == "permissions"
    path = f"/api/sessions/s/requests/{opened['requestId']}"
    asked = opened["params"]["permissions"]
    wrong = await daemon.call("POST", path, {"result": {"permissions": asked, "scope": "for ever"}})
    assert wrong.status_code == 422
    answered = await daemon.post(path, {"result": {"permissions": asked, "scope": "session"}})
    assert (answered["status"], answered["decidedBy"]) == ("answered", "user")
    assert (await daemon.wait_done("s"))[-1]["state"] == "normal"
    assert '"enabled":true' in str(daemon.model.calls[-1].tool_outputs)


async def test_a_policy_answers_at_once_and_says_so(daemon: Daemon) -> None:
    policy = {"command": "accept", "fileChange": "decline", "permissions": "accept"}
    await daemon.create("s", requestPolicy=policy, approvalPolicy="untrusted")
    for number, script in enumerate(("@shell touch made\n@say done", "@patch add notes hello\n@say done"), 1):
        await daemon.prompt("s", script)
        assert (await daemon.wait_done("s", number))[-1]["state"] == "normal"
    made = {path.name for path in (daemon.folder / "work").iterdir()}
    assert ("made" in made, "notes" in made) == (True, False)
    command, change = await cards(daemon, "s")
    assert (command["answer"], command["decidedBy"]) == ({"decision": "accept"}, "policy")
    assert (change["answer"], change["decidedBy"]) == ({"decision": "decline"}, "policy")
    await daemon.create("p", prompt={"input": PERMISSIONS}, requestPolicy=policy, **WITH_PERMISSIONS)
    assert (await daemon.wait_done("p"))[-1]["state"] == "normal"
    (permission,) = await cards(daemon, "p")
    assert permission["answer"]["result"]["scope"] == "turn"
    assert '"enabled":true' in str(daemon.model.calls[-1].tool_outputs)


async def test_a_rule_accepts_the_command_that_it_names_and_no_other(daemon: Daemon) -> None:
    """`core.answers._is_allowed`: of several commands Codex proposes the words of the first."""
    policy = {"command": "decline", "allowCommands": [["touch", "made"]]}
    await daemon.create("s", requestPolicy=policy, approvalPolicy="untrusted")
    for number, command in enumerate(("touch made", "touch made; touch more", "touch other", "touch made > most"), 1):
        await daemon.prompt("s", f"@shell {command}\n@say done")
        assert (await daemon.wait_done("s", number))[-1]["state"] == "normal"
    assert {path.name for path in (daemon.folder / "work").iterdir()} & {"made", "more", "other", "most"} == {"made"}
    shown = [card["params"]["proposedExecpolicyAmendment"] for card in await cards(daemon, "s")]
    assert shown[:2] == [["touch", "made"], ["touch", "made"]]
    assert [card["answer"]["decision"] for card in await cards(daemon, "s")] == ["accept", *["decline"] * 3]


async def test_what_nobody_decides_in_time_is_declined_and_the_turn_goes_on(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@shell touch made\n@say done"}, requestPolicy={"deadlineMs": 1000})
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "normal"
    (card,) = await cards(daemon, "s")
    assert (card["answer"], card["decidedBy"]) == ({"decision": "decline"}, "deadline")
    assert not list(daemon.folder.rglob("made"))


ASKER = Path(__file__).parents[1] / "support" / "mcp_asker.py"
WITH_ASKER: dict[str, Any] = {
    "config": {"mcp_servers": {"asker": {"command": sys.executable, "args": [str(ASKER)]}}},
    "approvalPolicy": "on-request",
}
ELICIT = "@tool mcp__asker.ask_me {}\n@say done"


async def test_an_elicitation_of_a_tool_server_is_asked_and_answered(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": ELICIT}, **WITH_ASKER)
    opened = await daemon.wait_event(lambda event: event["kind"] == "request/opened", what="the elicitation")
    assert opened["requestKind"] == "elicitation"
    path = f"/api/sessions/s/requests/{opened['requestId']}"
    wrong = await daemon.call("POST", path, {"result": {"action": "maybe"}})
    assert wrong.status_code == 422
    await daemon.post(path, {"result": {"action": "accept", "content": {"name": "Ada"}}})
    assert (await daemon.wait_done("s"))[-1]["state"] == "normal"
    assert "Ada" in str(daemon.model.calls[-1].tool_outputs)
    await daemon.create("p", prompt={"input": ELICIT}, requestPolicy={"elicitation": "decline"}, **WITH_ASKER)
    assert (await daemon.wait_done("p"))[-1]["state"] == "normal"
    assert "decline" in str(daemon.model.calls[-1].tool_outputs)
    (card,) = await cards(daemon, "p")
    assert (card["answer"], card["decidedBy"]) == ({"result": {"action": "decline"}}, "policy")
