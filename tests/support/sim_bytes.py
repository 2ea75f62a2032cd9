"""What may happen to the bytes that Codex writes to a pipe: WIRE-01 and WIRE-02, by chance."""

from itertools import pairwise
from random import Random

NOISE = (
    b"WARNING: something about a terminal\n",
    b"\x1b[31mred\x1b[0m\n",
    b"\n",
    b"\x00\x00\n",
    b"\xff\xfe not text\n",
    b'{"method":"turn/compl\n',
    b'{"method":"\xed\xa0\x80","params":{}}\n',
    b"[1, 2, 3]\n",
    b"7\n",
    b'{"jsonrpc":"2.0"}\n',
    b"{" * 300 + b"\n",
)
"""Lines that are no frames."""


class Mangler:
    """Cuts a line anywhere, ends it as another system would, and says something in between."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice

    def __call__(self, line: bytes) -> list[bytes]:
        """Return the pieces to be written for it, none of them empty."""
        dice, whole = self._dice, line
        if dice.random() < 0.2:
            whole = whole[:-1] + b"\r\n"
        if dice.random() < 0.1:
            whole = b"".join(dice.choices(NOISE, k=dice.randint(1, 3))) + whole
        cuts = sorted(dice.randrange(1, len(whole)) for _ in range(dice.choice((0, 0, 1, 2, 7))))
        edges = [0, *cuts, len(whole)]
        return [whole[start:end] for start, end in pairwise(edges) if start < end]
