"""How many messages a thread has, read from its rollout: what Codex itself would show of it.

A message is a user's or the agent's; what Codex puts before them for the model (environment, permissions, instructions)
is not. The lines that tell differ with the thread's `history_mode` (measured on codex 0.163 and 0.171):

- `paginated`: an `event_msg` of `item_completed` whose item is a `UserMessage` or `AgentMessage`, once for each turn
  and item id. A fork or a revert copies nothing: its `session_meta` names a `history_base`, a file and how far into it,
  and that may have a base again. The count goes down that line.
- `legacy`: an `event_msg` of `user_message`, or `agent_message` with text. A fork copies. `thread_rolled_back` takes
  the last turns back, so that turns are told apart as Codex 0.171 tells them apart.

`response_item` lines hold the same texts again, for the model, and are never counted.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, Protocol

import msgspec

from discovery.lines import Line, read_lines
from discovery.segments import Rollout

# A thread forked from a fork, and so on; a line longer than this is a circle that was not noticed.
LINEAGE_MAX: Final = 256
PREVIEW_CHARACTERS_MAX: Final = 500


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """The history that a rollout goes on from: a thread or a segment of one, up to an ordinal."""

    thread_id: str
    end_ordinal_exclusive: int
    end_byte_offset: int | None = None


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout's first line."""

    id: str
    history_mode: str = "legacy"
    history_base: Base | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """`messages` is None where the count is not known, and `reason` says why; a part of the truth is not told as all of
    it. `preview`: the beginning of the first user message. `parent`: the thread that it works for, if it says so."""

    messages: int | None
    reason: str | None = None
    preview: str = ""
    parent: str | None = None


class _Uncountable(Exception):  # noqa: N818 - an answer: why there is no count
    pass


Check = Callable[[], None]
FindBase = Callable[[Rollout, Meta, Base], Rollout | None]


def tally_rollout(rollout: Rollout, find_base: FindBase, check: Check) -> Tally:
    """Return the thread's messages. Blocks, in bounded memory; `check` is called often and may raise to end it.

    Raises nothing of its own: what cannot be counted comes back with the reason.
    """
    parent: str | None = None
    try:
        lineage = _lineage(rollout, find_base, check)
        parent = lineage[-1][1].parent_thread_id
        counter: _Counter = _PaginatedCounter() if lineage[-1][1].history_mode == "paginated" else _LegacyCounter()
        for file, _, end in lineage:
            _count(file, end, counter, check)
    except _Uncountable as error:
        return Tally(messages=None, reason=str(error), parent=parent)
    except OSError as error:
        return Tally(messages=None, reason=error.strerror or str(error), parent=parent)
    return Tally(messages=counter.messages, preview=counter.preview[:PREVIEW_CHARACTERS_MAX], parent=parent)


def _lineage(rollout: Rollout, find_base: FindBase, check: Check) -> list[tuple[Rollout, Meta, Base | None]]:
    """The files to read, oldest first, each with its meta and where to stop in it."""
    lineage: list[tuple[Rollout, Meta, Base | None]] = []
    file, end = rollout, None
    while len(lineage) < LINEAGE_MAX:
        meta = _read_meta(file, check)
        lineage.append((file, meta, end))
        if meta.history_base is None or meta.history_mode != "paginated":
            return lineage[::-1]
        end = meta.history_base
        found = find_base(file, meta, end)
        if found is None:
            raise _Uncountable("the history that it goes on from is not there")
        file = found
    raise _Uncountable(f"its history goes on from {LINEAGE_MAX} others")


def _read_meta(rollout: Rollout, check: Check) -> Meta:
    if rollout.compressed:
        raise _Uncountable("compressed")
    for line in read_lines(rollout.path, check):
        envelope = _envelope(line)
        if envelope is None or envelope.type != "session_meta":
            break
        try:
            return msgspec.json.decode(envelope.payload, type=Meta)
        except msgspec.DecodeError:
            break
    raise _Uncountable("its first line is not a session_meta")


def _count(rollout: Rollout, end: Base | None, counter: "_Counter", check: Check) -> None:
    for line in read_lines(rollout.path, check):
        if end is not None and end.end_byte_offset is not None and line.start >= end.end_byte_offset:
            return
        event = _event(line) if counter.may_tell(line.text) or not line.whole else None
        if event is None:
            continue
        if end is not None and event.ordinal is not None and event.ordinal >= end.end_ordinal_exclusive:
            return
        counter.take(event)


# --- lines ---


class _Envelope(msgspec.Struct, frozen=True):
    type: str
    payload: msgspec.Raw
    ordinal: int | None = None


class _Item(msgspec.Struct, frozen=True):
    type: str
    id: str = ""
    content: msgspec.Raw = msgspec.Raw()


class _Payload(msgspec.Struct, frozen=True):
    type: str
    turn_id: str | None = None
    item: _Item | None = None
    message: str = ""
    num_turns: int = 0


class _Part(msgspec.Struct, frozen=True):
    type: str
    text: str = ""


class _Event(msgspec.Struct, frozen=True):
    ordinal: int | None
    payload: _Payload


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_PAYLOAD: Final = msgspec.json.Decoder(_Payload)
_PARTS: Final = msgspec.json.Decoder(tuple[_Part, ...])

