"""What termald tells of a turn is what Codex said of it: live, from the log, and by Codex's own record.

The traces were recorded from the real binaries, two versions of them (`golden/tape.py`); the installed one is recorded
anew with each run.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from golden.player import Played, play
from golden.scenes import SCENES
from golden.tape import load, record, saved
from support.codex_process import codex_binaries
from support.scripted_lab import open_lab

from state.records import Changes, Host, Seq
from state.store import open_store
from termald.client.events import read_event
from termald.client.sse import ServerEvent
from termald.client.turns import AccumulatedItem, TurnAccumulator
from termald.codex.reference import TOLD
from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import open_server


@pytest.fixture(params=list(saved()))
def played(request: pytest.FixtureRequest) -> Played:
    return play(load(saved()[request.param]))


def own(played: Played) -> list[dict[str, Any]]:
    """The events of the session's own thread; a sub-agent's name theirs."""
    return [event for event in played.events if "threadId" not in event or not event["kind"].startswith("item/")]


def stands(events: list[dict[str, Any]]) -> dict[tuple[str | None, str], AccumulatedItem]:
    """The items that a reader of these events is left with."""
    told = (ServerEvent(id=str(one["seq"]), kind=one["kind"], data=msgspec.json.encode(one).decode()) for one in events)
    built = TurnAccumulator(map(read_event, told))
    return {(item.turn_id, item.id): item for item in built.items}


def test_there_are_traces_of_two_versions_and_every_scene() -> None:
    versions = {name.partition("-")[0] for name in saved()}
    assert len(versions) >= 2
    assert set(saved()) == {f"{version}-{scene}" for version in versions for scene in SCENES}


def check_items_agree(played: Played) -> None:
    """Live, without the deltas (as a late reader gets them), in the store, and in Codex's own record."""
    live = stands(own(played))
    folded = stands([event for event in own(played) if event["kind"] != "item/delta"])
    whole = {key: item.item for key, item in live.items() if item.completed and not item.incomplete}
    assert whole == {key: item.item for key, item in folded.items() if item.completed and not item.incomplete}
    kept = {
        (record.turn_id, record.id): record.item_json
        for record in played.story.store.items.values()
        if record.state == "completed"
    }
    assert kept.keys() == whole.keys()
    recorded = {(turn["id"], item["id"]): item for turn in played.record for item in turn["items"]}
    for key, item in recorded.items():
        assert key in whole, f"Codex has {item}, and we do not"
        assert whole[key]["type"] == item["type"]
        for field in ("text", "clientId", "command", "exitCode", "status", "changes"):
            assert whole[key].get(field) == item.get(field), field


def check_deltas_add_up(played: Played) -> None:
    """The text of a message is what its deltas said, where Codex told it in deltas at all."""
    said: dict[str, str] = {}
    for event in played.events:
        if event["kind"] == "item/delta" and event["channel"] == "text":
            said[event["itemId"]] = said.get(event["itemId"], "") + event["delta"]
    final = {event["itemId"]: event["item"] for event in played.events if event["kind"] == "item/completed"}
    for item, text in said.items():
        if item in final and not final[item].get("incomplete"):
            assert final[item]["text"] == text


def check_turns_end_once(played: Played) -> None:
    """One beginning and one end for each turn that Codex has, in Codex's order, and nothing of it after its end."""
    started = [event["turnId"] for event in played.events if event["kind"] == "turn/started"]
    done = [event["turnId"] for event in played.events if event["kind"] == "turn/done"]
    assert started == done == [turn["id"] for turn in played.record]
    states = {"completed": {"normal"}, "interrupted": {"cancelled"}, "failed": {"error", "length"}}
    ends = {event["turnId"]: event for event in played.events if event["kind"] == "turn/done"}
    for turn in played.record:
        empty = not any(item["type"] != "userMessage" for item in turn["items"]) and turn["status"] == "completed"
        assert ends[turn["id"]]["state"] in ({"error"} if empty else states[turn["status"]])
    assert played.story.live().turn is None
    assert played.story.live().queue == ()


