"""The guards of what may be taken out of the log."""

from typing import Final

from guards.guard import Guard

UPKEEP: Final = "state/upkeep.py"
TESTS: Final = "tests/store/test_upkeep.py"

OF_THE_LOG: Final = (
    Guard(
        "only a complete item swallows its deltas",
        "I11 folding",
        UPKEEP,
        " AND state = 'completed'",
        "",
        f"{TESTS}::test_what_only_the_deltas_say_stays",
    ),
    Guard(
        "what the item does not say itself stays",
        "I11 folding",
        UPKEEP,
        'if not all("".join(pieces) in said for pieces in told.values()):',
        "if False:",
        f"{TESTS}::test_what_only_the_deltas_say_stays",
    ),
    Guard(
        "deltas are kept for a while for readers that come back",
        "I11 folding",
        UPKEEP,
        "if at_ms >= before_ms:",
        "if False:",
        f"{TESTS}::test_what_only_the_deltas_say_stays",
    ),
    Guard(
        "an item swallows no other's deltas",
        "I11 folding",
        UPKEEP,
        "AND turn_id = ? AND item_id = ? ORDER BY",
        "AND turn_id = ? AND ? <> '' ORDER BY",
        f"{TESTS}::test_a_complete_item_swallows_its_deltas_and_those_of_no_other",
    ),
    Guard(
        "a step is bounded",
        "I11 folding",
        UPKEEP,
        "_fold_item(db, seq, item, FOLDED_MAX - folded)",
        "_fold_item(db, seq, item, 10 * FOLDED_MAX)",
        f"{TESTS}::test_long_items_and_long_logs_go_in_bounded_steps_over_any_number_of_starts",
    ),
    Guard(
        "where the log was cut off is remembered",
        "I11 cutting",
        UPKEEP,
        "return Seq(first if first > folded + 1 else cut_off + 1)",
        "return Seq(1)",
        "tests/api/test_events.py::test_a_cursor_from_before_the_log_was_cut_off_gets_one_reset",
    ),
    Guard(
        "a hole that folding left is no cut",
        "I11 folding",
        UPKEEP,
        "first if first > folded + 1 else cut_off + 1",
        "first",
        f"{TESTS}::test_a_log_that_begins_with_a_hole_is_whole",
    ),
    Guard(
        "a page is bounded in bytes",
        "I11 paging",
        "state/queries.py",
        " or size >= EVENTS_BYTES_MAX",
        "",
        "tests/store/test_log.py::test_a_page_of_long_lines_is_bounded_in_bytes_and_the_replay_exact",
    ),
)
