"""What the scripted app-server's model has run, and what it asks the user: the requests that wait for an answer."""

import trio
from support import scripted_codex_wire as wire
from support.scripted_codex_home import ITEM
from support.scripted_codex_process import Asked, Loaded, Process, Turn
from support.scripted_codex_wire import Json

from termald.scripted_model.plan import Ask

OUTPUT = "done\n"
AMENDMENT = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["/bin/bash"]}}


async def run_command(codex: Process, loaded: Loaded, turn: Turn, command: str) -> bool:
    """Ask for approval, and do as was decided. False where the turn ends with it."""
    cwd, item_id = loaded.row.cwd, codex.home.mint(ITEM)
    params = {
        "kind": "command",
        "turnId": turn.row.id,
        "itemId": item_id,
        "command": f"/bin/bash -c '{command}'",
        "cwd": cwd,
        "availableDecisions": ["accept", AMENDMENT, "cancel"],
    }
    loaded.flags.append("waitingOnApproval")
    codex.tell_status(loaded)
    _tell(codex, loaded, turn, "item/started", {"item": wire.command(item_id, command, cwd, status="inProgress")})
    decision = await _decided(codex, loaded, "item/commandExecution/requestApproval", params)
    answer = decision.get("decision") if isinstance(decision, dict) else None
    if answer in ("decline", "cancel", None):
        # Told, and not kept in the turn's record.
        declined = wire.command(item_id, command, cwd, status="declined")
        _tell(codex, loaded, turn, "item/completed", {"item": declined})
    _wait_no_more(codex, loaded)
    if answer == "decline":
        return True
    if answer in ("cancel", None):
        turn.interrupted_by_answer = True
        return False
    await codex.pause(cwd, 0.01, 0.2)
    done = wire.command(item_id, command, cwd, status="completed", output=OUTPUT, code=0)
    _finish(codex, loaded, turn, done)
    return True


async def patch_files(codex: Process, loaded: Loaded, turn: Turn, patch: str) -> bool:
    """Ask for approval of a change, and do as was decided. False where the turn ends with it."""
    item_id = codex.home.mint(ITEM)
    name, text = _added(patch)
    loaded.flags.append("waitingOnApproval")
    _tell(codex, loaded, turn, "item/started", {"item": wire.file_change(item_id, text, status="inProgress")})
    codex.tell_status(loaded)
    params = {"turnId": turn.row.id, "itemId": item_id, "reason": None, "grantRoot": None}
    decision = await _decided(codex, loaded, "item/fileChange/requestApproval", params)
    answer = decision.get("decision") if isinstance(decision, dict) else None
    _wait_no_more(codex, loaded)
    if answer == "decline":
        _finish(codex, loaded, turn, wire.file_change(item_id, text, status="declined"))
        return True
    if answer in ("cancel", None):
        turn.interrupted_by_answer = True
        return False
    _finish(codex, loaded, turn, wire.file_change(item_id, text, status="completed"))
    turn.diff = wire.diff_of_new_file(name, text)
    tell_diff(codex, loaded, turn)
    return True


def _added(patch: str) -> tuple[str, str]:
    """Return name and text of the file that a patch makes; other patches are not played."""
    _, head, line, _ = patch.splitlines()
    assert head.startswith("*** Add File: ") and line.startswith("+"), f"the fake does not play {patch!r}"
    return head.removeprefix("*** Add File: "), f"{line[1:]}\n"


def tell_diff(codex: Process, loaded: Loaded, turn: Turn) -> None:
    """Tell what the turn has changed so far, if it has changed anything."""
    if turn.diff:
        _tell(codex, loaded, turn, "turn/diff/updated", {"diff": turn.diff})


async def ask_user(codex: Process, loaded: Loaded, turn: Turn, step: Ask) -> bool:
    """Ask the user a question, and go on with whatever is answered."""
    options = [{"label": option, "description": option} for option in step.options]
    question = {"id": "q1", "header": "Question", "question": step.question, "options": options}
    params = {"turnId": turn.row.id, "itemId": codex.home.mint(ITEM), "questions": [question]}
    loaded.flags.append("waitingOnUserInput")
    codex.tell_status(loaded)
    await _decided(codex, loaded, "item/tool/requestUserInput", params)
    _wait_no_more(codex, loaded)
    return True


async def _decided(codex: Process, loaded: Loaded, method: str, params: Json) -> object:
    """Return the result that somebody gives; None where it was resolved without one."""
    deed = await codex.misdeed("ask", loaded.row.cwd)
    name = deed.name if deed is not None else ""
    if name == "no-thread":
        for connection in list(loaded.subscribers):
            unowned = {key: value for key, value in params.items() if key != "threadId"}
            codex.write(connection, wire.request(f"unowned/{len(codex.home.record)}", method, unowned))
    if name == "unknown-request":
        for connection in list(loaded.subscribers):
            codex.write(connection, wire.request(f"new/{loaded.row.id}", "item/somethingNew", params))
    asked = codex.ask(loaded, method, params, rpc_id=f"{len(codex.home.record)}" if name == "string-id" else None)
    if name == "asked-twice":
        for connection in list(loaded.subscribers):
            codex.write(connection, wire.request(asked.id, asked.method, asked.params))
    if name == "resolved-elsewhere" and deed is not None:
        codex.nursery.start_soon(_resolve_elsewhere, codex, loaded, asked, deed.seconds)
    await asked.done.wait()
    return asked.answer


async def _resolve_elsewhere(codex: Process, loaded: Loaded, asked: Asked, seconds: float) -> None:
    """Another front-end is quicker, unless it is not."""
    await trio.sleep(seconds)
    if not asked.done.is_set():
        asked.answer = {"decision": "accept"}
        codex.resolve(loaded, asked)


def _wait_no_more(codex: Process, loaded: Loaded) -> None:
    loaded.flags.pop()
    codex.tell_status(loaded)


def _finish(codex: Process, loaded: Loaded, turn: Turn, item: Json) -> None:
    turn.row.items.append(item)
    _tell(codex, loaded, turn, "item/completed", {"item": item})


def _tell(codex: Process, loaded: Loaded, turn: Turn, method: str, params: Json) -> None:
    codex.tell(loaded, method, {"turnId": turn.row.id, **params})
