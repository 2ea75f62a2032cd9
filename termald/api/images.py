"""The images of a prompt, looked at before it is accepted: what could not be sent is refused while somebody listens."""

import base64
import binascii
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from termald.api.bodies import Image, Input, LocalImage, Part
from termald.api.commands import Desk
from termald.api.problems import FieldError, ProblemError, invalid

IMAGE_BYTES_MAX: Final = 20_971_520
"""20 MiB. Codex reads a local image into memory and scales it down; one by data is bounded by the body as well."""
_DATA: Final = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)
_BY_ADDRESS: Final = ("https://", "http://")


async def check_images(desk: Desk, given: Input, at: str = "#") -> ProblemError | None:
    """Return what is wrong with an input's images, or None. `at` points to where the prompt stands in the body."""
    parts: Sequence[Part] = [] if isinstance(given, str) else given
    for index, part in enumerate(parts):
        if isinstance(part, LocalImage):
            field, why = "path", await _local(desk, part.path)
        elif isinstance(part, Image):
            field, why = "url", _by_data(part.url)
        else:
            continue
        if why is not None:
            return invalid(FieldError(pointer=f"{at}/input/{index}/{field}", detail=f"input.{index}.{field}: {why}"))
    return None


async def _local(desk: Desk, path: str) -> str | None:
    if not Path(path).is_absolute():
        return None  # said with everything else that is wrong with the parts
    try:
        size = await desk.engine.file_bytes(Path(path))
    except OSError as error:
        return f"{path!r} cannot be looked at: {error.strerror}"
    if size is None:
        return f"{path!r} is not a file"
    return _too_large(size)


def _by_data(url: str) -> str | None:
    if url.lower().startswith(_BY_ADDRESS):
        return None
    begins = _DATA.match(url)
    if begins is None:
        return "is neither an address (https, http) nor an image by data (data:image/...;base64,...)"
    try:
        return _too_large(len(base64.b64decode(url[begins.end() :], validate=True)))
    except (binascii.Error, ValueError) as error:
        return f"is not base64: {error}"


def _too_large(size: int) -> str | None:
    return f"{size} bytes; the most are {IMAGE_BYTES_MAX}" if size > IMAGE_BYTES_MAX else None
