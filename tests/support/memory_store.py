"""A store in memory that keeps the writer's contract: whole batches or nothing, and it loads what a batch names.

It stands in for the database where the order of inputs is the point. `fail_next` makes commits fail, as a full disk
would.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from state.errors import StoreFull
from state.records import (
    DELIVERY_FINAL,
    BootImage,
    Changes,
    DisposalRecord,
    EventRecord,
    Host,
    IdempotencyRecord,
    IgnoredThread,
    IntentRecord,
    ItemId,
    ItemRecord,
    KnownThread,
    Loaded,
    PromptId,
    PromptRecord,
    RequestId,
    RequestRecord,
    Seq,
    SessionBundle,
    SessionId,
    SessionRecord,
    ThreadId,
    TurnId,
    TurnRecord,
    Wanted,
)


class MemoryStore:
    """Rows by key, as the database holds them."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.sessions: dict[SessionId, SessionRecord] = {}
        self.prompts: dict[PromptId, PromptRecord] = {}
        self.turns: dict[tuple[SessionId, TurnId], TurnRecord] = {}
        self.items: dict[tuple[SessionId, TurnId, ItemId], ItemRecord] = {}
        self.requests: dict[RequestId, RequestRecord] = {}
        self.intents: dict[str, IntentRecord] = {}
        self.ignored: dict[ThreadId, IgnoredThread] = {}
        self.threads: dict[ThreadId, KnownThread] = {}
        self.disposals: dict[ThreadId, DisposalRecord] = {}
        self.idempotency: dict[str, IdempotencyRecord] = {}
        self.events: list[EventRecord] = []
        self.fail_next = 0
        self.commits: list[tuple[Changes, bool]] = []

    async def load(self, wanted: Wanted) -> Loaded:
        """Return what there is of what is named."""
        return self.load_now(wanted)

    async def commit(self, changes: Changes, *, sync: bool) -> None:
        """Write the batch, or nothing of it."""
        self.commit_now(changes, sync=sync)

    def commit_now(self, changes: Changes, *, sync: bool) -> None:
        """Write the batch, or nothing of it; check on the way what the schema checks."""
        if self.fail_next:
            self.fail_next -= 1
            raise StoreFull("no space left")
        self._guard(changes)
        self.commits.append((changes, sync))
        self.sessions |= {record.id: record for record in changes.sessions}
        self.prompts |= {record.id: record for record in changes.prompts}
        self.turns |= {(record.session_id, record.id): record for record in changes.turns}
        self.items |= {(record.session_id, record.turn_id, record.id): record for record in changes.items}
        for session_id, turn_id in changes.reverted:
            self.turns.pop((session_id, turn_id), None)
            gone = [key for key in self.items if key[:2] == (session_id, turn_id)]
            for key in gone:
                del self.items[key]
        self.requests |= {record.id: record for record in changes.requests}
        self.intents |= {record.tag: record for record in changes.intents}
        for thread in changes.unignored:
            self.ignored.pop(thread, None)
        self.ignored |= {record.thread_id: record for record in changes.ignored}
        self.threads |= {record.thread_id: record for record in changes.threads}
        self.disposals |= {record.thread_id: record for record in changes.disposals}
        self.idempotency |= {record.key: record for record in changes.idempotency}
        for event in changes.events:
            assert event.seq == len(self.events) + 1, "I11: the sequence grows by one"
            self.events.append(event)
        claims = [record.thread_id for record in self.live() if record.thread_id is not None]
        assert len(claims) == len(set(claims)), "I3: one session per thread"
        assert not set(claims) & set(self.ignored), "I9: owned and ignored never meet"

    def _guard(self, changes: Changes) -> None:
        """Refuse what the schema refuses. There it sets one input aside; here it fails the test that did it."""
        for session in changes.sessions:
            before = self.sessions.get(session.id)
            assert before is None or before.killed_at_ms is None or session.killed_at_ms is not None, "it came back"
            assert before is None or before.generation <= session.generation, "I4: a generation only grows"
        for prompt in changes.prompts:
            old = self.prompts.get(prompt.id)
            ended = old is not None and old.delivery in DELIVERY_FINAL
            assert not ended or (old and old.delivery) == prompt.delivery, "I5: a prompt ends once"
        for turn in changes.turns:
            known = self.turns.get((turn.session_id, turn.id))
            assert known is None or known.state in (None, turn.state), "I12: a turn ends once"

    def live(self) -> Iterable[SessionRecord]:
        """Yield the sessions that were not killed."""
        return (record for record in self.sessions.values() if record.killed_at_ms is None)

    def load_now(self, wanted: Wanted) -> Loaded:
        """Return what there is of what is named."""
        owners = {record.id for record in self.live() if record.thread_id in wanted.threads}
        named = (wanted.sessions | owners) & set(self.sessions)
        return Loaded(
            bundles=tuple(self._bundle(self.sessions[session]) for session in named),
            ignored=tuple(self.ignored[one] for one in wanted.threads if one in self.ignored),
            intents=tuple(self.intents[one] for one in wanted.tags if one in self.intents),
            threads=tuple(self.threads[one] for one in wanted.threads if one in self.threads),
            disposals=tuple(self.disposals[one] for one in wanted.threads if one in self.disposals),
            idempotency=tuple(self.idempotency[one] for one in wanted.keys if one in self.idempotency),
        )

    def boot(self) -> BootImage:
        """Return all that is unfinished, for a daemon that starts again."""
        self.host = replace(self.host, epoch=self.host.epoch + 1)
        bundles = tuple(bundle for bundle in map(self._bundle, self.live()) if _unfinished(bundle))
        return BootImage(
            host=self.host,
            next_seq=Seq(len(self.events) + 1),
            loaded=Loaded(
                bundles=bundles,
                intents=tuple(intent for intent in self.intents.values() if intent.state == "open"),
                disposals=tuple(record for record in self.disposals.values() if not record.done),
            ),
            runtime=None,
        )

    def _bundle(self, session: SessionRecord) -> SessionBundle:
        if session.killed_at_ms is not None:
            return SessionBundle(session=session)
        mine = [prompt for prompt in self.prompts.values() if prompt.session_id == session.id]
        turns = [turn for turn in self.turns.values() if turn.session_id == session.id]
        running = [turn for turn in turns if turn.state is None]
        assert len(running) <= 1, "I1: one active turn"
        return SessionBundle(
            session=session,
            prompts=tuple(
                sorted((one for one in mine if one.delivery not in DELIVERY_FINAL), key=lambda one: one.position)
            ),
            next_position=max((one.position + 1 for one in mine), default=0),
            turn=running[0] if running else None,
            ended_turns=tuple(turn.id for turn in turns if turn.state is not None),
            open_items=tuple(
                item for item in self.items.values() if item.session_id == session.id and item.state == "open"
            ),
            requests=tuple(
                request
                for request in self.requests.values()
                if request.session_id == session.id and request.status in ("open", "answered")
            ),
            intents=tuple(
                intent for intent in self.intents.values() if intent.session_id == session.id and intent.state == "open"
            ),
        )


def _unfinished(bundle: SessionBundle) -> bool:
    record = bundle.session
    live = record.attachment is not None or record.ending is not None
    live = live or record.status in ("connecting", "ready", "running")
    return live or bool(bundle.prompts or bundle.requests or bundle.turn or bundle.open_items or bundle.intents)
