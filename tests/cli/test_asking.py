"""The commands that ask the daemon, against canned answers: what is sent, what is printed where, with which code."""

import json
import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result
from support.canned_daemon import Canned, CannedDaemon, canned_daemon

from termald.cli.browser import reachable
from termald.cli.exits import Exit
from termald.cli.main import COMMANDS, root

PROBLEM = "application/problem+json"


def session(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": name, "status": "ready", "title": None, "waitingOn": None, "queuedPrompts": 0, "messageCount": 2,
        "cwd": "/w", "preview": "first\nprompt", "threadId": f"thread-{name}", **fields,
    }  # fmt: skip


def page(*rows: Any, after: str | None = None) -> Canned:
    return Canned(200, {"data": list(rows), "nextCursor": after})


SESSIONS = page(session("abc1", title="Docs"), session("abd2"), session("xyz", title="abd2x"))
CARD = {
    "id": "req-1", "sessionId": "abc1", "kind": "command", "status": "open", "method": "m",
    "params": {"command": "rm x"}, "decisions": ["accept", "cancel"],
}  # fmt: skip
QUESTION = CARD | {
    "id": "req-2", "kind": "userInput", "decisions": [],
    "params": {"questions": [{"id": "q1", "question": "which?"}, {"id": "q2", "question": "why?"}]},
}  # fmt: skip


def run(folder: Path, *arguments: str, input: str | None = None) -> Result:
    (folder / "config.toml").touch()
    private = {
        "TERMALD_STATE_DIR": str(folder / "state"),
        "TERMALD_RUNTIME_DIR": str(folder / "run"),
        "TERMALD_CONFIG": str(folder / "config.toml"),
    }
    cleared = dict.fromkeys((name for name in os.environ if name.startswith(("TERMALD_", "CODEX_"))), None)
    return CliRunner().invoke(root, arguments, env=cleared | private, prog_name="termald", input=input)


def asked(daemon: CannedDaemon, method: str) -> list[tuple[str, Any]]:
    return [(each.path, json.loads(each.body or b"null")) for each in daemon.asked if each.method == method]


def ask(folder: Path, answers: dict[str, Canned], *arguments: str) -> tuple[Result, CannedDaemon]:
    with canned_daemon({"GET /api/sessions": SESSIONS, **answers}, folder / "run") as daemon:
        return run(folder, *arguments), daemon


ASKING = {
    "ls": [], "new": [], "send": ["s", "hi"], "chat": ["s"], "tail": ["s"], "history": ["s"], "requests": [],
    "approve": ["r"], "deny": ["r"], "answer": ["r", "x"], "interrupt": ["s"], "stop": ["s"], "close": ["s"],
    "kill": ["s"], "phantoms": [], "threads": [], "discover": [], "ignored": [], "unignore": ["t"], "models": [],
    "open": [], "fork": ["s"], "compact": ["s"], "revert": ["s"], "retry": ["s"],
}  # fmt: skip


@pytest.mark.parametrize("name", ASKING)
def test_without_a_daemon_each_is_one_sentence_with_the_way_out(name: str, tmp_path: Path) -> None:
    shown = run(tmp_path, name, *ASKING[name])
    assert shown.exit_code == Exit.NOT_RUNNING
    assert shown.stdout == ""
    (sentence,) = shown.stderr.splitlines()
    assert sentence.endswith("start it with: termald serve")


def test_none_of_the_commands_that_ask_is_forgotten_above() -> None:
    alone = {"serve", "demo", "status", "token", "config", "version", "completion", "doctor"}
    assert set(COMMANDS) - alone == set(ASKING)


