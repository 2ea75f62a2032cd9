"""The guards of what is done to a whole thread, of requests that nobody decides, and of queues that stand still."""

from typing import Final

from guards.guard import CORE, REQUESTS, TURNS, Guard

REVERTING: Final = "tests/core/test_reverting.py"
PROMPTS: Final = "tests/core/test_prompts.py"
STANDSTILL: Final = "tests/core/test_standstill.py"

OF_TURNS: Final = (
    # --- what is done to a whole thread ---
    Guard(
        "a revert unloads its thread and the session stays attached",
        "I4",
        CORE + "routing.py",
        'waits = waits or (session.operation is not None and session.operation.kind == "revert")',
        "",
        f"{REVERTING}::test_the_thread_is_unloaded_on_the_way_and_its_session_stays_attached",
    ),
    Guard(
        "what an attaching finds running is not interrupted by an operation",
        "I1",
        CORE + "operations.py",
        "if session.turn is not None:\n        # Another",
        "if False:\n        # Another",
        f"{REVERTING}::test_a_detached_session_is_attached_first_and_a_turn_that_runs_there_is_not_interrupted",
    ),
    Guard(
        "a sum that begins anew repeats nothing",
        "I12",
        CORE + "reverting.py",
        "total_seen=None",
        "total_seen=session.total_seen",
        f"{REVERTING}::test_what_is_spent_after_it_is_counted_though_the_sum_is_what_it_was",
    ),
    Guard(
        "a cut that was made is made here too, whoever waits",
        "I5",
        CORE + "operations.py",
        "reverting.done(work, call, call.op)  # also where nobody waits for it any more\n    session = _of(work, call)",
        "session = _of(work, call)\n        if session is not None:\n            reverting.done(work, call, call.op)\n"
        "    session = _of(work, call)",
        f"{REVERTING}::test_an_answer_that_nobody_waits_for_any_more_still_takes_the_turns_out",
    ),
    # --- queues that stand still ---
    Guard(
        "what every prompt would meet holds the queue",
        "I5",
        CORE + "turns.py",
        "standstill.begin(work, session, ending)",
        "pass",
        f"{STANDSTILL}::test_what_waits_is_kept_and_the_session_says_why",
    ),
    Guard(
        "an older limit does not end a newer wait",
        "I4",
        CORE + "standstill.py",
        "if session is None or _until(session) != timer.until_ms:",
        "if session is None or _until(session) is None:",
        f"{STANDSTILL}::test_an_older_reset_does_not_end_a_newer_wait",
    ),
    Guard(
        "an attaching does not end a wait for the account",
        "I5",
        CORE + "setup.py",
        "in AWAIT_A_WORD | AWAIT_THE_ACCOUNT\n",
        "in AWAIT_A_WORD\n",
        f"{STANDSTILL}::test_a_lost_link_changes_nothing_about_it",
    ),
    Guard(
        "what its user has ended is not brought back by a reset",
        "I7",
        CORE + "ending.py",
        "session = setup.no_longer_for_the_account(session)",
        "pass",
        f"{STANDSTILL}::test_a_reset_brings_nobody_back",
    ),
    # --- requests that nobody decides ---
    Guard(
        "a deadline declines what is open, and nothing else",
        "I6",
        CORE + "requests.py",
        'if session is None or record is None or record.status != "open" or record.id not in session.requests:',
        "if session is None or record is None:",
        f"{REQUESTS}::test_a_request_that_is_over_has_no_deadline_any_more",
    ),
    Guard(
        "a policy accepts only what Codex takes",
        "I6",
        CORE + "answers.py",
        """answer_json='"accept"') if '"accept"' in request.decisions else None""",
        """answer_json='"accept"')""",
        f"{REQUESTS}::test_a_policy_accepts_nothing_that_codex_does_not_take",
    ),
    # --- prompts ---
    Guard(
        "one that may have been sent keeps its place in the queue",
        "I5",
        CORE + "commands.py",
        'waiting = [prompt for prompt in session.queue if work.prompt(prompt).delivery == "queued"]',
        "waiting = list(session.queue)",
        f"{PROMPTS}::test_one_that_may_have_been_sent_keeps_its_place",
    ),
    Guard(
        "what somebody else may have chosen is taken back",
        "TURN-24",
        CORE + "turns.py",
        "strayed = session.strayed or (prompt is None and session.outgoing is None)",
        "strayed = session.strayed",
        f"{PROMPTS}::test_what_anybody_else_may_have_chosen_is_taken_back",
    ),
    Guard(
        "an answer that was cut short costs what the sum has grown by",
        "EVENT-09",
        CORE + "turns.py",
        "return notice.last if min(msgspec.structs.astuple(grown)) < 0 else grown",
        "return notice.last",
        f"{TURNS}::test_what_an_answer_cost_that_was_cut_short_is_what_the_sum_has_grown_by",
    ),
)
