"""What Codex knows of its account, asked for through the daemon."""

import pytest
from support.daemon import Daemon

pytestmark = pytest.mark.real


async def test_models_and_account_are_codexs_own_answers_with_their_age(daemon: Daemon) -> None:
    await daemon.wait_ready()
    first = await daemon.get("/api/models")
    assert "scripted" in {model["model"] for model in first["data"]}
    again = await daemon.get("/api/models")
    assert again["ageMs"] >= first["ageMs"]
    assert {**again, "ageMs": 0} == {**first, "ageMs": 0}
    fresh = await daemon.get("/api/models?fresh=true")
    assert fresh["ageMs"] <= again["ageMs"]
    account = await daemon.get("/api/account")
    assert account["account"] is None
    assert account["state"] == "ready"  # the scripted provider wants no login


async def test_what_codex_refuses_is_a_problem_that_keeps_its_words(daemon: Daemon) -> None:
    await daemon.wait_ready()
    response = await daemon.call("GET", "/api/rate-limits")
    assert response.status_code == 502, response.text
    problem = response.json()
    assert problem["type"] == "urn:termald:problem:codex-refused"
    assert problem["codex"]["message"]
