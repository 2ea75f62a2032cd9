"""The endpoint as an application: what it records, holds, cuts and refuses. No server, and a clock that jumps."""

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from termald.scripted_model.app import AnswerCutError, ScriptedApp
from termald.scripted_model.model import Held, ScriptedModel

SHELL = {"type": "function", "name": "exec_command"}


class Exchange:
    """One request to the application and what it answers; `leave` is the client hanging up."""

    def __init__(
        self, method: str, target: str, body: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        path, _, query = target.partition("?")
        self.scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": list(headers),
        }
        self.sent: list[dict[str, Any]] = []
        self._body: bytes | None = body
        self._left = trio.Event()

    def leave(self) -> None:
        self._left.set()

    async def receive(self) -> dict[str, Any]:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.sent.append(message)

    async def run(self, model: ScriptedModel) -> "Exchange":
        await ScriptedApp(model)(self.scope, self.receive, self.send)
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def content(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def ended(self) -> bool:
        return bool(self.sent) and self.sent[-1].get("more_body") is False


def ask(prompt: str, *, turn: str | None = "turn-1", thread: str = "thread-1", items: tuple[Any, ...] = ()) -> Exchange:
    metadata = {"thread_id": thread, **({"turn_id": turn} if turn else {})}
    body = {
        "model": "scripted",
        "stream": True,
        "input": [{"role": "user", "content": prompt}, *items],
        "tools": [SHELL],
        "client_metadata": metadata,
    }
    return Exchange("POST", "/v1/responses", json.dumps(body).encode())


CALLED = ({"type": "function_call", "name": "exec_command"}, {"type": "function_call_output", "output": "hi"})


async def test_an_answer_is_an_event_stream_and_the_record_says_what_was_asked(model: ScriptedModel) -> None:
    answered = await ask("@say hello").run(model)
    assert (answered.status, dict(answered.sent[0]["headers"])[b"content-type"]) == (200, b"text/event-stream")
    assert b"response.completed" in answered.content
    (call,) = model.calls
    assert (call.number, call.thread_id, call.turn_id, call.step, call.attempt) == (1, "thread-1", "turn-1", 0, 1)
    assert (call.prompt, call.tools, call.outcome) == ("@say hello", ("exec_command",), "completed")


async def test_what_is_ready_at_once_is_one_write(model: ScriptedModel) -> None:
    """A benchmark must measure its subject and not the writes of its model."""
    answered = await ask("@say a\n@message\n@say b").run(model)
    assert len(answered.sent) == 2


async def test_each_piece_is_sent_when_its_time_has_come(model: ScriptedModel, autojump_clock: MockClock) -> None:
    """Checked by the clock: a piece that waited for the next one would be there late."""
    exchange = ask("@pace 1s\n@say a b c")
    arrived: list[float] = []
    plain_send = exchange.send

    async def noted(message: Any) -> None:
        arrived.append(trio.current_time() - began)
        await plain_send(message)

    began = trio.current_time()
    exchange.send = noted  # type: ignore[method-assign]  # the test listens in
    await exchange.run(model)
    # Status and created, a piece each second, and the end together with nothing else to wait for.
    assert arrived == [0, 0, 1, 2, 3]


async def test_the_next_model_call_follows_the_tool_output(model: ScriptedModel) -> None:
    script = "@shell ls\n@say after"
    assert b"function_call" in (await ask(script).run(model)).content
    assert b'"delta":"after"' in (await ask(script, items=CALLED).run(model)).content
    assert [(call.step, call.attempt) for call in model.calls] == [(0, 1), (1, 1)]


async def test_attempts_are_counted_for_each_turn_on_its_own(model: ScriptedModel) -> None:
    script = "@fail 500 times=1\n@say fine"
    statuses = [(await ask(script, turn=turn).run(model)).status for turn in ("a", "b", "a", "b")]
    assert statuses == [500, 500, 200, 200]
    assert [call.attempt for call in model.calls] == [1, 1, 2, 2]
    assert [call.outcome for call in model.calls] == ["refused", "refused", "completed", "completed"]


async def test_a_call_beyond_the_script_is_answered_with_done(model: ScriptedModel) -> None:
    answers = [(await ask("@say once").run(model)).content for _ in range(3)]
    assert [b'"delta":"once"' in answer for answer in answers] == [True, False, False]
    assert [b'"delta":"Done."' in answer for answer in answers] == [False, True, True]
    assert [call.step for call in model.calls] == [0, 1, 2]


async def test_without_a_turn_id_the_script_begins_again(model: ScriptedModel) -> None:
    for _ in range(2):
        answered = await ask("@say once", turn=None).run(model)
        assert b'"delta":"once"' in answered.content


async def test_without_ids_attempts_are_counted_by_prompt(model: ScriptedModel) -> None:
    statuses = [
        (await ask(prompt, turn=None).run(model)).status
        for prompt in ("@say x", "@fail 500 times=1", "@fail 429 times=1", "@fail 500 times=1")
    ]
    assert statuses == [200, 500, 429, 200]


async def test_a_steered_turn_begins_a_script_of_its_own(model: ScriptedModel) -> None:
    await ask("@say one").run(model)
    answered = await ask("@say one", items=({"role": "user", "content": "@fail 500 times=1\n@say two"},)).run(model)
    assert answered.status == 500
    assert model.calls[-1].attempt == 1


async def test_a_held_answer_waits_for_its_name(model: ScriptedModel) -> None:
    exchange = ask("@say before\n@hold gate\n@say after")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange.run, model)
        assert await model.wait_held("gate") == (1,)
        assert model.holds == (Held("gate", (1,)),)
        assert b'"delta":"before"' in exchange.content
        assert model.calls[0].outcome == "open"
        assert model.release("gate") == 1
        assert (await model.wait_settled(1)).outcome == "completed"
    assert b'"delta":"\\nafter"' in exchange.content
    assert exchange.ended
    assert not model.holds


