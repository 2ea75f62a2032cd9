"""The guards of what the daemon stands on: its disk and its process, and what is said of them."""

from typing import Final

from guards.guard import Guard

OF_THE_GROUND: Final = (
    Guard(
        "readiness asks the disk whether it takes a write",
        "I10 readiness",
        "termald/api/daemon.py",
        "await desk.engine.store.check_writes()",
        "pass",
        "tests/api/test_daemon.py::test_a_disk_that_takes_nothing_is_told_by_the_store",
    ),
    Guard(
        "a disk is asked though nobody writes",
        "I10 readiness",
        "state/store.py",
        "            await self._look()\n",
        "            pass\n",
        "tests/store/test_power.py::test_a_disk_that_takes_nothing_is_told_before_anybody_writes_and_comes_back_by_itself",
    ),
    Guard(
        "the asking write is one",
        "I10 readiness",
        "state/apply.py",
        'for change in ("+", "-"):',
        'for change in ("+ 1 -",):',
        "tests/store/test_power.py::test_a_disk_that_takes_nothing_is_told_before_anybody_writes_and_comes_back_by_itself",
    ),
    Guard(
        "what a write has told is not asked again",
        "I10 readiness",
        "state/store.py",
        "if trio.current_time() - self._looked_at >= LOOK_S:",
        "if True:",
        "tests/store/test_power.py::test_what_a_commit_met_is_known_without_asking_the_disk",
    ),
    Guard(
        "a commit that failed is told by readiness",
        "I10 readiness",
        "state/store.py",
        "            except StoreError as error:\n                self._note(error)\n                raise\n",
        "",
        "tests/store/test_power.py::test_what_a_commit_met_is_known_without_asking_the_disk",
    ),
    Guard(
        "a message that was dropped names its call",
        "I8 WIRE-06",
        "termald/codex/control_socket.py",
        "self._dropped_head = _head_of(parts)",
        'self._dropped_head = b""',
        "tests/codex/test_control_socket.py::test_message_that_is_too_long_is_passed_over_and_its_call_is_known",
    ),
    Guard(
        "a process that is being ended is not called ready again",
        "I8 RUNTIME-12",
        "termald/codex/runtime.py",
        "if not self._end_wanted.is_set():\n                    on_ready()",
        "on_ready()",
        "tests/codex/test_supervision_in_time.py::test_silent_process_that_is_being_ended_is_not_called_ready_again",
    ),
    Guard(
        "what cannot be started is looked at less and less often",
        "RUNTIME-08",
        "termald/codex/supervisor.py",
        "_FAULT_PAUSE_FIRST_S * 2**self._faults",
        "_FAULT_PAUSE_FIRST_S",
        "tests/codex/test_supervision_in_time.py"
        "::test_start_that_is_not_possible_now_is_told_and_tried_again_soon_then_less_and_less_often",
    ),
    Guard(
        "a list that gives a cursor twice ends",
        "I9 discovery",
        "discovery/listed.py",
        "if cursor in given:",
        'if cursor in given and given == {"never"}:',
        "tests/scan/test_listed.py::test_a_cursor_that_comes_again_ends_the_list",
    ),
    Guard(
        "a listed thread that may be ours is asked for its tag",
        "I9 discovery",
        "discovery/listed.py",
        "if thread.tag is None:",
        'if thread.tag == "never":',
        "tests/scan/test_listed.py::test_only_what_may_be_ours_is_asked_for_its_tag",
    ),
)
