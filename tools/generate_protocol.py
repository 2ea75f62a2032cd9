"""Generate `termald/codex/protocol` from the installed Codex's own JSON Schema (`make protocol`).

The schema says what one release sends; termald must read what the next one sends as well. So it is loosened before
datamodel-code-generator turns it into msgspec structs: closed enums become strings, tagged unions become one struct
with every variant's fields, other unions become any JSON, and a field that is read is required only where nothing can
be done without it. What is only written keeps its exact shape. `--check` compares with the committed files and
changes nothing.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from termald.codex.binary import locate_codex, parse_version
from tools.protocol_schema import Definitions, Loosener, Schema, flatten, methods_of, reachable, response_of

PROTOCOL: Final = Path(__file__).resolve().parent.parent / "termald" / "codex" / "protocol"

# What termald asks of Codex. Everything else in the schema is known by name only.
REQUESTS: Final = (
    "initialize",
    "thread/start",
    "thread/resume",
    "thread/fork",
    "thread/read",
    "thread/list",
    "thread/loaded/list",
    "thread/unsubscribe",
    "thread/archive",
    "thread/unarchive",
    "thread/delete",
    "thread/items/list",
    "thread/turns/list",
    "thread/compact/start",
    "thread/revert",
    "thread/name/set",
    "thread/backgroundTerminals/list",
    "thread/backgroundTerminals/terminate",
    "thread/backgroundTerminals/clean",
    "turn/start",
    "turn/steer",
    "turn/interrupt",
    "review/start",
    "model/list",
    "account/read",
    "account/rateLimits/read",
)
# What termald reads of Codex's notifications, by prefix or whole name; the handshake opts out of most of the rest.
NOTIFICATIONS: Final = re.compile(
    r"(thread/(?!realtime/|search/)|turn/|item/|account/|model/).+"
    r"|error|warning|configWarning|guardianWarning|deprecationNotice|serverRequest/resolved"
)
# Asked for by the edge, which checks prompts before they are accepted; no message holds it as a type of its own.
EXTRA: Final = frozenset({"UserInput"})

CODEGEN: Final = (
    "--input-file-type=jsonschema",
    "--output-model-type=msgspec.Struct",
    "--target-python-version=3.11",
    "--base-class=termald.codex.message.Message",
    "--formatters=builtin",
    "--use-union-operator",
    "--use-standard-collections",
    "--snake-case-field",
    "--use-schema-description",
    "--disable-timestamp",
)
NOTE: Final = "Generated from Codex's own schema by `make protocol`; never edited."
INIT: Final = f'''"""The message types of Codex's app-server: `types` (structs), `methods` (which method carries which).

{NOTE}
Imported by `codex` alone: wire names stop at `translate`.
"""
'''
TYPES_HEAD: Final = f'''"""{NOTE} What is loosened, and why, stands in `tools/generate_protocol.py`."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, UnsetType, field

from termald.codex.message import Message
'''
METHODS_HEAD: Final = f'''"""{NOTE} A pair is (params, response)."""

from typing import Final

