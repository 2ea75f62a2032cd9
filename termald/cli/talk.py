"""`termald send`, `chat`, `tail`: prompts, and what comes of them."""

import contextlib
import importlib
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import rich_click as click
from click.exceptions import Exit as Exited

from termald.cli.asked import ask_person
from termald.cli.asking import asking_command, daemon_of, session_meant
from termald.cli.exits import Exit
from termald.cli.invocation import Invocation
from termald.cli.live import Screen
from termald.client import blocking
from termald.client.errors import Refused
from termald.client.events import Done, Event, OtherEvent, RequestEvent, Reset, Synced
from termald.client.turns import TurnAccumulator

_CHOICES = (
    click.option("--model", help="Another model from here on."),
    click.option("--effort", help="How hard the model thinks, from here on."),
)


@contextmanager
def _connected(invocation: Invocation) -> Iterator[blocking.Termald]:
    settings = invocation.settings().settings
    with blocking.connect(runtime_dir=settings.runtime.dir, state_dir=settings.state.dir) as termald:
        yield termald


@asking_command("send")
@click.argument("session")
@click.argument("prompt", nargs=-1, metavar="[PROMPT...]")
@_CHOICES[0]
@_CHOICES[1]
@click.option("--mode", type=click.Choice(("queue", "steer", "replace", "reject")), help="What to do while it is busy.")
@click.option("--plan", is_flag=True, help="Let it plan and ask, and change nothing.")
@click.option("--key", help="An idempotency key: with the same one, the same prompt is followed and not sent again.")
@click.option("--no-wait", is_flag=True, help="Print the prompt's id once it is taken, and end.")
def send(
    invocation: Invocation,
    *,
    session: str,
    prompt: tuple[str, ...],
    plan: bool,
    key: str | None,
    no_wait: bool,
    **choices: str | None,
) -> None:
    """Prompt a session and stream the answer.

    PROMPT is read from standard input where it is left out or `-`. The answer goes to standard output, everything else
    to standard error. Ctrl-C leaves the turn running. Exit code 4: the turn did not end well.
    """
    text = " ".join(prompt)
    if text in ("", "-"):
        if sys.stdin.isatty():
            click.echo("the prompt, and Ctrl-D on a line of its own at its end:", err=True)
        text = sys.stdin.read()
    if not text.strip():
        invocation.fail(Exit.USAGE, "no-prompt", "the prompt is empty; nothing was sent")
    chosen: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
    if plan:
        chosen["interactionMode"] = "plan"
    with daemon_of(invocation) as client:
        found = session_meant(invocation, client, session)
    with _connected(invocation) as termald:
        here = termald.session(found)
        if no_wait:
            taken = here.send(text, key=key, **chosen)
            if invocation.as_json:
                invocation.print_json(taken)
            else:
                click.echo(taken.id)
            return
        screen = Screen(silent=invocation.as_json)
        try:
            with here.run(text, key=key, **chosen) as run:
                turn, done = _follow(here, run, screen)
        except KeyboardInterrupt:
            screen.note(f"left; it goes on. See it: termald tail {found}   End it: termald interrupt {found}")
            raise Exited(Exit.LEFT) from None
    if invocation.as_json:
        invocation.print_json({"session": found, "prompt": run.prompt_id, "text": turn.text, "done": _plain(done)})
    if not done.ok:
        raise Exited(Exit.TURN)


def _follow(here: blocking.Session, run: blocking.Run, screen: Screen) -> tuple[TurnAccumulator, Done]:
    turn = TurnAccumulator()
    for event in run:
        turn.feed(event)
        screen.show(event)
        if isinstance(event, RequestEvent) and event.kind == "request/opened":
            # Asked here and not by a handler of the run: Ctrl-C at a question must reach this thread. What is told
            # again and was decided long ago is not in the list.
            for request in here.requests():
                if request.card.id == event.request_id:
                    ask_person(screen, request)
    assert turn.done is not None
    screen.end(turn.done)
    return turn, turn.done


_HELP = """\
/help            this
/info            how the session stands
/model NAME      another model from the next prompt on
/quit            leave; the session stays (Ctrl-D does the same)
A line that ends with \\ goes on in the next. Ctrl-C while it answers interrupts the turn."""


