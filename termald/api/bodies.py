"""What comes in: the bodies of requests under their public names, and what each is to the core."""

import uuid
from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from state import records
from state.records import PromptId, PromptMode, RuntimeMode, SessionId, TurnId
from termald.api.problems import FieldError, ProblemError, invalid
from termald.api.strict import Body, to_json
from termald.core.inputs import NewPrompt, SessionSettings

INPUT_CHARS_MAX: Final = 1_048_576
"""Codex refuses more in one turn (`input_too_large`, measured on 0.163 and 0.171); it counts characters."""
INPUT_PARTS_MAX: Final = 1_000
INPUT_BYTES_MAX: Final = 16_711_680
"""Codex takes no message above 16 MiB (measured); 64 KiB of it are for what goes along with an input."""
QUEUE_MAX: Final = 1_000
REVERT_TURNS_MAX: Final = 1_000
"""They are read before they go, twenty at a time; whoever means more names the turn."""

# The look-ahead is for Python, whose `$` also matches before a line's end.
SessionName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(?!\n)$",
        description="1 to 128 of letters, digits, `.`, `_` and `-`, beginning with a letter or digit",
    ),
]
ThreadName = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}(?!\n)$", description="A thread id of Codex's")
]
Word = Annotated[str, Meta(min_length=1, max_length=200)]
Title = Annotated[str, Meta(max_length=1_000)]
Reason = Annotated[str, Meta(min_length=1, max_length=1_000)]
Url = Annotated[str, Meta(min_length=1)]
Path = Annotated[str, Meta(min_length=1, max_length=4_096)]
Instructions = Annotated[str, Meta(max_length=262_144)]
SandboxMode = Literal["read-only", "workspace-write", "danger-full-access"]
ApprovalPolicy = Annotated[
    str | dict[str, Any], Meta(description="`untrusted`, `on-request`, `never`, or Codex's object")
]


class Nothing(Body, frozen=True, kw_only=True):
    """For what takes no choices: no body, or an empty object. Whoever sends `dryRun` here must not believe in it."""


# --- a prompt's input ---


class Part(Body, frozen=True, kw_only=True, tag_field="type", rename=None, omit_defaults=True):
    """Base of the parts of an input; the names are Codex's."""


class Text(Part, frozen=True, kw_only=True, tag="text"):
    """Text of the user's."""

    text: str
    text_elements: tuple[dict[str, Any], ...] = ()


class Image(Part, frozen=True, kw_only=True, tag="image"):
    """An image by its address; a `data:` URL holds it itself."""

    url: Url
    detail: Literal["auto", "low", "high", "original"] | None = None


class LocalImage(Part, frozen=True, kw_only=True, tag="localImage"):
    """An image by its path on this machine."""

    path: Path
    detail: Literal["auto", "low", "high", "original"] | None = None


class Skill(Part, frozen=True, kw_only=True, tag="skill"):
    """A skill to use."""

    name: Word
    path: Path


class Mention(Part, frozen=True, kw_only=True, tag="mention"):
    """A file or an app that the text speaks of."""

    name: Word
    path: Path


Input = str | list[Text | Image | LocalImage | Skill | Mention]


class SubmitPrompt(Body, frozen=True, kw_only=True):
    """A prompt."""

    input: Input
    mode: PromptMode | None = None
    model: Word | None = None
    effort: Word | None = None
    service_tier: Word | None = None
    interaction_mode: Literal["default", "plan"] | None = None
    output_schema: dict[str, Any] | None = None


def new_prompt(body: SubmitPrompt, at: str = "#") -> NewPrompt:
    """Return the prompt for the core, under an id of its own. `at` points to where the prompt stands in the body.

    Errors: `invalid-request` (empty input, a relative path), `input-too-large`.
    """
    parts = [Text(text=body.input)] if isinstance(body.input, str) else body.input
    _check_parts(parts, f"{at}/input")
    text = to_json(parts)
    size = len(text.encode())
    if size > INPUT_BYTES_MAX:
        detail = f"input: {size} bytes; Codex takes {INPUT_BYTES_MAX}"
        raise ProblemError("input-too-large", detail, errors=[FieldError(pointer=f"{at}/input", detail=detail)])
    return NewPrompt(
        id=PromptId(str(uuid.uuid4())),
        input_json=text,
        mode=body.mode or "queue",
        model=body.model,
        effort=body.effort,
        service_tier=body.service_tier,
        interaction_mode=body.interaction_mode,
        output_schema_json=_json_or_none(body.output_schema),
    )


class ReorderPrompts(Body, frozen=True, kw_only=True):
    """Which of the queued prompts are to run first, in this order; those left out follow in theirs."""

    prompt_ids: Annotated[list[Word], Meta(min_length=1, max_length=QUEUE_MAX)]


def order(body: ReorderPrompts) -> tuple[PromptId, ...]:
    """Return the order for the core. Errors: `invalid-request` for one that is named twice."""
    twice = next((one for index, one in enumerate(body.prompt_ids) if one in body.prompt_ids[:index]), None)
    if twice is not None:
        raise invalid(FieldError(pointer="#/promptIds", detail=f"promptIds: {twice!r} is named twice"))
    return tuple(map(PromptId, body.prompt_ids))


