"""Which errors a sentence says enough about. Tasks that fail come as a group, also when it is one that failed."""

from collections.abc import Iterator

from state.errors import StoreError
from termald.api.token import TokenRefused
from termald.codex.errors import CodexFault

# What a person can mend. An OSError is the system's own refusal: a port that is taken, a folder that cannot be written.
MENDABLE = (StoreError, CodexFault, TokenRefused, OSError)


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, or those in the group."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from leaves(each)
    else:
        yield error


def mendable(error: BaseException) -> tuple[str, str] | None:
    """Return slug and sentence; None where any of them is our own mistake, whose traceback is wanted."""
    found = list(leaves(error))
    if not all(isinstance(each, MENDABLE) for each in found):
        return None
    sentences = dict.fromkeys(str(each) or type(each).__name__ for each in found)
    return getattr(found[0], "slug", "refused-by-the-system"), "; ".join(sentences)
