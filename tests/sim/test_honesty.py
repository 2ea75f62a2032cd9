"""The scripted app-server is held to the real one: the same conversation with both, and the same is heard.

Whatever the scripted one says in these conversations the real one says as well, field by field and in the same order,
on each connection. So what the simulation finds, it finds about the real one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from support.codex_process import CodexConnection, CodexRefusal, codex_binaries
from support.scripted_codex_sides import Side, differences, heard, open_real, open_scripted
from support.scripted_codex_wire import TEXTS

from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server

pytestmark = pytest.mark.real

BINARIES = codex_binaries()
UNKNOWN = "019a0000-0000-7000-8000-000000000000"
COMMAND = "item/commandExecution/requestApproval"
SETTINGS = {"approvalPolicy": "untrusted", "sandbox": "workspace-write", "threadSource": "tag"}
Talk = Callable[[Side], Awaitable[None]]


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
async def base_url(model: ScriptedModel) -> AsyncIterator[str]:
    async with open_server(model) as url:
        yield url


async def asked(codex: CodexConnection, method: str, **params: Any) -> Any:
    """Ask; a refusal is an answer like any other here."""
    try:
        return await codex.request(method, params)
    except CodexRefusal as refusal:
        return refusal


async def opened(side: Side, codex: CodexConnection, **more: Any) -> str:
    """Start a thread and wait until it is told."""
    before = len(codex.messages)
    thread = await codex.start_thread(Path(side.cwd), **SETTINGS, **more)
    await codex.wait_for("thread/started", since=before)
    return thread


async def said(codex: CodexConnection, thread: str, text: str, name: str | None = None) -> str:
    """Have a whole turn, and return its id."""
    before = len(codex.messages)
    turn = await codex.start_turn(thread, text, **({} if name is None else {"clientUserMessageId": name}))
    await codex.wait_for("turn/completed", since=before)
    return turn


async def listed(codex: CodexConnection, thread: str) -> Any:
    """Read the turns as the daemon does."""
    return await asked(codex, "thread/turns/list", threadId=thread, itemsView="full", limit=20, sortDirection="desc")


# --- the conversations ---


async def plain_turns(side: Side) -> None:
    codex = await side.connect("a")
    thread = await opened(side, codex)
    await said(codex, thread, "hello there", "p1")
    await said(codex, thread, "@deltas 5\n@message\n@say and more", "p2")
    await said(codex, thread, "@reasoning hm hm\n@say so", "p3")
    await said(codex, thread, "@empty", "p4")
    await listed(codex, thread)


async def failures(side: Side) -> None:
    codex = await side.connect("a")
    thread = await opened(side, codex)
    await said(codex, thread, "first")
    for script in (
        "@fail 500",
        "@fail 429",
        "@fail 401",
        "@fail 503",
        "@say part\n@cut times=1\n@say rest",
        "@say x\n@cut",
    ):
        await said(codex, thread, script)
    await listed(codex, thread)


async def interrupts(side: Side) -> None:
    codex = await side.connect("a")
    thread = await opened(side, codex)
    await asked(codex, "turn/interrupt", threadId=thread, turnId=UNKNOWN)
    turn = await codex.start_turn(thread, "@say one\n@hold gate\n@say two", clientUserMessageId="p1")
    await codex.wait_for("item/agentMessage/delta")
    await asked(codex, "turn/interrupt", threadId=thread, turnId=UNKNOWN)
    await asked(codex, "turn/interrupt", threadId=thread, turnId=turn)
    await codex.wait_for("turn/completed")
    # Not asked: the same once more. 0.171 says that there is no active turn, 0.163 says nothing at all.
    await listed(codex, thread)


def decided(decision: str) -> Talk:
    async def talk(side: Side) -> None:
        codex = await side.connect("a")
        thread = await opened(side, codex)
        await codex.start_turn(thread, "@say I look.\n@shell echo hi > made; cat made\n@say I looked.")
        request = await codex.wait_for(COMMAND)
        await codex.answer(request, {"decision": decision})
        await codex.wait_for("turn/completed")
        await listed(codex, thread)

    return talk


def patched(decision: str) -> Talk:
    async def talk(side: Side) -> None:
        codex = await side.connect("a")
        thread = await opened(side, codex)
        await codex.start_turn(thread, "@say I write.\n@patch add made.txt hello\n@say done.")
        request = await codex.wait_for("item/fileChange/requestApproval")
        await codex.answer(request, {"decision": decision})
        await codex.wait_for("turn/completed")
        await listed(codex, thread)

    return talk


async def interrupted_while_asking(side: Side) -> None:
    codex = await side.connect("a")
    thread = await opened(side, codex)
    turn = await codex.start_turn(thread, "@shell echo hi > made; cat made\n@say done")
    await codex.wait_for(COMMAND)
    await asked(codex, "turn/interrupt", threadId=thread, turnId=turn)
    await codex.wait_for("serverRequest/resolved")


async def two_connections(side: Side) -> None:
    """One that asks, one that comes later and gets the open request again; the first answer wins."""
    first, second = await side.connect("a"), await side.connect("b")
    thread = await opened(side, first)
    await second.wait_for("thread/started")
    await asked(second, "thread/resume", threadId=thread, excludeTurns=True)  # nothing is stored yet
    await said(first, thread, "hello", "p1")
    await second.wait_for("thread/status/changed", lambda params: params["status"]["type"] == "idle")
    before = len(first.messages)
    await first.start_turn(thread, "@shell echo hi > made; cat made\n@say done", clientUserMessageId="p2")
    await first.wait_for(COMMAND, since=before)
    await second.wait_for("thread/status/changed", lambda params: params["status"].get("activeFlags"))
    await asked(second, "thread/resume", threadId=thread, excludeTurns=True)
    request = await second.wait_for(COMMAND)
    await second.answer(request, {"decision": "accept"})
    await second.wait_for("turn/completed")
    await first.wait_for("turn/completed", since=before)
    for _ in range(2):
        await asked(second, "thread/unsubscribe", threadId=thread)


async def a_turn_outlives_its_client(side: Side) -> None:
    first, second = await side.connect("a"), await side.connect("b")
    thread = await opened(side, first)
    await second.wait_for("thread/started")
    await said(first, thread, "hello", "p1")
    before = len(first.messages)
    await first.start_turn(thread, "@say one\n@hold gate\n@say two", clientUserMessageId="p2")
    await first.wait_for("item/agentMessage/delta", since=before)
    await second.wait_for("thread/status/changed", lambda params: params["status"]["type"] == "idle")
    await first.vanish()  # type: ignore[attr-defined]  # both kinds have it, each in its way
    await asked(second, "thread/resume", threadId=thread, excludeTurns=True)
    await listed(second, thread)
    side.release("gate")
    await second.wait_for("turn/completed")


async def killed(side: Side) -> None:
    """What is left after SIGKILL in the middle of a turn, and of a thread that never had one."""
    codex = await side.connect("a")
    thread, empty = await opened(side, codex), await opened(side, codex)
    await said(codex, thread, "hello", "p1")
    before = len(codex.messages)
    await codex.start_turn(thread, "@say one\n@hold gate\n@say two", clientUserMessageId="p2")
    await codex.wait_for("item/agentMessage/delta", since=before)
    await side.kill()
    codex = await side.connect("b")
    await listed(codex, thread)
    await asked(codex, "turn/start", threadId=thread, input=[{"type": "text", "text": "too early"}])
    await asked(codex, "thread/resume", threadId=thread, excludeTurns=True)
    await listed(codex, thread)
    await said(codex, thread, "again", "p3")
    for method in ("thread/resume", "thread/read"):
        await asked(codex, method, threadId=empty)


async def steers(side: Side) -> None:
    """A second `turn/start` steers in silence; what was being said is cut short and never completed."""
    codex = await side.connect("a")
    thread = await opened(side, codex)
    turn = await codex.start_turn(thread, "@say one\n@hold gate\n@say two", clientUserMessageId="p1")
    await codex.wait_for("item/agentMessage/delta")
    text = [{"type": "text", "text": "@say three\n@hold other\n@say four"}]
    await asked(codex, "turn/start", threadId=thread, input=text, clientUserMessageId="p2")
    await codex.wait_for("item/agentMessage/delta", lambda params: "three" in params["delta"])
    await asked(codex, "turn/steer", threadId=thread, expectedTurnId=UNKNOWN, input=text)
    text = [{"type": "text", "text": "five"}]
    await asked(codex, "turn/steer", threadId=thread, expectedTurnId=turn, input=text, clientUserMessageId="p3")
    await codex.wait_for("turn/completed")
    await asked(codex, "turn/steer", threadId=thread, expectedTurnId=turn, input=text)
    await listed(codex, thread)


async def a_steer_while_it_asks(side: Side) -> None:
    codex = await side.connect("a")
    thread = await opened(side, codex)
    await codex.start_turn(thread, "@shell echo hi > made; cat made\n@say done", clientUserMessageId="p1")
    request = await codex.wait_for(COMMAND)
    text = [{"type": "text", "text": "and this"}]
    await asked(codex, "turn/start", threadId=thread, input=text, clientUserMessageId="p2")
    await codex.answer(request, {"decision": "accept"})
    await codex.wait_for("turn/completed")


async def a_compaction(side: Side) -> None:
    """It takes no prompt while it runs, in no way."""
    codex = await side.connect("a")
    thread = await opened(side, codex, config={"compact_prompt": "@hold gate\n@say short"})
    await said(codex, thread, "hello", "p1")
    before = len(codex.messages)
    await asked(codex, "thread/compact/start", threadId=thread)
    begun = await codex.wait_for("turn/started", since=before)
    await codex.wait_for("item/started", since=before)
    text = [{"type": "text", "text": "now?"}]
    await asked(codex, "turn/start", threadId=thread, input=text)
    await asked(codex, "turn/steer", threadId=thread, expectedTurnId=begun["params"]["turn"]["id"], input=text)
    side.release("gate")
    await codex.wait_for("turn/completed", since=before)


async def refusals(side: Side) -> None:
    codex = await side.connect("a")
    thread = await opened(side, codex)
    text = [{"type": "text", "text": "x"}]
    await listed(codex, thread)
    await listed(codex, UNKNOWN)
    for method, params in (
        ("thread/resume", {}),
        ("thread/read", {}),
        ("thread/unsubscribe", {}),
        ("thread/delete", {}),
        ("thread/backgroundTerminals/clean", {}),
        ("turn/start", {"input": text}),
        ("turn/steer", {"input": text, "expectedTurnId": UNKNOWN}),
        ("turn/interrupt", {"turnId": UNKNOWN}),
    ):
        await asked(codex, method, threadId=UNKNOWN, **params)
    await asked(codex, "thread/resume", threadId=thread, excludeTurns=True)
    await asked(codex, "turn/start", threadId=thread)
    await asked(codex, "turn/start", threadId=thread, input=[{"type": "text", "text": "x" * 1_048_577}])
    await asked(codex, "thread/start", cwd=side.cwd, modelProvider="gone")
    await said(codex, thread, "hello")
    await asked(codex, "thread/backgroundTerminals/clean", threadId=thread)
    await asked(codex, "thread/name/set", threadId=thread, name="a name")
    await codex.wait_for("thread/name/updated")


async def put_away(side: Side) -> None:
    """Archived, and deleted: unloaded, and each refused in its own words."""
    codex = await side.connect("a")
    thread = await opened(side, codex)
    await said(codex, thread, "hello")
    await asked(codex, "thread/archive", threadId=thread)
    await codex.wait_for("thread/archived")
    await asked(codex, "thread/resume", threadId=thread, excludeTurns=True)
    await asked(codex, "turn/start", threadId=thread, input=[{"type": "text", "text": "x"}])
    other = await opened(side, codex)
    await said(codex, other, "hello")
    await asked(codex, "thread/delete", threadId=other)
    await codex.wait_for("thread/deleted")
    await asked(codex, "thread/resume", threadId=other, excludeTurns=True)


TALKS: dict[str, Talk] = {
    "plain turns": plain_turns,
    "failures": failures,
    "interrupts": interrupts,
    "accepted": decided("accept"),
    "declined": decided("decline"),
    "cancelled": decided("cancel"),
    "a patch accepted": patched("accept"),
    "a patch declined": patched("decline"),
    "a patch cancelled": patched("cancel"),
    "interrupted while asking": interrupted_while_asking,
    "two connections": two_connections,
    "a turn outlives its client": a_turn_outlives_its_client,
    "killed": killed,
    "steers": steers,
    "a steer while it asks": a_steer_while_it_asks,
    "a compaction": a_compaction,
    "refusals": refusals,
    "put away": put_away,
}


NOT_HEARD = {"a compaction": {"thread/tokenUsage/updated"}}
"""What a compaction costs is told in several steps of Codex's own making, beside whatever is asked meanwhile."""


