"""What a scan tells of a home is what the real Codex says of it over the protocol, and Codex's home is not touched."""

from pathlib import Path
from typing import Any

import pytest
from scan.homemade import AT, rollout_path, snapshot, thread_id, write_rollout
from scan.legacy import LEGACY
from support.codex_process import CodexProcess, CodexRefusal, open_codex
from support.scripted_lab import Lab

from discovery.homes import find_state_file
from discovery.scanner import ScanReport, scan
from discovery.source import read_source
from state.records import KnownThread, SessionId
from state.tags import Tag, mint_tag, parse_tag
from termald.scripted_model.config import write_codex_home

pytestmark = pytest.mark.real

EVERY_KIND = ["cli", "vscode", "exec", "appServer", "subAgent", "subAgentReview", "subAgentThreadSpawn", "unknown"]
MESSAGES = {"userMessage", "agentMessage"}


def home_of(lab: Lab) -> Path:
    return lab.cwd.parent / "codex-home"


async def scanned(home: Path) -> tuple[dict[str, KnownThread], ScanReport]:
    """One whole scan by somebody who knows nothing yet."""
    told: list[KnownThread] = []

    async def emit(threads: tuple[KnownThread, ...]) -> None:
        told.extend(threads)

    async def known_stamps(_: object) -> dict[Any, str]:
        return {}

    report = await scan(home, emit=emit, known_stamps=known_stamps)
    assert len({thread.thread_id for thread in told}) == len(told)
    return {thread.thread_id: thread for thread in told}, report


async def counts_of(home: Path) -> dict[str, int | None]:
    threads, _ = await scanned(home)
    return {thread: known.message_count for thread, known in threads.items()}


async def messages_shown(codex: CodexProcess, thread: str) -> int:
    """How many messages Codex itself shows of a thread."""
    shown, cursor = 0, None
    while True:
        page = await codex.request("thread/items/list", {"threadId": thread, "cursor": cursor, "limit": 3})
        shown += sum(entry["item"]["type"] in MESSAGES for entry in page["data"])
        cursor = page["nextCursor"]
        if cursor is None:
            return shown


async def listed(codex: CodexProcess, *, archived: bool = False) -> dict[str, dict[str, Any]]:
    params = {"modelProviders": [], "sourceKinds": EVERY_KIND, "useStateDbOnly": True, "archived": archived}
    page = await codex.request("thread/list", params)
    assert page["nextCursor"] is None
    return {thread["id"]: thread for thread in page["data"]}


async def turns(lab: Lab, thread: str, *prompts: str) -> list[str]:
    """Run a turn for each prompt and return their ids."""
    done = [await lab.codex.run_turn(thread, prompt) for prompt in prompts]
    assert {turn.status for turn in done} == {"completed"}
    return [turn.id for turn in done]


