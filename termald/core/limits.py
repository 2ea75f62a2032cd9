"""The core's numbers: one place, each with its unit and where it comes from. The settings may change those that users
have a reason to."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Deadlines in milliseconds, sizes in what their name says."""

    setups_max: int = 4
    """Setups in flight. 128 at once took 34-65 s behind a slow login shell and pushed the load to 130; a few keep both
    cores busy."""
    calls_max: int = 64
    """Requests in flight. A pipelined burst of 400 and more loses answers; 128 is clean; half of that leaves room for
    other front-ends."""
    queue_prompts_max: int = 1_000
    """Prompts waiting in one session; the next is refused as `session-busy`."""
    request_ms: int = 86_400_000
    """How long a request of Codex's waits for a decision before it is declined. A turn that waits holds its thread in
    Codex's memory, and its session's queue; whoever is gone for a day will not miss it."""
    open_ms: int = 60_000
    """`thread/start` and `thread/resume`: a slow login shell is snapshotted on each start."""
    turn_ms: int = 30_000
    """`turn/start` until it is acknowledged; the turn itself has no deadline."""
    ack_ms: int = 10_000
    """Interrupt, unsubscribe, clean-up."""
    read_ms: int = 30_000
    """A read of a thread's turns: a long history is read from disk."""
    settle_ms: int = 2_000
    """How long a turn that should have ended may take to say so, before its record is read. An interrupt ends a turn in
    about 15 ms."""
    settle_again_max_ms: int = 60_000
    """The longest pause between two looks at something that stays uncertain."""
    idle_ms: int = 1_800_000
    """How long an idle session stays attached. Codex keeps a thread in memory, about 1.2 MB of it, while somebody is
    subscribed."""
    attached_max: int = 128
    """Sessions attached at once, idle ones included; 128 threads were measured to weigh 353 MB in Codex."""
    ending_ms: int = 10_000
    """How long stop and close wait for the turn's end."""
    disposal_ms: int = 5_000
    """How long a kill waits for what Codex says, before it answers without."""
    overload_pause_ms: int = 200
    """After a refusal by overload (not executed): the pause before the same request is sent again, with as much
    jitter."""
    early_threads_max: int = 64
    """Threads whose notices are kept while a setup that may turn out to be theirs is open."""
    early_notices_max: int = 1_024
    """Notices kept for each of them. A resume was seen to be preceded by its thread's whole burst."""
