"""Every number that the daemon can be told, by section: its name, unit, default, range, and why it is what it is.

A limit is a field of a section in `settings.py`; the sections there extend these. One declaration serves the parser,
the refusal of a value out of range, `termald config show` and the page `docs/settings.md`, so none of them can drift.
Not here: constants that nobody should change (they stand beside the code that lives by them, with their source).
"""

from typing import Annotated

import msgspec
from msgspec import Meta


def bound(about: str, *, unit: str, low: int, high: int) -> Meta:
    """Describe a whole number of `unit`, `low` and `high` allowed. `about` says what for, and why this much."""
    return Meta(description=about, ge=low, le=high, extra={"unit": unit})


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the API takes from a client, and how long it waits for one."""

    body_bytes_max: Annotated[
        int,
        bound(
            "Largest request body; a larger one is answered 413. Codex itself takes no message above 16 MiB.",
            unit="bytes",
            low=65_536,
            high=268_435_456,
        ),
    ] = 16_777_216
    header_bytes_max: Annotated[
        int,
        bound("Largest request head; a larger one is answered 431.", unit="bytes", low=4_096, high=1_048_576),
    ] = 32_768
    connections_max: Annotated[
        int,
        bound(
            "Open connections, streams included; one more is answered 503 and closed. Each costs a descriptor, and a "
            "usual process may hold 1,024.",
            unit="connections",
            low=4,
            high=65_536,
        ),
    ] = 512
    streams_max: Annotated[
        int,
        bound(
            "Event streams open at once; one more is answered 429. Each is a connection as well.",
            unit="streams",
            low=1,
            high=65_536,
        ),
    ] = 256
    head_deadline_ms: Annotated[
        int,
        bound(
            "How long a connection may take over the head of a request, or be idle between two.",
            unit="ms",
            low=100,
            high=3_600_000,
        ),
    ] = 60_000
    write_deadline_ms: Annotated[
        int,
        bound(
            "How long a reader may leave what was sent to it unread before its connection is cut.",
            unit="ms",
            low=100,
            high=600_000,
        ),
    ] = 10_000
    heartbeat_ms: Annotated[
        int,
        bound(
            "Pause between the comments that keep a quiet event stream alive through proxies and show that it lives.",
            unit="ms",
            low=100,
            high=600_000,
        ),
    ] = 15_000
    drain_ms: Annotated[
        int,
        bound(
            "How long a stop waits for answers that are being written. After that connections are cut.",
            unit="ms",
            low=0,
            high=600_000,
        ),
    ] = 2_000


class CodexLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How hard the shared process may be pushed, and when it counts as lost."""

    setups_max: Annotated[
        int,
        bound(
            "Threads being opened or resumed at once; the others wait. Codex may fork a login shell for each.",
            unit="setups",
            low=1,
            high=64,
        ),
    ] = 4
    calls_max: Annotated[
        int,
        bound(
            "Requests in flight to Codex. A burst of 400 loses some answers for good; 128 is clean.",
            unit="requests",
            low=1,
            high=128,
        ),
    ] = 64
    start_deadline_ms: Annotated[
        int,
        bound(
            "How long the process may take from its start to the answer to `initialize`. A cold, slow disk needs most "
            "of it: the binary has 300 MB.",
            unit="ms",
            low=1_000,
            high=600_000,
        ),
    ] = 30_000
    open_deadline_ms: Annotated[
        int,
        bound(
            "How long Codex may take to open or resume a thread. With slow login shells 128 starts took 65 s.",
            unit="ms",
            low=1_000,
            high=3_600_000,
        ),
    ] = 60_000
    turn_deadline_ms: Annotated[
        int,
        bound(
            "How long Codex may take to acknowledge a prompt. The turn itself has no deadline.",
            unit="ms",
            low=1_000,
            high=3_600_000,
        ),
    ] = 30_000
    read_deadline_ms: Annotated[
        int,
        bound("How long Codex may take to read a thread's history from disk.", unit="ms", low=1_000, high=3_600_000),
    ] = 30_000
    stop_deadline_ms: Annotated[
        int,
        bound(
            "How long the process may take to end after it was asked to; then its whole group is killed.",
            unit="ms",
            low=100,
            high=600_000,
        ),
    ] = 5_000
    backoff_first_ms: Annotated[
        int,
        bound(
            "Pause before the first restart after an unasked exit; it doubles with each, with a random part.",
            unit="ms",
            low=10,
            high=600_000,
        ),
    ] = 250
    backoff_max_ms: Annotated[
        int,
        bound("Longest pause between two restarts.", unit="ms", low=10, high=3_600_000),
    ] = 30_000
    crashes_max: Annotated[
        int,
        bound(
            "Exits in a row without a stable run between them after which restarts stop; prompts are held, not failed.",
            unit="exits",
            low=1,
            high=1_000,
        ),
    ] = 5
    idle_ms: Annotated[
        int,
        bound(
            "How long a session with nothing to do stays attached. Codex keeps its thread in memory meanwhile.",
            unit="ms",
            low=1_000,
            high=86_400_000,
        ),
    ] = 1_800_000
    attached_max: Annotated[
        int,
        bound(
            "Sessions attached at once; past it the longest idle one is detached. 128 threads weighed 353 MB in Codex.",
            unit="sessions",
            low=1,
            high=10_000,
        ),
    ] = 128
    silence_ms: Annotated[
        int,
        bound(
            "How long Codex may leave unanswered whether it still reads, before the daemon is not ready; it is asked "
            "as often. Control socket only.",
            unit="ms",
            low=100,
            high=600_000,
        ),
    ] = 10_000
    silence_max_ms: Annotated[
        int,
        bound(
            "How long Codex may be silent so before it is ended and started anew: it holds every thread meanwhile.",
            unit="ms",
            low=1_000,
            high=86_400_000,
        ),
    ] = 180_000
    stable_ms: Annotated[
        int,
        bound(
            "How long a process must have lived for its exit not to count towards `crashes_max`.",
            unit="ms",
            low=100,
            high=3_600_000,
        ),
    ] = 30_000


class SessionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one session may pile up."""

    queue_prompts_max: Annotated[
        int,
        bound(
            "Prompts of one session that wait; one more is refused as `session-busy`.",
            unit="prompts",
            low=1,
            high=100_000,
        ),
    ] = 1_000
    request_deadline_ms: Annotated[
        int,
        bound(
            "How long an approval or a question waits for a decision before it is declined; a session may choose "
            "another. Its turn and all prompts behind it wait as long.",
            unit="ms",
            low=1_000,
            high=2_592_000_000,
        ),
    ] = 86_400_000


class DiscoveryLimits(msgspec.Struct, frozen=True, kw_only=True):
    """In what portions Codex's own threads are looked at."""

    page_threads: Annotated[
        int,
        bound(
            "Threads decided on in one batch: prompts wait no longer than one batch behind a scan.",
            unit="threads",
            low=1,
            high=10_000,
        ),
    ] = 200
    watch_ms: Annotated[
        int,
        bound(
            "How often the state DBs' files are looked at for a change. A change is scanned once they rest, or after "
            "five looks; scans that nobody asked for take at most a tenth of the time.",
            unit="ms",
            low=100,
            high=3_600_000,
        ),
    ] = 1_000


class StateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the event log is kept. Sessions, turns and items are kept whole in any case."""

    events_max: Annotated[
        int,
        bound(
            "Events kept; beyond that the oldest are cut off, and a reader whose cursor is older gets a `reset`. A "
            "million take some 400 MB.",
            unit="events",
            low=1_000,
            high=1_000_000_000,
        ),
    ] = 1_000_000
    fold_after_ms: Annotated[
        int,
        bound(
            "How long the deltas of a complete item are kept for readers that come back. After that the item stands "
            "for them.",
            unit="ms",
            low=0,
            high=31_536_000_000,
        ),
    ] = 3_600_000
