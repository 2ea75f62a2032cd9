"""The endpoint as an ASGI application: `/v1/responses`, `/v1/models`, and the control addresses.

An answer that the script cuts ends in `AnswerCutError`, raised in the middle of the body: a server must drop the
connection then, because whatever else it did would be an end of the body, and the client would have to believe it.
"""

from collections.abc import Iterator
from urllib.parse import parse_qs

import msgspec
import trio

from termald.api.asgi import ClientDisconnected, Receive, Scope
from termald.api.asgi import Send as SendMessage
from termald.scripted_model.config import MODELS, catalog
from termald.scripted_model.events import BATCH_BYTES
from termald.scripted_model.model import ScriptedModel, refusal
from termald.scripted_model.request import BadRequestError
from termald.scripted_model.stream import (
    CUT,
    LEFT,
    REFUSED,
    Action,
    Begin,
    Block,
    Drop,
    Finish,
    Headers,
    Pause,
    Refuse,
    Send,
)

_JSON = (b"content-type", b"application/json")
_STREAM_HEADERS = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]


class AnswerCutError(ClientDisconnected):
    """The script drops the connection here. To the shell it is as if the client had: nothing to be logged."""


class ScriptedApp:
    """The ASGI application over one `ScriptedModel`."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model

    async def __call__(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        """Serve one request, or the application's own life."""
        match scope["type"]:
            case "lifespan":
                await _live(receive, send)
            case "http":
                await self._serve(scope, receive, send)
            case other:
                raise NotImplementedError(f"the scripted model speaks HTTP only, not {other!r}")

    async def _serve(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        method, path = scope["method"], scope["path"]
        if (method, path) == ("POST", "/v1/responses"):
            await self._respond(scope, receive, send)
            return
        status, body = self._control(method, path, scope.get("query_string", b""))
        await _reply(send, status, msgspec.json.encode(body))

    def _control(self, method: str, path: str, query: bytes) -> tuple[int, object]:
        match method, path.strip("/").split("/"):
            case "GET", ["v1", "models"]:
                data = [{"id": name, "object": "model", "created": 0, "owned_by": "termald"} for name in MODELS]
                return 200, {"object": "list", "data": data, **catalog()}
            case "GET", ["control", "calls"]:
                return self._calls(query)
            case "GET", ["control", "holds"]:
                return 200, {"holds": self.model.holds}
            case "POST", ["control", "release", name]:
                return 200, {"released": self.model.release(name)}
            case "POST", ["control", "reset"]:
                self.model.reset()
                return 200, {"reset": True}
        return 404, {
            "error": {"message": f"there is no {method} {path} here", "type": "invalid_request_error", "code": None}
        }

    def _calls(self, query: bytes) -> tuple[int, object]:
        asked = parse_qs(query.decode("latin-1"))
        after, thread = asked.get("after", ["0"])[-1], asked.get("thread", [None])[-1]
        if not after.isdigit():
            return 400, {
                "error": {
                    "message": f"`after` must be the number of a call, not {after!r}",
                    "type": "invalid_request_error",
                }
            }
        calls = [call for call in self.model.calls if call.number > int(after) and thread in (None, call.thread_id)]
        return 200, {"calls": calls}

    async def _respond(self, scope: Scope, receive: Receive, send: SendMessage) -> None:
        try:
            _check_encoding(scope)
            body = await _body(receive)
            if body is None:
                return  # the client left before it had said what it wanted
            number, answer = self.model.begin(body)
        except BadRequestError as error:
            await _refuse(send, refusal(400, str(error)))
            return
        stream = _Stream(send)
        outcome = LEFT
        try:
            last = await self._until_last(number, answer, stream, receive)
            if last is not None:
                outcome = _outcome(last)
        finally:
            # Before the last byte is sent: whoever has that byte may ask again, and finds the record complete.
            self.model.settle(number, outcome)
        match last:
            case Refuse():
                await _refuse(send, last)
            case Drop():
                await stream.flush()
                raise AnswerCutError(f"call {number} is cut by its script")
            case Finish():
                await stream.end()

    async def _until_last(
        self, number: int, answer: Iterator[Action], stream: "_Stream", receive: Receive
    ) -> Refuse | Drop | Finish | None:
        """Carry the actions out up to the last one and return that; `None` when the client left in between."""
        last: Refuse | Drop | Finish | None = None
        async with trio.open_nursery() as nursery:
            # The only way to notice a client that leaves while an answer is held is to read on. It may go as soon as it
            # has the last byte, which is no leaving: the last action is carried out when nobody looks any more.
            nursery.start_soon(_until_disconnect, receive, nursery.cancel_scope)
            for action in answer:
                match action:
                    case Begin(headers):
                        stream.begin(headers)
                    case Send(data):
                        await stream.write(data)
                    case Pause(ms):
                        await stream.flush()
                        await trio.sleep(ms / 1000)
                    case Block(name):
                        await stream.flush()
                        await self.model.hold(number, name)
                    case _:
                        last = action
            nursery.cancel_scope.cancel()
        return last


def _outcome(last: Refuse | Drop | Finish) -> str:
    match last:
        case Refuse():
            return REFUSED
        case Drop():
            return CUT
        case Finish(outcome):
            return outcome


class _Stream:
    """The body of one answer. What is ready at once is sent at once, but in one write: see `BATCH_BYTES`."""

    def __init__(self, send: SendMessage) -> None:
        self._send = send
        self._headers: list[tuple[bytes, bytes]] | None = None
        self._waiting: list[bytes] = []
        self._size = 0

    def begin(self, headers: Headers) -> None:
        """Have the status line and the headers sent with the first body, in front of it."""
        self._headers = [*_STREAM_HEADERS, *((name.encode(), value.encode()) for name, value in headers)]

    async def write(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= BATCH_BYTES:
            await self.flush()

    async def flush(self) -> None:
        if self._waiting:
            await self._body(more=True)

    async def end(self) -> None:
        await self._body(more=False)

    async def _body(self, *, more: bool) -> None:
        data = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        if self._headers is not None:
            head, self._headers = self._headers, None
            await self._send({"type": "http.response.start", "status": 200, "headers": head})
        await self._send({"type": "http.response.body", "body": data, "more_body": more})


async def _live(receive: Receive, send: SendMessage) -> None:
    """There is nothing to open and nothing to close; the server only wants to hear it."""
    for step in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{step}.complete"})


async def _body(receive: Receive) -> bytes | None:
    """Return the whole body, or `None` when the client left. How large it may be is the server's affair."""
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _until_disconnect(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _check_encoding(scope: Scope) -> None:
    for name, value in scope["headers"]:
        if name.lower() == b"content-encoding" and value.lower() != b"identity":
            raise BadRequestError(f"the body is encoded as {value.decode('latin-1')}; send it as it is")


async def _refuse(send: SendMessage, answer: Refuse) -> None:
    await _reply(send, answer.status, answer.body, answer.headers)


async def _reply(send: SendMessage, status: int, body: bytes, headers: Headers = ()) -> None:
    more = [(name.encode(), value.encode()) for name, value in headers]
    head = [_JSON, (b"content-length", str(len(body)).encode()), *more]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})