from termald.codex.message import Message
from termald.codex.protocol import types as t
'''


def run(command: list[str], **variables: str) -> str:
    """Return what the command prints; its failure ends us with its own words."""
    environment = {**os.environ, **variables}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)  # noqa: S603 - ours
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def bundle_of(codex: Path) -> Schema:
    """Return the whole schema of this binary, experimental methods included."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(codex), "app-server", "generate-json-schema", "--experimental", "--out", folder]
        home = Path(folder, "home")
        home.mkdir()
        run(command, CODEX_HOME=str(home))
        bundle: Schema = json.loads(Path(folder, "codex_app_server_protocol.schemas.json").read_text())
    return bundle


class Tables:
    """Which methods the types are for, and every method that the schema names."""

    def __init__(self, definitions: Definitions) -> None:
        requests = methods_of(definitions, "ClientRequest")
        notifications = methods_of(definitions, "ServerNotification")
        self.server_requests = {
            method: (params, response_of(definitions, params))
            for method, params in methods_of(definitions, "ServerRequest").items()
        }
        self.requests = {method: (requests[method], response_of(definitions, requests[method])) for method in REQUESTS}
        self.notifications = {
            method: params
            for method, params in notifications.items()
            if params is not None and NOTIFICATIONS.fullmatch(method)
        }
        self.all_requests = sorted(requests)
        self.all_notifications = sorted(notifications)

    @property
    def written(self) -> set[str]:
        sent = [params for params, _ in self.requests.values()] + [
            response for _, response in self.server_requests.values()
        ]
        return {name for name in sent if name is not None}

    @property
    def read(self) -> set[str]:
        came = [response for _, response in self.requests.values()] + [
            params for params, _ in self.server_requests.values()
        ]
        return {name for name in (*came, *self.notifications.values()) if name is not None} | EXTRA


def loosened(definitions: Definitions, tables: Tables, written: frozenset[str]) -> Definitions:
    """Return the object definitions that the tables need, loosened, by name."""
    loosener = Loosener(definitions, written)
    for name in sorted(tables.written | tables.read):
        loosener.add(name)
    return dict(sorted(loosener.objects.items()))


def types_module(objects: Definitions, written: frozenset[str]) -> str:
    """Return the source of the structs: what the code generator makes of the loosened schema, and absent-is-None in
    whatever is read."""
    source = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Unused", "definitions": objects}
    with tempfile.TemporaryDirectory() as folder:
        schema, output = Path(folder, "schema.json"), Path(folder, "types.py")
        schema.write_text(json.dumps(source))
        command = [sys.executable, "-m", "datamodel_code_generator", "--input", str(schema), "--output", str(output)]
        run([*command, *CODEGEN])
        text = output.read_text()
    body = text[text.index("\n\nclass ") :]
    classes = re.split(r"(?=^class )", body, flags=re.MULTILINE)
    kept = [read_side(source, written) for source in classes if not source.startswith("class Unused(")]
    # Said again in each class: a type checker does not see what a base class passes on.
    kept = [source.replace("(Message):", "(Message, frozen=True, kw_only=True):") for source in kept]
    return TYPES_HEAD + "".join(kept).rstrip() + "\n"


def read_side(source: str, written: frozenset[str]) -> str:
    """Return the class with None for what is absent, unless termald writes it and must tell absent from null."""
    name = re.match(r"class (\w+)", source)
    if name is None or name[1] in written:
        return source
    return source.replace(" | UnsetType", "").replace("UNSET", "None")


def methods_module(tables: Tables, version: str, digest: str) -> str:
    """Return the source of the tables from method to types, and of the whole schema's method names."""

    def pair(entry: tuple[str | None, str | None]) -> str:
        return f"({', '.join('None' if name is None else f't.{name}' for name in entry)})"

    def table(name: str, kind: str, rows: dict[str, str]) -> str:
        return (
            f"{name}: Final[dict[str, {kind}]] = {{\n" + "".join(f'    "{k}": {v},\n' for k, v in rows.items()) + "}\n"
        )

    def names(name: str, doc: str, methods: list[str]) -> str:
        lines = "".join(f'        "{method}",\n' for method in methods)
        return f'{name}: Final = frozenset(\n    (\n{lines}    )\n)\n"""{doc}"""\n'

    both = "tuple[type[Message] | None, type[Message] | None]"
    parts = [
        METHODS_HEAD,
        f'CODEX_VERSION: Final = "{version}"\nSCHEMA_SHA256: Final = "{digest}"\n',
        table("CLIENT_REQUESTS", both, {method: pair(entry) for method, entry in tables.requests.items()}),
        table("SERVER_REQUESTS", both, {method: pair(entry) for method, entry in tables.server_requests.items()}),
        table(
            "SERVER_NOTIFICATIONS",
            "type[Message]",
            {method: f"t.{name}" for method, name in tables.notifications.items()},
        ),
        names("ALL_CLIENT_REQUESTS", "Every request that the schema offers.", tables.all_requests),
        names("ALL_SERVER_NOTIFICATIONS", "Every notification that the schema may send.", tables.all_notifications),
    ]
    return "\n".join(parts)


def package(codex: Path) -> dict[str, str]:
    """Return file name -> content of the whole generated package."""
    version = run([str(codex), "--version"])
    bundle = bundle_of(codex)
    definitions = flatten(bundle)
    tables = Tables(definitions)
    written = reachable(definitions, tables.written) - reachable(definitions, tables.read)
    digest = hashlib.sha256(json.dumps(bundle, sort_keys=True).encode()).hexdigest()
    return {
        "__init__.py": INIT,
        "types.py": types_module(loosened(definitions, tables, written), written),
        "methods.py": methods_module(tables, ".".join(map(str, parse_version(version))), digest),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Generate termald/codex/protocol from Codex's own schema.")
    parser.add_argument("--codex", help="the binary to ask (default: the one that termald would run)")
    parser.add_argument("--check", action="store_true", help="compare with the committed files and change nothing")
    arguments = parser.parse_args()
    codex = locate_codex(arguments.codex, os.environ.get("PATH", "")).path
    stale = []
    for name, content in package(codex).items():
        target = PROTOCOL / name
        if target.exists() and target.read_text() == content:
            continue
        stale.append(name)
        if not arguments.check:
            PROTOCOL.mkdir(exist_ok=True)
            target.write_text(content)
    if arguments.check and stale:
        print(f"not what {codex} says: {', '.join(stale)}; run `make protocol`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
