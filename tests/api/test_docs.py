"""The pages say what the code does."""

import inspect
import re
from pathlib import Path
from typing import get_type_hints

import httpx

from termald.api import refusals as shell
from termald.api.problems import PROBLEMS
from termald.api.reference import problems_page
from termald.core.refusals import REFUSALS

DOCS = Path(__file__).parents[2] / "docs"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def test_the_list_of_problems_is_what_the_tables_say() -> None:
    """Renew it with `python -m termald.api.reference > docs/problems.md`."""
    assert (DOCS / "problems.md").read_text(encoding="utf-8") == problems_page()


def test_every_refusal_of_the_shell_is_in_the_list() -> None:
    made = [
        function
        for function in vars(shell).values()
        if inspect.isfunction(function) and get_type_hints(function)["return"] is shell.Refusal
    ]
    assert len(made) > 5
    for function in made:
        count = function.__code__.co_argcount
        refusal = function(*([0] * count))
        assert PROBLEMS[refusal.slug][:2] == (refusal.status, refusal.title)


def test_no_slug_means_two_things() -> None:
    """The three tables are merged into one; a slug in two of them would hide one."""
    page = problems_page()
    for slug in PROBLEMS:
        assert page.count(f"| `{slug}` |") == 1
    assert PROBLEMS.keys() >= REFUSALS.keys()


async def test_every_address_is_on_the_page_and_no_other(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    served = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}
    page = (DOCS / "http-api.md").read_text(encoding="utf-8")
    told = re.findall(rf"^\| `((?:{'|'.join(METHODS)}) [^`]+)` \|", page, re.MULTILINE)
    assert set(told) == served
    assert len(told) == len(served)
