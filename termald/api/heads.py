"""Where a request head ends, and whether any two readers would agree on what it says. Pure.

h11 parses; it is lenient where older clients were sloppy: it takes a bare LF for a line end, joins folded lines, lets
Transfer-Encoding win over Content-Length, merges equal Content-Lengths, and believes chunks in HTTP/1.0. Each of those
is a place where a proxy in front of us may see another request than we do. So the raw head is looked at first, and only
an unambiguous one reaches h11. Whatever is refused here or there ends the connection.
"""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

import msgspec

from termald.api.refusals import Refused, bad_request, head_too_large

_END: Final = b"\r\n\r\n"
_FIRST_PRINTABLE: Final = 0x21
_FRAMING: Final = re.compile(rb"\r\n(content-length|transfer-encoding):[ \t]*([^\r]*)", re.IGNORECASE)
_FOLDED: Final = re.compile(rb"\r\n[ \t]")
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")


class Target(msgspec.Struct, frozen=True):
    """A request target, taken apart as ASGI wants it: `path` decoded, the others as sent."""

    path: str
    raw_path: bytes
    query: bytes


def head_end(buffer: bytearray, scanned: int, bytes_max: int) -> int | None:
    """Return how many bytes of `buffer` are the first head, or None while it is incomplete.

    `scanned` bytes of it were looked at before, so that a head that comes in single bytes costs no more than one that
    comes at once. Raises Refused: 400 for a bare LF or for something that is not text (TLS, most often), 431 for more
    than `bytes_max`.
    """
    if buffer and buffer[0] < _FIRST_PRINTABLE:
        raise Refused(bad_request("this does not begin like an HTTP request; TLS is not spoken here"))
    found = buffer.find(_END, max(0, scanned - len(_END) + 1))
    end = None if found < 0 else found + len(_END)
    stop = len(buffer) if end is None else end
    if buffer.count(b"\n", scanned, stop) != buffer.count(b"\r\n", max(0, scanned - 1), stop):
        raise Refused(bad_request("a line of the head ends in LF without CR"))
    if stop > bytes_max:
        raise Refused(head_too_large(bytes_max))
    return end


def check_head(head: bytes) -> None:
    """Raise Refused (400) if `head`, complete and with CRLF line ends, leaves room for two readings."""
    if _FOLDED.search(head):
        raise Refused(bad_request("a header line is folded"))
    framing = [(name.lower(), value) for name, value in _FRAMING.findall(head)]
    lengths = [value for name, value in framing if name == b"content-length"]
    codings = len(framing) - len(lengths)
    if len(lengths) > 1 or (lengths and b"," in lengths[0]):
        raise Refused(bad_request("more than one Content-Length"))
    if lengths and codings:
        raise Refused(bad_request("both Content-Length and Transfer-Encoding"))
    if codings and head.split(b"\r\n", 1)[0].endswith(b"HTTP/1.0"):
        raise Refused(bad_request("Transfer-Encoding in HTTP/1.0"))


def parse_target(target: bytes) -> Target:
    """Take a request target in origin form apart; Refused (400) for the other forms and for a path that is not UTF-8.

    The absolute form would bring a second host name that could disagree with `Host`; nobody but a proxy's client uses
    it.
    """
    if not target.startswith(b"/"):
        raise Refused(bad_request("the request target must be a path"))
    raw_path, _, query = target.partition(b"?")
    if b"#" in target or _BAD_ESCAPE.search(raw_path):
        raise Refused(bad_request("the request target is not a valid path"))
    try:
        path = unquote_to_bytes(raw_path).decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(bad_request("the path is not UTF-8")) from None
    return Target(path, raw_path, query)
