"""What a process leaves behind that was killed, and what the next one makes of it."""

import shutil
from pathlib import Path

import pytest
import trio
from facts.lab import SocketLab, meaning, newest_turns, prompts, refusal, resume

pytestmark = pytest.mark.real


async def test_a_killed_processs_turn_is_interrupted_and_its_thread_idle(lab: SocketLab) -> None:
    """`core.recovery.settle`, `core.recovery._found`: what was told complete is on record, a message that was begun is
    not, and nothing goes on by itself."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turn = await codex.start_turn(thread, "@say whole\n@message\n@say half of\n@hold gate", clientUserMessageId="p1")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    await codex.wait_for("item/completed", lambda params: params["item"]["type"] == "agentMessage")
    await lab.kill()
    asked = len(lab.model.calls)
    async with lab.another() as next_process:
        codex = await next_process.connect()
        assert (await resume(codex, thread))["status"] == {"type": "idle"}
        (seen,) = await newest_turns(codex, thread)
        assert (seen["id"], seen["status"], prompts(seen)) == (turn, "interrupted", ["p1"])
        assert [item["text"] for item in seen["items"] if item["type"] == "agentMessage"] == ["whole"]
        assert seen["completedAt"] is None
        refused = await refusal(codex, "turn/interrupt", threadId=thread, turnId=turn)
        assert meaning(refused).refusal == "no_active_turn"
        assert (await codex.run_turn(thread, "@say next")).text == "next"
    assert len(lab.model.calls) == asked + 1


async def test_an_acknowledged_prompt_may_be_lost_and_never_runs_by_itself(lab: SocketLab) -> None:
    """`core.turns.finish(requeue_unrecorded)`: an acknowledgement promises nothing. Killed at once, Codex has the turn
    or not, and the prompt in it or not, which is chance; in no case does it begin again."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    first = await codex.run_turn(thread, "hello")
    turn = await codex.start_turn(thread, "@say again", clientUserMessageId="p1")
    await lab.kill()
    asked = len(lab.model.calls)
    async with lab.another() as next_process:
        codex = await next_process.connect()
        assert (await resume(codex, thread))["status"] == {"type": "idle"}
        seen = [(found["id"], found["status"], prompts(found)) for found in await newest_turns(codex, thread)]
        assert seen.pop() == (first.id, "completed", [None])
        assert seen in ([], [(turn, "interrupted", [])], [(turn, "interrupted", ["p1"])])
        await codex.run_turn(thread, "the next")
    assert [call.prompt for call in lab.model.calls[asked:]] == ["the next"]


async def test_a_read_of_a_thread_that_is_not_loaded_may_lack_what_a_resume_finds(lab: SocketLab) -> None:
    """`core.recovery.read_turns`: "not on record" is certain only after a resume.

    Codex writes a turn to the thread's rollout and then to a database. Killed in between (a fifth of those that were
    killed as their user's message began), it answers reads from the database alone until a resume reads the rollout.
    That is made certain here by taking the databases back.
    """
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "hello", clientUserMessageId="p1")
    await _stop(lab)
    kept = lab.home / "kept"
    _copy_databases(lab.home, kept)
    async with lab.another() as second:
        codex = await second.connect()
        await resume(codex, thread)
        await codex.run_turn(thread, "again", clientUserMessageId="p2")
    _copy_databases(kept, lab.home)
    async with lab.another() as third:
        codex = await third.connect()
        assert [prompts(turn) for turn in await newest_turns(codex, thread)] == [["p1"]]
        await resume(codex, thread)
        assert [prompts(turn) for turn in await newest_turns(codex, thread)] == [["p2"], ["p1"]]


async def test_a_rollout_that_was_created_and_not_written_makes_its_thread_unusable(lab: SocketLab) -> None:
    """`codex.translate.replies`: what a kill right after the first acknowledgement may leave; every request is refused
    from then on, in words that name no thread. Made here by emptying the file."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    await codex.run_turn(thread, "hello")
    await _stop(lab)
    (rollout,) = lab.home.glob(f"sessions/**/*{thread}.jsonl")
    rollout.write_bytes(b"")
    async with lab.another() as next_process:
        codex = await next_process.connect()
        for method in ("thread/resume", "thread/turns/list"):
            refused = await refusal(codex, method, threadId=thread)
            assert refused.code == -32603, method
            assert refused.message.endswith(f"rollout at {rollout} is empty"), method


async def test_two_processes_on_one_home_do_not_share_a_thread(lab: SocketLab) -> None:
    """`codex.translate.replies` (`active_writer`), `core.recovery`: who does not own a thread reads its running turn as
    `interrupted`, so that a read proves an end only in the process that ran it, or after that one is gone."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turn = await codex.start_turn(thread, "@hold gate\n@say done", clientUserMessageId="p1")
    await codex.wait_for("item/completed")
    async with lab.another() as other_process:
        other = await other_process.connect()
        for method in ("thread/resume", "thread/archive"):
            refused = await refusal(other, method, threadId=thread)
            assert refused.message == f"thread {thread} already has an active writer"
            assert meaning(refused).refusal == "active_writer"
        (seen,) = await newest_turns(other, thread)
        assert (seen["status"], seen["completedAt"], prompts(seen)) == ("interrupted", None, ["p1"])
        lab.model.release("gate")
        assert (await codex.finish_turn(thread, turn)).text == "done"
        assert (await newest_turns(other, thread))[0]["status"] == "completed"
        refused = await refusal(other, "thread/resume", threadId=thread)  # idle, and still somebody's
        assert meaning(refused).refusal == "active_writer"
        await lab.kill()
        assert (await resume(other, thread))["status"] == {"type": "idle"}


async def _stop(lab: SocketLab) -> None:
    """End the process in its own good time."""
    lab.codex.process.terminate()
    with trio.fail_after(30):
        await lab.codex.process.wait()


def _copy_databases(source: Path, target: Path) -> None:
    """Make the target's databases those of the source."""
    target.mkdir(exist_ok=True)
    for old in target.glob("*.sqlite*"):
        old.unlink()
    for database in source.glob("*.sqlite*"):
        shutil.copy(database, target)
