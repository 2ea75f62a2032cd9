"""Rollouts of the legacy kind, and what Codex makes of them: one table, asked of the counter and of the real Codex."""

from scan.homemade import agent, event, item, line, said_again, user

STARTED = event("task_started", turn_id="t")
COMPLETE = event("task_complete", turn_id="t")
ABORTED = event("turn_aborted", reason="interrupted")
COMPACTED = line("compacted", {"message": "sum"})


def back(turns: int) -> bytes:
    return event("thread_rolled_back", num_turns=turns)


# Name -> what stands in the rollout after its meta, and how many messages Codex shows of it.
LEGACY: dict[str, tuple[list[bytes], int]] = {
    "plain": (
        [said_again("user", "<environment_context>"), user("q"), said_again("user", "q"), agent("r"), agent("r")],
        3,
    ),
    "empty agent message": ([user(""), agent(""), user("q"), agent("")], 2),
    "rolled back": ([user("1"), agent("1"), user("2"), agent("2"), user("3"), agent("3"), back(2), user("4")], 3),
    "rolled back beyond the beginning": ([user("1"), agent("1"), back(5), user("4")], 1),
    "rolled back by nothing": ([user("1"), back(0), agent("late")], 2),
    "an opened turn with a steer in it": (
        [STARTED, user("1"), COMPLETE, STARTED, user("2"), user("s"), COMPLETE, back(1)],
        1,
    ),
    "an opened turn without a message": ([STARTED, user("1"), agent("1"), COMPLETE, STARTED, COMPLETE, back(1)], 2),
    "a turn after a completed one": ([STARTED, user("1"), COMPLETE, user("2"), agent("2"), back(1)], 1),
    "a turn after an aborted one": ([STARTED, user("1"), ABORTED, user("2"), agent("2"), back(1)], 1),
    "the agent first": ([agent("0"), user("1"), agent("1"), back(1)], 1),
    "compacted": ([user("1"), agent("1"), COMPACTED, user("2"), back(1), user("3"), back(1)], 2),
    "newer names": (
        [
            event("turn_started", turn_id="a"),
            user("1"),
            event("turn_complete", turn_id="a"),
            event("turn_started", turn_id="b"),
            user("2"),
            back(1),
        ],
        1,
    ),
    "junk": (
        [b"{torn", user("1"), b"not json", event("never_heard"), line("zzz", {}), b"", b"[" * 5000, agent("1")],
        2,
    ),
    "items of the other mode": ([user("1"), item("AgentMessage", "m")], 1),
    "only what the model is told": ([said_again("user", "q"), said_again("assistant", "a")], 0),
}
