"""Every refusal as RFC 9457 wants it told, and the one table of what can be refused.

Three rooms refuse: the core (`refusals.REFUSALS`, by kind of fault), the shell (`refusals` beside this module, before a
request is one), and the routes (`EDGE`, when a request makes no sense as it stands). `PROBLEMS` is their union;
`docs/problems.md` is written from it.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec
import structlog
from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException, ValidationException
from litestar.openapi.datastructures import ResponseSpec
from msgspec import UNSET, UnsetType

from state.errors import StoreError
from state.records import Problem
from termald.api import refusals as shell
from termald.api.asgi import Scope, Send
from termald.api.views.shared import CodexSaid, codex_said
from termald.core.refusals import REFUSALS, Fault

TYPE_PREFIX: Final = "urn:termald:problem:"
MEDIA_TYPE: Final = "application/problem+json"

_log = structlog.get_logger(__name__)

FAULT_STATUS: Final[dict[Fault, int]] = {
    "invalid": 422,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "conflict": 409,
    "busy": 409,
    "gone": 410,
    "limit": 429,
    "codex": 502,
    "unavailable": 503,
    "internal": 500,
}


class Kind(NamedTuple):
    """One kind of problem: what it is answered with, and whether the same request may succeed later."""

    status: int
    title: str
    retryable: bool = False


EDGE: Final[dict[str, Kind]] = {
    "unauthorized": Kind(401, "A token is needed"),
    "not-found": Kind(404, "There is nothing at this address"),
    "method-not-allowed": Kind(405, "Not with this method"),
    "unsupported-media-type": Kind(415, "The body must be application/json"),
    "malformed-body": Kind(400, "The body is not JSON"),
    "invalid-request": Kind(422, "The request is not valid"),
    "upgrade-required": Kind(426, "This address speaks WebSocket"),
    "too-many-streams": Kind(429, "Too many event streams are open", retryable=True),
    "no-answer-yet": Kind(503, "The command was taken, but not answered in time", retryable=True),
}
"""What the routes refuse by themselves."""

SHELL: Final[dict[str, Kind]] = {
    refusal.slug: Kind(refusal.status, refusal.title, refusal.retryable)
    for refusal in (
        shell.bad_request(""),
        shell.host_refused(""),
        shell.origin_refused(""),
        shell.body_too_large(0),
        shell.head_too_large(0),
        shell.request_timeout(""),
        shell.too_many_connections(0),
        shell.not_implemented(""),
        shell.version_refused(""),
        shell.upgrade_refused(""),
        shell.websocket_refused(),
        shell.internal_error(),
    )
}
"""What the shell refuses; their details come with them."""

PROBLEMS: Final[dict[str, Kind]] = {
    **{slug: Kind(FAULT_STATUS[why.fault], why.title, why.retryable) for slug, why in REFUSALS.items()},
    **EDGE,
    **SHELL,
}
"""Every slug that an answer can carry."""


class FieldError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong with the request. `pointer`: a JSON pointer into the body (`#/cwd`). `parameter`: the
    name of a query parameter, a header or a part of the path. One of them is set."""

    detail: str
    pointer: str | UnsetType = UNSET
    parameter: str | UnsetType = UNSET


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem (RFC 9457). `type` is `urn:termald:problem:<slug>`; `instance` is the path that was asked."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    retryable: bool
    codex: CodexSaid | UnsetType = UNSET
    errors: list[FieldError] | UnsetType = UNSET


