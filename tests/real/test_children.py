"""Sub-agents of the real Codex: what a child says and asks is seen at its parent."""

import pytest
from support.daemon import Daemon

pytestmark = pytest.mark.real


async def test_a_childs_command_is_approved_at_its_parent_whose_turn_ends_by_itself(daemon: Daemon) -> None:
    await daemon.create("s", prompt={"input": "@spawn @shell touch made-by-the-child\n@hold gate\n@say parent done"})
    opened = await daemon.wait_event(lambda event: event["kind"] == "request/opened", what="the child's approval")
    session = await daemon.session("s")
    assert opened["sessionId"] == "s"
    assert opened["threadId"] != session["threadId"]
    assert session["waitingOn"] == "approval"
    await daemon.post(f"/api/sessions/s/requests/{opened['requestId']}", {"decision": "accept"})
    await daemon.until((daemon.cwd / "made-by-the-child").exists, "the child's command")
    daemon.model.release("gate")
    (done,) = await daemon.wait_done("s")
    assert done["state"] == "normal"
    events = await daemon.events(session="s")
    said = [event for event in events if event["kind"] == "item/completed" and event.get("threadId")]
    assert {event["threadId"] for event in said} == {opened["threadId"]}
    assert sum(event["kind"] == "turn/done" for event in events) == 1
    assert [one["id"] for one in (await daemon.get("/api/sessions"))["data"]] == ["s"]
