"""The guards of the client library: which end is a prompt's."""

from typing import Final

from guards.guard import Guard

WATCH: Final = "tests/client/test_prompt_watch.py"
FILE: Final = "termald/client/prompt_watch.py"

OF_CLIENTS: Final = (
    Guard(
        "the end of a turn is kept, whosever it is",
        "CLIENT",
        FILE,
        "if isinstance(event, Done) and event.turn_id is not None:",
        "if isinstance(event, Done) and event.turn_id is None:",
        f"{WATCH}::test_a_prompt_that_is_found_in_anothers_turn_after_that_has_ended_ends_with_it",
    ),
    Guard(
        "an end without a turn bears no turn's name",
        "CLIENT",
        FILE,
        "        self.turn_id = None\n        return self.end_unseen(",
        "        return self.end_unseen(",
        f"{WATCH}::test_a_prompt_that_ends_without_a_turn_does_not_end_as_its_former_one",
    ),
    Guard(
        "a turn's end is not the prompt's while that goes on",
        "CLIENT",
        FILE,
        "if self._end is None or self._end.turn_id != event.turn_id:",
        "if self._end is not None and self._end.turn_id != event.turn_id:",
        f"{WATCH}::test_a_turn_that_ends_while_its_prompt_is_sent_again_is_not_the_end",
    ),
)
