"""The texts of Codex's refusals, as it says them, read by the module that has to understand them.

`thread not found`, `no rollout found` and `not materialized` are in `test_identity`, `no active turn` and `expected
active turn` in `test_turns`, `already has an active writer` in `test_crashes`, overload in `test_load`.
"""

import shutil

import pytest
from facts.lab import FREE, UNKNOWN, SocketLab, meaning, refusal, resume

pytestmark = pytest.mark.real

INPUT_MAX = 1_048_576


async def test_an_archived_thread_says_so(lab: SocketLab) -> None:
    """`core.setup` (SETUP-22): an error of its own, and never a fresh thread. A turn on it fails as on one that is not
    loaded, so that the resume which follows tells the reason."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "hello")
    await codex.request("thread/archive", {"threadId": thread})
    refused = await refusal(codex, "turn/start", threadId=thread, input=[{"type": "text", "text": "x"}])
    assert meaning(refused).refusal == "thread_not_found"
    refused = await refusal(codex, "thread/resume", threadId=thread, excludeTurns=True)
    assert refused.message.startswith(f"session {thread} is archived. Run `codex unarchive {thread}`")
    assert meaning(refused).refusal == "archived"
    await codex.request("thread/unarchive", {"threadId": thread})
    assert (await resume(codex, thread))["id"] == thread


async def test_a_missing_provider_says_so(lab: SocketLab) -> None:
    """`core.setup` (SETUP-22). Of a thread that is loaded a resume does not ask; of one that is not, 0.171 says it in
    other words, and in `data`."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "hello")
    refused = await refusal(codex, "thread/start", cwd=str(lab.cwd), modelProvider="gone")
    assert refused.message == "failed to load configuration: Model provider `gone` not found"
    assert meaning(refused).refusal == "provider_missing"
    assert (await resume(codex, thread, modelProvider="gone"))["modelProvider"] == "scripted"
    await lab.kill()
    async with lab.another() as next_process:
        codex = await next_process.connect()
        refused = await refusal(codex, "thread/resume", threadId=thread, excludeTurns=True, modelProvider="gone")
        if refused.data is None:
            assert refused.message == "failed to load configuration: Model provider `gone` not found"
            assert meaning(refused).refusal == "provider_missing"
        else:
            assert refused.data == {"type": "modelProviderNotConfigured", "modelProvider": "gone"}
            assert "provider “gone”, which is no longer configured" in refused.message


async def test_too_large_an_input_is_refused_by_its_characters(lab: SocketLab) -> None:
    """`codex.translate.replies`: told by `data`. Characters are counted, not bytes."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    refused = await refusal(
        codex, "turn/start", threadId=thread, input=[{"type": "text", "text": "é" * (INPUT_MAX + 1)}]
    )
    assert (refused.code, meaning(refused).refusal) == (-32602, "input_too_large")
    assert refused.data == {
        "input_error_code": "input_too_large",
        "max_chars": INPUT_MAX,
        "actual_chars": INPUT_MAX + 1,
    }
    assert (await codex.run_turn(thread, "é" * INPUT_MAX)).status == "completed"


async def test_what_is_wrong_with_a_request_itself_is_never_taken_for_a_lost_thread(lab: SocketLab) -> None:
    """`codex.translate.replies`: `other`, with Codex's words kept."""
    codex = await lab.codex.connect()
    text = [{"type": "text", "text": "x"}]
    for method, params, words in (
        ("no/such/method", {}, "Invalid request: unknown variant `no/such/method`, expected one of `initialize`, "),
        ("turn/start", {"threadId": UNKNOWN}, "Invalid request: missing field `input`"),
        ("thread/start", {"approvalPolicy": "maybe"}, "Invalid request: unknown variant `maybe`, expected one of "),
        ("thread/resume", {"threadId": "mine"}, "invalid session id: "),
        ("turn/start", {"threadId": "mine", "input": text}, "invalid thread id: "),
        ("thread/turns/list", {"threadId": "mine"}, "invalid thread id: "),
    ):
        refused = await refusal(codex, method, **params)
        assert refused.message.startswith(words)
        assert (refused.code, meaning(refused).refusal) == (-32600, "other")


async def test_a_missing_folder_is_not_refused(lab: SocketLab) -> None:
    """`core.setup` (SETUP-08): Codex starts and resumes where there is no folder, and then no command can run; so it is
    looked at before asking."""
    codex = await lab.codex.connect()
    folder = lab.cwd / "folder"
    thread = await codex.start_thread(folder, **FREE)
    folder.mkdir()
    assert (await codex.run_turn(thread, "@shell pwd\n@say done")).items("commandExecution")[0]["exitCode"] == 0
    shutil.rmtree(folder)
    await lab.kill()
    async with lab.another() as next_process:
        codex = await next_process.connect()
        assert (await resume(codex, thread, **FREE))["cwd"] == str(folder)
        turn = await codex.run_turn(thread, "@shell pwd\n@say done")
        assert (turn.status, turn.text) == ("completed", "done")
        assert [item["status"] for item in turn.items("commandExecution")] == ["failed"]
        assert not folder.exists()
