"""The link over the process's own pipes: one JSON text to a line, any length, one owner.

It ends with the process, and the process with it: Codex takes the end of its input as the wish to end.
"""

from collections import deque

import trio

from termald.codex.errors import LinkClosed
from termald.codex.lines import LINE_BYTES_MAX, LineSplitter, Oversize
from termald.codex.link import CLOSE_DEADLINE_S, WRITE_DEADLINE_S, check_size

# A pipe holds 64 KiB; asking for more than it can hold gains nothing.
_CHUNK_BYTES = 65_536


class StdioLink:
    """A `Link` over the two ends of the pipes that are ours."""

    def __init__(
        self,
        to_codex: trio.abc.SendStream,
        from_codex: trio.abc.ReceiveStream,
        *,
        line_bytes_max: int = LINE_BYTES_MAX,
        write_deadline_s: float = WRITE_DEADLINE_S,
    ) -> None:
        self._to_codex = to_codex
        self._from_codex = from_codex
        self._write_deadline_s = write_deadline_s
        self._splitter = LineSplitter(line_bytes_max=line_bytes_max)
        self._ready: deque[bytes | Oversize] = deque()
        self._end: str | None = None

    async def receive(self) -> bytes | Oversize:
        while not self._ready:
            if self._end is not None:
                raise LinkClosed(self._end)
            await self._fill()
        await trio.lowlevel.checkpoint_if_cancelled()
        return self._ready.popleft()

    async def send(self, frame: bytes) -> None:
        check_size(frame)
        # Only in raw JSON that was given to us can a line end stand, and only between tokens: a space means the same.
        line = frame.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
        whole = False
        try:
            with trio.fail_after(self._write_deadline_s):
                await self._to_codex.send_all(line)
            whole = True
        except trio.TooSlowError as error:
            raise LinkClosed(f"Codex took no input for {self._write_deadline_s:.0f} s") from error
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise LinkClosed("Codex has closed its input") from error
        finally:
            if not whole:
                await trio.aclose_forcefully(self._to_codex)

    async def aclose(self) -> None:
        with trio.move_on_after(CLOSE_DEADLINE_S, shield=True):
            await self._to_codex.aclose()
            await self._from_codex.aclose()

    async def _fill(self) -> None:
        try:
            chunk = await self._from_codex.receive_some(_CHUNK_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._end = "the pipe was closed"
            return
        self._ready.extend(self._splitter.push(bytes(chunk)))
        if not chunk:
            torn = self._splitter.finish()
            self._end = "Codex has closed its output" + (f" in the middle of a line of {torn:,} bytes" if torn else "")