async def test_a_scan_tells_what_thread_list_tells(lab: Lab) -> None:
    home, codex = home_of(lab), lab.codex
    named = await lab.thread()
    await turns(lab, named, "first words\nand a second line", "more")
    await codex.request("thread/name/set", {"threadId": named, "name": "A name"})
    archived = await lab.thread()
    await turns(lab, archived, "to be archived")
    await codex.request("thread/archive", {"threadId": archived})
    ephemeral = await lab.thread(ephemeral=True)
    await turns(lab, ephemeral, "leaves nothing")
    turnless = await lab.thread()

    threads, report = await scanned(home)
    shown = await listed(codex) | await listed(codex, archived=True)
    assert (report.error, report.flaw, report.skipped, report.uncounted) == (None, None, (), ())
    assert set(threads) == set(shown) == {named, archived}
    assert not {ephemeral, turnless} & set(threads)
    for thread, known in threads.items():
        told = shown[thread]
        assert known.preview == told["preview"]
        assert known.cwd == told["cwd"] == str(lab.cwd)
        assert known.rollout_path == told["path"]
        assert (known.model, known.model_provider) == (told["model"], told["modelProvider"])
        assert (known.created_at_ms // 1000, known.updated_at_ms // 1000) == (told["createdAt"], told["updatedAt"])
        assert read_source(known.source).kind == told["source"]
        assert known.cls == "discovered"
    assert (threads[named].title, shown[named]["name"]) == ("A name", "A name")
    assert (threads[archived].title, threads[archived].archived, threads[named].archived) == (
        "to be archived",
        True,
        False,
    )


async def test_a_scan_changes_nothing_while_codex_runs_and_after_it_left(
    codex_binary: Path, base_url: str, tmp_path: Path
) -> None:
    home = tmp_path / "codex-home"
    write_codex_home(home, base_url)
    async with open_codex(codex_binary, home) as codex:
        thread = await codex.start_thread(tmp_path)
        await codex.run_turn(thread, "hello")
        # Codex's own log goes on by itself; what discovery opens does not.
        read = ("state_", "sessions/", "config.toml")
        before = {name: file for name, file in snapshot(home).items() if name.startswith(read)}
        assert {"state_5.sqlite", "state_5.sqlite-wal", "state_5.sqlite-shm"} < set(before)
        assert await counts_of(home) == {thread: 2}
        assert {name: file for name, file in snapshot(home).items() if name.startswith(read)} == before
    left = snapshot(home)
    assert await counts_of(home) == {thread: 2}
    assert snapshot(home) == left
    # And Codex finds everything as it was.
    async with open_codex(codex_binary, home) as codex:
        assert await messages_shown(codex, thread) == 2


async def test_counts_are_what_codex_shows(lab: Lab) -> None:
    """Of tool calls, steers, compactions, reviews and interrupted turns."""
    codex, expected = lab.codex, {}
    tools = await lab.thread()
    await turns(lab, tools, "@say before\n@shell echo hi\n@say between\n@message\n@say two\n@reasoning hm\n@say end")
    steered = await lab.thread()
    turn = await codex.start_turn(steered, "@say one\n@wait 300ms\n@say two")
    await codex.wait_for("turn/started", lambda params: params["threadId"] == steered)
    text = [{"type": "text", "text": "a steer"}]
    await codex.request("turn/steer", {"threadId": steered, "expectedTurnId": turn, "input": text})
    await codex.finish_turn(steered, turn)
    compacted = await lab.thread()
    await turns(lab, compacted, "before")
    await codex.request("thread/compact/start", {"threadId": compacted})
    since = len(codex.messages)
    await codex.wait_for("turn/completed", lambda params: params["threadId"] == compacted, since=since)
    await turns(lab, compacted, "after")
    interrupted = await lab.thread()
    turn = await codex.start_turn(interrupted, "@say part of an answer\n@hold for-ever")
    await codex.wait_for("item/agentMessage/delta", lambda params: params["threadId"] == interrupted)
    await codex.request("turn/interrupt", {"threadId": interrupted, "turnId": turn})
    assert (await codex.finish_turn(interrupted, turn)).status == "interrupted"
    for thread in (tools, steered, compacted, interrupted):
        expected[thread] = await messages_shown(codex, thread)
    assert min(expected.values()) >= 1
    assert await counts_of(home_of(lab)) == expected


async def test_forks_and_reverts_are_counted_along_their_line(lab: Lab) -> None:
    """Both copy nothing: a fork's own file may hold no message at all, a reverted thread has several files."""
    codex, request = lab.codex, lab.codex.request
    thread = await lab.thread()
    _, _, third = await turns(lab, thread, "one", "two", "three")
    untouched = (await request("thread/fork", {"threadId": thread}))["thread"]["id"]
    partly = (await request("thread/fork", {"threadId": thread, "beforeTurnId": third}))["thread"]["id"]
    await turns(lab, partly, "of the fork")
    await request("thread/revert", {"threadId": thread, "beforeTurnId": third})
    _, second = await turns(lab, thread, "three again", "four")
    of_reverted = (await request("thread/fork", {"threadId": thread}))["thread"]["id"]
    await request("thread/revert", {"threadId": thread, "beforeTurnId": second})
    await turns(lab, thread, "four again", "five")
    of_fork = (await request("thread/fork", {"threadId": of_reverted}))["thread"]["id"]
    everyone = (thread, untouched, partly, of_reverted, of_fork)
    expected = {each: await messages_shown(codex, each) for each in everyone}
    assert [expected[each] for each in everyone] == [10, 6, 6, 8, 8]

    home = home_of(lab)
    threads, report = await scanned(home)
    assert {each: known.message_count for each, known in threads.items()} == expected
    assert {known.preview for known in threads.values()} <= {"one", "of the fork"}, "no fork is without a first message"
    assert report.uncounted == ()
    await request("thread/archive", {"threadId": thread})
    assert await counts_of(home) == expected, "the files that forks go on from moved to the archive"


async def test_a_subagents_thread_names_its_parent(lab: Lab) -> None:
    """DISC-11: the sub-agent by its source, the review by its rollout alone."""
    codex = lab.codex
    parent = await lab.thread(threadSource=mint_tag("host", SessionId("docs"), 3))
    await turns(lab, parent, "@spawn do this\n@say spawned it")
    started = await codex.wait_for("turn/started", lambda params: params["threadId"] != parent)
    child = started["params"]["threadId"]
    await codex.wait_for("turn/completed", lambda params: params["threadId"] == child)
    forking = '@tool multi_agent_v1.spawn_agent {"message":"and this","fork_context":true}'
    await turns(lab, parent, f"{forking}\n@say spawned another")
    second = (await codex.wait_for("turn/started", lambda params: params["threadId"] not in {parent, child}))["params"]
    await codex.wait_for("turn/completed", lambda params: params["threadId"] == second["threadId"])
    # Nobody is told of a sub-agent's thread when it begins: a scan is how one learns of it.
    told = [m["params"]["thread"]["id"] for m in codex.messages if m["method"] == "thread/started"]
    assert told == [parent]
    reviewed = await lab.thread()
    await turns(lab, reviewed, "something to review")
    since = len(codex.messages)
    target = {"type": "custom", "instructions": "look at it"}
    await codex.request("review/start", {"threadId": reviewed, "target": target, "delivery": "inline"})
    await codex.wait_for("turn/completed", lambda params: params["threadId"] == reviewed, since=since)

    threads, _ = await scanned(home_of(lab))
    children = {known.thread_id: known for known in threads.values() if known.cls == "child"}
    spawned = {child, second["threadId"]}
    (review,) = (known for known in children.values() if known.thread_id not in spawned)
    assert set(threads) == {parent, reviewed, review.thread_id, *spawned}
    assert {threads[thread].parent_thread_id for thread in spawned} == {parent}
    assert review.parent_thread_id == reviewed
    assert read_source(review.source).parent is None
    assert {known.tag for known in children.values()} == {"subagent"}, "a child does not inherit our tag"
    shown = await listed(codex)
    # What `thread/list` does not say: whose a sub-agent is (but for its source), and our tag.
    assert (shown[child]["parentThreadId"], shown[parent]["threadSource"]) == (None, None)
    for thread in (parent, reviewed, *spawned):
        assert threads[thread].message_count == await messages_shown(codex, thread)


async def test_an_attached_thread_is_a_child(lab: Lab) -> None:
    """A side conversation, which Codex hides from its ordinary lists."""
    thread = await lab.thread()
    await turns(lab, thread, "the main one")
    fork = {"threadId": thread, "attachToSource": True}
    attached = (await lab.codex.request("thread/fork", fork))["thread"]
    if "attachedToThreadId" not in attached:
        pytest.skip(f"codex {lab.codex.version} has no attached threads")
    threads, _ = await scanned(home_of(lab))
    assert (threads[attached["id"]].cls, threads[attached["id"]].parent_thread_id) == ("child", thread)
    assert attached["id"] not in await listed(lab.codex)


@pytest.mark.parametrize("name", ["docs", "a:b:7", 'quote" \n\t\x00 é😀', "x" * 4000])
async def test_our_tag_comes_back_whole(lab: Lab, name: str) -> None:
    """DISC-09: it is what keeps a leftover of ours from being taken for the user's work."""
    session = SessionId(name)
    thread = await lab.thread(threadSource=mint_tag("host", session, 12))
    await turns(lab, thread, "hello")
    threads, _ = await scanned(home_of(lab))
    assert parse_tag(threads[thread].tag) == Tag(host_id="host", session_id=session, generation=12)


async def test_a_thread_without_a_tag_is_surely_not_ours(lab: Lab) -> None:
    thread = await lab.thread()
    await turns(lab, thread, "hello")
    threads, _ = await scanned(home_of(lab))
    assert threads[thread].tag == ""


async def test_a_thread_in_mid_turn_is_told_and_told_again(lab: Lab) -> None:
    """Codex writes while we read: what is in its WAL is seen, and what follows changes the stamp."""
    home, codex = home_of(lab), lab.codex
    thread = await lab.thread()
    turn = await codex.start_turn(thread, "@say begun\n@message\n@say held\n@hold gate")
    await codex.wait_for("item/completed", lambda params: params["item"]["type"] == "agentMessage")
    during, _ = await scanned(home)
    assert during[thread].message_count == await messages_shown(codex, thread) == 2
    lab.model.release("gate")
    await codex.finish_turn(thread, turn)
    after, _ = await scanned(home)
    assert after[thread].message_count == await messages_shown(codex, thread) == 3
    assert after[thread].stamp != during[thread].stamp


async def test_a_thread_whose_rollout_is_gone_cannot_be_resumed_and_is_told_so(
    codex_binary: Path, base_url: str, tmp_path: Path
) -> None:
    """DISC-08: the row stays, but Codex refuses it, so that no session may be made of it."""
    home = tmp_path / "codex-home"
    write_codex_home(home, base_url)
    async with open_codex(codex_binary, home) as codex:
        thread = await codex.start_thread(tmp_path)
        await codex.run_turn(thread, "hello")
    (rollout,) = home.glob("sessions/**/*.jsonl")
    rollout.unlink()
    threads, report = await scanned(home)
    assert threads[thread].rollout_path is None
    assert [told.reason for told in report.uncounted] == ["its rollout is missing"]
    async with open_codex(codex_binary, home) as codex:
        with pytest.raises(CodexRefusal, match="no rollout found"):
            await codex.request("thread/resume", {"threadId": thread})
        assert thread not in await listed(codex)


async def test_a_state_db_moved_by_the_configuration_is_found(
    codex_binary: Path, base_url: str, tmp_path: Path
) -> None:
    home, elsewhere = tmp_path / "codex-home", tmp_path / "elsewhere"
    write_codex_home(home, base_url)
    elsewhere.mkdir()
    config = home / "config.toml"
    config.write_text(f'sqlite_home = "{elsewhere}"\n' + config.read_text())
    async with open_codex(codex_binary, home) as codex:
        thread = await codex.start_thread(tmp_path)
        await codex.run_turn(thread, "hello")
        assert not list(home.glob("**/state_*"))
        assert find_state_file(home).path.parent == elsewhere
        assert await counts_of(home) == {thread: 2}


async def test_legacy_rollouts_are_counted_as_codex_shows_them(
    codex_binary: Path, base_url: str, tmp_path: Path
) -> None:
    """Hand-made ones of every kind, which Codex takes into its state DB by itself when it starts."""
    home = tmp_path / "codex-home"
    write_codex_home(home, base_url)
    meta = {"timestamp": AT, "originator": "codex_cli_rs", "cli_version": "0.50.0", "instructions": None}
    for number, (events, _) in enumerate(LEGACY.values()):
        write_rollout(rollout_path(home, number), thread_id(number), events, **meta)
    async with open_codex(codex_binary, home) as codex:
        shown = {name: await _shown_of_legacy(codex, thread_id(number)) for number, name in enumerate(LEGACY)}
        expected = {name: count for name, (_, count) in LEGACY.items()}
        if codex.version.startswith("0.163."):
            # There an aborted turn stays open, and takes the next message with it when it is rolled back.
            expected["a turn after an aborted one"] = 0
        assert shown == expected
        counted = await counts_of(home)
    assert {name: counted[thread_id(number)] for number, name in enumerate(LEGACY)} == {
        name: count for name, (_, count) in LEGACY.items()
    }


async def test_a_legacy_thread_of_today_is_counted(lab: Lab) -> None:
    """Codex still makes them, where it is asked to, and forks them by copying."""
    thread = await lab.thread(historyMode="legacy")
    await turns(lab, thread, "one", "@say a\n@shell echo hi\n@say b")
    fork = (await lab.codex.request("thread/fork", {"threadId": thread}))["thread"]["id"]
    shown = {each: await _shown_of_legacy(lab.codex, each) for each in (thread, fork)}
    assert await counts_of(home_of(lab)) == shown
    assert min(shown.values()) >= 4


async def _shown_of_legacy(codex: CodexProcess, thread: str) -> int:
    """`thread/items/list` refuses these; reading the thread does not load it."""
    read = await codex.request("thread/read", {"threadId": thread, "includeTurns": True})
    return sum(item["type"] in MESSAGES for turn in read["thread"]["turns"] for item in turn["items"])