# What the head of an overlong line says, in the order in which Codex writes it.
_HEAD: Final = re.compile(rb'\{"timestamp":"[^"]{0,64}",(?:"ordinal":(\d{1,18}),)?"type":"([a-z_]+)","payload":\{')
_HEAD_EVENT: Final = re.compile(rb'"type":"([a-z_]+)"')
_HEAD_ITEM: Final = re.compile(
    rb',"thread_id":"[^"]*","turn_id":"([^"]*)","item":\{"type":"([A-Za-z]+)","id":"([^"\\]*)"'
)
_HEAD_TEXT: Final = re.compile(rb',"message":"[^"]')
_ELIDED: Final = "…"
_TOO_LONG: Final = "its line at byte {} is too long to be read, and of unknown shape"


def _envelope(line: Line) -> _Envelope | None:
    """The line as Codex's envelope; None for a torn or foreign one, of which Codex makes nothing either."""
    if not line.whole:
        return None
    try:
        return _ENVELOPE.decode(line.text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _event(line: Line) -> _Event | None:
    if not line.whole:
        return _event_of_head(line)
    envelope = _envelope(line)
    if envelope is None or envelope.type != "event_msg":
        return None
    try:
        return _Event(envelope.ordinal, _PAYLOAD.decode(envelope.payload))
    except (msgspec.DecodeError, RecursionError):
        return None


def _event_of_head(line: Line) -> _Event | None:
    head = _HEAD.match(line.text)
    if head is None:
        raise _Uncountable(_TOO_LONG.format(line.start))
    if head[2] != b"event_msg":
        return None
    kind = _HEAD_EVENT.match(line.text, head.end())
    if kind is None:
        raise _Uncountable(_TOO_LONG.format(line.start))
    ordinal = int(head[1]) if head[1] is not None else None
    if kind[1] != b"item_completed":
        text = _ELIDED if _HEAD_TEXT.match(line.text, kind.end()) else ""
        return _Event(ordinal, _Payload(type=kind[1].decode(), message=text))
    item = _HEAD_ITEM.match(line.text, kind.end())
    if item is None:
        raise _Uncountable(_TOO_LONG.format(line.start))
    turn_id, item_type, item_id = (group.decode("utf-8", "replace") for group in item.groups())
    elided = _Item(item_type, item_id, msgspec.Raw(msgspec.json.encode([_Part("text", _ELIDED)])))
    return _Event(ordinal, _Payload(type="item_completed", turn_id=turn_id, item=elided))


# --- counting ---


class _Counter(Protocol):
    @property
    def messages(self) -> int: ...

    preview: str

    def may_tell(self, text: bytes) -> bool:
        """Whether the line is worth decoding: most are not, and a search is fifty times cheaper."""

    def take(self, event: _Event) -> None: ...


class _PaginatedCounter:
    """Counts each message once for its turn and id, as Codex's own projection does."""

    def __init__(self) -> None:
        self.messages = 0
        self.preview = ""
        self._turn: str | None = None
        self._seen: set[str] = set()

    def may_tell(self, text: bytes) -> bool:
        return b'"item_completed"' in text

    def take(self, event: _Event) -> None:
        item, turn = event.payload.item, event.payload.turn_id
        if event.payload.type != "item_completed" or item is None or item.type not in {"UserMessage", "AgentMessage"}:
            return
        if turn != self._turn:
            self._turn, self._seen = turn, set()
        if item.id in self._seen:
            return
        self._seen.add(item.id)
        self.messages += 1
        if item.type == "UserMessage" and not self.preview:
            self.preview = "\n".join(_texts(item.content))


class _LegacyCounter:
    """Counts by turn, so that a rollback takes back what Codex takes back."""

    def __init__(self) -> None:
        self.preview = ""
        self._turns: list[int] = []
        self._open: int | None = None
        self._explicit = False

    @property
    def messages(self) -> int:
        return sum(self._turns) + (self._open or 0)

    def may_tell(self, text: bytes) -> bool:
        return b'"event_msg"' in text and any(kind in text for kind in _LEGACY_KINDS)

    def take(self, event: _Event) -> None:
        match event.payload.type:
            case "user_message":
                if not self._explicit:
                    self._close()
                self._add()
                self.preview = self.preview or event.payload.message
            case "agent_message" if event.payload.message:
                self._add()
            case "task_started" | "turn_started":
                self._close()
                self._open, self._explicit = 0, True
            case "task_complete" | "turn_complete" | "turn_aborted":
                self._close()
            case "thread_rolled_back":
                self._close()
                del self._turns[max(0, len(self._turns) - max(0, event.payload.num_turns)) :]

    def _add(self) -> None:
        self._open = (self._open or 0) + 1

    def _close(self) -> None:
        """End the open turn. One that nobody opened and that holds nothing was never a turn."""
        if self._open is not None:
            self._turns.append(self._open)
        self._open, self._explicit = None, False


_LEGACY_KINDS: Final = (
    b'"user_message"',
    b'"agent_message"',
    b'"task_started"',
    b'"turn_started"',
    b'"task_complete"',
    b'"turn_complete"',
    b'"turn_aborted"',
    b'"thread_rolled_back"',
)


def _texts(content: msgspec.Raw) -> Iterator[str]:
    try:
        parts = _PARTS.decode(content) if bytes(content) else ()
    except msgspec.DecodeError:
        return
    yield from (part.text for part in parts if part.type == "text" and part.text)