class TestWhichSession:
    """An id, a beginning of it that is unique, or a title."""

    @pytest.mark.parametrize(
        ("said", "meant"), [("abc1", "abc1"), ("abc", "abc1"), ("docs", "abc1"), ("abd2", "abd2"), ("x", "xyz")]
    )
    def test_it_is_found(self, said: str, meant: str, tmp_path: Path) -> None:
        answers = {f"POST /api/sessions/{meant}/interrupt": Canned(202, {"interrupted": True})}
        shown, _ = ask(tmp_path, answers, "interrupt", said)
        assert (shown.exit_code, shown.stdout) == (Exit.OK, f"interrupting {meant}\n")

    @pytest.mark.parametrize(
        ("said", "slug", "words"),
        [
            ("ab", "ambiguous-session", "abc1, abd2"),
            ("no", "unknown-session", "termald ls"),
            ("", "unknown-session", ""),
        ],
    )
    def test_it_is_not(self, said: str, slug: str, words: str, tmp_path: Path) -> None:
        shown, daemon = ask(tmp_path, {}, "kill", said, "--json")
        error = json.loads(shown.stdout)["error"]
        assert (shown.exit_code, error["slug"]) == (Exit.FAILURE, slug)
        assert words in error["message"]
        assert asked(daemon, "POST") == []

    def test_one_wrong_name_among_several_kills_nothing(self, tmp_path: Path) -> None:
        shown, daemon = ask(tmp_path, {}, "kill", "abc1", "nope")
        assert shown.exit_code == Exit.FAILURE
        assert asked(daemon, "POST") == []


class TestSessions:
    """Listing, making and ending them."""

    def test_a_pipe_gets_a_line_for_each(self, tmp_path: Path) -> None:
        waits = page(session("s", waitingOn="approval", queuedPrompts=2))
        shown, _ = ask(tmp_path, {"GET /api/sessions": waits}, "ls")
        assert shown.stdout == "s\tready (waits: approval) +2\t\t2\t/w\tfirst prompt\n"

    def test_all_pages_are_read_and_a_limit_is_kept(self, tmp_path: Path) -> None:
        shown, daemon = ask(tmp_path, {}, "ls", "--json", "-n", "3", "--status", "ready")
        assert len(json.loads(shown.stdout)["sessions"]) == 3
        assert "limit=3" in daemon.asked[0].path
        assert "status=ready" in daemon.asked[0].path

    def test_a_new_one_works_here_and_asks_before_it_acts(self, tmp_path: Path) -> None:
        shown, daemon = ask(tmp_path, {"POST /api/sessions": Canned(201, session("n"))}, "new", "--title", "T")
        assert shown.stdout == "n\n"
        ((_, body),) = asked(daemon, "POST")
        assert (body["cwd"], body["title"], body["runtimeMode"]) == (str(Path.cwd()), "T", None)
        assert daemon.asked[-1].headers["Idempotency-Key"]

    def test_a_kill_says_what_becomes_of_the_thread(self, tmp_path: Path) -> None:
        answer = {"killed": True, "dryRun": False, "sessionId": "abc1", "threadId": "t", "ignored": True}
        answers = {"POST /api/sessions/abc1/kill": Canned(200, answer)}
        shown, daemon = ask(tmp_path, answers, "kill", "Docs", "--thread", "archive")
        assert shown.stdout == "killed: abc1; thread t is ignored from now on\n"
        assert asked(daemon, "POST") == [("/api/sessions/abc1/kill", {"thread": "archive", "dryRun": False})]

    def test_history_tells_who_said_what(self, tmp_path: Path) -> None:
        def item(kind: str, state: str = "completed", turn: str = "t1", **fields: Any) -> dict[str, Any]:
            return {"turnId": turn, "type": kind, "state": state, "item": {"type": kind, **fields}}

        items = page(
            item("userMessage", content=[{"type": "text", "text": "go"}, {"type": "image"}]),
            item("commandExecution", command="ls", exitCode=2),
            item("commandExecution", command="rm", status="declined"),
            item("fileChange", changes=[{"path": "a"}, {"path": "b"}], status="declined"),
            item("agentMessage", "taken_back", text="half"),
            item("agentMessage", text="done"),
            item("somethingNew"),
            item("userMessage", turn="t2", content=[{"type": "text", "text": "more"}]),
            item("userMessage", turn="t3", content=[{"type": "text", "text": "now"}]),
        )
        turns = page(
            {"id": "t3", "state": None, "message": None},
            {"id": "t2", "state": "error", "message": "overloaded"},
            {"id": "t1", "state": "normal", "message": None},
        )
        answers = {"GET /api/sessions/abc1/items": items, "GET /api/sessions/abc1/turns": turns}
        shown, _ = ask(tmp_path, answers, "history", "abc1")
        assert shown.stdout.splitlines() == [
            "you\tgo [image]", "commandExecution\tls (exit 2)",
            "commandExecution\trm (denied)", "fileChange\ta, b (denied)", "codex (taken back)\thalf", "codex\tdone",
            "you\tmore", "ended\terror: overloaded", "you\tnow",
        ]  # fmt: skip

    def test_a_refusal_is_in_the_daemons_words(self, tmp_path: Path) -> None:
        problem = {"type": "urn:termald:problem:session-busy", "title": "The session is busy", "detail": "it runs"}
        answers = {"POST /api/sessions/abc1/stop": Canned(409, problem, PROBLEM)}
        shown, _ = ask(tmp_path, answers, "stop", "abc1")
        assert (shown.exit_code, shown.stderr) == (Exit.FAILURE, "termald: The session is busy: it runs\n")


