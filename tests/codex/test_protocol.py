"""The generated types read what the next release of Codex sends, and are what the installed one says today."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from termald.codex.protocol import methods
from termald.codex.protocol import types as t

ROOT = Path(__file__).resolve().parents[2]
M = TypeVar("M", bound=msgspec.Struct)


def decode(kind: type[M], value: object) -> M:
    return msgspec.json.decode(json.dumps(value).encode(), type=kind)


def test_unknown_fields_enum_values_and_variants_are_read() -> None:
    """WIRE-07: a newer Codex must not cost a session its events."""
    notice: dict[str, Any] = {
        "threadId": "a",
        "status": {"type": "hibernating", "until": 5},
        "unheardOf": [1, {"x": None}],
    }
    assert decode(t.ThreadStatusChangedNotification, notice).status.type == "hibernating"
    item = decode(t.ThreadItem, {"type": "hologram", "id": "i1", "status": "shimmering", "beams": 3})
    assert (item.type, item.id, item.text) == ("hologram", "i1", None)


def test_dispensable_field_may_be_gone_or_null() -> None:
    """WIRE-07: a thread is worth knowing by its id and status alone."""
    thread = {"id": "a", "status": {"type": "idle"}}
    assert decode(t.ThreadStartedNotification, {"thread": thread}).thread.cwd is None
    assert decode(t.ThreadStartedNotification, {"thread": {**thread, "cwd": None, "turns": None}}).thread.turns is None


@pytest.mark.parametrize("missing", ["threadId", "turnId", "itemId", "delta"])
def test_message_without_what_it_is_about_is_refused(missing: str) -> None:
    """WIRE-07: an event must never be given to a guessed thread, turn or item."""
    delta = {"threadId": "a", "turnId": "b", "itemId": "c", "delta": "x"}
    assert decode(t.AgentMessageDeltaNotification, delta).delta == "x"
    with pytest.raises(msgspec.ValidationError, match=missing):
        decode(t.AgentMessageDeltaNotification, {name: value for name, value in delta.items() if name != missing})
    with pytest.raises(msgspec.ValidationError, match=missing):
        decode(t.AgentMessageDeltaNotification, {**delta, missing: None})


def test_item_that_cannot_be_read_spoils_nothing_around_it() -> None:
    item = '{"type":"agentMessage" , "id":7}'
    notice = msgspec.json.decode(
        f'{{"item":{item},"threadId":"a","turnId":"b"}}'.encode(), type=t.ItemCompletedNotification
    )
    assert bytes(notice.item) == item.encode()
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(notice.item, type=t.ThreadItem)


def test_error_info_is_read_in_both_its_shapes() -> None:
    assert decode(t.TurnError, {"message": "m", "codexErrorInfo": "other"}).codex_error_info == "other"
    tagged = {"httpConnectionFailed": {"httpStatusCode": 401}}
    assert decode(t.TurnError, {"message": "m", "codexErrorInfo": tagged}).codex_error_info == tagged


def test_what_was_not_set_is_not_written_and_null_is() -> None:
    """Codex reads an explicit null as "take it back" where an absent field means "leave it"."""
    params = t.TurnStartParams(thread_id="a", input=msgspec.Raw(b'[{"type":"text","text":"hi"}]'), service_tier=None)
    assert json.loads(msgspec.json.encode(params)) == {
        "threadId": "a",
        "input": [{"type": "text", "text": "hi"}],
        "serviceTier": None,
    }


def test_every_request_of_codex_has_both_its_types() -> None:
    """One without a response type could never be answered."""
    assert methods.SERVER_REQUESTS
    for method, (params, response) in methods.SERVER_REQUESTS.items():
        assert params is not None, method
        assert response is not None, method


def test_types_are_quick_to_import() -> None:
    """`termald --help` and every test pay for it.

    Measured in a fresh interpreter, as self time of the three modules.
    """
    command = [sys.executable, "-X", "importtime", "-c", "import termald.codex.protocol.methods"]
    report = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    own = [line.split("|") for line in report.splitlines() if "termald.codex.protocol" in line]
    assert len(own) == 3
    assert sum(int(cells[0].removeprefix("import time:")) for cells in own) < 150_000


@pytest.mark.real
def test_committed_types_are_what_the_installed_codex_says() -> None:
    check = [sys.executable, "-m", "tools.generate_protocol", "--check"]
    done = subprocess.run(check, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
