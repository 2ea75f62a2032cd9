"""What the daemon can be told, as frozen values by section, and the table of all settings that everything else reads.

A section is a `[table]` of the file, a setting a key of it; its variable is `TERMALD_<SECTION>_<NAME>`. Numbers with
their ranges are in `limits.py`, how values are come by (defaults, file, environment, flags) in `config/`.
Pure. Values are final: whoever holds a `Settings` needs neither the environment nor the file any more.
"""

import ipaddress
from pathlib import Path
from typing import Annotated, Final, Literal, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, structs

from termald.limits import CodexLimits, DiscoveryLimits, ServerLimits, SessionLimits, StateLimits

SOCKET_NAME: Final = "termald.sock"
PORT_MAX: Final = 65_535


class Listen(msgspec.Struct, frozen=True):
    """A TCP address. Port 0 takes a free one; `daemon.json` tells which."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Listen":
        """Return the address in `HOST:PORT` or `[IPV6]:PORT`. Errors: ValueError, saying what is wrong with `text`."""
        host, colon, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError("an IPv6 address stands in brackets, as in [::1]:8787")
        if not colon or not host:
            raise ValueError("must be HOST:PORT; the host is not optional, because leaving it out commonly means all")
        if not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
            raise ValueError(f"must end in a port from 0 to {PORT_MAX}")
        if any(character.isspace() or character in "/@[]" for character in host):
            raise ValueError("must begin with a plain host name or address")
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it. A name other than `localhost` is taken for reachable."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        """As `parse` reads it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ServerSettings(ServerLimits, frozen=True, kw_only=True):
    """Where the API listens, and whom it lets in."""

    listen: Annotated[
        Listen | None,
        Meta(description="TCP address, or `off`. Port 0 takes a free one.", extra={"none": "off"}),
    ] = Listen("127.0.0.1", 8787)
    unix_socket: Annotated[
        Path | None,
        Meta(
            description="Path of the Unix socket, or `off`.",
            extra={"none": "off", "default": "`termald.sock` in `runtime.dir`"},
        ),
    ]
    allow_non_loopback: Annotated[
        bool,
        Meta(
            description="Let `listen` be reachable from other machines. Whoever has the token can then run commands "
            "here from there, and the token travels unencrypted."
        ),
    ] = False
    hosts: Annotated[
        tuple[str, ...],
        Meta(description="Names, besides loopback addresses, that a request's `Host` may carry. Others: 421."),
    ] = ()
    origins: Annotated[
        tuple[str, ...],
        Meta(description="Web origins, besides the daemon's own, that a browser may call from. Others: 403."),
    ] = ()


class CodexSettings(CodexLimits, frozen=True, kw_only=True):
    """The one process that is shared."""

    bin: Annotated[
        str | None,
        Meta(
            description="The native Codex, by path or name. `auto` takes the package openai-codex-cli-bin, else "
            "`codex` on PATH.",
            extra={"none": "auto"},
        ),
    ] = None
    home: Annotated[
        Path,
        Meta(description="Codex's home: its configuration, its login, its threads.", extra={"default": "~/.codex"}),
    ]
    transport: Annotated[
        Literal["unix", "stdio"],
        Meta(
            description="`unix`: a control socket; the process survives the daemon and is adopted by the next. "
            "`stdio`: for older binaries; it ends with the daemon."
        ),
    ] = "unix"
    on_shutdown: Annotated[
        Literal["stop", "leave"],
        Meta(description="At a planned stop: end Codex, or (`unix` only) leave it and its turns for the next start."),
    ] = "stop"
    shell_snapshot: Annotated[
        bool,
        Meta(
            description="Let Codex run a login shell for each new thread to copy its environment. With a slow one 128 "
            "starts took up to 65 s, without 1.6 s."
        ),
    ] = False


class SessionSettings(SessionLimits, frozen=True, kw_only=True):
    """What one session may ask for."""


class StateSettings(StateLimits, frozen=True, kw_only=True):
    """What must survive."""

    dir: Annotated[
        Path,
        Meta(
            description="Folder of the database and the token, private to the user.",
            extra={"default": "$XDG_STATE_HOME/termald"},
        ),
    ]


class RuntimeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is gone after a reboot."""

    dir: Annotated[
        Path,
        Meta(
            description="Folder of the sockets and of `daemon.json`, private to the user. Without XDG_RUNTIME_DIR (and "
            "/run/user/UID): `run` in the state folder.",
            extra={"default": "$XDG_RUNTIME_DIR/termald"},
        ),
    ]


class DiscoverySettings(DiscoveryLimits, frozen=True, kw_only=True):
    """The threads that Codex has without us."""

    enabled: Annotated[
        bool, Meta(description="Offer the threads found in Codex's homes as sessions. Off: only a scan by hand looks.")
    ] = True
    homes: Annotated[
        tuple[Path, ...],
        Meta(description="More Codex homes to look into, besides `codex.home`. They are only ever read."),
    ] = ()


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is said on standard error."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least important that is said."),
    ] = "info"
    format: Annotated[
        Literal["auto", "console", "json"],
        Meta(description="`auto`: for people on a terminal, JSON lines otherwise."),
    ] = "auto"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings. `config.resolve` makes them: `load` from this machine, `resolve` from what a test gives."""

    server: ServerSettings
    codex: CodexSettings
    sessions: SessionSettings
    state: StateSettings
    runtime: RuntimeSettings
    discovery: DiscoverySettings
    log: LogSettings


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, as the parser, `config show` and the documentation need it.

    `none` is the word that stands for None; `default` is `msgspec.NODEFAULT` where it depends on the machine, and
    `default_text` then says on what. `variables`: those that set it, the later one first in rank.
    """

    section: str
    name: str
    type: object
    about: str
    default: object
    default_text: str
    variables: tuple[str, ...]
    none: str | None = None
    unit: str = ""
    low: int | None = None
    high: int | None = None

    @property
    def key(self) -> str:
        """As in the file, dotted."""
        return f"{self.section}.{self.name}"


# Names that are shorter, or not ours. The full name ranks above them: it can only have been meant for us.
ALIASES: Final = {"server.listen": "TERMALD_LISTEN", "codex.home": "CODEX_HOME"}


def _describe(section: str, struct: type[msgspec.Struct]) -> dict[str, Field]:
    hints = get_type_hints(struct, include_extras=True)
    described = {}
    # A section's numbers are inherited and so come first; a reader wants what the section is about before them.
    for member in sorted(structs.fields(struct), key=lambda member: member.name in struct.__base__.__annotations__):
        meta = next(note for note in hints[member.name].__metadata__ if isinstance(note, Meta))
        extra = meta.extra or {}
        key = f"{section}.{member.name}"
        alias = (ALIASES[key],) if key in ALIASES else ()
        default = NODEFAULT if "default" in extra else member.default
        described[key] = Field(
            section=section,
            name=member.name,
            type=hints[member.name],
            about=meta.description or "",
            default=default,
            default_text=extra.get("default") or show(default, extra.get("none")),
            variables=(*alias, f"TERMALD_{section}_{member.name}".upper()),
            none=extra.get("none"),
            unit=extra.get("unit", ""),
            low=meta.ge if isinstance(meta.ge, int) else None,
            high=meta.le if isinstance(meta.le, int) else None,
        )
    return described


def show(value: object, none: str | None = None) -> str:
    """Return the value as TOML writes it. Reading it back from a file gives the same value."""
    if value is None:
        return show(none)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(show(each) for each in value)}]"
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    return msgspec.json.encode(str(value)).decode().replace("\x7f", "\\u007f")


SECTIONS: Final[dict[str, type[msgspec.Struct]]] = get_type_hints(Settings)
FIELDS: Final[dict[str, Field]] = {
    key: field for section, struct in SECTIONS.items() for key, field in _describe(section, struct).items()
}


def value_of(settings: Settings, field: Field) -> object:
    """Return what `settings` holds for one setting."""
    return getattr(getattr(settings, field.section), field.name)
