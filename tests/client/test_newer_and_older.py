"""Daemons of other versions: what they have more is passed over, what they have not is a refusal with its slug."""

from pathlib import Path

import pytest
import trio
from support.canned_daemon import Canned, canned_daemon

from termald.client import Refused, connect

NEWER = {
    "GET /api/sessions": Canned(
        200, {"data": [{"id": "s", "status": "of the future", "new": {"deep": [1]}}], "nextCursor": None, "more": 1}
    ),
    "GET /api/models": Canned(200, {"data": [{"id": "m"}], "ageMs": 5}),
    "GET /api/phantoms": Canned(200, {"data": [{"sessionId": "s"}], "nextCursor": None}),
    "POST /api/phantoms/kill": Canned(200, {"dryRun": True, "killed": ["s"], "spared": []}),
    "POST /api/sessions/s/compact": Canned(202, {"anything": True}),
}
MISSING = Canned(404, {"type": "urn:termald:problem:not-found", "title": "Nothing here", "detail": "x"})


async def test_a_newer_daemon_is_read_as_far_as_it_is_known(tmp_path: Path) -> None:
    with canned_daemon(NEWER, tmp_path), trio.fail_after(20):
        async with connect(runtime_dir=tmp_path, state_dir=tmp_path) as termald:
            (session,) = await termald.sessions()
            assert (session.id, session.status) == ("s", "of the future")
            assert await termald.models() == [{"id": "m"}]
            assert await termald.phantoms() == [{"sessionId": "s"}]
            assert (await termald.kill_phantoms(["s"], dry_run=True))["killed"] == ["s"]
            assert await termald.get_session("s").compact() == {"anything": True}


async def test_what_an_older_daemon_does_not_have_is_a_refusal(tmp_path: Path) -> None:
    answers = {f"POST /api/sessions/s/{what}": MISSING for what in ("compact", "revert", "fork")}
    with canned_daemon({**answers, "GET /api/models": MISSING}, tmp_path), trio.fail_after(20):
        async with connect(runtime_dir=tmp_path, state_dir=tmp_path) as termald:
            session = termald.get_session("s")
            for call in (session.compact, session.fork, termald.models):
                with pytest.raises(Refused) as refusal:
                    await call()
                assert (refusal.value.slug, refusal.value.status) == ("not-found", 404)
            with pytest.raises(Refused, match="Nothing here"):
                await session.revert(turns=1)
