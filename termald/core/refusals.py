"""Every slug that a problem can carry, in one table: what kind of fault it is, its title, and whether trying again can
help.

The API turns the fault into an HTTP status; the documented list is generated from here.
"""

from typing import Literal, NamedTuple

from state.records import Problem

Fault = Literal[
    "invalid",
    "unauthorized",
    "forbidden",
    "not_found",
    "conflict",
    "busy",
    "gone",
    "limit",
    "codex",
    "unavailable",
    "internal",
]


class Meaning(NamedTuple):
    """What a slug means to whoever reads it."""

    fault: Fault
    title: str
    retryable: bool = False


REFUSALS: dict[str, Meaning] = {
    # the caller's
    "unknown-session": Meaning("not_found", "No such session"),
    "unknown-prompt": Meaning("not_found", "No such prompt"),
    "unknown-request": Meaning("not_found", "No such request"),
    "unknown-thread": Meaning("not_found", "No such thread"),
    "not-ignored": Meaning("not_found", "The thread is not ignored"),
    "session-exists": Meaning("conflict", "A session of this id exists, or once did"),
    "session-closed": Meaning("conflict", "The session is closed"),
    "session-busy": Meaning("conflict", "The session is busy"),
    "thread-owned": Meaning("conflict", "The thread belongs to another session"),
    "not-a-phantom": Meaning("conflict", "The session holds something"),
    "queue-full": Meaning("limit", "Too many prompts wait in this session", retryable=True),
    "no-thread": Meaning("conflict", "The session has no thread yet"),
    "not-lost": Meaning("conflict", "The session has not lost its thread"),
    "prompt-sent": Meaning("conflict", "The prompt was already sent"),
    "request-closed": Meaning("conflict", "The request is no longer open"),
    "unknown-turn": Meaning("invalid", "No such turn in the thread"),
    "decision-not-offered": Meaning("invalid", "The decision is not among those offered"),
    "idempotency-mismatch": Meaning("invalid", "The idempotency key was used with another request"),
    "input-too-large": Meaning("invalid", "The input is larger than Codex accepts"),
    "cwd-missing": Meaning("invalid", "The working folder does not exist"),
    # Codex's
    "setup-refused": Meaning("codex", "Codex refused to open the thread"),
    "setup-unanswered": Meaning("codex", "Codex did not answer in time", retryable=True),
    "resume-lost": Meaning("conflict", "The session's thread is gone from Codex"),
    "active-elsewhere": Meaning("conflict", "Another process is writing this thread", retryable=True),
    "thread-archived": Meaning("conflict", "The thread is archived"),
    "rollout-missing": Meaning("conflict", "Codex has the thread but not what was said in it", retryable=True),
    "foreign-home": Meaning("conflict", "The thread lies in a home that Codex does not run in"),
    "provider-missing": Meaning("codex", "The model provider is not configured"),
    "turn-refused": Meaning("codex", "Codex refused the turn"),
    "turn-failed": Meaning("codex", "The turn failed"),
    "quota-exhausted": Meaning("codex", "The account's quota is exhausted", retryable=True),
    "auth-required": Meaning("codex", "Codex is not logged in, or its login is not taken"),
    "turn-unconfirmed": Meaning("codex", "It is not known whether Codex has the prompt", retryable=True),
    "codex-refused": Meaning("codex", "Codex refused the request"),
    "codex-overloaded": Meaning("codex", "Codex is overloaded", retryable=True),
    "codex-unanswered": Meaning("codex", "Codex did not answer in time", retryable=True),
    "runtime-unavailable": Meaning("unavailable", "Codex is not running", retryable=True),
    "runtime-exited": Meaning("unavailable", "Codex exited", retryable=True),
    "link-lost": Meaning("unavailable", "The connection to Codex was lost", retryable=True),
    # the user's own doing, told as the reason why something ended
    "interrupted": Meaning("conflict", "Interrupted"),
    "stopped": Meaning("conflict", "The session was stopped"),
    "closed": Meaning("conflict", "The session was closed"),
    "killed": Meaning("gone", "The session was killed"),
    "replaced": Meaning("conflict", "Replaced by a later prompt"),
    "taken-back": Meaning("conflict", "The prompt was taken back"),
    "held": Meaning("conflict", "Held for a decision: it may already have run", retryable=True),
    # ours
    "store-unavailable": Meaning("unavailable", "The state could not be written", retryable=True),
    "home-unreadable": Meaning("unavailable", "Codex's home could not be read", retryable=True),
    "starting": Meaning("unavailable", "The daemon is still starting", retryable=True),
    "internal": Meaning("internal", "The daemon failed"),
}


def problem(
    slug: str,
    message: str,
    *,
    codex_code: int | None = None,
    codex_message: str | None = None,
    reset_at_ms: int | None = None,
) -> Problem:
    """Return a `Problem` of a documented slug; an undocumented one is a programming error (`KeyError`)."""
    meaning = REFUSALS[slug]
    return Problem(
        slug=slug,
        message=message,
        retryable=meaning.retryable,
        codex_code=codex_code,
        codex_message=codex_message,
        reset_at_ms=reset_at_ms,
    )
