"""Five agents side by side, over one Codex, with a table that moves.

python side_by_side.py ["A prompt for {name}" ...]
"""

import sys

import anyio
from rich.console import Console
from rich.live import Live
from rich.table import Table

from termald.client import Termald, TurnAccumulator, connect

TASKS = sys.argv[1:] or [f"In one sentence: what would {name} look at first in this folder?" for name in
                         ("a tester", "a writer", "a designer", "an operator", "a newcomer")]  # fmt: skip


async def agent(termald: Termald, number: int, prompt: str, rows: dict[int, TurnAccumulator]) -> None:
    session = await termald.session(title=f"agent {number}")
    turn = rows[number] = TurnAccumulator()
    async with session.run(prompt) as run:
        async for event in run:
            turn.feed(event)


def table(rows: dict[int, TurnAccumulator]) -> Table:
    shown = Table("agent", "state", "tokens", "says", box=None)
    for number, turn in sorted(rows.items()):
        state = turn.done.state if turn.done else "running"
        shown.add_row(str(number), state, str(turn.usage.total_tokens), turn.text.replace("\n", " ")[-70:])
    return shown


async def main() -> None:
    rows: dict[int, TurnAccumulator] = {}
    live = Live(get_renderable=lambda: table(rows), console=Console(), refresh_per_second=10)
    async with connect(start=True) as termald:
        with live:
            async with anyio.create_task_group() as agents:
                for number, prompt in enumerate(TASKS, 1):
                    agents.start_soon(agent, termald, number, prompt, rows)


anyio.run(main)
