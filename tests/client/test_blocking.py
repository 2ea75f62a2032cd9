"""The library without `await` is the same library: each name, each choice, and nothing else."""

import inspect
from typing import Any

import pytest

from termald.client import blocking
from termald.client.requests import Request
from termald.client.run import Run
from termald.client.session import Session
from termald.client.termald import Termald

SHOWN_BY_THE_CARD = {"bound", "about"}
PAIRS = [
    pytest.param(Termald, blocking.Termald, {"aclose"}, set[str](), id="Termald"),  # the end of the block closes it
    pytest.param(Session, blocking.Session, set[str](), set[str](), id="Session"),
    pytest.param(Run, blocking.Run, {"aclose"}, {"close"}, id="Run"),
    pytest.param(Request, blocking.Request, SHOWN_BY_THE_CARD, set[str](), id="Request"),
]


def methods(kind: type) -> dict[str, Any]:
    return {
        name: value
        for name, value in inspect.getmembers_static(kind)
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }


@pytest.mark.parametrize(("asynchronous", "plain", "fewer", "more"), PAIRS)
def test_each_name_is_there_and_takes_the_same(
    asynchronous: type, plain: type, fewer: set[str], more: set[str]
) -> None:
    theirs, ours = methods(asynchronous), methods(plain)
    assert set(ours) - more == set(theirs) - fewer
    for name in set(ours) - more:
        if inspect.isfunction(ours[name]):
            taken = [
                {each.name: (each.kind, each.default) for each in inspect.signature(found[name]).parameters.values()}
                for found in (ours, theirs)
            ]
            assert taken[0] == taken[1], name
            assert not inspect.iscoroutinefunction(ours[name])
