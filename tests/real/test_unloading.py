"""Idle sessions on the real Codex: let go after a while, and back with the next prompt."""

from pathlib import Path

import pytest
from support.daemon import open_daemon

from termald.scripted_model.model import ScriptedModel

pytestmark = pytest.mark.real


async def test_an_idle_session_is_let_go_and_goes_on_when_prompted(
    model: ScriptedModel, base_url: str, tmp_path: Path
) -> None:
    async with open_daemon(tmp_path, model, base_url, TERMALD_CODEX_IDLE_MS="1000") as daemon:
        await daemon.create("s", prompt={"input": "first"})
        await daemon.wait_done("s")
        gone = await daemon.wait_event(lambda event: event["kind"] == "session/detached", what="the unloading")
        assert gone["reason"] == "idle"
        await daemon.prompt("s", "second")
        (_, second) = await daemon.wait_done("s", 2)
        assert second["state"] == "normal"
        assert (await daemon.session("s"))["attachment"]["generation"] == 2
        assert len({call.thread_id for call in daemon.model.calls}) == 1