class TestDecisions:
    """Nothing is allowed that was not said in so many words."""

    OPEN: ClassVar = {"GET /api/requests": page(CARD, QUESTION)}

    def answer(self, folder: Path, *arguments: str) -> tuple[Result, list[tuple[str, Any]]]:
        answers = {f"POST /api/sessions/abc1/requests/{card['id']}": Canned(200, card) for card in (CARD, QUESTION)}
        shown, daemon = ask(folder, self.OPEN | answers, *arguments)
        return shown, asked(daemon, "POST")

    def test_what_waits_is_listed_with_what_may_be_said(self, tmp_path: Path) -> None:
        shown, _ = ask(tmp_path, self.OPEN, "requests")
        assert shown.stdout.splitlines() == [
            "req-1\tabc1\tcommand\trm x\taccept, cancel", "req-2\tabc1\tuserInput\twhich?; why?\t",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("command", "body"),
        [
            (("approve", "req-1"), {"decision": "accept"}),
            (("approve", "req-1", "--decision", "acceptForSession"), {"decision": "acceptForSession"}),
            (("approve", "req-1", "--decision", '{"a": 1}'), {"decision": {"a": 1}}),
            (("deny", "req-1"), {"decision": "decline"}),
            (("deny", "req-2"), {"answers": {"q1": {"answers": []}, "q2": {"answers": []}}}),
            (("answer", "req-2", "this", "so"), {"answers": {"q1": {"answers": ["this"]}, "q2": {"answers": ["so"]}}}),
            (
                ("answer", "req-2", "q2=a=b", "q1=x"),
                {"answers": {"q1": {"answers": ["x"]}, "q2": {"answers": ["a=b"]}}},
            ),
        ],
    )
    def test_each_says_what_it_means(self, command: tuple[str, ...], body: object, tmp_path: Path) -> None:
        shown, sent = self.answer(tmp_path, *command)
        assert shown.exit_code == Exit.OK, shown.stderr
        assert [each for _, each in sent] == [body]

    @pytest.mark.parametrize(
        ("command", "code", "words"),
        [
            (("approve", "req-2"), Exit.FAILURE, "termald answer req-2"),
            (("approve", "req"), Exit.FAILURE, "may be any of req-1, req-2"),
            (("answer", "req-1", "x"), Exit.FAILURE, "is no question"),
            (("answer", "req-2", "only one"), Exit.USAGE, "q1=…, q2=…"),
        ],
    )
    def test_what_does_not_fit_sends_nothing(
        self, command: tuple[str, ...], code: Exit, words: str, tmp_path: Path
    ) -> None:
        shown, sent = self.answer(tmp_path, *command)
        assert (shown.exit_code, sent) == (code, [])
        assert words in shown.stderr


