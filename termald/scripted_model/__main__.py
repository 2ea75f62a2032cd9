"""`python -m termald.scripted_model [--host 127.0.0.1] [--port 8799]`: serve the model until interrupted, and print its
base URL."""

import argparse

import trio

from termald.scripted_model.server import run

DEFAULT_PORT = 8799


async def _serve(host: str, port: int) -> None:
    async with trio.open_nursery() as nursery:
        print(await nursery.start(run, host, port), flush=True)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m termald.scripted_model", description="A scripted Responses model.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; it asks nobody for a key")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port; 0 takes a free one")
    given = parser.parse_args()
    try:
        trio.run(_serve, given.host, given.port)
    except* KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
