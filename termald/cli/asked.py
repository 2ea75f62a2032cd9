"""A person who is asked by a turn that waits: the request on the terminal, and their answer. Nothing is accepted for
them: an empty line, an end of input, and a terminal that is none leave it open or refuse it, and say so."""

from termald.cli.live import Screen
from termald.client.blocking import Request
from termald.client.errors import Refused


def ask_person(screen: Screen, request: Request) -> None:
    """Show what is asked, and pass on what the person says. Without a person it is left open, with the commands that
    answer it."""
    card = request.card
    if not screen.is_interactive:
        screen.note(f"waits for you ({card.kind}): {card.about}")
        screen.note(f"  termald approve {card.id}   or   termald deny {card.id}")
        return
    try:
        _ask(screen, request)
    except Refused as error:
        screen.note(f"not answered: {error}")


def _ask(screen: Screen, request: Request) -> None:
    card = request.card
    if card.kind == "userInput":
        questions = (card.params or {}).get("questions", ())
        request.answer({str(each["id"]): _answer(screen, each) for each in questions})
        return
    screen.note(f"Codex asks ({card.kind}): {card.about}")
    reason = (card.params or {}).get("reason") if isinstance(card.params, dict) else None
    if reason:
        screen.note(f"  because: {reason}")
    said = screen.question("allow it? [y]es, [n]o, [l]ater: ").strip().lower()
    if said in ("y", "yes"):
        request.accept()
    elif said in ("l", "later"):
        screen.note(f"left open: termald approve {card.id}")
    else:
        request.decline()
        screen.note("denied")


def _answer(screen: Screen, question: dict[str, object]) -> str | list[str]:
    screen.note(str(question.get("question", "")))
    options = question.get("options")
    listed = options if isinstance(options, list) else []
    labels = [str(each.get("label", "")) for each in listed if isinstance(each, dict)]
    for number, label in enumerate(labels, 1):
        screen.note(f"  {number}. {label}")
    said = screen.question("> ").strip()
    if said.isdecimal() and 0 < int(said) <= len(labels):
        return labels[int(said) - 1]
    return said or []
