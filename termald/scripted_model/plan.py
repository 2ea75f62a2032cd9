"""What a script asks for, as values: a plan is a list of model calls, a call is a list of steps.

A Codex turn makes one model call after another for as long as the model calls tools; call *n* of the plan answers model
call *n* of the turn. Steps happen in order. All values are frozen, and nothing here knows how a step looks on the wire.
"""

import msgspec


class Say(msgspec.Struct, frozen=True):
    """Text for the current message, one delta per piece, with `pace_ms` before each piece (0: as fast as it goes)."""

    pieces: tuple[str, ...]
    pace_ms: float = 0.0


class NewMessage(msgspec.Struct, frozen=True):
    """End the current message item; the next text opens another."""


class Reason(msgspec.Struct, frozen=True):
    """A reasoning item with a summary of one part."""

    pieces: tuple[str, ...]
    pace_ms: float = 0.0


class Open(msgspec.Struct, frozen=True):
    """Send the status line, the headers and `response.created` now, not with the first output."""


class Header(msgspec.Struct, frozen=True):
    """A header of the answer, whichever answer it will be."""

    name: str
    value: str


class Wait(msgspec.Struct, frozen=True):
    """Do nothing for a while."""

    ms: float


class Hold(msgspec.Struct, frozen=True):
    """Do nothing until the control endpoint releases this name."""

    name: str


class Fail(msgspec.Struct, frozen=True):
    """Refuse this attempt: with an HTTP `status`, or (status `None`) with a `response.failed` event on the stream."""

    status: int | None
    code: str | None
    kind: str | None
    message: str
    times: int | None = None
    retry_after_s: int | None = None
    resets_in_s: int | None = None


class Cut(msgspec.Struct, frozen=True):
    """End the answer without `response.completed`: drop the connection, or (`clean`) end the body properly."""

    times: int | None = None
    clean: bool = False


class Raw(msgspec.Struct, frozen=True):
    """One event with this name and this data, whatever it is."""

    event: str
    data: str


class Shell(msgspec.Struct, frozen=True):
    """A call of whichever shell tool the request offers."""

    command: str
    escalate: bool = False
    workdir: str | None = None
    wait_ms: int | None = None


class Patch(msgspec.Struct, frozen=True):
    """A call of the patch tool with `text` in Codex's patch format; through the shell where no such tool is offered."""

    text: str


class Ask(msgspec.Struct, frozen=True):
    """A question to the user with its choices, through `request_user_input`."""

    question: str
    options: tuple[str, ...]


class Spawn(msgspec.Struct, frozen=True):
    """A sub-agent with this prompt, which is a script of its own."""

    prompt: str


class CallTool(msgspec.Struct, frozen=True):
    """A call of any offered tool. `arguments` is passed as it stands; `namespace` names the tool's group."""

    name: str
    arguments: str
    namespace: str | None = None


ToolStep = Shell | Patch | Ask | Spawn | CallTool
Step = Say | NewMessage | Reason | Open | Header | Wait | Hold | Fail | Cut | Raw | ToolStep


class Usage(msgspec.Struct, frozen=True):
    """Token counts of one model call. `cached` is part of `input`, `reasoning` part of `output`."""

    input: int
    cached: int = 0
    output: int = 0
    reasoning: int = 0


class ModelCall(msgspec.Struct, frozen=True):
    """One model call of a turn. No `usage` means the default; `incomplete` is why the answer was cut short."""

    steps: tuple[Step, ...] = ()
    usage: Usage | None = None
    incomplete: str | None = None

    @property
    def tool_calls(self) -> int:
        """How many tools this call calls; when it is over, the turn goes on only if there was one."""
        return sum(isinstance(step, ToolStep) for step in self.steps)


class NoSuchCallError(LookupError):
    """The history has tool calls that the script does not account for; the message counts both."""


class Plan(msgspec.Struct, frozen=True):
    """The model calls of one turn, in order. Every call but the last calls a tool."""

    calls: tuple[ModelCall, ...]

    def call_after(self, tool_calls: int) -> tuple[int, ModelCall]:
        """Return the index and the model call that follows when `tool_calls` tools were called since the prompt.

        Errors: `NoSuchCallError` when no call of this plan begins there: the history is not of this script's making.
        """
        done = 0
        for index, call in enumerate(self.calls):
            if done == tool_calls:
                return index, call
            done += call.tool_calls
        raise NoSuchCallError(f"this script has {done} tool calls, and no model call that follows {tool_calls}")
