"""What leaves for Codex, in the order decided: operations become frames and go to the link they were decided for, or
nowhere.

One task. It is also where the working folder is looked at, because Codex opens a thread in a folder that does not exist
without a word: an operation whose folder is gone is not written, and the core is told so.
"""

import math
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import msgspec
import structlog
import trio

from state.records import LinkId
from termald.codex import frames
from termald.codex.errors import CodexFault
from termald.codex.translate import ops
from termald.core.effects import OpenFresh, OpenKnown, Send, SendAnswer, SendRefusal
from termald.core.inputs import CallUnwritten, Input

log = structlog.get_logger()
Outgoing = Send | SendAnswer | SendRefusal

METHOD_NOT_FOUND = -32601


class Wire(Protocol):
    """The supervisor, as far as frames go."""

    def send(self, link: LinkId, frame: bytes) -> bool:
        """Queue a frame for a link; False if the link is not the current one. Errors: `CodexFault` for one too
        large."""


async def is_folder(path: Path) -> bool:
    """Look at the file system, in a thread: it may be a network's."""
    return await trio.Path(path).is_dir()


async def file_bytes(path: Path) -> int | None:
    """Return the size of a file, None where there is none: in a thread, as `is_folder`."""
    try:
        found = await trio.Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


class Outbox:
    """A queue without a bound of its own: the core writes at most its window of calls, and one answer per request."""

    def __init__(
        self,
        wire: Wire,
        put: Callable[[Input], None],
        now_ms: Callable[[], int],
        is_folder: Callable[[Path], Awaitable[bool]] = is_folder,
    ) -> None:
        self._wire = wire
        self._is_folder = is_folder
        self._put = put
        self._now_ms = now_ms
        self._in, self._out = trio.open_memory_channel[Outgoing](math.inf)

    def send(self, effect: Outgoing) -> None:
        """Queue an effect; returns at once."""
        self._in.send_nowait(effect)

    async def run(self) -> None:
        """Write, for ever."""
        async for effect in self._out:
            await self._write(effect)

    async def _write(self, effect: Outgoing) -> None:
        if isinstance(effect, Send):
            missing = await self._missing_folder(effect)
            if missing is not None:
                self._unwritten(effect, "cwd-missing", f"{missing} is not a folder")
                return
        try:
            # False needs no answer: with the loss of its link the core has decided about everything that was on it
            # (RUNTIME-05).
            self._wire.send(effect.link, encode(effect))
        except CodexFault as fault:
            if isinstance(effect, Send):
                self._unwritten(effect, "input-too-large", str(fault))
            else:
                log.warning("an answer could not be written", reason=str(fault))

    async def _missing_folder(self, effect: Send) -> Path | None:
        if not isinstance(effect.op, OpenFresh | OpenKnown) or not effect.op.session.cwd:
            return None
        folder = Path(effect.op.session.cwd)
        return None if await self._is_folder(folder) else folder

    def _unwritten(self, effect: Send, slug: str, message: str) -> None:
        self._put(CallUnwritten(at_ms=self._now_ms(), call=effect.call, slug=slug, message=message))


def encode(effect: Outgoing) -> bytes:
    """Return the frame of an effect."""
    match effect:
        case Send():
            method, params = ops.request(effect.op)
            return frames.encode_request(effect.call, method, msgspec.Raw(params))
        case SendAnswer():
            result = msgspec.Raw(ops.answer(effect.form, effect.answer_json))
            return frames.encode_response(msgspec.Raw(effect.rpc_id_json.encode()), result)
        case SendRefusal():
            return frames.encode_error(msgspec.Raw(effect.rpc_id_json.encode()), METHOD_NOT_FOUND, effect.message)
