"""What can be wrong on Codex's side, one slug each; Codex's fault or the host's, never the caller's.

An error keeps its type and cause until `api/problems.py` turns it into an answer. The message carries the value that
was refused and the way out.
"""

from typing import ClassVar


class CodexFault(Exception):  # noqa: N818 - members are named for what happened
    """The base of the family. `slug` names the problem outside, `status` is the HTTP status that it becomes."""

    slug: ClassVar[str] = "codex-fault"
    status: ClassVar[int] = 503
    retryable: ClassVar[bool] = False


class CodexNotFound(CodexFault):
    """No Codex anywhere that was looked at; the message lists the places."""

    slug = "codex-not-found"


class CodexNotNative(CodexFault):
    """What was found is a script. A shim's child outlives the shim and keeps the thread locks, so it is never run."""

    slug = "codex-not-native"


class CodexTooOld(CodexFault):
    """The binary speaks a protocol older than the one the message types were generated from."""

    slug = "codex-too-old"


class CodexUnusable(CodexFault):
    """The binary does not even answer `--version`: wrong architecture, damaged, or not Codex."""

    slug = "codex-unusable"


class MessageTooLarge(CodexFault):
    """A message of ours over the link's limit.

    Refused before a byte is written: Codex would drop the connection for it.
    """

    slug = "message-too-large"
    status = 413


class LinkClosed(CodexFault):
    """The link carries nothing any more, in either direction. Whoever wants to go on opens another one."""

    slug = "codex-link-closed"
    status = 502
    retryable = True
