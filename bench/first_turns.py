"""32 first turns at once: through the daemon, and driven directly over stdio, in interleaved rounds of one run; and
what both weigh.

`python bench/first_turns.py [--sessions 32] [--rounds 5] [--json]`. The scripted model runs in a process of its own and
is the same for both; it answers each prompt with four words. Times are from the first request to the last turn's end as
the client sees it. Only ratios of one run mean something.
"""

import argparse
import contextlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import codex_cli_bin  # type: ignore[import-untyped]  # it carries a binary and says nothing of types
import httpx
import trio

from termald.scripted_model.config import write_codex_home

Json = dict[str, Any]
PROMPT = "hello from a benchmark"
DEADLINE_S = 120.0
POLICY = {"approvalPolicy": "untrusted", "sandbox": "workspace-write"}  # what the daemon sends by default


@contextlib.contextmanager
def model() -> Iterator[str]:
    """Run the scripted model and give its base URL."""
    command = [sys.executable, "-m", "termald.scripted_model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)


def weight(pid: int) -> Json:
    """Return PSS and RSS of a process in MB."""
    found: Json = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Pss", "Rss"):
            found[name.lower()] = round(int(rest.split()[0]) / 1024, 1)
    return found


# --- directly over stdio ---


async def direct(folder: Path, base_url: str, sessions: int) -> Json:
    """Drive an app-server by hand: all starts at once, each turn as soon as its thread is there."""
    home, cwd = folder / "home", folder / "work"
    cwd.mkdir()
    write_codex_home(home, base_url)
    command = [str(codex_cli_bin.bundled_codex_path()), "app-server", "-c", "features.shell_snapshot=false"]
    process = await trio.lowlevel.open_process(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "CODEX_HOME": str(home)},
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    out = process.stdin

    async def write(**message: Any) -> None:
        await out.send_all(json.dumps(message).encode() + b"\n")

    try:
        client = {"name": "bench", "title": "bench", "version": "1"}
        await write(id=0, method="initialize", params={"clientInfo": client})
        rest, ended, began = b"", 0, 0.0
        with trio.fail_after(DEADLINE_S):
            async for chunk in process.stdout:
                *lines, rest = (rest + chunk).split(b"\n")
                for message in map(json.loads, lines):
                    if message.get("id") == 0:
                        await write(method="initialized")
                        began = time.perf_counter()
                        for number in range(sessions):
                            params: Json = {
                                "cwd": str(cwd),
                                "approvalPolicy": "untrusted",
                                "sandbox": "workspace-write",
                            }
                            await write(id=1 + number, method="thread/start", params=params)
                    elif "result" in message and "thread" in message["result"]:
                        params = {
                            "threadId": message["result"]["thread"]["id"],
                            "input": [{"type": "text", "text": PROMPT}],
                        }
                        await write(id=1_000 + message["id"], method="turn/start", params=params)
                    elif message.get("method") == "turn/completed":
                        assert message["params"]["turn"]["status"] == "completed", message
                        ended += 1
                if ended == sessions:
                    break
        return {"seconds": time.perf_counter() - began, "codex": weight(process.pid)}
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


# --- through the daemon ---


async def through_daemon(folder: Path, base_url: str, sessions: int) -> Json:
    """Create all sessions with their first prompt at once, and follow the event stream to the last turn's end."""
    home, cwd, run = folder / "home", folder / "work", folder / "run"
    cwd.mkdir()
    write_codex_home(home, base_url)
    environment = {
        **os.environ,
        "TERMALD_STATE_DIR": str(folder / "state"),
        "TERMALD_RUNTIME_DIR": str(run),
        "TERMALD_LISTEN": "127.0.0.1:0",
        "TERMALD_CODEX_BIN": str(codex_cli_bin.bundled_codex_path()),
        "CODEX_HOME": str(home),
    }
    log = (folder / "log").open("wb")
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "termald", "serve"], env=environment, stdout=log, stderr=log
    )
    try:
        transport = httpx.AsyncHTTPTransport(uds=str(run / "termald.sock"), limits=httpx.Limits(max_connections=64))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=DEADLINE_S) as client:
            await _ready(client)
            async with await trio.open_unix_socket(str(run / "termald.sock")) as events:
                await events.send_all(b"GET /api/events?kinds=turn/done HTTP/1.0\r\n\r\n")
                began = time.perf_counter()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_ends, events, sessions)
                    for number in range(sessions):
                        nursery.start_soon(_create, client, number, str(cwd))
                seconds = time.perf_counter() - began
            codex = (await client.get("/api/runtime")).json()["pid"]
        return {"seconds": seconds, "daemon": weight(process.pid), "codex": weight(codex)}
    finally:
        process.terminate()
        await process.wait()
        log.close()


async def _ready(client: httpx.AsyncClient) -> None:
    with trio.fail_after(DEADLINE_S):
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await client.get("/api/ready")).status_code == 200:
                    return
            await trio.sleep(0.05)


async def _create(client: httpx.AsyncClient, number: int, cwd: str) -> None:
    body = {"id": f"s{number}", "cwd": cwd, "prompt": {"input": PROMPT}}
    (await client.post("/api/sessions", json=body)).raise_for_status()


async def _ends(events: trio.SocketStream, sessions: int) -> None:
    ended, rest = 0, b""
    with trio.fail_after(DEADLINE_S):
        async for piece in events:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"data: ") and b'"turn/done"' in line:
                    assert json.loads(line[6:])["state"] == "normal", line
                    ended += 1
            if ended == sessions:
                return


# --- the run ---


async def measure(sessions: int, rounds: int) -> Json:
    """Return the figures of all rounds, the two in turn."""
    found: Json = {"direct": [], "daemon": []}
    with model() as base_url:
        for _ in range(rounds):
            for name, drive in (("direct", direct), ("daemon", through_daemon)):
                with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                    found[name].append(await drive(Path(folder), base_url, sessions))
    ratios = [one["seconds"] / other["seconds"] for one, other in zip(found["daemon"], found["direct"], strict=True)]
    return {
        "sessions": sessions,
        "rounds": rounds,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "direct_s": _spread([one["seconds"] for one in found["direct"]]),
        "daemon_s": _spread([one["seconds"] for one in found["daemon"]]),
        "ratio": _spread(ratios),
        "memory_mb": {
            "daemon": found["daemon"][-1]["daemon"],
            "codex under the daemon": found["daemon"][-1]["codex"],
            "codex driven directly": found["direct"][-1]["codex"],
        },
    }


def _spread(values: list[float]) -> Json:
    return {
        "min": round(min(values), 3),
        "median": round(statistics.median(values), 3),
        "max": round(max(values), 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    print(json.dumps(trio.run(measure, given.sessions, given.rounds), indent=2))


if __name__ == "__main__":
    main()