async def test_a_release_ahead_of_time_lets_one_pass(model: ScriptedModel) -> None:
    assert model.release("gate") == 0
    await ask("@hold gate", turn="a").run(model)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask("@hold gate", turn="b").run, model)
        await model.wait_held("gate")
        nursery.cancel_scope.cancel()
    assert [call.outcome for call in model.calls] == ["completed", "left"]


async def test_one_release_lets_all_go_on_who_wait(model: ScriptedModel) -> None:
    async with trio.open_nursery() as nursery:
        for turn in "abc":
            nursery.start_soon(ask("@hold gate", turn=turn).run, model)
        assert sorted(await model.wait_held("gate", count=3)) == [1, 2, 3]
        assert model.release("gate") == 3
    assert [call.outcome for call in model.calls] == ["completed"] * 3


async def test_a_client_that_leaves_frees_its_hold(model: ScriptedModel) -> None:
    exchange = ask("@say before\n@hold gate")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange.run, model)
        await model.wait_held("gate")
        exchange.leave()
        assert (await model.wait_settled(1)).outcome == "left"
    assert not model.holds
    assert not exchange.ended


async def test_a_client_that_leaves_is_noticed_in_a_pause(model: ScriptedModel, autojump_clock: MockClock) -> None:
    exchange = ask("@wait 600s\n@say late")
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(exchange.run, model)
        await model.wait_for_calls(1)
        exchange.leave()
        await model.wait_settled(1)
    assert trio.current_time() == began
    assert exchange.sent == []


async def test_a_cut_answer_is_left_in_the_middle_of_its_body(model: ScriptedModel) -> None:
    exchange = ask("@say half\n@cut")
    with pytest.raises(AnswerCutError, match="call 1"):
        await exchange.run(model)
    assert b'"delta":"half"' in exchange.content
    assert not exchange.ended
    assert model.calls[0].outcome == "cut"


async def test_a_clean_cut_ends_the_body_without_the_last_event(model: ScriptedModel) -> None:
    answered = await ask("@say half\n@cut clean").run(model)
    assert answered.ended
    assert b"response.completed" not in answered.content
    assert model.calls[0].outcome == "cutClean"


