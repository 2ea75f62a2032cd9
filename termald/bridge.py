"""Between the supervisor and the inbox: what it tells becomes inputs, and the records it needs kept are written before
a process is used."""

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
import structlog
import trio
from msgspec.structs import replace

from state.errors import StoreError, StoreStuck
from state.records import LinkId, RuntimeId, RuntimeRecord
from state.store import Store
from termald.codex.hooks import LinkUp as CodexLinkUp
from termald.codex.hooks import RuntimeExit, RuntimeState, RuntimeStatus
from termald.codex.lines import Oversize
from termald.core.inputs import BadFrame, CallId, LinkLost, LinkUp, ReplyMalformed, RuntimeExited, RuntimeNews
from termald.writer import Writer

log = structlog.get_logger()
News = Literal["starting", "ready", "adopted", "backoff", "broken", "exited"]
_TOLD: Final[dict[RuntimeState, News]] = {
    "starting": "starting",
    "ready": "ready",
    "backoff": "backoff",
    "broken": "broken",
}

PERSIST_PAUSE_S: Final = 1.0
"""Between two tries to write a process's record: a full disk is freed by a person."""


def exit_fields(exit_: RuntimeExit) -> dict[str, Any]:
    """Return a process's end as the API, the event and the record tell it. Neither code nor signal where it was not our
    child."""
    report = exit_.report
    return {
        "cause": exit_.cause,
        "reason": exit_.reason,
        "code": report.code,
        "signal": report.signal,
        "stderr": list(report.stderr_tail),
        "leftBehind": list(exit_.left_behind),
    }


class Bridge:
    """The supervisor's hooks. `settled` is called once it is known what became of the process of an earlier daemon."""

    def __init__(
        self,
        writer: Writer,
        store: Store,
        now_ms: Callable[[], int],
        record: RuntimeRecord | None,
        settled: Callable[[], None],
    ) -> None:
        self._writer = writer
        self._store = store
        self._now_ms = now_ms
        self._settled = settled
        self._records: dict[RuntimeId, RuntimeRecord] = {} if record is None else {record.runtime_id: record}
        self._state: RuntimeState = "stopped"

    async def persist(self, record: RuntimeRecord) -> None:
        """Write the process's record, synced, before it is used (BOOT-10). A disk that takes nothing is waited for:
        until then nothing can be promised either, and a process that is in no record must not be used."""
        while True:
            try:
                await self._store.put_runtime(record)
                break
            except StoreStuck:
                raise
            except StoreError as error:
                log.warning("the process's record cannot be written", reason=str(error), slug=error.slug)
                await trio.sleep(PERSIST_PAUSE_S)
        self._records[record.runtime_id] = record

    def on_status(self, status: RuntimeStatus) -> None:
        """Tell subscribers of a new state; decides nothing."""
        if status.state == self._state:
            return
        self._state = status.state
        told = _TOLD.get(status.state)
        if told is None:
            return
        fields: dict[str, Any] = {"pid": status.pid, "codexVersion": status.codex_version, "restarts": status.restarts}
        if status.reason is not None:
            fields["reason"] = status.reason
        if status.retry_in_s is not None:
            fields["retryInMs"] = round(status.retry_in_s * 1000)
        kind: News = "adopted" if told == "ready" and status.adopted else told
        self._news(kind, status.runtime_id, fields)
        log.info("codex", state=status.state, runtime=status.runtime_id, pid=status.pid, reason=status.reason)

    def on_link_up(self, up: CodexLinkUp) -> None:
        """There is a link to talk over."""
        self._writer.put(LinkUp(at_ms=self._now_ms(), link=up.link, adopted=up.adopted))
        self._settled()

    def on_frame(self, link: LinkId, raw: bytes | Oversize) -> None:
        """Something arrived. One too long to be kept ends its call, if it answers one, and costs nothing else
        (WIRE-04)."""
        if not isinstance(raw, Oversize):
            self._writer.put_frame(link, raw)
            return
        reason = f"a frame of {raw.bytes:,} bytes was passed over"
        at_ms = self._now_ms()
        if isinstance(raw.id, int):
            self._writer.put(ReplyMalformed(link=link, at_ms=at_ms, call=CallId(raw.id), reason=reason))
        else:
            self._writer.put(BadFrame(link=link, at_ms=at_ms, reason=reason, excerpt=raw.excerpt))

    def on_link_lost(self, link: LinkId, reason: str) -> None:
        """The link ended and the process lives."""
        self._writer.put(LinkLost(at_ms=self._now_ms(), link=link, reason=reason))

    def on_exit(self, exit_: RuntimeExit) -> None:
        """The process is gone, and all that it had said is in the inbox before this."""
        at_ms = self._now_ms()
        record = self._records.pop(exit_.runtime_id, None)
        fields = exit_fields(exit_)
        if record is not None:
            record = replace(record, ended_at_ms=at_ms, exit_json=msgspec.json.encode(fields).decode())
        cause = exit_.reason or exit_.cause
        self._writer.put(RuntimeExited(at_ms=at_ms, runtime=exit_.runtime_id, cause=cause, record=record))
        self._news("exited", exit_.runtime_id, fields)
        log.info("codex exited", runtime=exit_.runtime_id, cause=exit_.cause, reason=exit_.reason)
        self._settled()

    def _news(self, kind: News, runtime: RuntimeId | None, fields: dict[str, Any]) -> None:
        fields_json = msgspec.json.encode(fields).decode()
        self._writer.put(RuntimeNews(at_ms=self._now_ms(), kind=kind, runtime=runtime, fields_json=fields_json))
