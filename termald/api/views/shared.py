"""What all shapes are made of."""

from typing import Any, Generic, TypeVar

import msgspec

from state.records import CodexAttachment, Problem
from termald.core.log import rfc3339

T = TypeVar("T")


class View(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what goes out."""


class Page(View, Generic[T], frozen=True, kw_only=True):
    """A part of a list."""

    data: list[T]
    next_cursor: str | None


def verbatim(json: str | None) -> Any:
    """Return JSON text as something that is encoded to exactly it; None stays null."""
    return None if json is None else msgspec.Raw(json.encode())


def time_or_none(at_ms: int | None) -> str | None:
    """Return the time as text; None stays null."""
    return None if at_ms is None else rfc3339(at_ms)


class CodexSaid(View, frozen=True, kw_only=True):
    """What Codex itself said."""

    code: int | None
    message: str | None


class Why(View, frozen=True, kw_only=True):
    """Why something failed. `slug` is one of the documented problems; the same shape stands in the events. `resetAt`:
    when it ends by itself, where that is known."""

    slug: str
    message: str
    retryable: bool
    codex: CodexSaid | None
    reset_at: str | None


class Attachment(View, frozen=True, kw_only=True):
    """The session's tie to one process."""

    runtime_id: str
    generation: int


def codex_said(problem: Problem) -> CodexSaid | None:
    """Return what Codex said to it, if it did."""
    if problem.codex_code is None and problem.codex_message is None:
        return None
    return CodexSaid(code=problem.codex_code, message=problem.codex_message)


def why(problem: Problem | None) -> Why | None:
    """Return a failure as it is shown."""
    if problem is None:
        return None
    return Why(
        slug=problem.slug,
        message=problem.message,
        retryable=problem.retryable,
        codex=codex_said(problem),
        reset_at=time_or_none(problem.reset_at_ms),
    )


def attachment(stamp: CodexAttachment | None) -> Attachment | None:
    """Return an attachment as it is shown."""
    return None if stamp is None else Attachment(runtime_id=stamp.runtime_id, generation=stamp.generation)