def _check_parts(parts: Sequence[Part], at: str) -> None:
    texts = [part.text for part in parts if isinstance(part, Text)]
    chars = sum(map(len, texts))
    if chars > INPUT_CHARS_MAX:
        detail = f"input: {chars} characters of text; Codex takes {INPUT_CHARS_MAX}"
        raise ProblemError("input-too-large", detail, errors=[FieldError(pointer=at, detail=detail)])
    if len(parts) > INPUT_PARTS_MAX:
        raise invalid(FieldError(pointer=at, detail=f"input: {len(parts)} parts; the most are {INPUT_PARTS_MAX}"))
    if len(texts) == len(parts) and not any(map(str.strip, texts)):
        raise invalid(FieldError(pointer=at, detail="input: is empty"))
    for index, part in enumerate(parts):
        if isinstance(part, LocalImage) and not PurePath(part.path).is_absolute():
            detail = f"input.{index}.path: {part.path!r} is not absolute"
            raise invalid(FieldError(pointer=f"{at}/{index}/path", detail=detail))


# --- sessions ---


class ResumeFrom(Body, frozen=True, kw_only=True):
    """Where a session goes on: the thread it takes over."""

    thread_id: ThreadName


Choice = Literal["ask", "decline", "accept"]
CommandStart = Annotated[list[Annotated[str, Meta(min_length=1, max_length=1_000)]], Meta(min_length=1, max_length=32)]
DEADLINE_MS_MAX: Final = 2_592_000_000
ALLOWED_MAX: Final = 100


class RequestPolicy(Body, frozen=True, kw_only=True):
    """Who decides about what Codex asks: `ask` whoever is there (the default), or decline or accept each. `accept` is
    one command, one change, or the permissions asked for, for this turn. What nobody decides in `deadlineMs` is
    declined. `allowCommands` accepts the commands that begin with one of these word by word, whatever `command` says of
    the others: `["git", "status"]` is `git status -s` and not `git status; rm x`."""

    command: Choice | None = None
    file_change: Choice | None = None
    permissions: Choice | None = None
    user_input: Literal["ask", "decline"] | None = None
    elicitation: Literal["ask", "decline"] | None = None
    allow_commands: Annotated[list[CommandStart], Meta(max_length=ALLOWED_MAX)] | None = None
    deadline_ms: Annotated[int, Meta(ge=1_000, le=DEADLINE_MS_MAX)] | None = None


def policy(body: RequestPolicy | None) -> records.RequestPolicy | None:
    """Return the policy for the core."""
    if body is None:
        return None
    return records.RequestPolicy(
        command=body.command or "ask",
        file_change=body.file_change or "ask",
        permissions=body.permissions or "ask",
        user_input=body.user_input or "ask",
        elicitation=body.elicitation or "ask",
        allow_commands=tuple(tuple(words) for words in body.allow_commands or ()),
        deadline_ms=body.deadline_ms,
    )


class CreateSession(Body, frozen=True, kw_only=True):
    """A session to be made. `prompt` is an input, or all that a prompt can have."""

    cwd: Path
    id: SessionName | None = None
    title: Title | None = None
    model: Word | None = None
    model_provider: Word | None = None
    effort: Word | None = None
    service_tier: Word | None = None
    runtime_mode: RuntimeMode | None = None
    approval_policy: ApprovalPolicy | None = None
    sandbox: SandboxMode | None = None
    developer_instructions: Instructions | None = None
    config: dict[str, Any] | None = None
    resume_cursor: ResumeFrom | None = None
    on_resume_lost: Literal["fail", "fresh"] | None = None
    on_recovery: Literal["resend", "hold"] | None = None
    request_policy: RequestPolicy | None = None
    prompt: Input | SubmitPrompt | None = None


def new_session_id(body: CreateSession) -> SessionId:
    """Return the id that the caller chose, or a new one."""
    return SessionId(body.id or str(uuid.uuid4()))


def first_prompt(body: CreateSession) -> NewPrompt | None:
    """Return the prompt that comes with the session. Errors: as `new_prompt`."""
    if body.prompt is None:
        return None
    prompt = body.prompt if isinstance(body.prompt, SubmitPrompt) else SubmitPrompt(input=body.prompt)
    return new_prompt(prompt, "#/prompt")


def session_settings(body: CreateSession) -> SessionSettings:
    """Return what was chosen, for the core, and the defaults for what was not."""
    return SessionSettings(
        cwd=body.cwd,
        title=body.title,
        model=body.model,
        model_provider=body.model_provider,
        effort=body.effort,
        service_tier=body.service_tier,
        runtime_mode=body.runtime_mode or "approval-required",
        approval_policy_json=_json_or_none(body.approval_policy),
        sandbox=body.sandbox,
        developer_instructions=body.developer_instructions,
        config_json=_json_or_none(body.config),
        on_resume_lost=body.on_resume_lost or "fail",
        on_recovery=body.on_recovery or "resend",
        request_policy=policy(body.request_policy),
    )


