"""What Codex asks when it wants leave, under which ids, what it offers, and what it takes.

Whole turns with approvals, over pipes, are in `scripted_model/test_turns`.
"""

import msgspec
import pytest
from facts.lab import CHANGE, COMMAND, FREE, SocketLab, heard, items_told, mark, newest_turns

from termald.core.answers import DECLINE

pytestmark = pytest.mark.real

UNTRUSTED = FREE | {"approvalPolicy": "untrusted"}


async def test_untrusted_asks_for_commands_and_changes_and_numbers_them_from_zero(lab: SocketLab) -> None:
    """`codex.translate.ops.approval_policy`, `core.requests`: ids count through the whole process, and 0 is one.

    `codex.translate.asks`: what a command's request offers leaves `decline` out, a change's request offers nothing by
    name; of both Codex takes more than it says, as the next test shows.
    """
    codex, other = await lab.codex.connect(), await lab.codex.connect()
    asked = []
    for connection, script, method in (
        (codex, "@shell touch made", COMMAND),
        (other, "@patch add notes hello", CHANGE),
        (codex, "@shell touch made", COMMAND),
    ):
        since = len(connection.messages)
        thread = await connection.start_thread(lab.cwd, **UNTRUSTED)
        turn = await connection.start_turn(thread, f"{script}\n@say done")
        request = await connection.wait_for(method, since=since)
        assert (request["params"]["threadId"], request["params"]["turnId"]) == (thread, turn)
        await connection.answer(request, {"decision": "accept"})
        assert (await connection.finish_turn(thread, turn)).text == "done"
        asked.append(request)
    command, change, _ = asked
    assert [request["id"] for request in asked] == [0, 1, 2]
    amended = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", "made"]}}
    assert command["params"]["availableDecisions"] == ["accept", amended, "cancel"]
    assert command["params"]["command"].endswith("'touch made'")
    assert "availableDecisions" not in change["params"]
    assert sorted(path.name for path in lab.cwd.iterdir()) == ["made", "notes"]


@pytest.mark.parametrize("kind", ["commandExecution", "fileChange"])
async def test_every_plain_decision_is_taken_whether_offered_or_not(lab: SocketLab, kind: str) -> None:
    """`core.answers`, `core.requests.decline_all`: a decline that is not offered still says no and lets the turn go on,
    where a cancel ends it. What is declined for good is told; what is cancelled may be left open."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, **UNTRUSTED)
    form, declined = DECLINE["command" if kind == "commandExecution" else "fileChange"]
    assert (form, declined) == ("decision", '"decline"')
    outcomes = {}
    for decision in ("decline", "cancel", "acceptForSession"):
        script = "@shell touch made" if kind == "commandExecution" else "@patch add made hello"
        since = len(codex.messages)
        turn = await codex.start_turn(thread, f"{script}\n@say done")
        request = await codex.wait_for(f"item/{kind}/requestApproval", since=since)
        assert not (lab.cwd / "made").exists()
        await codex.answer(request, {"decision": decision})
        ended = await codex.finish_turn(thread, turn)
        told = heard(codex, thread, since=since)
        assert told.index("serverRequest/resolved") < told.index("turn/completed")
        await mark(codex, thread)
        ends = [status for how, status in items_told(codex, kind, since=since) if how == "completed"]
        recorded = [item["type"] for item in (await newest_turns(codex, thread))[0]["items"]]
        outcomes[decision] = (ended.status, ends, kind in recorded)
    is_command = kind == "commandExecution"
    assert outcomes == {
        "decline": ("completed", ["declined"], not is_command),
        "cancel": ("interrupted", ["declined"] if is_command else [], False),
        "acceptForSession": ("completed", ["completed"], True),
    }
    assert (lab.cwd / "made").exists()


async def test_a_question_can_be_turned_down_with_no_answers_at_all(lab: SocketLab) -> None:
    """`core.answers.DECLINE`, `codex.translate.asks`: what a session that goes away says to a question."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    settings = {"model": "scripted", "reasoning_effort": None, "developer_instructions": None}
    mode = {"mode": "plan", "settings": settings}
    turn = await codex.start_turn(thread, "@ask Which one? | red | blue\n@say well", collaborationMode=mode)
    request = await codex.wait_for("item/tool/requestUserInput")
    form, none = DECLINE["userInput"]
    await codex.answer(request, {form: msgspec.json.decode(none)})
    assert (await codex.finish_turn(thread, turn)).text == "well"
    assert lab.model.calls[-1].tool_outputs == ('{"answers":{}}',)


async def test_an_answer_that_comes_too_late_is_passed_over(lab: SocketLab) -> None:
    """`core.requests`: two answers cross, ours and another's; the later one harms nothing and is not spoken of."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, **UNTRUSTED)
    turn = await codex.start_turn(thread, "@shell touch made\n@say done")
    request = await codex.wait_for(COMMAND)
    await codex.answer(request, {"decision": "decline"})
    assert (await codex.finish_turn(thread, turn)).text == "done"
    await codex.answer(request, {"decision": "accept"})
    await codex.answer({"id": 99}, {"decision": "accept"})
    assert (await codex.run_turn(thread, "hello")).status == "completed"
    assert not (lab.cwd / "made").exists()
