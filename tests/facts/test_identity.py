"""Which thread is ours, which prompt is ours, and what there is of a thread before anything was said in it."""

import apsw
import pytest
import trio
from facts.lab import (
    UNKNOWN,
    USAGE,
    SocketLab,
    heard,
    in_turn,
    mark,
    meaning,
    newest_turns,
    prompts,
    refusal,
    resume,
)
from support.codex_process import CodexConnection, CodexRefusal, Message

pytestmark = pytest.mark.real

TAG = "termald:host:session:1"
PLACELESS = "list_turns is not supported yet"


async def test_the_tag_of_a_start_is_told_everywhere_but_in_the_list(lab: SocketLab) -> None:
    """`core.setup`, `core.routing`, `discovery.policy`: the tag is what ties a thread to our request, whatever became
    of the reply."""
    codex, other = await lab.codex.connect(), await lab.codex.connect()
    result = await codex.request("thread/start", {"cwd": str(lab.cwd), "threadSource": TAG})
    thread = result["thread"]["id"]
    assert (result["thread"]["threadSource"], result["thread"]["status"]) == (TAG, {"type": "idle"})
    started = await other.wait_for("thread/started", lambda params: params["thread"]["id"] == thread)
    assert started["params"]["thread"]["threadSource"] == TAG
    read = await other.request("thread/read", {"threadId": thread})
    assert read["thread"]["threadSource"] == TAG
    await codex.run_turn(thread, "hello")
    (listed,) = (await other.request("thread/list", {"useStateDbOnly": True}))["data"]
    assert (listed["id"], listed["threadSource"], listed["originator"]) == (thread, None, "termald-tests")
    assert (await resume(other, thread))["threadSource"] == TAG
    database = apsw.Connection(str(lab.home / "state_5.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)
    assert list(database.execute("SELECT id, thread_source FROM threads")) == [(thread, TAG)]
    database.close()


async def test_a_thread_without_a_turn_is_known_to_its_process_alone(lab: SocketLab) -> None:
    """`core.setup._thread_unknown`, `core.recovery.read_failed`: "unknown" is also what a living process says of such a
    thread. It can still be found in there, and used from any connection."""
    owner, other = await lab.codex.connect(), await lab.codex.connect()
    thread = await owner.start_thread(lab.cwd, threadSource=TAG)
    for codex in (owner, other):
        refused = await refusal(codex, "thread/resume", threadId=thread, excludeTurns=True)
        assert refused.message == f"no rollout found for thread id {thread}"
        assert meaning(refused).refusal == "no_rollout"
        refused = await refusal(codex, "thread/turns/list", threadId=thread, itemsView="full")
        assert refused.message.startswith(f"thread {thread} is not materialized yet; ")
        assert meaning(refused).refusal == "no_rollout"
        assert (await codex.request("thread/loaded/list"))["data"] == [thread]
        assert (await codex.request("thread/read", {"threadId": thread}))["thread"]["threadSource"] == TAG
        assert (await codex.request("thread/list"))["data"] == []
    await owner.vanish()
    turn = await other.start_turn(thread, "@say one\n@hold gate\n@say two")
    with trio.fail_after(30):
        await lab.model.wait_held("gate")
    await mark(other, thread)
    assert not in_turn(heard(other, thread))
    await resume(other, thread)
    lab.model.release("gate")
    assert (await other.finish_turn(thread, turn)).text == "one\ntwo"


async def test_a_thread_without_a_turn_is_gone_with_its_process(lab: SocketLab) -> None:
    """`core.setup`: an empty thread that nobody remembers is replaced without a word of loss."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd, threadSource=TAG)
    await lab.kill()
    async with lab.another() as next_process:
        codex = await next_process.connect()
        refused = await refusal(codex, "thread/resume", threadId=thread, excludeTurns=True)
        assert refused.message == f"no rollout found for thread id {thread}"
        assert (await codex.request("thread/list"))["data"] == []


async def test_right_after_the_first_turn_start_the_thread_is_unknown_to_others_for_a_moment(lab: SocketLab) -> None:
    """`core.setup._thread_unknown`, `core.recovery.read_failed` (BOOT-07): ask again. There are three ways to say it,
    and a turn that is listed may not have its user's message yet; which of them is met is chance. Nor may its status be
    true before the thread is resumed: it was seen as interrupted, once in 60 (`core.recovery.look` resumes first)."""
    codex, other = await lab.codex.connect(), await lab.codex.connect()
    said: set[str] = set()
    for trial in range(6):
        thread = await codex.start_thread(lab.cwd)
        turn = await codex.start_turn(thread, "@hold gate", clientUserMessageId=f"p{trial}")
        with trio.fail_after(20):
            if trial % 2:
                said |= {text.replace(thread, "T") for text in await _refusals_of_a_resume(other, thread)}
            while not (listed := await _listed(other, thread, said)) or prompts(listed) != [f"p{trial}"]:
                assert listed is None or listed["id"] == turn
                assert listed is None or listed["status"] == "inProgress" or (trial % 2 == 0 and not listed["items"])
            assert listed["status"] == "inProgress"
    assert {text.split(";")[0] for text in said} <= {
        "no rollout found for thread id T",
        "thread T is not materialized yet",
        PLACELESS,
    }


async def _refusals_of_a_resume(codex: CodexConnection, thread: str) -> set[str]:
    said: set[str] = set()
    while True:
        try:
            await resume(codex, thread)
        except CodexRefusal as refused:
            said.add(refused.message)
        else:
            return said


async def _listed(codex: CodexConnection, thread: str, said: set[str]) -> Message | None:
    try:
        turns = await newest_turns(codex, thread)
    except CodexRefusal as refused:
        said.add(refused.message.replace(thread, "T"))
        return None
    return turns[0] if turns else None


async def test_a_thread_that_is_stored_but_empty_has_no_turns_to_list(lab: SocketLab) -> None:
    """`codex.translate.replies`: that moment, held still. `thread/read` with turns stores a thread that has none."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    for method in ("thread/read", "thread/resume", "thread/turns/list"):
        refused = await refusal(codex, method, threadId=thread, includeTurns=True)
        assert (refused.code, refused.message) == (-32601, PLACELESS)
        assert meaning(refused).refusal == "no_rollout"
    assert (await codex.run_turn(thread, "hello")).status == "completed"
    assert (await resume(codex, thread))["id"] == thread


async def test_our_prompt_id_is_on_record_with_the_prompt_and_keeps_nothing_out(lab: SocketLab) -> None:
    """`core.recovery._found`: a prompt is looked for by its id, in a process that never loaded the thread. Codex runs
    the same id twice if it is sent twice."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turns = [await codex.run_turn(thread, f"turn {number}", clientUserMessageId="p1") for number in (1, 2)]
    told = [item["clientId"] for turn in turns for item in turn.items("userMessage")]
    assert told == ["p1", "p1"]
    assert [len(call.user_texts) for call in lab.model.calls] == [1, 2]
    await lab.kill()
    async with lab.another() as next_process:
        codex = await next_process.connect()
        newest, oldest = await newest_turns(codex, thread)
        assert [(turn["id"], turn["status"], prompts(turn)) for turn in (oldest, newest)] == [
            (turn.id, "completed", ["p1"]) for turn in turns
        ]
        items = (await codex.request("thread/items/list", {"threadId": thread}))["data"]
        ids = [(entry["turnId"], entry["item"]["clientId"]) for entry in items if "clientId" in entry["item"]]
        assert ids == [(turn.id, "p1") for turn in turns]
        assert (await codex.request("thread/loaded/list"))["data"] == []


async def test_a_resume_tells_the_usage_of_the_last_turn_again(lab: SocketLab) -> None:
    """`core.turns.used`: news of a turn that is over, whoever ran it; it must count nothing and begin nothing. It comes
    where the process had not loaded the thread, and after the reply."""
    codex = await lab.codex.connect()
    thread = await codex.start_thread(lab.cwd)
    turn = await codex.run_turn(thread, "hello")
    other = await lab.codex.connect()
    await resume(other, thread)
    await mark(other, thread)
    assert USAGE not in heard(other, thread)
    await lab.kill()
    async with lab.another() as next_process:
        codex = await next_process.connect()
        await resume(codex, thread)
        again = await codex.wait_for(USAGE)
        assert (again["params"]["threadId"], again["params"]["turnId"]) == (thread, turn.id)
        assert again["params"]["tokenUsage"] == turn.params(USAGE)[0]["tokenUsage"]
        await mark(codex, thread)
        assert not in_turn(heard(codex, thread))


async def test_a_thread_that_nobody_knows_is_unknown_in_other_words_to_each_method(lab: SocketLab) -> None:
    """`codex.translate.replies`: two meanings, for the same lack."""
    codex = await lab.codex.connect()
    text = [{"type": "text", "text": "x"}]
    unloaded: dict[str, tuple[str, Message]] = {
        "turn/start": (f"thread not found: {UNKNOWN}", {"input": text}),
        "turn/interrupt": (f"thread not found: {UNKNOWN}", {"turnId": UNKNOWN}),
        "thread/backgroundTerminals/clean": (f"thread not found: {UNKNOWN}", {}),
        "thread/turns/list": (f"thread not loaded: {UNKNOWN}", {}),
        "thread/read": (f"thread not loaded: {UNKNOWN}", {}),
    }
    for method, (words, params) in unloaded.items():
        refused = await refusal(codex, method, threadId=UNKNOWN, **params)
        assert (refused.message, meaning(refused).refusal) == (words, "thread_not_found"), method
    for method in ("thread/resume", "thread/archive", "thread/delete"):
        refused = await refusal(codex, method, threadId=UNKNOWN)
        assert refused.message == f"no rollout found for thread id {UNKNOWN}", method
        assert meaning(refused).refusal == "no_rollout", method
    assert await codex.request("thread/unsubscribe", {"threadId": UNKNOWN}) == {"status": "notLoaded"}
