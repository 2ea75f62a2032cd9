"""The token that TCP callers must show: 256 random bits in a file that only its owner reads.

There is no way for authentication to end up off: a missing or empty file is written anew, one that holds something else
is refused, and one that others could read is closed to them first. The file is replaced as a whole, so that a reader
never sees half a token.
"""

import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

FILE_NAME: Final = "token"
TOKEN_BYTES: Final = 32
_MODE: Final = 0o600
_OTHERS: Final = 0o077
# What `Authorization: Bearer` may carry, and not less than a guess in 2**128: a user may have chosen their own.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]{32,512}=*")
_READ_MAX: Final = 4_096


class TokenRefused(Exception):  # noqa: N818 - named for what happened, as the settings' errors are
    """The token file cannot be trusted; the message says why and what to do."""

    slug = "token-refused"


def read_or_make_token(folder: Path) -> str:
    """Return the token kept in `folder`, making one where there is none. Blocks on the disk.

    Errors: `TokenRefused` for a file that is not ours, not a plain file, or holds no token; OSError from the disk.
    """
    path = folder / FILE_NAME
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return _make(path)
    except OSError as error:
        if path.is_symlink():
            raise TokenRefused(f"{path} is a symbolic link; put the token itself there, or remove it") from error
        raise
    try:
        _check_owner(path, descriptor)
        text = os.read(descriptor, _READ_MAX).decode("ascii", errors="replace").strip()
    finally:
        os.close(descriptor)
    if not text:
        return _make(path)
    if not _TOKEN.fullmatch(text):
        raise TokenRefused(f"{path} holds no token (32 or more of A-Z a-z 0-9 . _ ~ + / -); remove it for a new one")
    return text


def _check_owner(path: Path, descriptor: int) -> None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise TokenRefused(f"{path} is not a file; remove it for a new token")
    if found.st_uid != os.geteuid():
        raise TokenRefused(f"{path} belongs to user {found.st_uid}, who could read and replace the token; remove it")
    if found.st_mode & _OTHERS:
        os.fchmod(descriptor, _MODE)


def _make(path: Path) -> str:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return token
