"""What Codex asks, and the ways to answer. Nothing here answers by itself."""

from typing import Any

import msgspec

from termald.client.errors import ClientError
from termald.client.link import Link
from termald.client.models import Answer

_UNBOUND = "this request came without its connection; get it from requests() or a handler"


class Request(Answer, frozen=True, kw_only=True):
    """An approval, a question or an elicitation. `kind`: `command`, `fileChange`, `permissions`, `userInput`,
    `elicitation`; `params` is Codex's own, `decisions` those that it offers. `decision` is what was
    answered, by `decided_by`: `user`, `policy` or `deadline`."""

    id: str
    session_id: str
    kind: str
    status: str = "open"
    method: str = ""
    thread_id: str | None = None
    turn_id: str | None = None
    item_id: str | None = None
    params: Any = None
    decisions: tuple[Any, ...] = ()
    decision: Any = msgspec.field(default=None, name="answer")
    decided_by: str | None = None
    opened_at: str | None = None
    closed_at: str | None = None
    link: Any = msgspec.field(default=None, name="_link")

    def bound(self, link: Link) -> "Request":
        """Return the same, able to answer."""
        return msgspec.structs.replace(self, link=link)

    @property
    def about(self) -> str:
        """What is asked, in one line: the command, the files, the question."""
        params = self.params if isinstance(self.params, dict) else {}
        if self.kind == "command":
            command = params.get("command")
            return " ".join(command) if isinstance(command, list) else str(command or "")
        if self.kind == "userInput":
            return "; ".join(str(each.get("question", "")) for each in _questions(params))
        return str(params.get("reason") or params.get("message") or params.get("grantRoot") or self.method)

    async def decide(self, decision: Any) -> "Request":
        """Answer with one of `decisions`. Errors: `decision-not-offered`, `request-closed`."""
        return await self._answer({"decision": decision})

    async def answer(self, answers: dict[str, str | list[str]]) -> "Request":
        """Answer questions: id to text, or to several texts. Errors: `decision-not-offered`, `request-closed`."""
        said = {name: {"answers": [text] if isinstance(text, str) else text} for name, text in answers.items()}
        return await self._answer({"answers": said})

    async def result(self, result: dict[str, Any]) -> "Request":
        """Answer with an object as Codex wants it. Errors: as `decide`."""
        return await self._answer({"result": result})

    async def accept(self) -> "Request":
        """Allow what is asked, this once. Errors: as `decide`; `client-error` for questions, which need `answer`."""
        return await self._answer(yes_to(self))

    async def decline(self) -> "Request":
        """Refuse it; the turn goes on without. Errors: as `decide`."""
        return await self._answer(no_to(self))

    async def _answer(self, body: dict[str, Any]) -> "Request":
        if self.link is None:
            raise ClientError(_UNBOUND)
        link: Link = self.link
        answered = await link.post(f"/api/sessions/{self.session_id}/requests/{self.id}", Request, body)
        return answered.bound(link)


def _questions(params: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in params.get("questions", ()) if isinstance(each, dict)]


def yes_to(request: Request) -> dict[str, Any]:
    """Return the body that allows it, this once. Errors: `client-error` for questions."""
    if request.kind in ("command", "fileChange"):
        return {"decision": "accept"}
    params = request.params if isinstance(request.params, dict) else {}
    if request.kind == "permissions":
        return {"result": {"permissions": params.get("permissions", {}), "scope": "turn"}}
    if request.kind == "elicitation":
        return {"result": {"action": "accept", "content": {}}}
    raise ClientError(f"a {request.kind} request wants answers, not a yes")


def no_to(request: Request) -> dict[str, Any]:
    """Return the body that refuses it."""
    if request.kind == "permissions":
        return {"result": {"permissions": {}}}
    if request.kind == "elicitation":
        return {"result": {"action": "decline"}}
    if request.kind == "userInput":
        params = request.params if isinstance(request.params, dict) else {}
        return {"answers": {str(each.get("id")): {"answers": []} for each in _questions(params)}}
    return {"decision": "decline"}
