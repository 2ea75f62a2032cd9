"""A bot that decides approvals of all sessions by a policy. What it has no rule for stays open, for a person.

python approval_bot.py          until Ctrl-C
python approval_bot.py 3        until it has seen three
"""

import shlex
import sys

import anyio

from termald.client import Refused, Request, connect

READS = {"ls", "cat", "head", "tail", "wc", "grep", "rg", "pwd", "git"}
GIT_READS = {"status", "log", "diff", "show"}
NEVER = {"rm", "sudo", "curl", "wget", "dd"}


def policy(request: Request) -> bool | None:
    """True: allow, False: refuse, None: a person decides."""
    if request.kind != "command":
        return None
    try:
        words = shlex.split(request.about)
        if words[1:2] in (["-c"], ["-lc"]):  # Codex's shell around the command
            words = shlex.split(" ".join(words[2:]))
    except ValueError:
        return None
    if NEVER & set(words):
        return False
    # One plain command: anything that chains, redirects or substitutes is more than its first word says.
    if not words or words[0] not in READS or set("".join(words)) & set(";|&<>$`\n"):
        return None
    return True if words[0] != "git" else (words[1:2] != [] and words[1] in GIT_READS) or None


async def main() -> None:
    left = int(sys.argv[1]) if len(sys.argv) > 1 else None
    async with connect() as termald, termald.requests() as requests:
        print("deciding", flush=True)
        while left is None or left > 0:
            request = await anext(requests)
            left = None if left is None else left - 1
            verdict = policy(request)
            try:
                if verdict is not None:
                    await (request.accept() if verdict else request.decline())
            except Refused as error:  # somebody else was faster
                print(f"{request.id}: {error}", flush=True)
                continue
            said = {True: "allowed", False: "refused", None: "left for a person"}[verdict]
            print(f"{request.session_id}: {said}: {request.about}", flush=True)


anyio.run(main)
