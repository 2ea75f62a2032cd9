"""Codex's own list of its threads, for the scanner: each question is put to the process that runs, through the writer.

Nothing is loaded, resumed or changed by it.
"""

from pathlib import Path

from discovery.listed import ListedPage, ListUnavailable
from state.records import ThreadId
from termald.codex.handshake import CLIENT_NAME
from termald.codex.translate.listing import ListUnreadable, ask_thread, ask_threads, read_tag, read_threads
from termald.core.effects import CodexAnswer, Refused
from termald.core.inputs import AskCodex
from termald.writer import Writer


class CodexListing:
    """What `discovery.listed` asks for."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    @property
    def answers(self) -> bool:
        """Whether there is a process to ask."""
        return self._writer.state.link.value is not None

    async def page(self, home: Path, cursor: str | None, size: int, *, archived: bool) -> ListedPage:
        """Return a page of threads. Errors: `ListUnavailable`."""
        result = await self._ask(*ask_threads(cursor, size, archived=archived))
        try:
            threads, following = read_threads(result, str(home), CLIENT_NAME, archived=archived)
        except ListUnreadable as error:
            raise ListUnavailable(f"its answer is no list of threads: {error}") from error
        return ListedPage(threads=threads, following=following)

    async def tag_of(self, thread: ThreadId) -> str | None:
        """Return the thread's tag. Errors: `ListUnavailable`."""
        result = await self._ask(*ask_thread(thread))
        try:
            return read_tag(result)
        except ListUnreadable as error:
            raise ListUnavailable(f"its answer tells no thread: {error}") from error

    async def _ask(self, method: str, params_json: str) -> str:
        answer = await self._writer.ask(
            lambda ticket, at_ms: AskCodex(ticket=ticket, at_ms=at_ms, method=method, params_json=params_json)
        )
        if isinstance(answer, Refused):
            raise ListUnavailable(answer.problem.message)
        assert isinstance(answer, CodexAnswer), f"the core answered {type(answer).__name__}"
        return answer.result_json