class TestThreads:
    """What Codex has."""

    PHANTOM: ClassVar = {
        "sessionId": "abc1", "threadId": None, "title": "Docs", "status": "ready", "cwd": "/w", "createdAt": "t0",
        "evidence": {
            "record": {"messages": 0, "turns": 0, "undelivered": 1},
            "codex": {"thread": "none", "messages": 0, "reason": "no thread was opened"},
        },
    }  # fmt: skip

    def test_phantoms_are_only_listed_unless_told_otherwise(self, tmp_path: Path) -> None:
        shown, daemon = ask(tmp_path, {"GET /api/phantoms": page(self.PHANTOM)}, "phantoms")
        assert "1 prompts never delivered; in Codex: no thread was opened" in shown.stdout
        assert "termald phantoms --kill" in shown.stderr
        assert asked(daemon, "POST") == []

    def test_those_that_are_shown_are_killed(self, tmp_path: Path) -> None:
        killed = {"dryRun": False, "killed": ["abc1"], "spared": [{"sessionId": "x", "reason": "it came alive"}]}
        answers = {"GET /api/phantoms": page(self.PHANTOM), "POST /api/phantoms/kill": Canned(200, killed)}
        shown, daemon = ask(tmp_path, answers, "phantoms", "--kill", "docs")
        assert asked(daemon, "POST") == [("/api/phantoms/kill", {"ids": ["abc1"]})]
        assert shown.stderr == "spared x: it came alive\nkilled 1\n"

    @pytest.mark.parametrize(("name", "what"), [("phantoms", "tell phantoms"), ("models", "list models")])
    def test_a_daemon_that_cannot_yet_is_a_sentence(self, name: str, what: str, tmp_path: Path) -> None:
        missing = Canned(404, {"type": "urn:termald:problem:not-found", "title": "There is nothing"}, PROBLEM)
        shown, _ = ask(tmp_path, {f"GET /api/{name}": missing}, name)
        assert shown.exit_code == Exit.FAILURE
        assert shown.stderr == f"termald: the daemon that runs here cannot {what} yet; a newer termald may be able to\n"

    def test_models_are_listed_with_their_efforts(self, tmp_path: Path) -> None:
        model = {
            "id": "m1", "displayName": "M", "isDefault": True, "description": "d",
            "supportedReasoningEfforts": [{"reasoningEffort": "low"}, {"reasoningEffort": "high"}],
        }  # fmt: skip
        shown, _ = ask(tmp_path, {"GET /api/models": Canned(200, {"data": [model, {"model": "m2"}]})}, "models")
        assert shown.stdout == "m1 (default)\tM\tlow, high\td\nm2\t\t\t\n"

    def test_the_ignored_are_told_with_the_reason(self, tmp_path: Path) -> None:
        entry = {"threadId": "0199", "reason": "killed", "ignoredAt": "t"}
        shown, _ = ask(tmp_path, {"GET /api/ignored-threads": page(entry)}, "ignored")
        assert shown.stdout == "0199\tkilled\tt\n"

    def test_a_scan_can_be_left_to_itself(self, tmp_path: Path) -> None:
        idle = Canned(200, {"status": "idle", "finishedAt": "t", "reason": None, "report": None})
        answers = {"GET /api/discovery": idle, "POST /api/discovery/scan": Canned(202, {"status": "scanning"})}
        assert ask(tmp_path, answers, "discover", "--no-wait")[0].stdout == "a scan has begun\n"