class ProblemError(Exception):
    """Ends a request with a problem. `headers` go with the answer."""

    def __init__(
        self,
        slug: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        codex: CodexSaid | None = None,
        retryable: bool | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(f"{slug}: {detail}")
        self.slug = slug
        self.detail = detail
        self.errors = list(errors)
        self.codex = codex
        self.retryable = PROBLEMS[slug].retryable if retryable is None else retryable
        self.headers = headers or {}

    @property
    def status(self) -> int:
        """The HTTP status."""
        return PROBLEMS[self.slug].status

    def document(self, instance: str) -> ProblemDocument:
        """Return the problem as it is sent."""
        return ProblemDocument(
            type=TYPE_PREFIX + self.slug,
            title=PROBLEMS[self.slug].title,
            status=self.status,
            detail=self.detail,
            instance=instance,
            retryable=self.retryable,
            codex=self.codex or UNSET,
            errors=self.errors or UNSET,
        )


def invalid(*errors: FieldError) -> ProblemError:
    """Return the problem of a request that is understood and makes no sense."""
    return ProblemError("invalid-request", "; ".join(error.detail for error in errors), errors=errors)


def refused(why: Problem) -> ProblemError:
    """Return the core's refusal as it is sent, with what Codex said beside it."""
    return ProblemError(why.slug, why.message, codex=codex_said(why), retryable=why.retryable)


# --- what Litestar and others raise ---


def _of_http_exception(exception: HTTPException) -> ProblemError:
    if isinstance(exception, NotFoundException):
        return ProblemError("not-found", "there is nothing at this address; see /openapi.json")
    if isinstance(exception, MethodNotAllowedException):
        allow = allowed((exception.headers or {}).get("allow", "").split(", "))
        return ProblemError("method-not-allowed", f"allowed here: {allow}", headers={"Allow": allow})
    if isinstance(exception, ValidationException):
        return _of_validation(exception)
    if exception.status_code < FAULT_STATUS["internal"]:
        return ProblemError("bad-request", exception.detail)
    return ProblemError("internal", "the request failed inside the daemon; its log says why")


def allowed(methods: Iterable[str]) -> str:
    """Return an `Allow` header: what the routes know, and HEAD wherever there is GET."""
    known = set(methods)
    return ", ".join(sorted(known | ({"HEAD"} if "GET" in known else set())))


def _of_validation(exception: ValidationException) -> ProblemError:
    """Read Litestar's list of what is wrong with parameters; bodies are read by `strict`, which names its own."""
    found = []
    for error in exception.extra if isinstance(exception.extra, list) else []:
        if error.get("source") == "body":
            return ProblemError("malformed-body", "a body is wanted here, and there is none")
        name = error.get("key", "request")
        found.append(FieldError(parameter=name, detail=f"{name}: {error['message']}"))
    return invalid(*(found or [FieldError(parameter="request", detail=exception.detail)]))


def _respond(request: Request[object, object, State], error: ProblemError) -> Response[ProblemDocument]:
    return Response(
        error.document(request.scope["path"]), status_code=error.status, media_type=MEDIA_TYPE, headers=error.headers
    )


def on_problem(request: Request[object, object, State], error: ProblemError) -> Response[ProblemDocument]:
    """Answer with a problem that a route raised."""
    return _respond(request, error)


def on_http_exception(request: Request[object, object, State], error: HTTPException) -> Response[ProblemDocument]:
    """Answer what Litestar raised in our own words."""
    if error.status_code >= FAULT_STATUS["internal"]:
        return on_failure(request, error)
    return _respond(request, _of_http_exception(error))


def on_store_error(request: Request[object, object, State], error: StoreError) -> Response[ProblemDocument]:
    """Answer that the state could not be read, and whether it is worth trying again."""
    _log.error("a read of the state failed", path=request.scope["path"], exc_info=error)
    detail = f"the state could not be read: {error}"
    return _respond(request, ProblemError("store-unavailable", detail, retryable=error.retryable))


def on_failure(request: Request[object, object, State], error: Exception) -> Response[ProblemDocument]:
    """Answer a mistake of ours without its particulars, which go to the log, once."""
    _log.error("a request failed", method=request.method, path=request.scope["path"], exc_info=error)
    return _respond(request, ProblemError("internal", "the request failed inside the daemon; its log says why"))


async def send_problem(error: ProblemError, scope: Scope, send: Send) -> None:
    """Answer with a problem where Litestar is not: before it, and to a WebSocket that is not accepted."""
    body = msgspec.json.encode(error.document(scope["path"]))
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    prefix = "websocket.http" if scope["type"] == "websocket" else "http"
    await send({"type": f"{prefix}.response.start", "status": error.status, "headers": headers})
    await send({"type": f"{prefix}.response.body", "body": body, "more_body": False})


# --- documentation ---

_EVERYWHERE: Final = ("unauthorized", "store-unavailable", "internal")


def documented(*slugs: str) -> dict[int, ResponseSpec]:
    """Return what a route's description says of the problems that it can answer with, apart from the shell's."""
    by_status: dict[int, list[str]] = {}
    for slug in (*slugs, *_EVERYWHERE):
        by_status.setdefault(PROBLEMS[slug].status, []).append(slug)
    return {
        status: ResponseSpec(
            data_container=ProblemDocument,
            description="; ".join(f"`{slug}`: {PROBLEMS[slug].title}" for slug in named),
            media_type=MEDIA_TYPE,
            generate_examples=False,
        )
        for status, named in sorted(by_status.items())
    }
