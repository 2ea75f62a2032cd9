"""Waiting for what happens outside of this process, where there is no event to wait for."""

from collections.abc import Callable

import trio


async def until(condition: Callable[[], bool], *, deadline_s: float = 60.0) -> None:
    """Return once the condition holds. Errors: trio.TooSlowError after `deadline_s` of real time."""
    with trio.fail_after(deadline_s):
        while not condition():  # noqa: ASYNC110 - another process, the file system: they set no event of ours
            await trio.sleep(0.005)
