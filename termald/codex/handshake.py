"""The first words on every link: who we are, what we do not want to hear, and who answers.

`initialize` is the only request whose answer is not the core's business; everything that arrives before that answer is
kept and handed on behind it.
"""

import re
from typing import Final

import msgspec
import trio

from termald.codex import frames
from termald.codex.errors import CodexFault, LinkClosed
from termald.codex.lines import Oversize
from termald.codex.link import Link
from termald.codex.protocol.methods import ALL_SERVER_NOTIFICATIONS
from termald.codex.protocol.types import ClientInfo, InitializeCapabilities, InitializeParams, InitializeResponse

CLIENT_NAME: Final = "termald"
# Not a number: the core numbers its own requests, over all links.
_INITIALIZE_ID: Final = "termald/initialize"
# The answer takes 25 ms, 1 ms on a process that has answered before.
INITIALIZE_DEADLINE_S: Final = 10.0
# Codex sends a notice or two between the two; more than these before its answer is not a Codex that works.
_EARLY_FRAMES_MAX: Final = 1_024
_USER_AGENT: Final = re.compile(r"[^/]+/(\d+\.\d+\.\d+[^\s]*)")

# What no session and no view of termald's has a use for. Codex keeps it from us altogether, which saves a burst of
# frames on a busy machine; a name that this Codex does not know does no harm (measured).
UNWANTED: Final = (
    (r"thread/realtime/.+", "voice: audio by the second, and nothing here plays it"),
    (r"thread/search/.+|fuzzyFileSearch/.+", "partial results of searches that only their asker reads"),
    (r"command/exec/.+|process/.+", "output of commands run outside of any thread, which termald never runs"),
    (r"fs/changed", "watches on files, which termald never sets"),
    (r"windows.*/.+", "set-up of another operating system"),
    (r"remoteControl/.+", "pairing with a phone"),
    (r"app/list/updated|skills/changed", "catalogues that termald does not show"),
    (r"externalAgentConfig/.+", "imports from other tools"),
    (r"mcpServer/event/.+", "streams that their asker alone has opened"),
    (r"project/changed|thread/section/.+", "how another front-end arranges its threads"),
)


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Who answered. `version` is read from the user agent, "" where it tells none."""

    user_agent: str
    version: str
    platform: str
    codex_home: str


class HandshakeRefused(CodexFault):
    """Codex did not accept us, or answered with something that is no answer; asking again would change nothing."""

    slug = "codex-handshake-refused"
    status = 502


def unwanted() -> tuple[str, ...]:
    """Return the notifications that are opted out of, by name: of those that the schema has, the unwanted."""
    pattern = re.compile("|".join(pattern for pattern, _ in UNWANTED))
    return tuple(sorted(name for name in ALL_SERVER_NOTIFICATIONS if pattern.fullmatch(name)))


async def shake_hands(link: Link, version: str) -> tuple[ServerInfo, tuple[bytes | Oversize, ...]]:
    """Introduce ourselves (`version` is termald's). Returns who answered, and what arrived before that. May be cut.

    Errors: `codex-handshake-refused`; `LinkClosed`, also after `INITIALIZE_DEADLINE_S` without an answer.
    """
    try:
        with trio.fail_after(INITIALIZE_DEADLINE_S):
            await link.send(_initialize(version))
            answer, early = await _answer(link)
            info = _read_info(answer)
            await link.send(frames.encode_notification("initialized"))
    except trio.TooSlowError as error:
        raise LinkClosed(f"initialize was not answered in {INITIALIZE_DEADLINE_S:.0f} s") from error
    return info, early


def _initialize(version: str) -> bytes:
    params = InitializeParams(
        client_info=ClientInfo(name=CLIENT_NAME, title=CLIENT_NAME, version=version),
        # Background terminals, which an interrupt leaves running, and the paged reads of items are experimental.
        capabilities=InitializeCapabilities(experimental_api=True, opt_out_notification_methods=list(unwanted())),
    )
    return frames.encode_request(_INITIALIZE_ID, "initialize", params)


async def _answer(link: Link) -> tuple[frames.Reply, tuple[bytes | Oversize, ...]]:
    early: list[bytes | Oversize] = []
    while len(early) <= _EARLY_FRAMES_MAX:
        raw = await link.receive()
        frame = None if isinstance(raw, Oversize) else frames.decode(raw)
        match frame:
            case frames.Reply(id=rpc_id) if rpc_id == _INITIALIZE_ID:
                return frame, tuple(early)
            case frames.ReplyError(id=rpc_id, message=message) if rpc_id == _INITIALIZE_ID:
                raise HandshakeRefused(f"Codex refused initialize: {message}")
            case _:
                early.append(raw)
    raise HandshakeRefused(f"{len(early)} frames and no answer to initialize")


def _read_info(answer: frames.Reply) -> ServerInfo:
    try:
        said = msgspec.json.decode(answer.result, type=InitializeResponse)
    except (msgspec.MsgspecError, ValueError) as error:
        raise HandshakeRefused(f"the answer to initialize cannot be read: {error}") from error
    user_agent = said.user_agent or ""
    match = _USER_AGENT.match(user_agent)
    return ServerInfo(
        user_agent=user_agent,
        version=match[1] if match is not None else "",
        platform=said.platform_os or "",
        codex_home=said.codex_home or "",
    )
