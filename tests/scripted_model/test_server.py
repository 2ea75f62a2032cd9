"""The endpoint on a real port: what reaches a client, when, and how a cut looks from there."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio

from termald.scripted_model.model import ScriptedModel
from termald.scripted_model.server import run

DEADLINE_S = 10


def body(prompt: str) -> bytes:
    return json.dumps({"model": "scripted", "stream": True, "input": prompt}).encode()


@asynccontextmanager
async def asking(base_url: str, prompt: str) -> AsyncIterator[httpx.Response]:
    headers = {"content-type": "application/json"}
    with trio.fail_after(DEADLINE_S):
        async with (
            httpx.AsyncClient() as client,
            client.stream("POST", f"{base_url}/responses", content=body(prompt), headers=headers) as response,
        ):
            yield response


async def test_an_answer_arrives_whole(base_url: str) -> None:
    async with asking(base_url, "@deltas 5000 size=4") as response:
        lines = [line async for line in response.aiter_lines()]
    assert response.headers["content-type"] == "text/event-stream"
    assert lines.count("event: response.output_text.delta") == 5000
    assert lines[-2].startswith('data: {"type":"response.completed"')


async def test_what_stands_before_a_hold_is_on_its_way_while_it_holds(model: ScriptedModel, base_url: str) -> None:
    async with asking(base_url, "@say before\n@hold gate\n@say after") as response:
        lines = response.aiter_lines()
        async for line in lines:
            if '"delta":"before"' in line:
                break
        await model.wait_held("gate")
        model.release("gate")
        rest = [line async for line in lines]
    assert [json.loads(line[6:])["delta"] for line in rest if '"delta":' in line] == ["\nafter"]


async def test_a_cut_is_no_end_of_the_body(base_url: str) -> None:
    """A client that took a cut for an end would take half an answer for a whole one."""
    seen = ""
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        async with asking(base_url, "@say half\n@cut") as response:
            async for text in response.aiter_text():
                seen += text
    assert '"delta":"half"' in seen
    assert "response.completed" not in seen


async def test_a_clean_cut_is_an_end_of_the_body(base_url: str) -> None:
    async with asking(base_url, "@say half\n@cut clean") as response:
        text = (await response.aread()).decode()
    assert '"delta":"half"' in text
    assert "response.completed" not in text


async def test_a_client_that_hangs_up_is_noticed(model: ScriptedModel, base_url: str) -> None:
    async with asking(base_url, "@open\n@hold gate"):
        await model.wait_held("gate")
    with trio.fail_after(DEADLINE_S):
        assert (await model.wait_settled(1)).outcome == "left"


async def test_a_refusal_has_its_status_headers_and_reason(base_url: str) -> None:
    async with asking(base_url, "@fail 429 retry-after=3 message=slower") as response:
        await response.aread()
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")
    assert response.json()["error"]["message"] == "slower"


async def test_one_connection_serves_one_call_after_the_other(model: ScriptedModel, base_url: str) -> None:
    headers = {"content-type": "application/json"}
    with trio.fail_after(DEADLINE_S):
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=1)) as client:
            for prompt in ("@say one", "@fail 500", "@say two"):
                await client.post(f"{base_url}/responses", content=body(prompt), headers=headers)
            control = base_url.removesuffix("/v1")
            calls = (await client.get(f"{control}/control/calls")).json()["calls"]
    assert [call["outcome"] for call in calls] == ["completed", "refused", "completed"]


async def test_only_who_names_a_loopback_address_is_served(base_url: str) -> None:
    """A page in the user's browser must not be able to script what Codex does next."""
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{base_url}/models", headers={"host": "model.example"})
    assert answer.status_code == 421


async def test_the_end_of_the_server_drops_what_is_held(model: ScriptedModel) -> None:
    serving = trio.CancelScope()

    async def serve(task_status: trio.TaskStatus[str]) -> None:
        with serving:
            await run(model=model, task_status=task_status)

    async with trio.open_nursery() as nursery:
        base_url = await nursery.start(serve)
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            async with asking(base_url, "@open\n@hold gate") as response:
                await model.wait_held("gate")
                serving.cancel()
                await response.aread()
    assert model.calls[0].outcome == "left"


async def test_run_tells_its_address_and_ends_when_cancelled() -> None:
    async with trio.open_nursery() as nursery:
        base_url = await nursery.start(run)
        async with httpx.AsyncClient() as client:
            models = (await client.get(f"{base_url}/models")).json()
        nursery.cancel_scope.cancel()
    assert models["data"][0]["id"] == "scripted"
