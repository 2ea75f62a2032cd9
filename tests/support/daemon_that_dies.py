"""A daemon as far as its process goes: starts an app-server, says what it recorded, and waits to be killed."""

import sys
from pathlib import Path

import msgspec
import trio
from support.supervising import supervising

from state.records import RuntimeRecord


async def main(binary: str, folder: str) -> None:
    """Print the record once the process is ready; then never end."""
    async with supervising(Path(binary), Path(folder), prefix="dead") as ran:
        await ran.ready()
        (record,) = ran.told.all(RuntimeRecord)
        print(msgspec.json.encode(record).decode(), flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2])
