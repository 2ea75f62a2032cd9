"""Parameters that several routes share, each with what it means. They are read by Litestar; bodies by `strict`."""

from typing import Annotated, Final, Literal

from litestar.params import HeaderParameter, PathParameter, QueryParameter

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 500
"""Rows in one answer. 500 sessions are about 400 kB of JSON, made in 15 ms."""

SessionPath = Annotated[str, PathParameter(description="The session's id")]
PromptPath = Annotated[str, PathParameter(description="The prompt's id")]
RequestPath = Annotated[str, PathParameter(description="The request's id")]
ThreadPath = Annotated[str, PathParameter(description="Codex's id of the thread")]

Limit = Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX, description="How many at most")]
CursorText = Annotated[str | None, QueryParameter(description="`nextCursor` of the answer before this one")]
Order = Literal["asc", "desc"]
OrderChoice = Annotated[Order, QueryParameter(description="`asc`: oldest first; `desc`: newest first")]

IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="The same key with the same request gives the first answer again; with another request, 422",
    ),
]
IfNoneMatch = Annotated[str | None, HeaderParameter(name="If-None-Match", description="An ETag that is known already")]
LastEventId = Annotated[
    str | None, HeaderParameter(name="Last-Event-ID", description="Replay what follows; wins over `after`")
]
After = Annotated[str | None, QueryParameter(description="Replay what follows this number; 0 for all of it")]
Kinds = Annotated[
    list[str] | None, QueryParameter(description="Only these kinds, separated by commas or given several times")
]
