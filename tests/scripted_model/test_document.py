"""The document for strangers, held to the code: each directive is in it, and each script in it is one."""

import re
from pathlib import Path

import pytest
from support.scripted_lab import Lab

from termald.scripted_model.config import codex_config
from termald.scripted_model.script import DIRECTIVES, parse_script

DOCUMENT = (Path(__file__).parents[2] / "docs" / "scripted-model.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"(?ms)^```script\n(.*?)^```$", DOCUMENT)


@pytest.mark.parametrize("name", DIRECTIVES)
def test_each_directive_has_its_line_in_a_table(name: str) -> None:
    assert re.search(rf"(?m)^\| `@{name}\b", DOCUMENT)


def test_the_document_names_no_directive_that_is_not_there() -> None:
    named = set(re.findall(r"`@([a-z]+)", DOCUMENT)) | set(re.findall(r"(?m)^@([a-z]+)", "\n".join(SCRIPTS)))
    assert named == set(DIRECTIVES)


def test_the_configuration_is_the_one_that_the_code_writes() -> None:
    assert codex_config("http://127.0.0.1:8123/v1") in DOCUMENT


@pytest.mark.real
async def test_each_script_runs_with_codex(lab: Lab) -> None:
    """In one thread that asks for nothing, with whoever waits let go."""
    assert len(SCRIPTS) >= 6
    thread = await lab.thread(approvalPolicy="never", sandbox="danger-full-access")
    for script in SCRIPTS:
        lab.model.release("gate")
        turn = await lab.codex.run_turn(thread, script)
        assert (turn.status, turn.error) == ("completed", None), script
        last = parse_script(script).calls[-1]
        assert lab.model.calls[-1].step == len(parse_script(script).calls) - 1, last
