"""A job that may be started again after any crash: of this program, of the daemon, of Codex.

The session has a name and the prompt a key. Whoever runs this again gets the same answer, and the prompt is run once.

    python after_a_crash.py JOB PROMPT
"""

import sys

import anyio

from termald.client import TurnAccumulator, connect


async def main(job: str, prompt: str) -> None:
    turn = TurnAccumulator()
    async with connect(start=True) as termald:
        session = await termald.session(job)
        async with session.run(prompt, key=job) as run:
            async for event in run:
                turn.feed(event)
                print(event.kind, file=sys.stderr, flush=True)
    print(turn.final_text)
    sys.exit(0 if turn.done is not None and turn.done.ok else 1)


anyio.run(main, sys.argv[1], sys.argv[2])