def check_blocks_bracket(played: Played) -> None:
    """A block is open or not; a reset takes back only what was begun in this turn and not finished."""
    for turn in played.record:
        is_open = False
        completed: set[str] = set()
        begun: set[str] = set()
        for event in own(played):
            if event.get("turnId") != turn["id"]:
                continue
            match event["kind"]:
                case "block/start":
                    assert not is_open
                    is_open = True
                case "block/stop":
                    assert is_open
                    is_open = False
                case "block/reset":
                    assert set(event["items"]) <= begun - completed
                    is_open = False
                case "item/started":
                    begun.add(event["itemId"])
                    assert is_open or event["item"]["type"] == "userMessage"
                case "item/completed":
                    assert event.get("incomplete") or event["itemId"] not in completed
                    completed.add(event["itemId"])
        assert not is_open


def check_usage_adds_up(played: Played) -> None:
    """Each call once: the sum of what was told is Codex's own running sum, and the turns' sums are theirs."""
    used = [event for event in own(played) if event["kind"] == "usage" and "threadId" not in event]
    for event in used:
        assert event["usage"]["totalTokens"] == event["usage"]["input"] + event["usage"]["output"]
        assert event["usage"]["cacheRead"] <= event["usage"]["input"]
    if used:
        assert sum(event["usage"]["totalTokens"] for event in used) == used[-1]["total"]["totalTokens"]
    ends = [event for event in played.events if event["kind"] == "turn/done"]
    assert sum(end["usage"]["totalTokens"] for end in ends) == sum(event["usage"]["totalTokens"] for event in used)


QUEUE = {"prompt/sent", "prompt/acked", "session/updated", "notice"}
"""What may follow from anything: the queue goes on, and what waits shows."""


def check_each_notification_becomes_what_the_page_says(played: Played) -> None:
    for method, _, events in played.told:
        if method in TOLD:
            said = set(re.findall(r"`([\w/]+)`", TOLD[method])) | QUEUE | {"codex/raw", "late"}
            assert {event.kind for event in events} <= said, method
        elif not method.startswith("the answer"):
            kinds = {event.kind for event in events}
            assert kinds <= {"codex/raw", "request/opened"} | QUEUE, method


def check_what_codex_sent_is_kept_byte_for_byte(played: Played) -> None:
    """Items, diffs, plans and whatever is passed on as it came; a sub-agent's too, which is told once it is known."""
    fields = {"codex/raw": "params", "item/started": "item", "item/completed": "item", "turn/diff": "diff"}
    wire = "\n".join(frame for _, frame, _ in played.told)
    told = [event for _, _, events in played.told for event in events if event.kind in fields]
    assert {"codex/raw", "item/started", "item/completed"} <= {event.kind for event in told}
    for event in told:
        sent = msgspec.json.decode(event.data_json, type=dict[str, msgspec.Raw])[fields[event.kind]]
        assert bytes(sent).decode() in wire, event.kind


def check_numbers_grow_by_one(played: Played) -> None:
    assert all(after["seq"] == before["seq"] + 1 for before, after in pairwise(played.events))


CHECKS: tuple[Callable[[Played], None], ...] = (
    check_items_agree,
    check_deltas_add_up,
    check_turns_end_once,
    check_blocks_bracket,
    check_usage_adds_up,
    check_each_notification_becomes_what_the_page_says,
    check_what_codex_sent_is_kept_byte_for_byte,
    check_numbers_grow_by_one,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_a_trace_of_the_real_codex(played: Played, check: Callable[[Played], None]) -> None:
    check(played)


async def test_the_log_gives_back_what_was_told_live(played: Played, tmp_path: Path) -> None:
    live = played.events
    async with open_store(tmp_path) as store:
        host: Host = (await store.boot()).host
        assert host.epoch == 1
        await store.commit(Changes(events=tuple(played.story.store.events)), sync=False)
        page = await store.events(Seq(0), 10_000)
    assert [record.data_json for record in page.events] == [record.data_json for record in played.story.store.events]
    assert len(page.events) == len(live)


@pytest.mark.real
@pytest.mark.parametrize("scene", SCENES)
async def test_the_installed_codex_still_says_it_so(scene: str, tmp_path: Path) -> None:
    model = ScriptedModel()
    binary = codex_binaries()["installed"]
    async with open_server(model) as url, open_lab(binary, model, url, tmp_path) as lab:
        played = play(await record(lab, scene))
    for check in CHECKS:
        check(played)