@asking_command("chat")
@click.argument("session", required=False)
@click.option("--cwd", type=click.Path(path_type=Path), help="Where a new session works. [default: here]")
@_CHOICES[0]
@_CHOICES[1]
def chat(invocation: Invocation, session: str | None, cwd: Path | None, **choices: str | None) -> None:
    """Talk with a session, prompt by prompt.

    Without SESSION it makes a new one in the current folder.
    """
    if invocation.as_json:
        invocation.fail(Exit.USAGE, "not-for-programs", "chat is for people; programs use: termald send --json")
    chosen = {name: value for name, value in choices.items() if value is not None}
    found = None
    if session is not None:
        with daemon_of(invocation) as client:
            found = session_meant(invocation, client, session)
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")  # where there is one, `input` edits lines and remembers them
    screen = Screen()
    with _connected(invocation) as termald:
        here = termald.session(found, cwd=cwd, **(chosen if found is None else {}))
        if found is not None and chosen:
            here.update(**chosen)
        info = here.info()
        name = shlex.quote(info.title or info.id)
        screen.note(f"session {name} in {info.cwd}; /help says what else there is")
        while (text := _next_prompt(screen)) is not None:
            try:
                _converse(here, screen, text)
            except Refused as error:
                screen.note(str(error))
        screen.note(f"go on with: termald chat {name}")


def _next_prompt(screen: Screen) -> str | None:
    """Return what the person wrote; None when they leave."""
    lines: list[str] = []
    prompt = "\n> " if sys.stdin.isatty() else ""
    while True:
        try:
            line = input("… " if lines and prompt else prompt)
        except (EOFError, KeyboardInterrupt):
            click.echo()
            return "\n".join(lines) or None
        if line.strip() in ("/quit", "/exit"):
            return None
        if line.endswith("\\"):
            lines.append(line[:-1])
            continue
        text = "\n".join([*lines, line])
        if text.strip():
            return text


def _converse(here: blocking.Session, screen: Screen, text: str) -> None:
    word, _, rest = text.strip().partition(" ")
    if word == "/help":
        screen.note(_HELP)
    elif word == "/info":
        info = here.info()
        screen.note(f"{info.id}: {info.status}, {info.message_count} messages, in {info.cwd}, thread {info.thread_id}")
    elif word == "/model" and rest:
        screen.note(f"model {here.update(model=rest).model} from the next prompt on")
    elif word.startswith("/") and word.count("/") == 1:
        screen.note(f"there is no {word}; /help says what there is")
    else:
        _one_turn(here, screen, text)


def _one_turn(here: blocking.Session, screen: Screen, text: str) -> None:
    with here.run(text) as run:
        try:
            _follow(here, run, screen)
        except KeyboardInterrupt:
            screen.note("interrupting …")
            screen.end(run.cancel())


@asking_command("tail")
@click.argument("session", required=False)
@click.option("--after", type=click.IntRange(0), help="From this number on; 0 is the beginning. [default: from now on]")
@click.option("--kinds", help="Only these kinds, separated by commas.")
@click.option("--no-follow", is_flag=True, help="End when everything that was stored is told.")
def tail(invocation: Invocation, session: str | None, after: int | None, kinds: str | None, no_follow: bool) -> None:
    """Print events as they come, of one session or of all.

    With --json each line is one document. Ctrl-C ends it.
    """
    found = None
    if session is not None:
        with daemon_of(invocation) as client:
            found = session_meant(invocation, client, session)
    wanted = tuple(kinds.split(",")) if kinds else ()
    with _connected(invocation) as termald, contextlib.suppress(KeyboardInterrupt):
        for event in termald.events(after=0 if no_follow and after is None else after, session=found, kinds=wanted):
            if isinstance(event, Synced):
                if no_follow:
                    return
            elif invocation.as_json:
                click.echo(msgspec.json.encode(_plain(event)))
            else:
                cells = (str(event.seq), event.at or "", event.session_id or "", event.kind, _gist(event))
                click.echo("\t".join(cells))


def _plain(event: Event) -> Any:
    said = msgspec.to_builtins(event)
    return said["fields"] if isinstance(event, OtherEvent) else said


_DULL = frozenset({"seq", "at", "kind", "sessionId", "attachment"})


def _gist(event: Event) -> str:
    """What an event says besides where it belongs, in a line."""
    if isinstance(event, Reset):
        return f"cannot be replayed ({event.reason}); goes on from here"
    said = _plain(event).items()
    told = {name: value for name, value in said if name not in _DULL and value not in (None, [], {}, "")}
    return msgspec.json.encode(told).decode()