TRIES = 3
"""The real one's tasks race: the same conversation comes out in another order at times. The scripted one does what the
real one was seen to do, in one of so many conversations."""


@pytest.mark.parametrize("binary", sorted(BINARIES))
@pytest.mark.parametrize("talk", TALKS)
async def test_both_say_the_same(talk: str, binary: str, tmp_path: Path) -> None:
    async with open_scripted(tmp_path / "work") as scripted:
        with trio.fail_after(60):
            await TALKS[talk](scripted)
    wrong: list[str] = []
    for number in range(TRIES):
        folder, model = tmp_path / f"try-{number}", ScriptedModel()
        folder.mkdir()
        with trio.fail_after(60):
            async with open_server(model) as url, open_real(BINARIES[binary], model, url, folder) as real:
                await TALKS[talk](real)
        wrong = unlike(talk, real, scripted)
        if not wrong:
            return
    raise AssertionError(f"in {TRIES} conversations; the last one:\n" + "\n".join(wrong))


def unlike(talk: str, real: Side, scripted: Side) -> list[str]:
    """Return where the two differ, connection by connection."""
    assert real.logs.keys() == scripted.logs.keys()
    not_heard = NOT_HEARD.get(talk, set())
    return [
        f"on connection {name}: {line}"
        for name in real.logs
        for line in differences(
            heard(real.logs[name], not_heard=not_heard), heard(scripted.logs[name], not_heard=not_heard)
        )
    ]


@pytest.mark.parametrize("binary", sorted(BINARIES))
async def test_the_gap_before_a_first_rollout_has_its_own_wording(
    binary: str, model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    """For some milliseconds a thread whose first turn is acknowledged can neither be resumed without its turns nor
    read, and the text is not that of an unknown thread."""
    async with open_real(BINARIES[binary], model, base_url, tmp_path) as real:
        first, second = await real.connect("a"), await real.connect("b")
        for _ in range(20):
            thread = await first.start_thread(Path(real.cwd), **SETTINGS)
            await first.start_turn(thread, "hello")
            refusal = await asked(second, "thread/resume", threadId=thread, excludeTurns=True)
            if isinstance(refusal, CodexRefusal) and (refusal.code, refusal.message) == TEXTS["no-turns-yet"]:
                return
    raise AssertionError("20 times the second client was too early or too late")
