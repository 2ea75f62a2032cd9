"""The page of all that Codex tells and asks is what the code does with it."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from state.records import LinkId, RuntimeId
from termald.codex import frames
from termald.codex.handshake import unwanted
from termald.codex.protocol.methods import ALL_SERVER_NOTIFICATIONS, SERVER_REQUESTS
from termald.codex.reference import TOLD, becomes, protocol_page
from termald.codex.translate import asks
from termald.codex.translate.asks import CARDS, REFUSED, RULES
from termald.codex.translate.notices import HANDLERS, notice
from termald.core.inputs import RawNotice, RequestArrived

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
LINK = LinkId(runtime_id=RuntimeId("R"), connection=1)


def test_the_page_is_what_the_tables_say() -> None:
    """Renew it with `python -m termald.codex.reference > docs/protocol.md`."""
    assert PAGE.read_text(encoding="utf-8") == protocol_page()


def test_each_method_of_the_schema_has_its_line() -> None:
    named = re.findall(r"(?m)^\| `([\w/]+)` \|", protocol_page())
    assert sorted(named) == sorted([*ALL_SERVER_NOTIFICATIONS, *SERVER_REQUESTS])
    assert set(TOLD) == set(HANDLERS)
    assert not set(HANDLERS) & set(unwanted())
    assert [
        method for method in SERVER_REQUESTS if (method in CARDS) + (method in RULES) + (method in REFUSED) != 1
    ] == []


def notification(method: str) -> frames.Notification:
    raw = msgspec.json.encode({"method": method, "params": {"threadId": "T", "turnId": "t1", "x": [1, None]}})
    frame = frames.decode(raw)
    assert isinstance(frame, frames.Notification)
    return frame


@pytest.mark.parametrize("method", [*sorted(ALL_SERVER_NOTIFICATIONS - set(HANDLERS)), "some/thing/new"])
def test_what_has_no_kind_of_its_own_passes_as_it_came(method: str) -> None:
    told = notice(LINK, notification(method), 1)
    assert isinstance(told, RawNotice)
    assert (told.method, told.thread, told.turn) == (method, "T", "t1")
    assert told.params_json == '{"threadId":"T","turnId":"t1","x":[1,null]}'
    assert becomes(method).startswith(("`codex/raw`", "not heard"))


def asked(method: str, params: dict[str, Any]) -> RequestArrived:
    frame = frames.decode(msgspec.json.encode({"id": 0, "method": method, "params": params}))
    assert isinstance(frame, frames.ServerRequest)
    return asks.ask(LINK, frame, 1_000)


@pytest.mark.parametrize("method", [*SERVER_REQUESTS, "some/thing/new"])
@pytest.mark.parametrize(
    "params", [{"threadId": "T", "turnId": "t1", "itemId": "i"}, {}], ids=["of a thread", "of none"]
)
def test_each_request_is_somebodys_card_or_answered_at_once_and_nothing_is_accepted(
    method: str, params: dict[str, Any]
) -> None:
    request = asked(method, params)
    if method in CARDS and params:
        assert request.kind == CARDS[method]
        assert (request.rule_json, request.rule_error) == (None, None)
        return
    assert request.kind is None
    assert (request.rule_json is None) is not (request.rule_error is None)
    assert (request.rule_error is not None) is (method not in CARDS and method not in RULES)
    assert "accept" not in (request.rule_json or "")
    assert "approved" not in (request.rule_json or "")
