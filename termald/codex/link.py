"""A link: one connection to one process, which carries whole frames both ways until it ends, and then for good.

Who may call what: one task receives, one task sends, anybody closes. A send that was cut, by a deadline or a
cancellation, may have left half a frame behind: the link is dead from then on, so that nothing can follow on the torn
one (WIRE-14). The end comes out of `receive` as `LinkClosed`, after everything that had arrived before it.
"""

from typing import Final, Protocol, runtime_checkable

from termald.codex.errors import MessageTooLarge
from termald.codex.lines import Oversize

# Measured on 0.163 and 0.171: 16,777,216 bytes pass, one more and Codex drops the connection.
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
# A reader that takes nothing for so long is stuck: Codex takes in 16 MiB in well under a second.
WRITE_DEADLINE_S: Final = 10.0
# A closing handshake is a courtesy; a peer that stopped reading would hold it up for ever.
CLOSE_DEADLINE_S: Final = 1.0


class Link(Protocol):
    """One connection. `receive` gives the next frame or what stands in for one that was too long."""

    async def receive(self) -> bytes | Oversize:
        """Return the next frame.

        Errors: `LinkClosed`, at the end and ever after. May be cut: no frame is lost by it.
        """
        ...

    async def send(self, frame: bytes) -> None:
        """Write one frame.

        Cut means the link is dead. Errors: `LinkClosed`, `MessageTooLarge` (nothing was written).
        """
        ...

    async def aclose(self) -> None:
        """End the link. Bounded; never raises; a second call does nothing."""
        ...


@runtime_checkable
class Answering(Protocol):
    """A link whose other side can be asked whether it reads, which costs it nothing. Pipes know no such question."""

    async def ping(self) -> None:
        """Return once it has answered. To be cut only where the link ends too. Errors: `LinkClosed`."""
        ...


def check_size(frame: bytes) -> None:
    """Refuse a frame that Codex would drop the connection for. Errors: `message-too-large`."""
    if len(frame) > MESSAGE_BYTES_MAX:
        raise MessageTooLarge(f"a message of {len(frame):,} bytes; Codex takes {MESSAGE_BYTES_MAX:,} at most")
