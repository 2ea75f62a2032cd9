"""A plan while it is being written: which model call the next step belongs to, and whether it can be reached at all."""

from termald.scripted_model.plan import (
    Cut,
    Fail,
    Header,
    Hold,
    ModelCall,
    NewMessage,
    Plan,
    Raw,
    Reason,
    Say,
    Step,
    ToolStep,
    Usage,
    Wait,
)

DEFAULT_TEXT = "Done."


class ScriptError(ValueError):
    """The prompt is a script that cannot be carried out; the message says where and why."""


class Draft:
    """The calls written so far and the one being written.

    A tool call leaves its model call open only for `join`: any other step begins the next one.
    """

    def __init__(self) -> None:
        self.pace_ms = 0.0
        self._calls: list[ModelCall] = []
        self._steps: list[Step] = []
        self._usage: Usage | None = None
        self._incomplete: str | None = None
        self._touched = False
        self._after_tool = False
        self._joining = False
        self._over: str | None = None  # the directive after which this plan has nothing more to say

    @property
    def is_blank(self) -> bool:
        """True until a directive was read."""
        return not self._touched

    @property
    def message_has_text(self) -> bool:
        """True when text that is added now continues a message rather than opening one."""
        if self._after_tool:
            return False
        for step in reversed(self._steps):
            if isinstance(step, Say) and step.pieces:
                return True
            if isinstance(step, NewMessage | Reason | ToolStep):
                return False
        return False

    def set_pace(self, pace_ms: float) -> None:
        """Let the text that follows come at this pace."""
        self._touched = True
        self.pace_ms = pace_ms

    def add(self, step: Step) -> None:
        """Append a step to the model call it belongs to."""
        is_tool = isinstance(step, ToolStep)
        if self._joining and not is_tool:
            raise ScriptError("@and must be followed by a tool call")
        self._enter_call()
        if isinstance(step, Fail) and step.status is not None and self._has_opened():
            raise ScriptError(
                "an HTTP status cannot follow output of the same model call; "
                "name an error code (a `response.failed` event) or use @cut"
            )
        if isinstance(step, Header) and self._has_opened():
            raise ScriptError("the headers of this model call are sent already")
        self._steps.append(step)
        self._after_tool = is_tool
        self._joining = False
        if isinstance(step, Fail | Cut) and step.times is None:
            self._over = "an attempt that always fails"

    def join(self) -> None:
        """Let the next tool call share the model call of the last one."""
        if not self._after_tool:
            raise ScriptError("there is no tool call just above to share a model call with")
        self._joining = True

    def set_usage(self, usage: Usage) -> None:
        """Say what the current model call costs."""
        self._enter_call()
        if self._usage is not None:
            raise ScriptError("this model call has a usage already")
        self._usage = usage

    def end_incomplete(self, reason: str) -> None:
        """End the current model call with `response.incomplete`."""
        self._enter_call()
        self._incomplete = reason
        self._over = "@incomplete"

    def end_empty(self) -> None:
        """Let the current model call complete with no output at all."""
        self._enter_call()
        if any(_is_output(step) for step in self._steps):
            raise ScriptError("this model call has output already")
        self._over = "@empty"

    def finish(self) -> Plan:
        """Return the plan; a last call that says nothing on its own says `DEFAULT_TEXT`."""
        if self._joining:
            raise ScriptError("the last line is @and, which must be followed by a tool call")
        if self._after_tool:
            self._close_call()
        if not (self._over or any(_is_output(step) for step in self._steps)):
            self._steps.append(Say((DEFAULT_TEXT,), self.pace_ms))
        self._close_call()
        return Plan(tuple(self._calls))

    def _enter_call(self) -> None:
        self._touched = True
        if self._over is not None:
            raise ScriptError(f"nothing can follow {self._over}")
        if self._after_tool and not self._joining:
            self._close_call()

    def _close_call(self) -> None:
        self._calls.append(ModelCall(tuple(self._steps), self._usage, self._incomplete))
        self._steps, self._usage, self._after_tool = [], None, False

    def _has_opened(self) -> bool:
        return any(not isinstance(step, Header | Wait | Hold | Fail | Cut) for step in self._steps)


def _is_output(step: Step) -> bool:
    return isinstance(step, Say | Reason | Raw | ToolStep)
