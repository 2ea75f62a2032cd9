"""What is done on the real Codex to record a trace: one thread each, and nothing of termald's in between."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
from support.scripted_lab import Lab

COMMAND: Final = "item/commandExecution/requestApproval"
CHANGE: Final = "item/fileChange/requestApproval"
FREE: Final = {"approvalPolicy": "never", "sandbox": "danger-full-access"}


class Stage:
    """One thread of a lab, prompted as termald does it."""

    def __init__(self, lab: Lab, thread: str) -> None:
        self.lab = lab
        self.thread = thread
        self._prompts = 0

    async def start(self, text: str) -> str:
        """Begin a turn under a prompt id of its own, and return the turn's id."""
        return str((await self._ask("turn/start", text))["turn"]["id"])

    async def steer(self, turn: str, text: str) -> None:
        """Add to the turn that runs."""
        await self._ask("turn/steer", text, expectedTurnId=turn)

    async def run(self, text: str) -> None:
        """Run a turn to its end."""
        await self.end(await self.start(text))

    async def end(self, turn: str) -> None:
        """Wait for a turn's end."""
        await self.lab.codex.finish_turn(self.thread, turn)

    async def decide(self, method: str, decision: str, since: int) -> None:
        """Decide the next request of this kind."""
        request = await self.lab.codex.wait_for(method, since=since)
        await self.lab.codex.answer(request, {"decision": decision})

    async def held(self) -> None:
        """Wait until the model waits at the gate."""
        with trio.fail_after(30):
            await self.lab.model.wait_held("gate")

    async def _ask(self, method: str, text: str, **params: Any) -> Any:
        self._prompts += 1
        prompt = [{"type": "text", "text": text}]
        named = {"threadId": self.thread, "clientUserMessageId": f"p{self._prompts}"}
        return await self.lab.codex.request(method, {**named, "input": prompt, **params})


async def _text(stage: Stage) -> None:
    await stage.run(
        "@reasoning To be brief.\n@say Some words that arrive one by one\n@message\n@say and a second message"
    )
    await stage.run("@usage input=50 cached=20 output=7\n@say once more")


async def _tools(stage: Stage) -> None:
    since = len(stage.lab.codex.messages)
    turn = await stage.start("@say I look.\n@shell touch made\n@patch add notes hello\n@shell touch other\n@say done")
    await stage.decide(COMMAND, "accept", since)
    await stage.decide(CHANGE, "accept", since)
    with trio.fail_after(30):
        seen = await stage.lab.codex.wait_for(COMMAND, lambda params: "touch other" in params["command"], since=since)
    await stage.lab.codex.answer(seen, {"decision": "decline"})
    await stage.end(turn)


async def _retry(stage: Stage) -> None:
    await stage.run("@say half of\n@cut times=1\n@say it, and now the whole")


async def _failures(stage: Stage) -> None:
    await stage.run("@say half of it\n@cut")
    await stage.run("@fail 500")
    await stage.run("@say half\n@incomplete max_output_tokens")
    await stage.run("@empty")


async def _interrupt(stage: Stage) -> None:
    since = len(stage.lab.codex.messages)
    turn = await stage.start("@say A message that is whole\n@message\n@say begun and\n@hold gate\n@say never finished")
    await stage.held()
    await stage.lab.codex.wait_for("item/agentMessage/delta", lambda params: "begun" in params["delta"], since=since)
    await stage.lab.codex.request("turn/interrupt", {"threadId": stage.thread, "turnId": turn})
    await stage.end(turn)
    stage.lab.model.release("gate")


async def _steer(stage: Stage) -> None:
    turn = await stage.start("@hold gate\n@shell true\n@say after it")
    await stage.held()
    await stage.steer(turn, "@say steered")
    stage.lab.model.release("gate")
    await stage.end(turn)


async def _child(stage: Stage) -> None:
    turn = await stage.start("@spawn @say I am the child\n@tool multi_agent_v1.wait_agent {}\n@say and I its parent")
    await stage.end(turn)


SCENES: Final[dict[str, tuple[Callable[[Stage], Awaitable[None]], dict[str, Any]]]] = {
    "text": (_text, FREE),
    "tools": (_tools, FREE | {"approvalPolicy": "untrusted"}),
    "retry": (_retry, FREE),
    "failures": (_failures, FREE),
    "interrupt": (_interrupt, FREE),
    "steer": (_steer, FREE),
    "child": (_child, FREE),
}
