"""An HTTP server with canned answers, where a client expects the daemon. Standard library only: it shares no code with
either side, and a request that has no answer is a loud 500."""

import json
import os
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple


class Asked(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Canned(NamedTuple):
    """An answer: JSON, or bytes as they stand."""

    status: int
    body: object
    type: str = "application/json"


class CannedDaemon:
    """Answers by method and path (without the query), and remembers what was asked."""

    def __init__(self, answers: dict[str, Canned]) -> None:
        self.answers = answers
        self.asked: list[Asked] = []


@contextmanager
def canned_daemon(
    answers: dict[str, Canned], runtime_dir: Path, *, unix: bool = True, pid: int | None = None
) -> Iterator[CannedDaemon]:
    """Serve the answers (`"GET /api/state": Canned(...)`) while the block runs, and write `daemon.json`."""
    daemon = CannedDaemon(answers)
    runtime_dir.mkdir(parents=True, exist_ok=True)
    server = _server(daemon, runtime_dir / "termald.sock" if unix else None)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = None if unix else f"http://127.0.0.1:{server.server_address[1]}"
    document = {
        "pid": pid or os.getpid(),
        "url": url,
        "socket": str(runtime_dir / "termald.sock") if unix else None,
        "startedAt": 1_900_000_000_000,
    }
    (runtime_dir / "daemon.json").write_text(json.dumps(document))
    try:
        yield daemon
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


class _TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


def _server(daemon: CannedDaemon, path: Path | None) -> Any:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            asked = Asked(self.command, self.path, dict(self.headers), self.rfile.read(length))
            daemon.asked.append(asked)
            key = f"{self.command} {self.path.partition('?')[0]}"
            canned = daemon.answers.get(key, Canned(500, {"title": f"no answer is canned for {key}"}))
            body = canned.body if isinstance(canned.body, bytes) else json.dumps(canned.body).encode()
            self.send_response(canned.status)
            self.send_header("Content-Type", canned.type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 - the names that http.server looks for

        def log_message(self, format: str, *args: object) -> None:
            """Tests print what matters themselves."""

    return _TcpServer(("127.0.0.1", 0), Handler) if path is None else _UnixServer(str(path), Handler)