class TestOperations:
    """What is done to a session's whole thread."""

    TURNS: ClassVar = {"GET /api/sessions/abc1/turns": page({"id": "turn-1"}, {"id": "turn-2"}, {"id": "other"})}

    @pytest.mark.parametrize(
        ("command", "what", "body", "said"),
        [
            (("fork", "--title", "T"), "fork", {"id": None, "title": "T"}, "abc1"),
            (("compact",), "compact", {}, "compacting abc1; prompts wait for its end"),
            (("revert",), "revert", {"turns": 1}, "taken back in abc1: the newest turn; files stay as they are"),
            (
                ("revert", "-n", "3"), "revert", {"turns": 3},
                "taken back in abc1: the newest 3 turns; files stay as they are",
            ),
            (
                ("revert", "--before", "oth"), "revert", {"beforeTurnId": "other"},
                "taken back in abc1: turn other and all after it; files stay as they are",
            ),
            (("retry",), "retry", {"fresh": False}, "abc1 goes on (0 prompts wait)"),
            (("retry", "--fresh"), "retry", {"fresh": True}, "abc1 goes on (0 prompts wait)"),
        ],
    )  # fmt: skip
    def test_each_says_what_it_means(
        self, command: tuple[str, ...], what: str, body: object, said: str, tmp_path: Path
    ) -> None:
        answers = {**self.TURNS, f"POST /api/sessions/abc1/{what}": Canned(200, session("abc1"))}
        shown, daemon = ask(tmp_path, answers, command[0], "docs", *command[1:])
        assert (shown.exit_code, shown.stdout) == (Exit.OK, f"{said}\n"), shown.stderr
        assert asked(daemon, "POST") == [(f"/api/sessions/abc1/{what}", body)]

    @pytest.mark.parametrize(
        ("options", "code", "words"),
        [
            (("--before", "turn"), Exit.FAILURE, "may be any of turn-1, turn-2"),
            (("--before", "none"), Exit.FAILURE, "there is no turn 'none'"),
            (("--before", "other", "-n", "2"), Exit.USAGE, "not both"),
            (("-n", "0"), Exit.USAGE, "x>=1"),
        ],
    )
    def test_what_is_not_clear_takes_nothing_back(
        self, options: tuple[str, ...], code: Exit, words: str, tmp_path: Path
    ) -> None:
        shown, daemon = ask(tmp_path, self.TURNS, "revert", "abc1", *options)
        assert (shown.exit_code, asked(daemon, "POST")) == (code, [])
        assert words in shown.stderr


class TestOpen:
    """A link for a browser."""

    MADE: ClassVar = {"POST /api/browser-links": Canned(200, {"path": "/open?code=c", "expiresAt": "t"})}

    def test_it_leads_to_the_address_that_the_daemon_listens_on(self, tmp_path: Path) -> None:
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / "token").write_text("t" * 43)
        with canned_daemon(self.MADE, tmp_path / "run", unix=False) as daemon:
            url = json.loads((tmp_path / "run" / "daemon.json").read_text())["url"]
            shown = run(tmp_path, "open")
            assert (shown.exit_code, shown.stdout) == (Exit.OK, f"{url}/open?code=c\n")
            assert "once" in shown.stderr
            assert json.loads(run(tmp_path, "open", "--json").stdout) == {"url": f"{url}/open?code=c", "expiresAt": "t"}
            assert daemon.asked[0].headers["Authorization"] == "Bearer " + "t" * 43

    def test_where_no_browser_gets_to_it_says_what_to_set_and_makes_none(self, tmp_path: Path) -> None:
        shown, daemon = ask(tmp_path, self.MADE, "open")
        assert (shown.exit_code, shown.stdout) == (Exit.FAILURE, "")
        assert "server.listen" in shown.stderr
        assert asked(daemon, "POST") == []

    @pytest.mark.parametrize(
        ("said", "url"),
        [
            ("http://0.0.0.0:8787", "http://127.0.0.1:8787"),
            ("http://[::]:8787", "http://127.0.0.1:8787"),
            ("http://[::1]:8787/", "http://[::1]:8787"),
        ],
    )
    def test_an_address_that_means_all_is_no_address_to_go_to(self, said: str, url: str) -> None:
        assert reachable(said) == url


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str, tmp_path: Path) -> None:
    shown = run(tmp_path, "completion", shell)
    assert shown.exit_code == Exit.OK
    assert "_TERMALD_COMPLETE" in shown.stdout


@pytest.mark.parametrize("words", [("-",), (), ("  ",)])
def test_an_empty_prompt_is_never_sent(words: tuple[str, ...], tmp_path: Path) -> None:
    with canned_daemon({"GET /api/sessions": SESSIONS}, tmp_path / "run") as daemon:
        shown = run(tmp_path, "send", "abc1", *words, input=" \n")
    assert (shown.exit_code, shown.stderr) == (Exit.USAGE, "termald: the prompt is empty; nothing was sent\n")
    assert asked(daemon, "POST") == []


def test_chat_is_not_for_programs(tmp_path: Path) -> None:
    assert run(tmp_path, "chat", "--json").exit_code == Exit.USAGE