class PatchSession(Body, frozen=True, kw_only=True):
    """Settings to change from the next turn on. `null` takes a choice back; what is left out stays as it is."""

    title: Title | UnsetType | None = UNSET
    model: Word | UnsetType | None = UNSET
    model_provider: Word | UnsetType | None = UNSET
    effort: Word | UnsetType | None = UNSET
    service_tier: Word | UnsetType | None = UNSET
    runtime_mode: RuntimeMode | UnsetType = UNSET
    approval_policy: ApprovalPolicy | UnsetType | None = UNSET
    sandbox: SandboxMode | UnsetType | None = UNSET
    developer_instructions: Instructions | UnsetType | None = UNSET
    on_resume_lost: Literal["fail", "fresh"] | UnsetType = UNSET
    on_recovery: Literal["resend", "hold"] | UnsetType = UNSET
    request_policy: RequestPolicy | UnsetType | None = UNSET


def session_changes(body: PatchSession) -> dict[str, str | records.RequestPolicy | None]:
    """Return what changes, by the record's field names."""
    said = {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}
    if "request_policy" in said:
        said["request_policy"] = policy(said["request_policy"])
    if "approval_policy" in said:
        said["approval_policy_json"] = _json_or_none(said.pop("approval_policy"))
    return said


def _json_or_none(value: Any) -> str | None:
    return None if value is None else to_json(value)


class KillSession(Body, frozen=True, kw_only=True):
    """What becomes of the thread in Codex; here it is ignored in any case."""

    thread: Literal["ignore", "archive", "delete"] | None = None
    dry_run: bool = False


class RevertSession(Body, frozen=True, kw_only=True):
    """Where to cut: so many turns from the end, or before one."""

    turns: Annotated[int, Meta(ge=1, le=REVERT_TURNS_MAX)] | None = None
    before_turn_id: Word | None = None


def cut(body: RevertSession) -> tuple[int | None, TurnId | None]:
    """Return how many turns go, or before which one. Errors: `invalid-request` for neither and for both."""
    if (body.turns is None) == (body.before_turn_id is None):
        raise invalid(FieldError(pointer="#", detail="exactly one of turns and beforeTurnId is wanted"))
    return body.turns, None if body.before_turn_id is None else TurnId(body.before_turn_id)


class ForkSession(Body, frozen=True, kw_only=True):
    """The copy's own id and title; the rest is its parent's."""

    id: SessionName | None = None
    title: Word | None = None


class ReviewTarget(Body, frozen=True, kw_only=True, tag_field="type", rename=None):
    """What a review looks at, in Codex's words."""


class UncommittedChanges(ReviewTarget, frozen=True, kw_only=True, tag="uncommittedChanges"):
    """The working tree: staged, unstaged and untracked files."""


class BaseBranch(ReviewTarget, frozen=True, kw_only=True, tag="baseBranch"):
    """What differs from a branch."""

    branch: Word


class Commit(ReviewTarget, frozen=True, kw_only=True, tag="commit"):
    """What a commit changed."""

    sha: Word
    title: Word | None = None


class Custom(ReviewTarget, frozen=True, kw_only=True, tag="custom"):
    """What these instructions say."""

    instructions: Annotated[str, Meta(min_length=1, max_length=INPUT_CHARS_MAX)]


class ReviewSession(Body, frozen=True, kw_only=True):
    """A review; without a target, of what is not committed."""

    target: UncommittedChanges | BaseBranch | Commit | Custom | None = None


class RetrySession(Body, frozen=True, kw_only=True):
    """`fresh` gives up a lost thread for a new one."""

    fresh: bool = False


class AnswerRequest(Body, frozen=True, kw_only=True):
    """One of the three, as the request's kind wants it."""

    decision: Any | UnsetType = UNSET
    answers: dict[str, Any] | UnsetType = UNSET
    result: dict[str, Any] | UnsetType = UNSET


def answer_form(body: AnswerRequest) -> tuple[Literal["decision", "answers", "result"], str]:
    """Return which of the three was given, and its JSON. Errors: `invalid-request` for none and for several."""
    given = [name for name in ("decision", "answers", "result") if getattr(body, name) is not UNSET]
    if len(given) != 1:
        detail = f"exactly one of decision, answers and result is wanted, not {', '.join(given) or 'none'}"
        raise invalid(FieldError(pointer="#", detail=detail))
    form: Literal["decision", "answers", "result"] = given[0]  # type: ignore[assignment]  # one of the three above
    return form, to_json(getattr(body, form))


# --- threads ---


class Scan(Body, frozen=True, kw_only=True):
    """How to look. `dryRun` only tells what would become of each thread."""

    dry_run: bool = False


class KillPhantoms(Body, frozen=True, kw_only=True):
    """Which to kill; all that there are where `ids` is left out. `dryRun` only tells."""

    ids: list[SessionName] | None = None
    dry_run: bool = False


class IgnoreThread(Body, frozen=True, kw_only=True):
    """Why discovery is to pass it over."""

    reason: Reason