@pytest.mark.parametrize(
    ("exchange", "reason"),
    [
        (ask("@nonsense"), "line 1: @nonsense: no such directive"),
        (ask("@ask What? | a | b"), "does not offer request_user_input; it offers exec_command"),
        (ask("@say x", items=CALLED), "this script has 0 tool calls, and no model call that follows 1"),
    ],
    ids=["directive", "tool", "history"],
)
async def test_a_script_that_cannot_be_carried_out_is_refused_and_recorded(
    exchange: Exchange, reason: str, model: ScriptedModel
) -> None:
    answered = await exchange.run(model)
    assert answered.status == 400
    assert reason in answered.json["error"]["message"]
    assert len(model.calls) == 1
    call = model.calls[0]
    assert (call.outcome, call.error, call.step) == ("refused", answered.json["error"]["message"], None)


@pytest.mark.parametrize(
    ("exchange", "reason"),
    [
        (Exchange("POST", "/v1/responses", b"{}"), "missing required field `model`"),
        (Exchange("POST", "/v1/responses", b"", ((b"Content-Encoding", b"zstd"),)), "encoded as zstd"),
    ],
    ids=["body", "encoding"],
)
async def test_what_is_no_request_is_refused_and_not_recorded(
    exchange: Exchange, reason: str, model: ScriptedModel
) -> None:
    answered = await exchange.run(model)
    assert answered.status == 400
    assert reason in answered.json["error"]["message"]
    assert not model.calls


async def test_the_record_is_read_over_http_from_a_number_on_and_by_thread(model: ScriptedModel) -> None:
    for thread in ("a", "b", "a"):
        await ask("@say x", thread=thread).run(model)
    calls = (await Exchange("GET", "/control/calls").run(model)).json["calls"]
    assert [(call["number"], call["threadId"]) for call in calls] == [(1, "a"), (2, "b"), (3, "a")]
    assert calls[0]["userTexts"] == ["@say x"]
    later = (await Exchange("GET", "/control/calls?after=1&thread=a").run(model)).json["calls"]
    assert [call["number"] for call in later] == [3]
    assert (await Exchange("GET", "/control/calls?after=x").run(model)).status == 400


async def test_holds_are_seen_and_released_over_http(model: ScriptedModel) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask("@hold a.b").run, model)
        await model.wait_held("a.b")
        assert (await Exchange("GET", "/control/holds").run(model)).json == {"holds": [{"name": "a.b", "calls": [1]}]}
        assert (await Exchange("POST", "/control/release/a.b").run(model)).json == {"released": 1}
    assert (await Exchange("GET", "/control/holds").run(model)).json == {"holds": []}


async def test_a_reset_forgets_and_lets_go_and_numbers_go_on(model: ScriptedModel) -> None:
    model.release("early")
    await ask("@fail 500 times=1", turn="a").run(model)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask("@hold gate", turn="b").run, model)
        await model.wait_held("gate")
        await Exchange("POST", "/control/reset").run(model)
    assert not model.calls
    assert (await ask("@fail 500 times=1", turn="a").run(model)).status == 500
    assert [(call.number, call.attempt) for call in model.calls] == [(3, 1)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask("@hold early", turn="c").run, model)
        await model.wait_held("early")
        nursery.cancel_scope.cancel()


async def test_models_are_told_in_both_dialects(model: ScriptedModel) -> None:
    told = (await Exchange("GET", "/v1/models").run(model)).json
    assert [entry["id"] for entry in told["data"]] == [entry["slug"] for entry in told["models"]]
    assert [entry["id"] for entry in told["data"]] == ["scripted", "scripted-mini"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/responses"), ("POST", "/control/calls"), ("GET", "/")])
async def test_other_addresses_are_not_found(method: str, path: str, model: ScriptedModel) -> None:
    answered = await Exchange(method, path).run(model)
    assert answered.status == 404
    assert answered.json["error"]["message"] == f"there is no {method} {path} here"
