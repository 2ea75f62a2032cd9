"""Codex's list of its threads: what is asked, and what the answer says.

Every filter is named, because the defaults hide threads: of another provider than the one configured, of sub-agents, of
programs. `useStateDbOnly`, because otherwise Codex mends its state DB while it lists, and reads every rollout for it
(20-40 s for 5,000).
"""

import hashlib
from typing import Final

import msgspec

from discovery.source import read_source
from state.records import KnownThread, ThreadId
from termald.codex.protocol import types as t

SOURCE_KINDS: Final = (
    "cli",
    "vscode",
    "exec",
    "appServer",
    "subAgent",
    "subAgentReview",
    "subAgentCompact",
    "subAgentThreadSpawn",
    "subAgentOther",
    "unknown",
)
PREVIEW_CHARACTERS_MAX: Final = 500
_decode_page: Final = msgspec.json.Decoder(t.ThreadListResponse).decode
_decode_read: Final = msgspec.json.Decoder(t.ThreadReadResponse).decode


class ListUnreadable(Exception):  # noqa: N818 - Codex's answer, not a mistake in the program
    """Codex answered with something that tells no threads."""


def ask_threads(cursor: str | None, limit: int, *, archived: bool) -> tuple[str, str]:
    """Return method and params of a page of threads, newest first."""
    params = t.ThreadListParams(
        archived=archived,
        cursor=cursor,
        limit=limit,
        model_providers=[],  # none named: of all
        sort_direction="desc",
        # By creation, which never changes: what is used meanwhile is neither missed nor told twice.
        sort_key="created_at",
        source_kinds=list(SOURCE_KINDS),
        use_state_db_only=True,
    )
    return "thread/list", msgspec.json.encode(params).decode()


def read_threads(
    result_json: str, home: str, our_name: str, *, archived: bool
) -> tuple[tuple[KnownThread, ...], str | None]:
    """Return the threads of a page, and Codex's cursor to the next. `tag` is None for those that may have been begun
    under our own name. Errors: `ListUnreadable`."""
    try:
        page = _decode_page(result_json)
    except msgspec.MsgspecError as error:
        raise ListUnreadable(str(error)) from error
    told = (thread for thread in page.data if not thread.ephemeral)
    return tuple(_thread(thread, home, our_name, archived=archived) for thread in told), page.next_cursor


def ask_thread(thread: ThreadId) -> tuple[str, str]:
    """Return method and params of a look at one thread, without its turns; it loads nothing."""
    return "thread/read", msgspec.json.encode(t.ThreadReadParams(thread_id=thread, include_turns=False)).decode()


def read_tag(result_json: str) -> str | None:
    """Return the tag that the thread bears, None if it bears none. Errors: `ListUnreadable`."""
    try:
        return _decode_read(result_json).thread.thread_source
    except msgspec.MsgspecError as error:
        raise ListUnreadable(str(error)) from error


def _thread(told: t.Thread, home: str, our_name: str, *, archived: bool) -> KnownThread:
    source = told.source if isinstance(told.source, str) else msgspec.json.encode(told.source).decode()
    seen = read_source(source)
    parent = seen.parent or told.parent_thread_id
    thread = KnownThread(
        thread_id=ThreadId(told.id),
        home=home,
        cls="child" if parent is not None or seen.subagent else "discovered",
        reason="listed by Codex",
        parent_thread_id=ThreadId(parent) if parent is not None else None,
        title=told.name,
        preview=(told.preview or "")[:PREVIEW_CHARACTERS_MAX],
        cwd=told.cwd or "",
        model=told.model,
        model_provider=told.model_provider,
        source=source,
        # The list tells no tag (measured on codex 0.163 and 0.171). Of another program's thread it is known all the
        # same that it bears none of ours.
        tag=None if told.originator in (None, our_name) else "",
        rollout_path=told.path,
        archived=archived,
        created_at_ms=(told.created_at or 0) * 1000,
        updated_at_ms=(told.updated_at or 0) * 1000,
    )
    stamp = hashlib.blake2b(msgspec.json.encode(thread), digest_size=8).hexdigest()
    return msgspec.structs.replace(thread, stamp=f"listed-{stamp}")
